"""MIOpen's compiled kernels: SQLite databases, by version.

Facts read in MIOpen 2d1fd997a (`src/binary_cache.cpp`, `src/lock_file.cpp`, `include/miopen/sqlite_db.hpp`).
The databases are in WAL mode: `-shm` is there while anybody is attached (SQLite's documentation of WAL),
and a database without its `-wal` is corrupt. Tuning results take hours and stay.
"""

import re
import stat
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from cachewarden.inventory import Split
from cachewarden.layouts.base import Context, Kind, directories, join
from cachewarden.layouts.collecting import Collector
from cachewarden.layouts.compilers.rest import name_the_rest
from cachewarden.layouts.compilers.versions import Version, gone, versions_in
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost, KeepReason

_VERSION = re.compile(rb"(\d{1,6}\.\d{1,6}\.\d{1,6})([.\-][0-9A-Za-z.\-]*)?")
_DATABASE = re.compile(rb"(?P<base>.+\.ukdb)(?P<part>-wal|-shm)?", re.DOTALL)
_TUNED = (b".udb.txt", b".ufdb.txt", b".udb", b".ufdb")


class Miopen:
    """`~/.cache/miopen`, or one version's directory in it."""

    name = "miopen"
    shape = "`*.ukdb` files, or directories named by a version with such files in them"
    unit = "one database with its `-wal` and `-shm`"
    locks = "none that can be held: theirs are record locks in `/tmp/miopen-lockfiles`"
    never = "a database with a `-wal` or `-shm` beside it, tuning results, anything else"
    checked = "MIOpen 2d1fd997a"
    kinds: Mapping[str, Kind] = {
        "kernels": Kind(
            Cost.REBUILD,
            "one `*.ukdb`; stale when a later version came and nothing of this one was used for 30 days",
        )
    }

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """Databases, or versions with databases."""
        listing = tree.listing(at)
        versions = (join(at, name) for name in directories(listing) if version_of(name) is not None)
        return _holds_databases(listing) or any(_holds_databases(tree.listing(path)) for path in versions)

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:
        """One claim for each database."""
        found = Collector(self.name, "MIOpen's cache", tree, at)
        versions = versions_in(tree, at, version_of)
        stale = gone(tree, versions, context.now_ns)
        _databases(tree, at, found, skip=versions)
        for path in versions:
            before = len(found.claims)
            _databases(tree, path, found, skip={})
            found.claims[before:] = [replace(each, stale=path in stale) for each in found.claims[before:]]
        name_the_rest(tree, at, found)
        return found.split()


def version_of(name: bytes) -> Version | None:
    """The numbers of a version's directory, as `3.2.0` or `3.2.0.8ab93c1-dirty`; None for any other name."""
    found = _VERSION.fullmatch(name)
    return tuple(int(each) for each in found[1].split(b".")) if found else None


def _holds_databases(listing: Mapping[bytes, int]) -> bool:
    return any(kind == stat.S_IFREG and name.endswith(b".ukdb") for name, kind in listing.items())


def _databases(tree: Tree, at: bytes, found: Collector, *, skip: Mapping[bytes, Version]) -> None:
    databases: dict[bytes, list[bytes]] = defaultdict(list)
    for name, kind in tree.listing(at).items():
        path = join(at, name)
        part = _DATABASE.fullmatch(name)
        if kind == stat.S_IFREG and part:
            databases[part["base"]].append(path)
        elif name.endswith(_TUNED):
            found.known(path)
        elif path not in skip:
            found.stranger(path)
    for base, paths in databases.items():
        attached = len(paths) > 1 or not paths[0].endswith(b".ukdb")
        found.claim(sorted(paths), "kernels", Cost.REBUILD, KeepReason.IN_USE if attached else None)
        found.claims[-1] = replace(found.claims[-1], name=join(at, base))
