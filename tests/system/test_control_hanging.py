"""A filesystem that never answers costs those who ask about it an error, and nobody else anything."""

import ctypes
import os
import subprocess
import sys
import threading
import time

import pytest
from tests.system.command import Warden
from tests.system.users import User, ground

USER = User(50001)
API = "/api/v1"
# A filesystem whose server reads no request.
HANG = """
import ctypes, os, sys, time
fd = os.open("/dev/fuse", os.O_RDWR)
options = b"fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % fd
assert ctypes.CDLL(None).mount(b"hang", os.fsencode(sys.argv[1]), b"fuse.hang", 0, options) == 0
print("mounted", flush=True)
time.sleep(120)
"""
DETACH = 2  # MNT_DETACH: a plain umount waits for an answer


@pytest.fixture
def hung(needs_root):
    """A service with a location that answers, and one on a filesystem that does not."""
    if not os.path.exists("/dev/fuse"):
        pytest.skip("needs /dev/fuse: its filesystem hangs")
    with ground() as base:
        os.mkdir(f"{base}/hang")
        os.mkdir(f"{base}/root")
        os.chmod(f"{base}/root", 0o1777)
        USER.make(f"{base}/root/mine")
        warden = Warden(f"{base}/warden")
        warden.location("cache", f"{base}/root")
        warden.location("hang", f"{base}/hang")
        warden.daemon |= {"interval": "1h"}
        holder = None
        try:
            with warden.service() as service:
                # After its first pass, so that the location is one.
                end = time.monotonic() + 30
                while service.passes() < 2:
                    assert time.monotonic() < end
                    time.sleep(0.1)
                command = [sys.executable, "-c", HANG, f"{base}/hang"]
                holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
                assert holder.stdout.readline() == "mounted\n"
                yield f"{warden.runtime_dir}/control.sock", base, service
        finally:
            if holder is not None:
                holder.kill()
                holder.wait()
                holder.stdout.close()
            ctypes.CDLL(None).umount2(os.fsencode(f"{base}/hang"), DETACH)


def test_the_rest_is_answered_while_a_filesystem_hangs_and_threads_stay_few(hung):
    socket, base, service = hung

    def threads():
        return len(os.listdir(f"/proc/{service.child.pid}/task"))

    def stuck():
        # Four of them are all that one user may have at work; they wait for the hung filesystem.
        USER.ask(socket, "GET", f"{API}/explain?path={base}/hang/x")

    asking = [threading.Thread(target=stuck, daemon=True) for _ in range(3)]
    for each in asking:
        each.start()
    before = threads()
    other = User(50002)
    for _ in range(5):
        assert USER.ask(socket, "GET", f"{API}/entries?location=cache").entries == ["mine"]
        assert other.ask(socket, "GET", f"{API}/status").status == 200
        assert other.ask(socket, "GET", f"{API}/pins").status == 200
    assert USER.ask(socket, "POST", f"{API}/pins", {"path": f"{base}/root/mine"}).status == 201
    # A thread for each request at work, one for each filesystem, and no more for each further request.
    assert threads() <= before + 8
    assert "this is a bug" not in service.log
