"""Several processes measure what one does, lose nothing when one dies, and leave none behind."""

import os
import signal

import pytest

from cachewarden.inventory import Claim, SharedClaim, Split
from cachewarden.scan import scan
from cachewarden_policies.globs import compile_globs

ENTRIES, FOLDERS, FILES = 60, 12, 34  # more than a walk looks at before it calls for help


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    """A tree that is worth helpers, with links between entries, links out, and odd names."""
    base = tmp_path_factory.mktemp("big")
    root = base / "root"
    for entry in range(ENTRIES):
        for folder in range(FOLDERS):
            here = os.fsencode(root / f"e{entry}" / f"s{folder}" / "deeper") + b"\xff"
            os.makedirs(here)
            for number in range(FILES):
                with open(os.path.join(here, b"f%d" % number), "wb") as file:
                    file.write(b"x" * (number % 2))
        if entry:
            os.link(os.path.join(here, b"f1"), root / f"e{entry - 1}" / "linked")
            os.link(os.path.join(here, b"f3"), base / f"out{entry}")
            os.symlink("nowhere", root / f"e{entry}" / "link")
    (root / "stray").mkdir()
    (root / "stray" / "f").write_bytes(b"x")
    return root


def split():
    claims = [Claim(b"e%d" % number, (b"e%d" % number,), shared=(b"e1/s0",)) for number in range(ENTRIES)]
    return Split("plain", (*claims, Claim(b"e2/part", (b"e2/s0",))), (SharedClaim(b"e1/s0"),))


def measure(root, **more):
    fd = os.open(root, os.O_RDONLY)
    try:
        return scan(fd, split(), **more)
    finally:
        os.close(fd)


def children():
    with open(f"/proc/self/task/{os.getpid()}/children") as text:
        return {int(pid) for pid in text.read().split()}


def test_helpers_find_what_one_process_finds(big):
    alone = measure(big, processes=1)
    assert measure(big, processes=3) == alone
    assert alone.files == ENTRIES * FOLDERS * FILES + 1


def test_helpers_know_what_is_excluded(big):
    exclude = compile_globs(["e3/s*", "**/f7"])
    alone = measure(big, processes=1, exclude=exclude)
    assert measure(big, processes=2, exclude=exclude) == alone
    assert alone.files == (ENTRIES - 1) * FOLDERS * (FILES - 1) + 2


def test_a_helper_that_is_killed_loses_nothing_and_none_is_left_behind(big):
    before, killed = children(), []

    def kill(files, size):
        fresh = children() - before - set(killed)
        if fresh and len(killed) < 2:
            killed.append(fresh.pop())
            os.kill(killed[-1], signal.SIGKILL)

    found = measure(big, processes=4, progress=kill)
    assert len(killed) == 2
    assert found == measure(big, processes=1)
    assert children() == before


def test_a_walk_that_is_cancelled_leaves_no_process_and_no_descriptor(big):
    before, descriptors = children(), len(os.listdir("/proc/self/fd"))

    def cancel(files, size):
        if children() - before:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(big, processes=3, progress=cancel)
    assert children() == before
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_helpers_import_nothing_from_the_directory_they_are_started_in(big, tmp_path):
    (tmp_path / "cachewarden").mkdir()
    (tmp_path / "cachewarden" / "__init__.py").write_text("raise SystemExit('not ours')")
    (tmp_path / "pickle.py").write_text("raise SystemExit('not ours')")
    here = os.open(".", os.O_RDONLY)
    os.chdir(tmp_path)
    try:
        assert measure(big, processes=2).files == ENTRIES * FOLDERS * FILES + 1
    finally:
        os.fchdir(here)
        os.close(here)
