"""Which versions that a cache keeps apart are gone.

That an interpreter or a library was removed cannot be seen from its cache: it may live in any
virtual environment. A version counts as gone when a later one has come into the same cache, and
nothing that the earlier one made was written or read for a month. Where reads leave no trace (noatime),
that means: not written.
"""

from collections.abc import Callable, Mapping

from cachewarden.layouts.base import directories, join
from cachewarden.layouts.descent import descend
from cachewarden.tree import Tree
from cachewarden_policies.policy import DAY

Version = tuple[int, ...]

_SILENCE = 30 * DAY


def versions_in(tree: Tree, at: bytes, version_of: Callable[[bytes], Version | None]) -> dict[bytes, Version]:
    """The directories in `at` that are named by a version, by path."""
    named = ((join(at, name), version_of(name)) for name in directories(tree.listing(at)))
    return {path: version for path, version in named if version is not None}


def gone(tree: Tree, versions: Mapping[bytes, Version], now_ns: int) -> frozenset[bytes]:
    """Those of the directories `versions` (by path) that a version which is gone left behind."""
    latest = max(versions.values(), default=())
    return frozenset(
        path for path, version in versions.items() if version < latest and is_silent(tree, path, now_ns)
    )


def is_silent(tree: Tree, path: bytes, now_ns: int) -> bool:
    """Whether nothing below the directory was written or read for a month; False where that is not known."""
    holes = len(tree.unreadable)
    for here, _ in descend(tree, path):
        for _, found in tree.children(here):
            if max(found.st_mtime_ns, found.st_atime_ns) > now_ns - _SILENCE:
                return False
    return len(tree.unreadable) == holes
