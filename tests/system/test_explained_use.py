"""Who used an entry last, as `explain` tells it, and indexers that read everything and change nothing."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from cachewarden.ledger import open_ledger
from cachewarden_policies.policy import DAY

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("needs_root")]

NOBODY = 65534
_MAKE = """
import os, sys, time
for name, days in zip(sys.argv[2::2], map(float, sys.argv[3::2])):
    path = sys.argv[1] + "/" + name
    os.makedirs(path)
    for file in ("f", "g"):
        with open(path + "/" + file, "wb") as made:
            made.write(os.urandom(1 << 20))
        os.utime(path + "/" + file, (time.time() - days * 86400, time.time() - 90 * 86400))
"""
# As a user who may not search the directories above, it opens by way of where it stands.
_READ = """
import os, sys
os.setgid(int(sys.argv[1]))
os.setuid(int(sys.argv[1]))
for path in sys.argv[2:]:
    with open(path, "rb") as file:
        file.read()
print("read", flush=True)
sys.stdin.read()
"""


def make(root, **days):
    """Entries, last read so many days ago, made by a process that ends."""
    pairs = [str(each) for item in days.items() for each in item]
    subprocess.run([sys.executable, "-c", _MAKE, root, *pairs], check=True)


def until(what, seconds=60.0):
    """Wait until `what()` is true, and return it."""
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
    return found


@contextlib.contextmanager
def disk(path, *options):
    """An ext4 filesystem of its own at `path`."""
    image = f"{path}.img"
    subprocess.run(["truncate", "-s", "64M", image], check=True)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    os.makedirs(path, exist_ok=True)
    subprocess.run(["mount", "-o", ",".join(["loop", *options]), image, path], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", path], check=True)


def named(tmp_path, name):
    """The interpreter under another name, which is the process's name then."""
    path = str(tmp_path / name)
    if not os.path.lexists(path):
        os.symlink(sys.executable, path)
    return path


def read(tmp_path, name, *paths, uid=0, cwd=None, noticed=lambda _: True):
    """A program of this name reads files, and ends when `noticed(pid)` is true."""
    command = [named(tmp_path, name), "-S", "-c", _READ, str(uid), *paths]
    environ = {
        **os.environ,
        "PYTHONHOME": sys.base_prefix,
    }  # under another name it would not find its library
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, cwd=cwd
    ) as program:
        assert program.stdout.readline() == b"read\n"
        until(lambda: noticed(program.pid))
        program.communicate()
    return program.pid


def records(warden, root):
    """What the ledger has of the entries by now, by name."""
    with open_ledger(os.fsencode(warden.state_dir), time.time_ns(), read_only=True) as ledger:
        return {os.fsdecode(name): each for name, each in ledger.records(f"cache:{root}").items()}


def opened(warden, root, entry):
    """Whether the ledger knows that a process opened an entry."""

    def noticed(pid):
        opener = records(warden, root)[entry].opener
        return opener is not None and opener.pid == pid

    return noticed


def indexed(warden, root, tmp_path):
    """An indexer reads everything, under the eyes of a service."""
    began_ns = time.time_ns()

    def noticed(_):
        found = records(warden, root).values()
        return all(each.passing is not None and each.passing.until_ns > began_ns + DAY for each in found)

    read(tmp_path, "updatedb", *everything(root), noticed=noticed)


def everything(root):
    """All files below a directory."""
    return [os.path.join(here, name) for here, _, names in os.walk(root) for name in sorted(names)]


def explained(warden, path):
    told = warden("explain", path, "--json")
    assert told.status == 0, told.err
    return told.json


@pytest.fixture
def quiet(root):
    """The root on a filesystem of its own: what others do beside us asks for no pass."""
    with disk(root, "noatime"):
        shutil.rmtree(os.path.join(root, "lost+found"))
        yield root


def test_a_use_is_told_with_its_program_and_user_without_a_pass_and_after_a_kill(warden, quiet, tmp_path):
    make(quiet, model=9, other=9)
    warden.daemon |= {"interval": "1h", "settle": "1h"}
    path = os.path.join(quiet, "model")
    with warden.service() as service:
        until(lambda: service.passes() >= 1)
        assert warden("pause").status == 0
        passes = service.passes()
        pid = read(
            tmp_path, "modelserver", "model/f", uid=NOBODY, cwd=quiet, noticed=opened(warden, quiet, "model")
        )
        told = until(lambda: (found := explained(warden, path))["last_opener"] and found)
        user = subprocess.run(["id", "-un", str(NOBODY)], capture_output=True, text=True, check=True)
        assert told["last_opener"] == {"pid": pid, "name": "modelserver", "user": user.stdout.strip()}
        assert (told["last_use_source"], told["last_use_seen_by"]) == ("opens", "fanotify")
        assert told["last_use_confidence"] == "exact"
        assert service.passes() == passes
        service.child.send_signal(signal.SIGKILL)
        service.child.wait()
    assert explained(warden, path)["last_opener"]["pid"] == pid
    said = " ".join(warden("explain", path).out.split())
    assert f"opened by modelserver (pid {pid}, {user.stdout.strip()})" in said
    assert "seen by fanotify" in said
    assert explained(warden, os.path.join(quiet, "other"))["last_opener"] is None


@pytest.mark.parametrize("mode", ["strictatime", "relatime", "noatime"])
def test_an_indexer_that_reads_everything_leaves_the_order_as_it_was(warden, root, tmp_path, mode):
    """Also over restarts of the service, before and after which it comes; and who reads beside it counts."""
    warden.daemon |= {"interval": "1h", "settle": "1h", "ignore_processes": ["updatedb"]}
    order = {"used": "opens", "first": "stamps", "second": "stamps", "third": "stamps"}
    if mode != "noatime":
        source = "atime" if mode == "strictatime" else "relatime"
        order = {"used": "opens", "third": source, "second": source, "first": source}
    with disk(root, mode):
        shutil.rmtree(os.path.join(root, "lost+found"))
        make(root, first=40, second=30, third=20, used=60)
        with warden.service() as service:
            until(lambda: service.passes() >= 1)
            before = warden.entries()
            path = os.path.join(root, "used/f")
            read(tmp_path, "cat-of-somebody", path, noticed=opened(warden, root, "used"))
            indexed(warden, root, tmp_path)
        with warden.service() as service:
            until(lambda: service.passes() >= 1)
            indexed(warden, root, tmp_path)
            service.child.send_signal(signal.SIGUSR1)
            until(lambda: service.passes() >= 2)
            found = warden.entries()
        for name in ("first", "second", "third"):
            assert found[name]["last_use"] == before[name]["last_use"], name
        sources = {name: each["last_use_source"] for name, each in found.items()}
        assert sources == order
        warden.policy |= {"max_size": "7MiB", "target_size": "6MiB"}
        assert warden.once().evicted == ["first"]


def test_without_a_service_an_indexers_reads_count_and_that_is_said(warden, root, tmp_path):
    with disk(root, "strictatime"):
        shutil.rmtree(os.path.join(root, "lost+found"))
        make(root, first=40)
        warden.write()
        explained(warden, os.path.join(root, "first"))
        read(tmp_path, "updatedb", *everything(root))
        told = explained(warden, os.path.join(root, "first"))
        assert (told["last_use_source"], told["last_use_confidence"]) == ("atime", "read")
        said = " ".join(warden("explain", os.path.join(root, "first")).out.split())
        assert "a backup or an indexer reads too" in said
