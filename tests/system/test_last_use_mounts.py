"""Who goes first, on every kind of mount: what was read stays, whatever the mount says of it."""

import os
import signal
import subprocess

import pytest
from tests.system.last_use import MODES, disk, read, three_entries
from tests.system.trees import mounted, wait_until

FIVE = {"max_size": "5MiB", "target_size": "100%"}

pytestmark = pytest.mark.usefixtures("needs_root")


def left(root):
    return sorted(name for name in os.listdir(root) if not name.startswith("."))


def shrink(warden, service, limits):
    """Give a running service a limit, and wait until a pass under it is over."""
    warden.policy |= limits
    warden.write()
    before = service.passes()
    service.reload()
    wait_until(lambda: "configuration read again" in service.log)
    wait_until(lambda: service.passes() > before)


@pytest.mark.parametrize(
    ("mode", "kind"), [*((mode, "ext4") for mode in MODES), ("noatime", "xfs"), ("relatime", "xfs")]
)
def test_what_was_read_while_the_service_ran_stays_on_every_mount(warden, tmp_path, mode, kind):
    warden.daemon["interval"] = "1h"
    with disk(str(tmp_path), mode, kind) as root:
        three_entries(root)
        warden.location("cache", root)
        with warden.service() as service:
            wait_until(lambda: service.passes() >= 1)
            read(f"{root}/A/f")
            shrink(warden, service, FIVE)
            wait_until(lambda: left(root) == ["A", "C"])
            usable = f'cachewarden_location_atime_usable{{location="cache",path="{root}"}}'
            assert service.metrics()[usable] == (mode != "noatime")
            # Where access times are honest, the read itself is newer than the open before it.
            sources = {"opens"} if mode == "noatime" else {"opens", "atime", "relatime"}
            assert warden.entries()["A"]["last_use_source"] in sources


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_restart_between_the_read_and_the_pass_changes_nothing(warden, tmp_path, end):
    """A kill leaves a moment for the batch: at most a second or two of opens are lost."""
    warden.daemon["interval"] = "1h"
    with disk(str(tmp_path), "noatime") as root:
        three_entries(root)
        warden.location("cache", root)
        with warden.service() as service:
            wait_until(lambda: service.passes() >= 1)
            read(f"{root}/A/f")
            if end == signal.SIGKILL:
                wait_until(lambda: warden.entries()["A"]["last_use_source"] == "opens")
            service.child.send_signal(end)
            service.child.wait(15)
        warden.policy |= FIVE
        with warden.service():
            wait_until(lambda: left(root) == ["A", "C"])


@pytest.mark.parametrize("mode", MODES)
def test_what_was_read_before_there_was_a_service_is_known_by_access_times_only(warden, tmp_path, mode):
    with disk(str(tmp_path), mode) as root:
        three_entries(root)
        read(f"{root}/A/f")
        warden.location("cache", root)
        warden.policy |= FIVE
        done = warden.once()
        assert done.evicted == (["A"] if mode == "noatime" else ["B"])
        source = {"noatime": "stamps", "relatime": "relatime"}.get(mode, "atime")
        assert done.only["evicted"][0]["last_use_source"] == source
        told = warden("status", "--json").json["locations"][0]["recency_source"]
        assert told == source, "a command that begins now does not know what was opened before it"


def test_two_reads_on_one_day_are_in_no_order_on_a_relatime_mount_but_for_the_service(warden, tmp_path):
    warden.daemon["interval"] = "1h"
    with disk(str(tmp_path), "relatime") as root:
        three_entries(root)
        for name in "ABC":
            read(f"{root}/{name}/f")
        warden.location("cache", root)
        with warden.service() as service:
            wait_until(lambda: service.passes() >= 1)
            read(f"{root}/A/f")
            read(f"{root}/C/f")
            shrink(warden, service, FIVE)
            wait_until(lambda: left(root) == ["A", "C"])


def test_a_mount_whose_options_change_while_the_service_runs_is_read_anew(warden, tmp_path):
    warden.daemon["interval"] = "1h"
    with disk(str(tmp_path), "relatime") as root:
        three_entries(root)
        warden.location("cache", root)
        usable = f'cachewarden_location_atime_usable{{location="cache",path="{root}"}}'
        with warden.service() as service:
            wait_until(lambda: service.metrics().get(usable) == 1)
            subprocess.run(["mount", "-o", "remount,noatime", os.path.dirname(root)], check=True)
            service.child.send_signal(signal.SIGUSR1)
            wait_until(lambda: service.metrics().get(usable) == 0)


def test_a_read_only_mount_is_looked_at_and_nothing_else(warden, tmp_path):
    with disk(str(tmp_path), "strictatime") as root:
        three_entries(root)
        subprocess.run(["mount", "-o", "remount,ro", os.path.dirname(root)], check=True)
        read(f"{root}/A/f")
        warden.location("cache", root)
        warden.policy |= FIVE
        plan = warden.plan()
        assert plan.evicted == ["A"], "an access time that nobody moves says nothing"
        assert warden.once().status == 1
        assert left(root) == ["A", "B", "C"]
        with warden.service() as service:
            wait_until(lambda: service.passes() >= 1)
            assert service.child.poll() is None
        assert left(root) == ["A", "B", "C"]


def tmpfs(base):
    point = os.path.join(base, "tmpfs")
    os.mkdir(point)
    return mounted(["-t", "tmpfs", "tmpfs"], point), point


@pytest.fixture(params=["tmpfs", "subvolume", "top"])
def place(request, tmp_path):
    """A cache root on a tmpfs, in a btrfs subvolume that is mounted alone, in one below a mounted top."""
    base = str(tmp_path)
    if request.param == "tmpfs":
        mount, point = tmpfs(base)
        with mount:
            yield point
        return
    with disk(base, "noatime", "btrfs") as root:
        sub = os.path.join(os.path.dirname(root), "sub")
        subprocess.run(["btrfs", "-q", "subvolume", "create", sub], check=True)
        if request.param == "top":
            yield sub
            return
        point = os.path.join(base, "alone")
        os.mkdir(point)
        with mounted(["-o", "loop,subvol=sub,noatime", os.path.join(base, "image")], point):
            subprocess.run(["umount", "-l", os.path.dirname(root)], check=True)
            try:
                yield point
            finally:
                subprocess.run(
                    ["mount", "-o", "loop", os.path.join(base, "image"), os.path.dirname(root)], check=True
                )


def test_what_was_read_stays_in_subvolumes_and_on_tmpfs(warden, place):
    warden.daemon["interval"] = "1h"
    three_entries(place)
    warden.location("cache", place)
    with warden.service() as service:
        wait_until(lambda: service.passes() >= 1)
        read(f"{place}/A/f")
        shrink(warden, service, FIVE)
        wait_until(lambda: left(place) == ["A", "C"])


def test_on_an_overlay_reads_are_seen_and_never_does_anything_of_a_lower_layer_go(warden, tmp_path):
    """A lower file may be open elsewhere without this mount's knowing. What is in the upper layer alone may
    go where every process can be looked at; a sandbox may hide its first one, and then nothing does.
    """
    warden.daemon["interval"] = "1h"
    with disk(str(tmp_path), "noatime") as base:
        lower, over = f"{base}/lower", f"{base}/over"
        for name in ("lower", "upper", "work", "over"):
            os.mkdir(f"{base}/{name}")
        three_entries(lower)
        options = f"lowerdir={lower},upperdir={base}/upper,workdir={base}/work"
        with mounted(["-t", "overlay", "overlay", "-o", options], over):
            three_entries(over, "abc")
            warden.location("cache", over)
            with warden.service() as service:
                wait_until(lambda: service.passes() >= 1)
                read(f"{over}/a/f", f"{over}/A/f")
                shrink(warden, service, {"max_size": "10MiB", "target_size": "100%"})
                order = sorted(warden.entries().values(), key=lambda each: each["last_use"])
                assert {each["entry"] for each in order[-2:]} == {"A", "a"}
                assert left(over) in (["A", "B", "C", "a", "b", "c"], ["A", "B", "C", "a", "c"])
        assert left(lower) == ["A", "B", "C"]
