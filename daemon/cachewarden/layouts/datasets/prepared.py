"""One prepared dataset: its Arrow files behind `dataset_info.json`, and what `map` left beside them.

Complete is what has a `dataset_info.json`: without an Arrow file that it speaks of, every later
`load_dataset` fails, and nothing repairs that (datasets 5.2, `builder.py: download_and_prepare`). So it
goes first. What `map` made is found again only through the dataset; a builder that prepares anew
removes the whole directory before it moves the new one there.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from cachewarden.inventory import Claim
from cachewarden.layouts.base import Context, files, join, open_elsewhere
from cachewarden.layouts.datasets.info import INFO, LIMIT, parse
from cachewarden.layouts.datasets.names import MAPPED, TEMPORARY, Listing, is_part, is_saved
from cachewarden.layouts.datasets.source import Sources
from cachewarden.layouts.parts import Parts
from cachewarden.tree import Tree
from cachewarden_policies.policy import DAY
from cachewarden_policies.reasons import Cost, KeepReason

# Builders whose source is a function, a query or a cluster, and no file that could be read again.
_GENERATED = frozenset({b"generator", b"spark", b"sql"})


@dataclass(frozen=True, slots=True)
class Cache:
    """The datasets cache `at`: what is asked of it, and what was found so far."""

    tree: Tree
    at: bytes
    context: Context
    sources: Sources
    parts: Parts
    locks: Mapping[bytes, list[bytes]]  # at the top, as `locks_by_end` gives them

    def claim(self, name: bytes, paths: tuple[bytes, ...], kind: str, cost: Cost) -> Claim:
        """A claim of this layout, free to go."""
        return Claim(name, paths, kind, "datasets", cost)

    def age_ns(self, *paths: bytes) -> int:
        """How long ago the youngest of some paths was modified; nothing there counts as just now."""
        found = [there.st_mtime_ns for path in paths if (there := self.tree.stat(path)) is not None]
        return self.context.now_ns - max(found) if found else 0

    def guards(self, age_ns: int) -> tuple[KeepReason | None, bool]:
        """Of something incomplete: why it stays, and whether it is abandoned."""
        limit = self.context.partial_max_idle
        keep = KeepReason.PARTIAL if age_ns <= (DAY if limit is None else limit) else None
        return keep, limit is not None and keep is None


def claim_prepared(cache: Cache, path: bytes, listing: Listing, beside: Listing) -> None:
    """The claims of the prepared directory `path`; `beside` are the names in the directory around it."""
    if is_saved(listing):
        cache.parts.claims.append(
            Claim(path, (path,), "saved", "datasets", Cost.LOST, keep=KeepReason.PROTECTED)
        )
        return
    locks = tuple(_locks(cache, path, beside))
    names = files(listing)
    own = [name for name in names if is_part(name)]
    temporary = [name for name in names if TEMPORARY.fullmatch(name)]
    keep = KeepReason.IN_USE if open_elsewhere(listing) else None
    if own or not listing:
        _claim_dataset(cache, path, own, locks, keep)
    _claim_mapped(cache, path, names, keep)
    _claim_temporary(cache, path, temporary)
    for name in listing.keys() - {*own, *temporary}:
        if name not in names or not MAPPED.fullmatch(name):
            cache.parts.stranger(join(path, name))


def _claim_dataset(
    cache: Cache, path: bytes, own: list[bytes], locks: tuple[bytes, ...], keep: KeepReason | None
) -> None:
    top = path[len(cache.at) :].lstrip(b"/").partition(b"/")[0]
    info = parse(cache.tree.read(join(path, INFO), LIMIT) if INFO in own else None)
    kind, cost = "prepared", Cost.DOWNLOAD
    builder = (info.builder or "").encode("utf-8", "replace")
    if not _GENERATED.isdisjoint({builder, top}):
        kind, cost, keep = "generated", Cost.LOST, KeepReason.PROTECTED
    elif cache.sources.remain(top, path.rpartition(b"/")[2], info.source_bytes):
        cost = Cost.REBUILD
    paths = tuple(join(path, name) for name in sorted(own, key=lambda name: (name != INFO, name)))
    cache.parts.claims.append(
        Claim(
            path,
            paths or (path,),
            kind,
            "datasets",
            cost,
            keep,
            locks=locks,
            husks=(path,) if paths else (),
        )
    )


def _claim_mapped(cache: Cache, path: bytes, names: list[bytes], keep: KeepReason | None) -> None:
    """One claim for all that one call of `map` with several processes wrote: half of it is a miss."""
    ranks: dict[bytes, list[bytes]] = defaultdict(list)
    for name in names:
        if (found := MAPPED.fullmatch(name)) is not None:
            ranks[found["fingerprint"]].append(join(path, name))
    for fingerprint, paths in ranks.items():
        cache.parts.claims.append(
            Claim(
                path + b"@cache-" + fingerprint,
                tuple(paths),
                "map",
                "datasets",
                Cost.REBUILD,
                keep,
                stale=INFO not in names,
                husks=(path,),
            )
        )


def _claim_temporary(cache: Cache, path: bytes, names: list[bytes]) -> None:
    """Half-written results: open while somebody writes them, of no use to anybody afterwards."""
    paths = tuple(join(path, name) for name in names)
    if not paths:
        return
    keep, abandoned = cache.guards(cache.age_ns(*paths))
    cache.parts.claims.append(
        Claim(
            path + b"@partial",
            paths,
            "partial",
            "datasets",
            Cost.REBUILD,
            keep,
            partial=abandoned,
            husks=(path,),
        )
    )


def claim_incomplete(cache: Cache, path: bytes, beside: Listing) -> None:
    """`HASH.incomplete`: a preparation under way, or one that was killed; the next one starts it over."""
    complete = path.removesuffix(b".incomplete")
    inside = [join(path, name) for name in cache.tree.listing(path)]
    keep, abandoned = cache.guards(cache.age_ns(path, *inside))
    cache.parts.claims.append(
        Claim(
            path,
            (path,),
            "partial",
            "datasets",
            Cost.REBUILD,
            keep,
            partial=abandoned,
            locks=tuple(_locks(cache, complete, beside)),
        )
    )


def locks_by_end(names: Iterable[bytes]) -> dict[bytes, list[bytes]]:
    """Names of locks at the top, by each end of them that may be a dataset's path below the top.

    A lock's name is the absolute path of the dataset, as its user has it, with `_` for each slash: where
    in it the cache's own path ends is not known here.
    """
    found: dict[bytes, list[bytes]] = defaultdict(list)
    for name in names:
        start = name.find(b"_")
        while start >= 0:
            found[name[start + 1 :]].append(name)
            start = name.find(b"_", start + 1)
    return found


def _locks(cache: Cache, path: bytes, beside: Listing) -> Iterator[bytes]:
    """Existing lock files that whoever looks for, prepares or describes the dataset `path` takes."""
    parent, _, name = path.rpartition(b"/")
    for end in (b"_builder.lock", b"_info.lock", b".incomplete_info.lock"):
        if name + end in files(beside):
            yield join(parent, name + end)
    inside = path[len(cache.at) :].lstrip(b"/").replace(b"/", b"_")
    for lock in cache.locks.get(inside + b".lock", ()):
        yield join(cache.at, lock)
