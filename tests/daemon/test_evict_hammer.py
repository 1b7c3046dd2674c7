"""Readers load an entry over and over while it is evicted and made again: no load is ever torn."""

import os
import signal
import sys
import time

import pytest
from tests.daemon.evicting import Cache

from cachewarden.report import Removed

SHARDS = 6
SECONDS = 4
# A load begins with its first shard; from then on every other one has to be there. How a reader gets at
# them is what differs: whatever he holds between two shards is what he can be seen by.
READERS = {
    "by path, keeping what it opened": "base, keep = None, True",
    "by a directory descriptor, closing each": "base, keep = 'open', False",
    "standing in it, closing each": "base, keep = 'cwd', False",
}
LOAD = """
import os, sys, time
entry, shards = args[0], int(args[1])
{how}
torn = loads = 0
end = time.monotonic() + {seconds}
print('reading', flush=True)
while time.monotonic() < end:
    fd, held, begun = None, [], False
    try:
        if base == 'open': fd = os.open(entry, os.O_RDONLY | os.O_DIRECTORY)
        if base == 'cwd': os.chdir(entry)
        for number in range(shards):
            name = b'%d' % number
            path = name if base else os.path.join(entry, name)
            shard = os.open(path, os.O_RDONLY, dir_fd=fd)
            begun = True
            os.read(shard, 10)
            if keep: held.append(shard)
            else: os.close(shard)
        loads += 1
    except OSError:
        torn += begun
    finally:
        for each in held: os.close(each)
        if fd is not None: os.close(fd)
        os.chdir(b'/')
os.write(int(args[2]), b'%d %d\\n' % (torn, loads))
"""


@pytest.mark.parametrize("how", READERS)
def test_no_load_is_torn(tmp_path, how):
    cache = Cache(tmp_path / "cache")
    code = "import os,sys; args=[os.fsencode(each) for each in sys.argv[1:]]\n"
    code += LOAD.format(how=READERS[how], seconds=SECONDS)
    make(cache)
    read, write = os.pipe()
    os.set_inheritable(write, True)
    arguments = [sys.executable, "-c", code, os.fsdecode(cache.path("e")), str(SHARDS), str(write)]
    readers = [os.posix_spawn(sys.executable, arguments, os.environ) for _ in range(2)]
    removed = spared = 0
    end = time.monotonic() + SECONDS + 0.5
    try:
        while time.monotonic() < end:
            outcome = cache.evict(cache.victim("e"))
            if isinstance(outcome, Removed):
                removed += 1
                make(cache)
            else:
                spared += 1
    finally:
        for reader in readers:
            os.kill(reader, signal.SIGCONT)
            os.waitpid(reader, 0)
        os.close(write)
    with open(read) as said:
        torn, loads = (sum(column) for column in zip(*(map(int, line.split()) for line in said), strict=True))
    cache.sweep()
    assert torn == 0
    assert min(removed, spared, loads) > 0


def make(cache):
    """The entry appears whole, as atomic writers make it."""
    for number in range(SHARDS):
        cache.put(f"new/{number}", 1000)
    os.rename(cache.path("new"), cache.path("e"))
