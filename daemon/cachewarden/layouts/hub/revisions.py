"""What each revision of a repository uses: blobs through links, references that name it.

Only where all of that can be told for sure may a revision go by itself; otherwise the repository
is one entry.
"""

import stat
from dataclasses import dataclass

from cachewarden.layouts.base import FURNITURE, directories, join
from cachewarden.layouts.hub.links import resolve, tail
from cachewarden.tree import Tree

_REFERENCE_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class References:
    """Files below `refs`, by the commit that they name, and all directories there, deepest first."""

    by_commit: dict[bytes, tuple[bytes, ...]]
    directories: tuple[bytes, ...]


def blobs_used(tree: Tree, repo: bytes, commit: bytes) -> frozenset[bytes] | None:
    """Names of the blobs that a snapshot's links name; None when a link makes it unclear.

    Real files (a cache without links) use no blob. An absolute link that ends like one to a blob
    counts as one. A link into another part of the repository is unclear: with that part gone the
    snapshot would be incomplete.
    """
    snapshot = join(repo, b"snapshots", commit)
    blobs = join(repo, b"blobs")
    used = set()
    waiting = [snapshot]
    while waiting:
        here = waiting.pop()
        for name, kind in tree.listing(here).items():
            path = join(here, name)
            if kind == stat.S_IFDIR:
                waiting.append(path)
            text = tree.readlink(path) if kind == stat.S_IFLNK else None
            if text is None:
                continue
            end = resolve(here, text)
            if end is None and text.startswith(b"/"):
                end = join(blobs, tail(text, 1)[0]) if tail(text, 2)[0] == b"blobs" else None
            if end is None:
                continue
            parent, _, blob = end.rpartition(b"/")
            if parent == blobs:
                used.add(blob)
            elif end.startswith(repo + b"/") and not end.startswith(snapshot + b"/"):
                return None
    return frozenset(used)


def references(tree: Tree, repo: bytes) -> References:
    """All references of a repository; names may contain slashes, texts may end in a newline."""
    by_commit: dict[bytes, list[bytes]] = {}
    found = [join(repo, b"refs")] if tree.is_dir(join(repo, b"refs")) else []
    for here in found:  # grows while it is walked: breadth first, so that its reverse is deepest first
        for name, kind in tree.listing(here).items():
            if kind == stat.S_IFDIR:
                found.append(join(here, name))
            elif kind == stat.S_IFREG and name not in FURNITURE:
                commit = (tree.read(join(here, name), _REFERENCE_LIMIT) or b"").strip()
                by_commit.setdefault(commit, []).append(join(here, name))
    return References({commit: tuple(paths) for commit, paths in by_commit.items()}, tuple(reversed(found)))


def snapshots(tree: Tree, repo: bytes) -> tuple[list[bytes], bool]:
    """Names of the snapshots of a repository, sorted, and whether there is nothing else.

    A link among them makes a snapshot go by two names: none of them may then go by itself.
    """
    listing = tree.listing(join(repo, b"snapshots"))
    found = directories(listing)
    return found, len(found) == sum(name not in FURNITURE for name in listing)
