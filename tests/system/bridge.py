"""A way for tools that speak TCP only to a control socket, as a user of this machine."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

from tests.system.command import environment
from tests.system.users import User

# Everything that it needs is imported before it is that user: the interpreter need not be readable for him.
_BRIDGE = """
import asyncio, encodings.idna, os, sys
uid, at = int(sys.argv[1]), sys.argv[2]
os.setgroups([]); os.setresgid(uid, uid, uid); os.setresuid(uid, uid, uid)
async def pass_on(reader, writer):
    try:
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
async def connected(reader, writer):
    try:
        back, there = await asyncio.open_unix_connection(at)
    except OSError:
        writer.close()
        return
    there_is = asyncio.create_task(pass_on(reader, there))
    await pass_on(back, writer)
    there_is.cancel()
async def serve():
    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(serve())
"""


@contextlib.contextmanager
def bridged(socket: str, user: User) -> Iterator[str]:
    """An address such as `127.0.0.1:4711` that leads to the socket, whose peer is then this user."""
    command = [sys.executable, "-c", _BRIDGE, str(user.uid), os.path.realpath(socket)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as child:
        try:
            assert child.stdout is not None
            yield f"127.0.0.1:{int(child.stdout.readline())}"
        finally:
            child.kill()
