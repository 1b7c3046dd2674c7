"""Walks a `.accelerate` folder and says what each part is.

A directory is one entry, unless something that we know lies below it: then it is a container, no
entry itself, and its children are judged one by one.
"""

import stat
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum

from cachewarden.inventory import Claim, Foreign, SharedClaim, Split
from cachewarden.layouts.accelerate.checkpoints import Checkpoint, expendable
from cachewarden.layouts.accelerate.loose import together
from cachewarden.layouts.accelerate.lost import DEEPEST, holds_checkpoints, keep_for
from cachewarden.layouts.accelerate.shapes import (
    Listing,
    Shape,
    has_default_configuration,
    is_configuration,
    is_prepared,
    shape_of,
)
from cachewarden.layouts.base import FURNITURE, Context, directories, join, open_elsewhere, read_names
from cachewarden.layouts.plain import plain_claim
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost, KeepReason

# How far below the folder every shape is looked for: `GROUP/RUN/checkpoints/checkpoint_0` is four. Below
# that, what can be made again goes with its directory, and only the rest is looked for, everywhere.
_DEPTH = 4

_LOST = frozenset({Shape.CHECKPOINT, Shape.CONFIGURATION, Shape.DATASET})


class Rest(Enum):
    """What becomes of children that are like nothing we know."""

    PLAIN = "entries"
    CHECKPOINT = "part of what cannot be made again"
    PROJECT = "a project's state"


# A shape that says little is not believed in a place where most things must stay.
_IGNORED = {
    Rest.PLAIN: frozenset[Shape](),
    Rest.PROJECT: frozenset({Shape.PREPARED}),
    Rest.CHECKPOINT: frozenset(Shape) - {Shape.CHECKPOINT},
}


@dataclass(slots=True)
class Survey:
    """What was found. `known`: some of it has a shape of its own; `unseen`: some could not be read."""

    claims: list[Claim] = field(default_factory=list)
    shared: list[SharedClaim] = field(default_factory=list)
    foreign: list[Foreign] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    checkpoints: list[Checkpoint] = field(default_factory=list)
    known: bool = False
    unseen: bool = False

    def add(self, other: "Survey") -> None:
        """Take over everything that was found below."""
        self.claims += other.claims
        self.shared += other.shared
        self.foreign += other.foreign
        self.warnings += other.warnings
        self.checkpoints += other.checkpoints
        self.known |= other.known
        self.unseen |= other.unseen


def has_known_part(tree: Tree, at: bytes, recognised: Callable[[Tree, bytes], bool]) -> bool:
    """Whether `survey` of `at` would find something of a known shape; ends at the first such part.

    `recognised` says whether some other layout knows a directory.
    """
    listing = tree.listing(at)
    if b"checkpoints" in directories(listing):
        return True
    nothing = Context(0, nested=lambda tree, at: Split("") if recognised(tree, at) else None)
    return any(_is_known(tree, join(at, name), nothing) for name in directories(listing))


def _is_known(tree: Tree, path: bytes, context: Context) -> bool:
    return tree.part(
        "known to accelerate", path, lambda: _directory(tree, path, context, Rest.PLAIN, 1).known
    )


def survey(tree: Tree, at: bytes, context: Context, rest: Rest = Rest.PLAIN, depth: int = 0) -> Survey:
    """Everything in `at`, which is no entry itself; below the top, only if something in it is known."""
    found = Survey()
    listing = tree.listing(at)
    if at.rpartition(b"/")[2] == b"checkpoints":
        rest = Rest.CHECKPOINT
        found.known = True
    found.known |= has_default_configuration(listing)
    for name in directories(listing):
        found.add(_part(tree, join(at, name), context, rest, depth + 1))
    if depth > 0 and not found.known:
        return found  # one entry for its parent, whatever files are in it
    _loose_files(
        tree, at, {name: kind for name, kind in listing.items() if kind != stat.S_IFDIR}, rest, found
    )
    if depth == 0:
        may_go = expendable(found.checkpoints, context.keep_checkpoints)
        found.claims = [
            replace(claim, keep=None)
            if claim.name in may_go and not holds_checkpoints(tree, claim.name)
            else claim
            for claim in found.claims
        ]
    return found


def _part(tree: Tree, path: bytes, context: Context, rest: Rest, depth: int) -> Survey:
    if depth > 1:  # it is remembered with what it lies in
        return _directory(tree, path, context, rest, depth)
    return tree.part(("accelerate", rest), path, lambda: _directory(tree, path, context, rest, depth))


def _directory(tree: Tree, path: bytes, context: Context, rest: Rest, depth: int) -> Survey:
    found = Survey()
    listing = read_names(tree, path)
    if listing is None:  # it may hold anything
        found.unseen = True
        found.claims.append(Claim(path, (path,), "plain", "accelerate", Cost.REBUILD, KeepReason.UNKNOWN))
        return found
    nested = context.nested(tree, path) if rest is not Rest.CHECKPOINT else None
    if nested is not None:
        found = Survey(list(nested.claims), list(nested.shared), list(nested.foreign), list(nested.warnings))
        found.known = True
        return found
    shape = shape_of(tree, path, listing)
    if shape is not None and shape not in _IGNORED[rest]:
        return _shaped(tree, path, context, shape, listing)
    return _unshaped(tree, path, context, rest, depth)


def _unshaped(tree: Tree, path: bytes, context: Context, rest: Rest, depth: int) -> Survey:
    """A directory that says nothing itself: its parts when one is known, else one claim of the whole."""
    found = Survey()
    keep = keep_for(tree, path) if rest is Rest.PLAIN and depth >= _DEPTH else None
    if depth < _DEPTH or (keep is KeepReason.PROTECTED and depth < DEEPEST):
        below = survey(tree, path, context, rest, depth)
        if below.known:
            return below
        found.unseen = below.unseen
    if keep is KeepReason.PROTECTED:
        found.claims.append(_protected(path, Shape.CHECKPOINT.value))
        found.known = True
        return found
    found.unseen |= keep is not None
    _unknown(tree, path, stat.S_IFDIR, rest, found)
    if found.unseen:
        found.claims = [replace(each, keep=each.keep or KeepReason.UNKNOWN) for each in found.claims]
    return found


def _shaped(tree: Tree, path: bytes, context: Context, shape: Shape, listing: Listing) -> Survey:
    claim = Claim(path, (path,), shape.value, "accelerate", Cost.REBUILD)
    found = Survey(known=shape is not Shape.PREPARED)
    if open_elsewhere(listing):
        claim = replace(claim, keep=KeepReason.IN_USE)
    if shape in _LOST:
        claim = replace(claim, cost=Cost.LOST, keep=KeepReason.PROTECTED)
    if shape is Shape.CHECKPOINT:
        there = tree.stat(path)
        mtime_ns = there.st_mtime_ns if there is not None else context.now_ns
        checkpoint = Checkpoint(path, mtime_ns)
        found.checkpoints.append(checkpoint)
        claim = replace(claim, series=checkpoint.series, husks=_of_the_run(path))
    if claim.keep is None:
        # Somebody trains into the folder that he offloads to: going whole, it would take that along.
        claim = replace(claim, keep=keep_for(tree, path))
    found.claims.append(claim)
    return found


def _of_the_run(path: bytes) -> tuple[bytes, ...]:
    """The directory of a checkpoint's series, and that of the run: who stands in one of them trains there.

    They never become empty: of each series the newest stays.
    """
    series = path.rpartition(b"/")[0]
    return tuple(each for each in (series, series.rpartition(b"/")[0]) if each)


def _loose_files(tree: Tree, at: bytes, listing: Listing, rest: Rest, found: Survey) -> None:
    configuration = [name for name in listing if is_configuration(name)]
    if rest is not Rest.CHECKPOINT:
        found.claims += [_protected(join(at, name), "configuration") for name in configuration]
        listing = {name: kind for name, kind in listing.items() if name not in configuration}
    for name in listing:
        if name in FURNITURE:
            found.foreign.append(Foreign(join(at, name), known=True))
    names = [name for name in listing if name not in FURNITURE]
    if rest is not Rest.PLAIN:
        for name in names:
            _unknown(tree, join(at, name), listing[name], rest, found)
        return
    for group in together(names):
        claim = plain_claim(tree, join(at, group[0]), listing[group[0]])
        kind = "prepared" if len(group) > 1 or is_prepared(group[0]) else claim.kind
        paths = tuple(join(at, name) for name in group)
        found.claims.append(replace(claim, paths=paths, kind=kind, layout="accelerate"))


def _unknown(tree: Tree, path: bytes, kind: int, rest: Rest, found: Survey) -> None:
    if rest is Rest.PLAIN:
        found.claims.append(replace(plain_claim(tree, path, kind), layout="accelerate"))
    else:
        found.claims.append(_protected(path, "checkpoint" if rest is Rest.CHECKPOINT else "project"))


def _protected(path: bytes, kind: str) -> Claim:
    return Claim(path, (path,), kind, "accelerate", Cost.LOST, KeepReason.PROTECTED)
