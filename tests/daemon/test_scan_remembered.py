"""What is measured again after changes is what a walk over everything finds."""

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cachewarden.inventory import Claim, Foreign, SharedClaim, Split
from cachewarden.scan import Again, changes, facts_of, measure_again, pack, remember, unpack
from cachewarden_policies.globs import compile_globs
from cachewarden_policies.reasons import KeepReason

TRASH = (b"trash",)
SETTLED = 1 << 62
UNSETTLED = 0


class Place:
    """A location `root`, a directory outside of it, and what a source of changes would tell."""

    def __init__(self, base: Path, exclude=None):
        self.base = base
        self.root = base / "root"
        self.outside = base / "outside"
        self.root.mkdir(parents=True)
        self.outside.mkdir()
        self.exclude = compile_globs(exclude) if exclude else None
        self.dirty = set()
        self.known = None
        self.walks = 0

    def tell(self, path: Path) -> None:
        """A name came or went at `path`, or it was written."""
        if path.is_relative_to(self.root) and path != self.root:
            parent = os.path.relpath(path.parent, self.root)
            self.dirty.add(b"" if parent == "." else os.fsencode(parent))

    def everywhere(self) -> list[Path]:
        """All paths in the location and outside, in a certain order."""
        found = []
        for top in (self.root, self.outside):
            for here, names, files in os.walk(top):
                found += [Path(here, name) for name in (*names, *files)]
        return sorted(found)

    def split(self) -> Split:
        """Names say what is what: c- claims (ck: guarded), s- is shared by all of them, f- is foreign."""
        paths = [path for path in self.everywhere() if path.is_relative_to(self.root)]
        named = [(path.name, os.fsencode(path.relative_to(self.root))) for path in paths]
        shared = tuple(SharedClaim(path) for name, path in named if name.startswith("s"))
        claims = tuple(
            Claim(
                path,
                (path,),
                keep=KeepReason.PROTECTED if name.startswith("ck") else None,
                shared=tuple(each.path for each in shared),
            )
            for name, path in named
            if name.startswith("c")
        )
        return Split("test", claims, shared, tuple(Foreign(p) for name, p in named if name.startswith("f")))

    def measure(self, settled_ns=SETTLED, held=frozenset()):
        """Measure from what is remembered; the whole walk's inventory beside it."""
        fd = os.open(self.root, os.O_RDONLY)
        try:
            facts = facts_of(fd, TRASH, self.exclude)
            found = None
            if self.known is not None:
                changed = changes(self.known, fd, self.dirty)
                found = measure_again(self.known, fd, facts, Again(self.split(), changed, settled_ns, held))
            whole = remember(fd, self.split(), facts, settled_ns)
            self.walks += found is None
            self.known = found or whole
            self.dirty = set()
            return self.known.inventory, whole.inventory
        finally:
            os.close(fd)

    def agree(self, **more) -> None:
        ours, whole = self.measure(**more)
        assert ours == whole

    def restart(self) -> None:
        """Go on with what was written, as a process that comes after this one."""
        stored = unpack(pack(self.known, {"any": 1}))
        before, self.known = self.known, stored.remembered()
        assert (stored.facts, stored.more) == (before.facts, {"any": 1})
        assert replace(self.known.inventory, aside=before.inventory.aside) == before.inventory
        assert self.known.split == before.split


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path / "place")


def write(path: Path, blocks: int = 1) -> None:
    path.write_bytes(b"x" * 4096 * blocks)


# Names of few kinds, so that entries come, go, nest and take each other's places often.
names = st.sampled_from(["ca", "cb", "ck", "sa", "fa", "x", "y"])
numbers = st.integers(0, 1 << 16)
steps = st.one_of(
    st.tuples(st.just("file"), numbers, names),
    st.tuples(st.just("directory"), numbers, names),
    st.tuples(st.just("link"), numbers, numbers, names),
    st.tuples(st.just("symlink"), numbers, names),
    st.tuples(st.just("write"), numbers),
    st.tuples(st.just("remove"), numbers),
    st.tuples(st.just("move"), numbers, numbers, names),
)


def directories(place: Place) -> list[Path]:
    found = [path for path in place.everywhere() if path.is_dir() and not path.is_symlink()]
    return [place.root, place.outside, *found]


def crosses(place: Place, kind: str, path: Path, target: Path) -> bool:
    """Whether an inode would have names on both sides. What happens to the outer one nobody tells."""
    if path.is_relative_to(place.root) == target.is_relative_to(place.root):
        return False
    below = [path, *(Path(here, name) for here, _, files in os.walk(path) for name in files)]
    return kind == "link" or any(each.lstat().st_nlink > 1 for each in below if not each.is_dir())


def act(place: Place, step) -> None:  # noqa: C901, PLR0912 - one branch for each kind of step
    """Do one thing, if it can be done, and tell of it as the kernel would."""
    kind = step[0]
    homes, all_paths = directories(place), place.everywhere()
    if kind in ("file", "directory", "symlink"):
        path = homes[step[1] % len(homes)] / step[2]
        if os.path.lexists(path):
            return
        if kind == "file":
            write(path)
        elif kind == "directory":
            path.mkdir()
        else:
            path.symlink_to("x")
        place.tell(path)
        return
    if not all_paths:
        return
    path = all_paths[step[1] % len(all_paths)]
    if kind == "write" and path.is_file() and not path.is_symlink():
        write(path, 1 + path.stat().st_blocks // 8)
        place.tell(path)
    elif kind == "remove":
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
        place.tell(path)
    elif kind in ("link", "move"):
        target = homes[step[2] % len(homes)] / step[3]
        if os.path.lexists(target) or target.is_relative_to(path) or crosses(place, kind, path, target):
            return
        if kind == "move":
            path.rename(target)
            place.tell(path)
        elif path.is_file() and not path.is_symlink():
            os.link(path, target)
        place.tell(target)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(
    built=st.lists(steps, max_size=25),
    rounds=st.lists(st.lists(steps, min_size=1, max_size=5), min_size=1, max_size=4),
    settled=st.booleans(),
    excluding=st.booleans(),
    restarted=st.booleans(),
)
def test_whatever_changes_the_parts_make_the_whole(
    tmp_path_factory, built, rounds, settled, excluding, restarted
):
    place = Place(tmp_path_factory.mktemp("any") / "place", ["y"] if excluding else None)
    for step in built:
        act(place, step)
    settled_ns = SETTLED if settled else UNSETTLED
    place.agree(settled_ns=settled_ns)
    place.agree(settled_ns=settled_ns)  # from here on, all is still but for what changes
    for changes_of_a_round in rounds:
        time.sleep(0.01)  # a tick of the filesystem's clock
        for step in changes_of_a_round:
            act(place, step)
        if restarted:
            place.restart()
        place.agree(settled_ns=settled_ns)


def test_what_was_moved_away_changed_and_moved_back_is_not_taken_for_what_it_was(place):
    (place.root / "ca" / "x").mkdir(parents=True)
    (place.root / "cb").mkdir()
    write(place.root / "ca" / "x" / "y")
    place.agree()
    place.agree()  # all is still from here on
    time.sleep(0.02)
    (place.root / "ca").rename(place.outside / "ca")
    write(place.outside / "ca" / "x" / "y", blocks=9)
    (place.outside / "ca").rename(place.root / "ca")
    place.tell(place.root / "ca")  # and nobody tells of ca/x
    place.agree()
    assert place.known.inventory.bytes == 9 * 4096
    assert place.walks == 1


def test_names_of_one_inode_in_several_entries_are_measured_together(place):
    for name in ("ca", "cb", "x"):
        (place.root / name).mkdir()
    write(place.root / "ca" / "y")
    os.link(place.root / "ca" / "y", place.root / "cb" / "y")
    place.agree()
    place.agree()
    (place.root / "ca" / "y").unlink()
    place.tell(place.root / "ca" / "y")
    place.agree()
    assert [entry.own_bytes for entry in place.known.inventory.entries] == [0, 4096]
    place.agree()  # all is still from here on
    os.link(place.root / "cb" / "y", place.root / "x" / "z")
    place.tell(place.root / "x" / "z")
    place.agree()  # where the other name is, no directory told: everything is walked
    assert place.walks == 2


def test_a_region_that_appears_takes_its_part_from_the_one_around_it(place):
    (place.root / "x" / "x").mkdir(parents=True)
    write(place.root / "x" / "x" / "y")
    place.agree()
    place.agree()
    assert place.known.inventory.foreign_bytes == 4096
    (place.root / "x" / "x").rename(place.root / "x" / "ca")
    place.tell(place.root / "x" / "x")
    place.agree()
    assert (place.known.inventory.foreign_bytes, place.known.inventory.entries[0].own_bytes) == (0, 4096)
    assert place.walks == 1
