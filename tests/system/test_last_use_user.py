"""A user's own service, without any right of root's: inotify with its limits, access times, samples."""

import contextlib
import os
import signal
import subprocess
import time

import pytest
from tests.ports import free_port
from tests.system.command import PROGRAM, running
from tests.system.last_use import disk, read, three_entries, times
from tests.system.trees import allocated, fill, wait_until

MIB = 2**20
MODE = "cachewarden_location_watch_mode"
AS_USER = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]


def allowed():
    return subprocess.run([*AS_USER, "true"], capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not allowed(), reason="user namespaces are not allowed here")


@contextlib.contextmanager
def users_service(warden, **limits):
    """`cachewarden --user run` as an ordinary user, in a namespace with `limits` of inotify of its own.

    Whoever runs the test owns the files, and has none of root's rights in there.
    """
    port = free_port()
    warden.daemon["http"] = f"127.0.0.1:{port}"
    warden.write()
    lower = "; ".join(f"echo {value} >/proc/sys/user/max_inotify_{name}" for name, value in limits.items())
    command = [*AS_USER, PROGRAM, "--user", "--config", warden.file]
    if limits:
        command = ["unshare", "-Ur", "sh", "-ec", f'{lower}; exec "$@"', "sh", *command]
    with running(command, port, os.path.join(warden.base, "service.log")) as service:
        yield service


def state(service, metric):
    """Which of the states of a metric holds now."""
    series = [name for name, value in service.metrics().items() if name.startswith(metric + "{") and value]
    return series[0].rpartition('="')[2].rstrip('"}') if series else None


def usage(service):
    return service.metrics().get("cachewarden_location_bytes", 0)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [({"watches": 5}, "partial"), ({"watches": 0}, "polling"), ({"instances": 0}, "polling")],
    ids=["five-watches", "no-watch", "no-instance"],
)
def test_an_exhausted_inotify_is_named_once_and_new_entries_are_noticed_all_the_same(
    warden, root, limits, expected
):
    for number in range(1, 21):
        os.makedirs(f"{root}/d{number}")
    warden.daemon |= {"interval": "2s"}
    with users_service(warden, **limits) as service:
        wait_until(lambda: service.passes() >= 1)
        wait_until(lambda: state(service, MODE) == expected)
        fill(f"{root}/d20/f", 4)
        wait_until(lambda: usage(service) == allocated(root), 10)
        before = service.passes()
        wait_until(lambda: service.passes() >= before + 2)
        (name,) = limits
        warnings = [line for line in service.log.splitlines() if f"fs.inotify.max_user_{name}" in line]
        assert len(warnings) == 1
        assert f"user.max_inotify_{name}" in warnings[0]
        assert service.stop() == 0


def test_a_service_that_was_stopped_during_a_burst_is_right_soon_after(warden, root):
    with open("/proc/sys/fs/inotify/max_queued_events", encoding="ascii") as setting:
        length = int(setting.read())
    if length > 30_000:
        pytest.skip(f"fs.inotify.max_queued_events is {length}: too many files to make")
    count = max(10_000, length // 2 + 2000)  # a file is two events: created, and closed after writing
    warden.daemon |= {"interval": "1h", "settle": "200ms"}
    with users_service(warden) as service:
        wait_until(lambda: state(service, MODE) == "inotify")
        pid = service.child.pid
        os.kill(pid, signal.SIGSTOP)
        try:
            os.mkdir(f"{root}/b")
            for number in range(count):
                os.close(os.open(f"{root}/b/{number}", os.O_CREAT | os.O_WRONLY))
                os.close(os.open(f"{root}/{number}", os.O_CREAT | os.O_WRONLY))
            fill(f"{root}/x/1/2/3/4/5/f", 4)
        finally:
            os.kill(pid, signal.SIGCONT)
        wait_until(lambda: usage(service) == allocated(root) == 4 * MIB, 60)
        wait_until(lambda: service.metrics()["cachewarden_location_files"] == 2 * count + 1, 60)
        assert service.metrics()["cachewarden_watch_overflows_total"] >= 1
        wait_until(lambda: state(service, MODE) == "inotify", 60)
        fill(f"{root}/x/1/2/3/4/5/later", 1)
        wait_until(lambda: usage(service) == 5 * MIB, 60)


@pytest.mark.parametrize(("mount", "first"), [("noatime", "A"), ("relatime", "B"), ("strictatime", "B")])
def test_without_rights_access_times_tell_and_where_there_are_none_that_is_said(
    needs_root, warden, tmp_path, mount, first
):
    warden.daemon["interval"] = "1h"
    with disk(str(tmp_path), mount) as root:
        three_entries(root)
        warden.location("cache", root)
        with users_service(warden) as service:
            wait_until(lambda: service.passes() >= 1)
            read(f"{root}/A/f")
            warden.policy |= {"max_size": "5MiB", "target_size": "100%"}
            warden.write()
            service.reload()
            wait_until(lambda: len(os.listdir(root)) == 2)
            assert first not in os.listdir(root)
            expected = {"noatime": "stamps", "relatime": "relatime", "strictatime": "atime"}[mount]
            assert state(service, "cachewarden_location_recency_source") == expected


@pytest.mark.parametrize("who", ["root", "owner"])
def test_our_own_walks_move_no_time_of_anything(needs_root, warden, tmp_path, who):
    """As root by CAP_FOWNER, as their owner by right: O_NOATIME needs one of both, see open(2).

    But a symbolic link's, which no flag spares when it is read, and which counts for nothing.
    """
    warden.policy |= {"max_size": "100MiB"}
    with disk(str(tmp_path), "strictatime") as root:
        three_entries(root)
        fill(f"{root}/models--o--r/blobs/e1", 0.1)
        fill(f"{root}/deep/1/2/3/4/f", 0.1)
        os.symlink("A", f"{root}/link")
        warden.location("cache", root)
        warden.write()
        prefix = [] if who == "root" else AS_USER
        options = ["--config", warden.file] if who == "root" else ["--user", "--config", warden.file]
        time.sleep(0.05)  # the kernel's clock moves on, so that a later access would show
        before = times(root)
        for arguments in (["once"], ["plan"], ["plan", "--probe"], ["list"], ["once"], ["once"]):
            done = subprocess.run(
                [*prefix, PROGRAM, *options, *arguments], capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
        with users_service(warden) if who == "owner" else warden.service() as service:
            wait_until(lambda: service.passes() >= 1)
            service.child.send_signal(signal.SIGUSR1)
            wait_until(lambda: service.passes() >= 2)
        after = times(root) | {f"{root}/link": before[f"{root}/link"]}
        assert after == before


def test_looking_into_an_entry_without_reading_it_is_no_use(needs_root, warden, tmp_path):
    """A listing moves the access time of a directory, which counts for nothing; nor does a stat."""
    warden.daemon["interval"] = "1h"
    with disk(str(tmp_path), "strictatime") as root:
        three_entries(root)
        warden.location("cache", root)
        with warden.service() as service:
            wait_until(lambda: service.passes() >= 1)
            subprocess.run(["du", "-s", root], check=True, capture_output=True)
            subprocess.run(["ls", "-lR", root], check=True, capture_output=True)
            last = {name: each["last_use"] for name, each in warden.entries().items()}
            assert last["A"] < last["B"] < last["C"]
