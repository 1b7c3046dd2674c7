"""The filesystem refuses, the ledger is locked, the disk fills up: no entry is torn, and it is said."""

import contextlib
import glob
import json
import os
import shutil
import subprocess

import pytest
from tests.daemon.evicting import Cache, at_step
from tests.system.command import PROGRAM, environment
from tests.system.killing import filesystem, full, hub, locked_ledger, no_trash, put, shape
from tests.system.trees import mounted

from cachewarden.report import Failed, Removed, Spared

NAMES = ["a", "b", "c"]


@pytest.fixture
def entries(root):
    """Three entries of a few directories and files; how they looked."""
    for name in NAMES:
        for number in range(12):
            put(f"{root}/{name}/{number % 3}/{number}", 5000)
    return {name: shape(root, name) for name in NAMES}


def strace(warden, faults, *paths):
    """`once --json` with errors injected into its system calls; its exit status and its report."""
    warden.policy |= {"evict_all": True}
    warden.write()
    calls = ",".join({fault.partition(":")[0] for fault in faults})
    command = ["strace", "-f", "-qq", "-o", "/dev/null", "--seccomp-bpf", "-e", f"trace={calls}"]
    command += [word for fault in faults for word in ("-e", f"inject={fault}")]
    command += [word for path in paths for word in ("-P", path)]
    done = subprocess.run(
        [*command, PROGRAM, "--config", warden.file, "once", "--json"],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=120,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)["locations"][0]


def whole_or_gone(root, before):
    """Names of the entries that are there, each as it was; the others are not there at all."""
    there = {name for name in before if os.path.lexists(f"{root}/{name}")}
    assert {name: shape(root, name) for name in there} == {name: before[name] for name in there}
    return there


FAULTS = {
    "the first move": (["renameat2:error=EIO:when=1"], {"EIO"}, True),
    "a later move": (["renameat2:error=EPERM:when=2"], {"EPERM"}, True),
    "the point of no return": (["renameat2:error=ESTALE:when=4"], {"ESTALE"}, True),
    "every rename": (["renameat2:error=EPERM"], {"EPERM"}, True),
    "the first unlink": (["unlinkat:error=EIO:when=1"], {"EIO"}, False),
    "an unlink in the middle": (["unlinkat:error=EPERM:when=9"], {"EPERM"}, False),
    "every unlink": (["unlinkat:error=ESTALE"], {"ESTALE"}, False),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_error_in_a_step_tears_nothing_is_reported_and_passes(warden, root, entries, fault):
    """Each of unlink and rename refused once, in the middle, and always; then the fault is over."""
    faults, codes, comes_back = FAULTS[fault]
    status, report = strace(warden, faults)
    assert status == 1
    there = whole_or_gone(root, entries)
    failed = {each["entry"]: each["errno"] for each in report["failed"]}
    assert failed
    assert set(failed.values()) == codes
    assert there == (set(failed) if comes_back else set())
    assert {each["entry"] for each in report["evicted"]} == entries.keys() - failed
    after = warden.once()
    assert after.status == 0
    assert os.listdir(root) == []
    left = strays(root)
    assert left == []


def strays(root):
    """What is left of this location in the trash at the top, which other tests use too."""
    with Cache(root).trash() as trash:
        return [name for _, _, name in trash.pieces()]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("openat:error=EIO", "unknown"), ("openat:error=EPERM", "unknown"), ("openat:error=ESTALE", "changed")],
)
def test_an_entry_that_cannot_be_opened_stays_whole_and_the_others_go(warden, root, entries, fault, reason):
    """Injected for what is opened in one directory of entry b, while it is measured and while it goes."""
    status, report = strace(warden, [fault], f"{root}/b/1")
    assert status in (0, 1)
    assert whole_or_gone(root, entries) == {"b"}
    assert {each["entry"]: each["reason"] for each in report["spared"]} == {"b": reason}
    assert warden.once().evicted == ["b"]


@pytest.mark.root
def test_what_is_immutable_stays_and_is_reported(needs_root, warden, tmp_path):
    """chattr +i on the location, and on an entry's directory."""
    with filesystem("ext4", str(tmp_path)) as mount:
        root = f"{mount}/cache"
        warden.location("cache", root)
        warden.policy |= {"evict_all": True}
        for name in NAMES:
            put(f"{root}/{name}/f", 5000)
            put(f"{root}/{name}/g", 5000)
        before = {name: shape(root, name) for name in NAMES}
        with immutable(root):
            done = warden.once()
            assert done.status == 1
            assert {each["errno"] for each in done.only["failed"]} == {"EPERM"}
            assert whole_or_gone(root, before) == set(NAMES)
        with immutable(f"{root}/b"):
            done = warden.once()
            assert {each["entry"]: each["errno"] for each in done.only["failed"]} == {"b": "EPERM"}
            assert whole_or_gone(root, before) == {"b"}
        assert warden.once().status == 0


@pytest.mark.root
def test_an_immutable_file_of_an_entry_that_went_waits_in_the_trash_and_is_reported(
    needs_root, warden, tmp_path
):
    """A directory with such a file can be renamed; that the file cannot be unlinked is found out too late."""
    with filesystem("ext4", str(tmp_path)) as mount:
        root = f"{mount}/cache"
        warden.location("cache", root)
        warden.policy |= {"evict_all": True}
        put(f"{root}/d/f", 5000)
        put(f"{root}/e/f", 5000)
        subprocess.run(["chattr", "+i", f"{root}/d/f"], check=True)
        done = warden.once()
        assert done.status == 1
        assert {each["entry"]: each["errno"] for each in done.only["failed"]} == {"d": "EPERM"}
        assert os.listdir(root) == []
        [kept] = glob.glob(f"{mount}/.cachewarden-trash/p-*/f")
        assert os.path.getsize(kept) == 5000
        assert "EPERM" in warden.once().err
        subprocess.run(["chattr", "-i", kept], check=True)
        assert "removed" in warden.once().err
        assert not os.path.exists(kept)


@contextlib.contextmanager
def immutable(path):
    """`chattr +i` for the length of the block."""
    subprocess.run(["chattr", "+i", path], check=True)
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", path], check=True)


@pytest.mark.root
@pytest.mark.parametrize("way", ["files in its place", "a read-only bind mount", "an immutable top"])
def test_without_a_place_for_the_trash_entries_go_all_the_same(needs_root, warden, tmp_path, way):
    with filesystem("ext4", str(tmp_path)) as mount, contextlib.ExitStack() as stack:
        root = f"{mount}/cache"
        os.mkdir(root)
        make = hub if way == "files in its place" else None
        for name in NAMES:
            put(f"{root}/{name}/f", 5000)
        if make is not None:
            shutil.rmtree(root)
            os.mkdir(root)
            make(root, 20)
            no_trash(mount, root)
        elif way == "a read-only bind mount":
            for place in (mount, root):
                os.mkdir(f"{place}/.cachewarden-trash", 0o700)
                trash = f"{place}/.cachewarden-trash"
                stack.enter_context(mounted(["--bind", "-o", "ro", trash], trash))
        else:
            stack.enter_context(immutable(mount))
        warden.location("cache", root)
        warden.policy |= {"evict_all": True}
        done = warden.once()
        assert done.status == 0, done.err
        assert done.evicted
        assert [name for name in os.listdir(root) if name != ".cachewarden-trash"] == []


@pytest.mark.root
def test_a_read_only_filesystem_is_reported_and_left_alone(needs_root, warden, tmp_path):
    with filesystem("tmpfs", str(tmp_path)) as mount:
        put(f"{mount}/cache/e/f", 5000)
        subprocess.run(["mount", "-o", "remount,ro", mount], check=True)
        warden.location("cache", f"{mount}/cache")
        warden.policy |= {"evict_all": True}
        done = warden.once()
        assert done.status == 1
        assert [each["errno"] for each in done.only["failed"]] == ["EROFS"]
        assert os.path.exists(f"{mount}/cache/e/f")


def test_a_ledger_that_another_process_has_locked_stops_nothing_and_is_said(warden, root, entries):
    warden.once()
    warden.policy |= {"evict_all": True}
    with locked_ledger(warden.state_dir):
        done = warden.once()
    assert sorted(done.evicted) == NAMES
    assert os.listdir(root) == []
    assert "locked" in done.err
    assert warden.once().status == 0


@pytest.mark.root
@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs"])
def test_a_disk_that_fills_up_at_any_step_stops_no_eviction(needs_root, tmp_path, kind):
    """Blocks and inodes are gone from one step on, as another program would use them up."""
    with filesystem(kind, str(tmp_path)) as mount:
        cache = Cache(f"{mount}/cache")
        for step in ("opened", "leased", "moved", "verified", "committed"):
            for name in ("e", "n"):
                cache.put(f"{name}/sub/f", 100_000)
            before = cache.tree()
            with contextlib.ExitStack() as stack:
                fill = at_step(step, lambda stack=stack: stack.enter_context(full(mount)))
                outcomes = cache.evict(cache.victim("e"), cache.victim("n"), at=fill)
            for name, outcome in zip(("e", "n"), outcomes, strict=True):
                assert isinstance(outcome, Removed) != cache.has(name)
                if not isinstance(outcome, Removed):  # the leases may have waited for the filling
                    assert isinstance(outcome, Spared | Failed)
                    assert all(cache.tree()[path] == before[path] for path in before if path.startswith(name))
            cache.recover()
            for name in ("e", "n"):
                if cache.has(name):
                    assert isinstance(cache.evict(cache.victim(name)), Removed)
            assert cache.tree() == {}


def test_the_state_and_the_cache_on_one_full_disk(needs_root, warden, tmp_path):
    """Nothing can be written anywhere: the pass evicts, says so, and the next one has its books."""
    with filesystem("ext4", str(tmp_path)) as mount:
        warden.state, root = f"{mount}/state", f"{mount}/cache"
        warden.location("cache", root)
        for name in NAMES:
            put(f"{root}/{name}/f", 500_000)
        assert warden.once().status == 0
        warden.policy |= {"evict_all": True}
        with full(mount):
            done = warden.once()
            assert done.status == 0
            assert sorted(done.evicted) == NAMES
        assert os.listdir(root) == []
        assert warden.once().status == 0


@pytest.mark.parametrize("revisions", ["a", "b", "ab"])
def test_parts_of_an_entry_that_a_kill_left_under_other_names_come_back_together(warden, root, revisions):
    """In the form of a full disk, and the ledger knows nothing.

    With one of two revisions away, the other looks like its repository's only one; with both, the
    repository looks like none.
    """
    hub(root, 10)
    repository = f"{root}/models--acme--m0"
    before = shape(root, "models--acme--m0")
    names = sorted(os.listdir(f"{repository}/blobs"))
    blobs = {"a": names[:5], "b": names[10:], "both": names[5:10]}
    away = [
        [f"snapshots/{letter * 40}", f"refs/{letter}", *(f"blobs/{name}" for name in blobs[letter])]
        for letter in revisions
    ]
    if len(revisions) > 1:
        away[-1] += [f"blobs/{name}" for name in blobs["both"]]
    for entry, moved in enumerate(away, start=1):
        for number, path in enumerate(moved):
            parent, name = os.path.split(path)
            os.rename(f"{repository}/{path}", f"{repository}/{parent}/.cw-m{entry}.{number}-{name}")
    done = warden.once()
    assert done.status == 0
    assert shape(root, "models--acme--m0") == before
    assert done.err.count("put back") == sum(map(len, away))
