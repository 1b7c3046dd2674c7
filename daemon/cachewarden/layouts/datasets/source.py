"""Whether what a dataset was prepared from is still here: then it is computed again and not downloaded.

A dataset of the hub is prepared in `NAMESPACE___NAME/CONFIGURATION/VERSION/COMMIT` from files of the
repository `datasets--NAMESPACE--NAME` (datasets 5.2, `load.py`, `builder.py`); before, a hash of code stood
where the commit is. Only a hub cache beside the datasets cache, as in `$HF_HOME`, can be looked into.
"""

import re
import stat
from collections.abc import Iterator

from cachewarden.layouts.base import directories, join
from cachewarden.layouts.hub.links import resolve
from cachewarden.tree import Tree

_PREFIX = b"datasets--"
_HUB = b"hub"
_COMMIT = re.compile(rb"[0-9a-f]{40}")
# `naming.py: camelcase_to_snakecase` of datasets 5.2.
_CAMEL = ((re.compile(r"([A-Z]+)([A-Z][a-z])"), r"\1_\2"), (re.compile(r"([a-z\d])([A-Z])"), r"\1_\2"))
_HOPS = 2  # a snapshot's link to a blob, and the blob's to the store of all repositories


class Sources:
    """The hub cache beside the datasets cache `at`, where there is one."""

    def __init__(self, tree: Tree, at: bytes) -> None:
        self._tree = tree
        self._hub = join(at.rpartition(b"/")[0], _HUB)
        self._repos: dict[bytes, list[bytes]] = {}
        # Of a location that is a datasets cache itself, what lies beside it is none of our business.
        for repo in directories(tree.listing(self._hub)) if at else ():
            for name in _prepared_names(repo):
                self._repos.setdefault(name, []).append(repo)
        self._sizes: dict[bytes, int] = {}

    def remain(self, name: bytes, made_of: bytes, size: int | None) -> bool:
        """Whether all source files (`size` bytes) of a dataset are here; its directory is `name/…/made_of`.

        Where the size is not known, nobody can tell whether they are all.
        """
        if size is None:
            return False
        return any(
            self._bytes_of(snapshot) >= size
            for repo in self._repos.get(name, ())
            for snapshot in self._snapshots(repo, made_of)
        )

    def _snapshots(self, repo: bytes, made_of: bytes) -> list[bytes]:
        top = join(self._hub, repo, b"snapshots")
        names = directories(self._tree.listing(top))
        return [join(top, name) for name in names if name == made_of or not _COMMIT.fullmatch(made_of)]

    def _bytes_of(self, snapshot: bytes) -> int:
        if snapshot not in self._sizes:
            self._sizes[snapshot] = self._bytes_in(snapshot)
        return self._sizes[snapshot]

    def _bytes_in(self, snapshot: bytes) -> int:
        total = 0
        waiting = [snapshot]
        while waiting:
            here = waiting.pop()
            for name, kind in self._tree.listing(here).items():
                path = join(here, name)
                if kind == stat.S_IFDIR:
                    waiting.append(path)
                else:
                    total += self._size(path)
        return total

    def _size(self, path: bytes) -> int:
        """Bytes of the file that a name in a snapshot leads to; 0 where it leads to none of the cache."""
        for _ in range(_HOPS + 1):
            text = self._tree.readlink(path)
            if text is None:
                found = self._tree.stat(path)
                return found.st_size if found is not None and stat.S_ISREG(found.st_mode) else 0
            end = resolve(path.rpartition(b"/")[0], text)
            if end is None or not end.startswith(self._hub + b"/"):
                return 0
            path = end
        return 0


def _prepared_names(repo: bytes) -> Iterator[bytes]:
    """Names of directories in which datasets of the hub's directory `repo` are prepared.

    `--` stands for the slash, and may also be part of either name.
    """
    if not repo.startswith(_PREFIX):
        return
    name = repo[len(_PREFIX) :]
    yield _snake_case(name)
    start = name.find(b"--")
    while start >= 0:
        yield name[:start] + b"___" + _snake_case(name[start + 2 :])
        start = name.find(b"--", start + 1)


def _snake_case(name: bytes) -> bytes:
    text = name.decode("utf-8", "surrogateescape")
    for pattern, parts in _CAMEL:
        text = pattern.sub(parts, text)
    return text.lower().encode("utf-8", "surrogateescape")
