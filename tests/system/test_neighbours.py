"""Other people's tools beside eviction: nobody waits for long, nobody loses a file, unused entries go."""

import json
import os
import subprocess
import time
from contextlib import ExitStack, contextmanager

import pytest
from tests.daemon.evicting import Cache
from tests.system import neighbours
from tests.system.command import PROGRAM
from tests.system.trees import age, fill, holding_mapped, holding_open, in_own_mounts, mounted
from tests.system.trees import process as waiting

from cachewarden.clock import SetClock
from cachewarden.report import Removed, Spared
from cachewarden_policies.reasons import KeepReason

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("needs_root")]

# From the first lease on for one second at most; looks at processes and unlinking come on top.
SECONDS = 5.0
TRIES = 20


@pytest.fixture
def cache(tmp_path):
    """A location on a mount of its own, so that listeners on it disturb nobody else."""
    top = tmp_path / "top"
    top.mkdir()
    with mounted(["-t", "tmpfs", "tmpfs"], str(top)):
        made = Cache(top / "cache")
        for name in ("e", "n"):
            for number in range(20):
                made.put(f"{name}/sub/{number}", 4096)
        made.top = str(top)
        yield made


@pytest.fixture
def calm(cache):
    """The same, with a clock that stands still: how long a busy machine takes is not the matter."""
    cache.options["clock"] = SetClock()
    return cache


def evict(cache, *names):
    """Evict these, and see that it took no longer than it may."""
    began = time.monotonic()
    outcomes = [cache.evict(cache.victim(name)) for name in names]
    assert time.monotonic() - began < SECONDS * len(names)
    return outcomes


def goes(cache, name):
    """An unused entry goes, if not at once: a neighbour that looks at a file at that moment uses it."""
    for tries in range(1, TRIES + 1):
        before = cache.tree(name)
        [outcome] = evict(cache, name)
        if isinstance(outcome, Removed):
            assert not cache.has(name)
            return tries
        assert isinstance(outcome, Spared)
        # Unknown: the machine was too busy to be done within the second.
        assert outcome.reason in (KeepReason.IN_USE, KeepReason.UNKNOWN)
        assert cache.tree(name) == before
    raise AssertionError(f"{name} is still there after {TRIES} tries")


LISTENERS = {
    "a virus scanner": neighbours.scanner,
    "an auditor": neighbours.auditor,
    "a watcher": neighbours.watcher,
    "an indexer": neighbours.indexer,
}


@pytest.mark.parametrize("kind", LISTENERS)
def test_beside_a_listener_used_entries_stay_and_unused_ones_go(cache, tmp_path, kind):
    heard = tmp_path / "heard"
    with LISTENERS[kind](cache.top, heard), holding_open(os.fsdecode(cache.path("e/sub/7"))):
        before = cache.tree("e")
        for _ in range(3):
            [outcome] = evict(cache, "e")
            assert outcome.reason in (KeepReason.IN_USE, KeepReason.UNKNOWN)
        assert cache.tree("e") == before
        goes(cache, "n")
        assert os.path.getsize(heard) > 0  # it was not asleep


def test_all_listeners_at_once(cache, tmp_path):
    with ExitStack() as stack:
        for kind, listener in LISTENERS.items():
            stack.enter_context(listener(cache.top, tmp_path / kind))
        goes(cache, "e")
        goes(cache, "n")


@pytest.mark.parametrize("kind", ["a virus scanner", "an auditor"])
def test_a_reader_whose_opens_are_scanned_waits_for_us_and_we_for_nobody(cache, tmp_path, kind):
    """The opener waits for the scanner, the scanner's own open for our lease: we end all the same."""
    with LISTENERS[kind](cache.top, tmp_path / "heard"), neighbours.reader(cache.path("e")):
        for _ in range(20):
            if cache.has("e"):
                [outcome] = evict(cache, "e")
                assert isinstance(outcome, Removed | Spared)
        goes(cache, "n")


def test_a_scanner_of_the_whole_machine_and_a_pass_do_not_wait_for_each_other(warden, root, tmp_path):
    """It scans what we open ourselves too: our modules, the ledger, the trash.

    While it waits for a lease of ours, any open of ours would wait for it, until the kernel breaks the
    lease after 45 s. In a mount namespace of their own, so that the rest of the machine is not scanned.
    """
    for number in range(30):
        fill(f"{root}/e{number}/f", 0.01)
        fill(f"{root}/e{number}/g", 0.01)
    age(root, 9)
    warden.policy |= {"evict_all": True}
    warden.daemon |= {"ignore_processes": ["python*"]}  # the readers: leases alone protect from them
    warden.write()
    with in_own_mounts(":") as home:
        wrap = ["nsenter", "--target", str(home.pid), "--mount"]
        with (
            neighbours.scanner("/", tmp_path / "heard", wrap),
            neighbours.reader(root, wrap),
            neighbours.reader(root, wrap),
        ):
            for _ in range(3):
                began = time.monotonic()
                command = [*wrap, PROGRAM, "--config", warden.file, "once", "--json"]
                done = subprocess.run(command, capture_output=True, text=True, timeout=40, check=False)
                assert done.returncode in (0, 1), done.stderr
                assert time.monotonic() - began < 30
                [location] = json.loads(done.stdout)["locations"]
                assert {each["reason"] for each in location["spared"]} <= {"in_use", "live_opener", "changed"}
                assert location["failed"] == []
        assert os.path.getsize(tmp_path / "heard") > 100
    assert len(os.listdir(root)) < 30


def test_a_file_that_a_loop_device_has_keeps_its_entry_until_the_device_lets_go(calm):
    """No process has it open: the kernel does."""
    image = calm.put("e/image", 1 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    said = subprocess.run(["losetup", "--find", "--show", image], check=True, capture_output=True, text=True)
    device = said.stdout.strip()
    try:
        kept, gone = evict(calm, "e", "n")
        assert kept.reason is KeepReason.IN_USE
        assert isinstance(gone, Removed)
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)
    goes(calm, "e")


@contextmanager
def layered(tmp_path, lower, kind=holding_open, *names):
    """An overlay with `lower` as its lower layer; each of `names` in it is held by a process."""
    layers = tmp_path / "layers"
    layers.mkdir()
    with mounted(["-t", "tmpfs", "tmpfs"], str(layers)), ExitStack() as stack:
        for name in ("upper", "work", "merged"):
            (layers / name).mkdir()
        options = f"lowerdir={os.fsdecode(lower)},upperdir={layers}/upper,workdir={layers}/work"
        stack.enter_context(mounted(["-t", "overlay", "-o", options, "overlay"], f"{layers}/merged"))
        for name in names:
            stack.enter_context(kind(f"{layers}/merged/{name}"))
        yield layers


@pytest.mark.parametrize("kind", [holding_open, holding_mapped], ids=["open", "mapped"])
def test_what_is_used_through_an_overlay_over_the_location_stays_and_the_rest_goes(calm, tmp_path, kind):
    before = calm.tree("e")
    with layered(tmp_path, calm.root, kind, "e/sub/3"):
        kept, gone = evict(calm, "e", "n")
        assert kept.reason is KeepReason.IN_USE
        assert isinstance(gone, Removed)
        assert calm.tree("e") == before
    goes(calm, "e")


def test_an_entry_that_is_a_layer_of_a_container_stays_as_long_as_the_container(calm, tmp_path):
    """Idle, with no file open: what it reads later must be there."""
    with layered(tmp_path, calm.path("e")):
        kept, gone = evict(calm, "e", "n")
        assert kept.reason is KeepReason.MOUNTPOINT
        assert isinstance(gone, Removed)
    goes(calm, "e")


@contextmanager
def container(tmp_path, mounts, command):
    """Much like Docker's: own mounts, pids and root, an overlay over an image, and volumes bound into it."""
    with mounted(["-t", "tmpfs", "tmpfs"], made(tmp_path / "image")):
        image = tmp_path / "image"
        for name in ("lower", "upper", "work", "merged"):
            (image / name).mkdir()
        for name in ("bin", "lib", "lib64", "usr", "models"):
            (image / "lower" / name).mkdir()
        merged = image / "merged"
        layers = f"lowerdir={image}/lower,upperdir={image}/upper,workdir={image}/work"
        lines = [f"mount -t overlay overlay -o {layers} {merged}"]
        system = [each for each in ("bin", "lib", "lib64", "usr") if os.path.exists(f"/{each}")]
        lines += [f"mount --rbind /{each} {merged}/{each}" for each in system]
        for source, target in mounts:
            kind = "mkdir -p" if os.path.isdir(source) else "touch"
            lines += [f"{kind} {merged}/{target}", f"mount --bind {os.fsdecode(source)} {merged}/{target}"]
        lines.append(f"exec chroot {merged} /bin/sh -c '{command}; echo ready; exec cat'")
        unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]
        with waiting([*unshare, "sh", "-ec", "; ".join(lines)]):
            yield


def made(path):
    path.mkdir()
    return str(path)


@pytest.mark.parametrize("part", ["e", "e/sub", "e/sub/5"])
def test_what_a_container_has_bound_stays_as_long_as_the_container(calm, tmp_path, part):
    """A directory, a part of an entry, or a single file; nothing in it is open."""
    with container(tmp_path, [(calm.path(part), "models/m")], ":"):
        kept, gone = evict(calm, "e", "n")
        assert kept.reason is KeepReason.MOUNTPOINT
        assert isinstance(gone, Removed)
    goes(calm, "e")


@pytest.mark.parametrize("use", ["exec 9</models/e/sub/5", "cd /models/e/sub"], ids=["open", "cwd"])
def test_a_container_that_has_the_whole_location_keeps_what_it_uses_and_no_more(calm, tmp_path, use):
    with container(tmp_path, [(calm.root, "models")], use):
        kept, gone = evict(calm, "e", "n")
        assert kept.reason is KeepReason.IN_USE
        assert isinstance(gone, Removed)
    goes(calm, "e")
