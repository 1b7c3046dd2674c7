"""The cache of ModelScope, in both of its layouts, which lie beside each other.

Facts read in modelscope-hub 0.5.1 (`_download.py`, `_cache_manager.py`, `_resilient_download.py`) and
modelscope 1.29.0 (`hub/snapshot_download.py`, `hub/file_download.py`, `hub/utils/caching.py`).

    TYPEs/OWNER--NAME/snapshots/REVISION/FILE      since 1.38, real files
    TYPEs/OWNER/NAME/.msc, .mdl, .mv, FILE         until 1.37; also below `hub`, and without TYPEs
    TYPEs/._____temp/OWNER/NAME/FILE               its downloads
    .lock/repo_SHA256.lock, .lock/OWNER___NAME     flock
"""

import hashlib
import stat
from collections.abc import Iterator, Mapping

from cachewarden.inventory import Split
from cachewarden.layouts.base import Context, Kind, directories, files, join
from cachewarden.layouts.collecting import Collector, is_abandoned
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost, KeepReason

_TYPES = (b"models", b"datasets", b"studios", b"mcps", b"skills")
_TEMPORARY = b"._____temp"
_INDEX = frozenset({b".msc", b".mdl", b".mv"})
_OWN = frozenset({b".lock", b".download_state", b"ast_indexer", b"credentials"})


class ModelScope:
    """A revision is an entry, in the older layout a whole model: one half of it would be taken for all."""

    name = "modelscope"
    kinds: Mapping[str, Kind] = {
        "revision": Kind(Cost.DOWNLOAD, "`TYPEs/OWNER--NAME/snapshots/REVISION`"),
        "model": Kind(Cost.DOWNLOAD, "`OWNER/NAME` of the older layout"),
        "partial": Kind(Cost.DOWNLOAD, "`._____temp/OWNER/NAME`"),
    }
    shape = (
        "`OWNER--NAME/snapshots`, or `._____temp` beside `OWNER/NAME` with `.msc` or `.mdl` in it; the same "
        "below `models`, `datasets` …, or below `hub`"
    )
    unit = "one revision; in the older layout, one model"
    locks = "those of its repository in `.lock`"
    never = "`.lock`, `.download_state`, `credentials`, directories without ModelScope's index in them"
    checked = "modelscope 1.29.0, modelscope-hub 0.5.1"

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """The cache, its `hub` directory, or one of the types in it."""
        return any(self._is_group(tree, place) for place in _groups(tree, at))

    def _is_group(self, tree: Tree, at: bytes) -> bool:
        listing = tree.listing(at)
        if _TEMPORARY not in listing and not any(b"--" in name for name in listing):
            return False
        for owner in directories(listing):
            path = join(at, owner)
            if _is_repository(tree, path, owner):
                return True
            if any(_is_legacy(tree, join(path, name)) for name in directories(tree.listing(path))):
                return True
        return False

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:
        """Claims of all revisions and models."""
        found = Collector(self.name, "a cache of ModelScope", tree, at)
        groups = list(_groups(tree, at))
        for place in groups:
            for name, kind in found.inside(place).items():
                path = join(place, name)
                if path in groups:
                    continue
                if name in _OWN:
                    found.known(path)
                elif kind == stat.S_IFDIR and name == _TEMPORARY:
                    _temporary(found, tree, path, context)
                elif kind == stat.S_IFDIR and _is_repository(tree, path, name):
                    _revisions(found, tree, at, path, context)
                elif kind == stat.S_IFDIR:
                    _owner(found, tree, at, path)
                else:
                    found.stranger(path)
        return found.split()


def _groups(tree: Tree, at: bytes) -> Iterator[bytes]:
    """The directories whose children are repositories or owners: here, in `hub`, and in the types of both."""
    yield at
    listing = tree.listing(at)
    yield from (join(at, name) for name in _TYPES if listing.get(name) == stat.S_IFDIR)
    if listing.get(b"hub") == stat.S_IFDIR and (listing := tree.listing(join(at, b"hub"))):
        yield join(at, b"hub")
        yield from (join(at, b"hub", name) for name in _TYPES if listing.get(name) == stat.S_IFDIR)


def _is_repository(tree: Tree, path: bytes, name: bytes) -> bool:
    # `models--OWNER--NAME` is a repository of huggingface_hub.
    return (
        b"--" in name
        and not name.startswith(tuple(each + b"--" for each in _TYPES))
        and tree.listing(path).get(b"snapshots") == stat.S_IFDIR
    )


def _is_legacy(tree: Tree, path: bytes) -> bool:
    return not _INDEX.isdisjoint(files(tree.listing(path)))


def _revisions(found: Collector, tree: Tree, at: bytes, path: bytes, context: Context) -> None:
    """A repository of the newer layout. While a file of a revision is being fetched, the revision stays."""
    for name in tree.listing(path):
        if name != b"snapshots":
            found.known(join(path, name))
    snapshots = join(path, b"snapshots")
    for name, kind in found.inside(snapshots).items():
        revision = join(snapshots, name)
        if kind != stat.S_IFDIR:
            found.stranger(revision)
            continue
        partial = [join(revision, each) for each in tree.listing(revision) if each.endswith(b".incomplete")]
        running = partial and not is_abandoned(tree, partial, context)
        found.claim(
            (revision,),
            "revision",
            keep=KeepReason.PARTIAL if running else None,
            locks=_locks(tree, at, path),
            husks=(snapshots, path),
        )


def _owner(found: Collector, tree: Tree, at: bytes, path: bytes) -> None:
    """An owner of the older layout; a directory without any model of ModelScope's is strange as a whole."""
    listing = tree.listing(path)
    models = [name for name in directories(listing) if _is_legacy(tree, join(path, name))]
    if not models:
        found.stranger(path)
        return
    for name in listing:
        model = join(path, name)
        if name in models:
            found.claim((model,), "model", locks=_locks(tree, at, model), husks=(path,))
        else:
            found.stranger(model)


def _temporary(found: Collector, tree: Tree, path: bytes, context: Context) -> None:
    """Downloads of the older layout, by repository: `._____temp/OWNER/NAME`."""
    for owner, kind in found.inside(path).items():
        names = tree.listing(join(path, owner)) if kind == stat.S_IFDIR else {}
        if not names:
            found.known(join(path, owner))
        for name in names:
            found.partial((join(path, owner, name),), context)


def _locks(tree: Tree, at: bytes, path: bytes) -> tuple[bytes, ...]:
    """The existing lock files of a repository.

    The newer layout names them by a hash of type and repository, the older one by the repository with `/` as
    `___`; there a dot in the name was written so too, and which of the two it was is tried both ways.
    """
    parent, _, name = path.rpartition(b"/")
    if b"--" in name:
        repositories = [name.replace(b"--", b"/", 1), name.replace(b"--", b"/")]
    else:
        repositories = [
            parent.rpartition(b"/")[2] + b"/" + each for each in (name, name.replace(b"___", b"."))
        ]
    there = {place: set(files(tree.listing(place))) for place in (join(at, b".lock"), join(at, b"hub/.lock"))}
    wanted = {repository.replace(b"/", b"___") for repository in repositories}
    for kind in (b"model", b"dataset", b"studio"):
        for repository in repositories:
            key = b"\0".join((b"modelscope-hub-download-lock-v2", b"repo", kind, repository, b""))
            wanted.add(b"repo_" + hashlib.sha256(key).hexdigest().encode() + b".lock")
    return tuple(join(place, name) for place, names in there.items() for name in sorted(names & wanted))
