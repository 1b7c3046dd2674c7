"""Mounts that appear inside an entry while it is evicted, in our mount namespace and in others."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from tests.daemon.evicting import at_step
from tests.daemon.hostility import place

from cachewarden.report import Failed, Removed, Spared
from cachewarden_policies.reasons import KeepReason

pytestmark = pytest.mark.root
__all__ = ["place"]

KINDS = {"bind": ["mount", "--bind", "{treasure}"], "tmpfs": ["mount", "-t", "tmpfs", "none"]}


@pytest.fixture
def entry(place):
    """The entry with a directory to mount upon, and a descriptor of that directory."""
    for number in range(5):
        place.put(f"e/sub/f{number}")
    os.mkdir(place.cache.path("e/point"))
    fd = os.open(place.cache.path("e/point"), os.O_PATH)
    yield fd
    os.close(fd)


def where(fd):
    """Where the directory is now: in the cache, or in the trash."""
    return os.readlink(f"/proc/self/fd/{fd}")


@contextmanager
def mounting(place, kind, fd):
    """An action that mounts upon the directory in our own namespace; it is undone at the end."""
    points = []

    def act():
        points.append(where(fd))
        command = [each.format(treasure=place.treasure) for each in KINDS[kind]]
        subprocess.run([*command, points[0]], check=True)

    try:
        yield act
    finally:
        for _ in points:
            subprocess.run(["umount", "-l", point_of(place, fd) or points[0]], check=False)


def point_of(place, fd):
    """Where the mount is now: it moves with its directory."""
    here = where(fd)
    return here if os.path.ismount(here) or os.path.exists(os.path.join(here, "sub")) else None


_ELSEWHERE = """
import os, subprocess, sys, time
go, done, command = sys.argv[1], sys.argv[2], sys.argv[3:]
print("ready", flush=True)
while not os.path.exists(go): time.sleep(0.005)
subprocess.run([*command, open(go).read()], check=True)
open(done, "w").close()
time.sleep(120)
"""


@contextmanager
def mounting_elsewhere(place, kind, fd):
    """The same in a mount namespace of another process, which nobody sees in our own."""
    go, done = place.base / "go", place.base / "done"
    command = [each.format(treasure=place.treasure) for each in KINDS[kind]]
    wrap = ["unshare", "-m", "--propagation", "private", sys.executable, "-c", _ELSEWHERE]
    with subprocess.Popen([*wrap, str(go), str(done), *command], stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout.readline() == b"ready\n"

            def act():
                (place.base / "going").write_text(where(fd))
                os.rename(place.base / "going", go)
                end = time.monotonic() + 10
                while not done.exists():
                    assert other.poll() is None
                    assert time.monotonic() < end
                    time.sleep(0.005)

            yield act
        finally:
            other.kill()


@pytest.mark.parametrize("step", ["opened", "leased", "moved"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", [mounting, mounting_elsewhere], ids=["here", "elsewhere"])
def test_an_entry_in_which_a_mount_appears_is_put_back_whole(place, entry, how, kind, step):
    before = place.cache.tree("e/sub")
    with how(place, kind, entry) as act:
        outcome = place.cache.evict(place.cache.victim("e"), at=at_step(step, act))
        assert isinstance(outcome, Spared)
        # A mount that took long: then the second that an opener may have to wait was over.
        assert outcome.reason in (KeepReason.MOUNTPOINT, KeepReason.UNKNOWN)
        assert place.cache.tree("e/sub") == before
        assert place.unharmed
    assert place.unharmed


@pytest.mark.parametrize("step", ["verified", "committed", "released"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", [mounting, mounting_elsewhere], ids=["here", "elsewhere"])
def test_what_is_mounted_too_late_to_be_seen_is_not_touched_either(place, entry, how, kind, step):
    """Unlinking goes by descriptors that are older than the mount, and by the names that were listed."""
    with how(place, kind, entry) as act:
        outcome = place.cache.evict(place.cache.victim("e"), at=at_step(step, act))
        assert isinstance(outcome, Removed | Failed | Spared)
        assert place.unharmed
        place.cache.recover()
        assert place.unharmed
    assert place.unharmed
    place.cache.recover()
    assert place.unharmed
