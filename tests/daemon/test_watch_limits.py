"""What inotify refuses or loses: limits in user namespaces of their own, unreadable folders, overflows."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from cachewarden.watch import Watcher


def test_a_chain_deeper_than_descriptors_or_recursion_go_is_watched_in_part(tmp_path):
    root, changes = os.fsencode(tmp_path), []
    watcher = Watcher(lambda _key, path: changes.append(path), lambda: None)
    here = os.open(root, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir(b"d", dir_fd=here)
        below = os.open(b"d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    try:
        assert watcher.watch("k", root) == "partial"
        os.mkdir(root + b"/d/d/new")
        end = time.monotonic() + 10
        while root + b"/d/d/new" not in changes:
            assert time.monotonic() < end
            time.sleep(0.01)
    finally:
        watcher.stop()
        # Too deep for pytest's own cleaning.
        subprocess.run(["rm", "-rf", os.path.join(root, b"d")], check=True)


# In a user namespace of its own, where the limits can be set without touching the machine's.
LIMITED = """
import json, os, sys, time
from cachewarden.watch import Watcher
setting, value, root = sys.argv[1], sys.argv[2], os.fsencode(sys.argv[3])
def limit(value):
    with open("/proc/sys/user/max_inotify_" + setting, "w") as f: f.write(value)
limit(value)
changes = []
watcher = Watcher(lambda key, path: changes.append(os.fsdecode(path)), lambda: None)
first, warning = watcher.watch("k", root), watcher.warning
watcher.watch_roots("me", [os.path.dirname(root)])
os.mkdir(root + b"/d1/new") if setting == "watches" else None
time.sleep(0.5)
second = watcher.mode("k")
limit("1000")
third, later = watcher.watch("k", root), watcher.warning
open(root + b"/d20/f", "w").close()
end = time.monotonic() + 5
while time.monotonic() < end and not any("d20/f" in c for c in changes): time.sleep(0.05)
print(json.dumps([first, warning, second, third, later, any("d20/f" in c for c in changes)]))
watcher.stop()
"""


@pytest.mark.parametrize(
    ("setting", "value", "mode"),
    [("watches", "5", "partial"), ("watches", "0", "polling"), ("instances", "0", "polling")],
)
def test_limits_that_are_reached_are_told_with_their_sysctl_and_healed_when_raised(
    tmp_path, setting, value, mode
):
    for number in range(1, 21):
        (tmp_path / "root" / f"d{number}").mkdir(parents=True)
    done = subprocess.run(
        ["unshare", "-Ur", sys.executable, "-c", LIMITED, setting, value, str(tmp_path / "root")],
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare failed" in done.stderr:
        pytest.skip(f"user namespaces are not allowed here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    first, warning, second, third, later, noticed = json.loads(done.stdout)
    assert (first, second) == (mode, mode)
    assert f"fs.inotify.max_user_{setting}" in warning
    assert (third, later, noticed) == ("inotify", None, True)


# Another user, because root reads everything.
UNREADABLE = """
import json, os, sys
from cachewarden.watch import Watcher
if os.geteuid() == 0:
    os.setgid(65534); os.setuid(65534)
watcher = Watcher(lambda key, path: None, lambda: None)
print(json.dumps([watcher.watch("k", os.fsencode(sys.argv[1])), watcher.warning]))
watcher.stop()
"""


def test_a_directory_that_cannot_be_read_makes_the_watch_partial_without_blaming_a_limit(tmp_path):
    locked = tmp_path / "root" / "locked"
    locked.mkdir(parents=True)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder != folder.parent:
            folder.chmod(folder.stat().st_mode | 0o011)
    (tmp_path / "root").chmod(0o755)
    locked.chmod(0)
    done = subprocess.run(
        [sys.executable, "-c", UNREADABLE, str(tmp_path / "root")],
        capture_output=True,
        text=True,
        check=False,
    )
    locked.chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["partial", None]


# A process of its own, because it is stopped while its queue overflows.
BURST = """
import os, sys, time
from cachewarden.watch import Watcher
root, overflows, changes = os.fsencode(sys.argv[1]), [], []
watcher = Watcher(lambda key, path: changes.append(path), lambda: overflows.append(1))
print(watcher.watch("k", root), flush=True)
fd = os.open(root, os.O_RDONLY)
watcher.take("k", fd)
sys.stdin.readline()
print(len(overflows), watcher.mode("k"), watcher.watch("k", root), watcher.take("k", fd), flush=True)
sys.stdin.readline()
end = time.monotonic() + 10
while root + b"/x/1/2/3/f" not in changes and time.monotonic() < end: time.sleep(0.05)
print(root + b"/x/1/2/3/f" in changes, flush=True)
watcher.stop()
"""


def test_an_overflow_is_told_once_and_heals_with_the_next_look(tmp_path):
    root = os.fsencode(tmp_path)
    with open("/proc/sys/fs/inotify/max_queued_events") as setting:
        length = int(setting.read())
    if length > 100_000:
        pytest.skip(f"fs.inotify.max_queued_events is {length}: too many files to make")
    child = subprocess.Popen(
        [sys.executable, "-c", BURST, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "inotify\n"
        os.kill(child.pid, signal.SIGSTOP)
        os.mkdir(root + b"/b")
        for number in range(length // 2 + 2000):
            os.close(os.open(root + b"/%d" % number, os.O_CREAT | os.O_WRONLY))
        os.makedirs(root + b"/x/1/2/3")
        os.kill(child.pid, signal.SIGCONT)
        time.sleep(3)
        print(file=child.stdin, flush=True)
        assert child.stdout.readline() == "1 partial inotify None\n"
        os.close(os.open(root + b"/x/1/2/3/f", os.O_CREAT | os.O_WRONLY))
        print(file=child.stdin, flush=True)
        assert child.stdout.readline() == "True\n"
    finally:
        child.kill()
        child.communicate()
