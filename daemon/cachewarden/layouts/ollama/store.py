"""The models of an Ollama store: named manifests, and the blobs that each of them uses.

`manifests/HOST/NAMESPACE/MODEL/TAG` is a manifest. Newer versions keep it as a blob, and
`manifests-v2/HOST/NAMESPACE/MODEL/TAG` is a link to it, a hard link or a copy (`manifest/manifest.go`).
"""

import hashlib
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from cachewarden.layouts.base import files, join
from cachewarden.layouts.hub.links import resolve
from cachewarden.layouts.ollama.manifests import LIMIT, Manifest, parse
from cachewarden.tree import Tree

# In the order in which Ollama looks for a name.
ROOTS = (b"manifests-v2", b"manifests")
_LEVELS = 4
BLOB = re.compile(rb"sha256-[0-9a-fA-F]{64}")
_PART = re.compile(rb"(sha256-[0-9a-fA-F]{64}-partial|sha256-\d{1,20})(?:-\d+)?")


@dataclass(slots=True)
class Model:
    """One name: the paths of its manifest, and the names (in `blobs`) of all that it uses.

    `weights` are those of them that are read when it runs.
    """

    paths: list[bytes] = field(default_factory=list)
    blobs: set[bytes] = field(default_factory=set)
    weights: set[bytes] = field(default_factory=set)
    clear: bool = True
    created: bool = False


@dataclass(slots=True)
class Store:
    """A store as it was read. `complete`: every manifest could be read and names all that it uses."""

    models: dict[bytes, Model] = field(default_factory=dict)
    blobs: dict[bytes, bytes] = field(default_factory=dict)  # names of complete blobs by digest
    others: list[bytes] = field(default_factory=list)  # names of all else in `blobs`
    strangers: list[bytes] = field(default_factory=list)  # paths that are no manifests
    furniture: list[bytes] = field(default_factory=list)
    complete: bool = True


def is_store(tree: Tree, at: bytes) -> bool:
    """Whether `at` has manifests beside blobs that are named as Ollama names them."""
    listing = tree.listing(at)
    if listing.get(b"blobs") != stat.S_IFDIR or not any(listing.get(root) == stat.S_IFDIR for root in ROOTS):
        return False
    blobs = tree.listing(join(at, b"blobs"))
    if any(name.startswith(b"sha256-") for name in blobs):
        return True
    named = (name for root in ROOTS if root in listing for name, _ in _names(tree, join(at, root)))
    return any(name is not None for name in named)


def read_store(tree: Tree, at: bytes) -> Store:
    """Read all manifests of the store `at`, and the names of its blobs."""
    store = Store()
    holes = len(tree.unreadable)
    listing = tree.listing(join(at, b"blobs"))
    regular = set(files(listing))
    for name in listing:
        if BLOB.fullmatch(name) and name in regular:
            store.blobs[name[7:].lower()] = name
        else:
            store.others.append(name)
    for root in ROOTS:
        for logical, path in _names(tree, join(at, root)):
            if logical is None:
                store.strangers.append(path)
            elif path.rpartition(b"/")[2].startswith(b".manifest-"):
                store.furniture.append(path)  # being written
            else:
                _add(tree, at, store, logical, path)
    store.complete = len(tree.unreadable) == holes and all(model.clear for model in store.models.values())
    return store


def _names(tree: Tree, root: bytes) -> Iterator[tuple[bytes | None, bytes]]:
    """(HOST/NAMESPACE/MODEL/TAG, path) of each manifest below `root`; None for what is at another level."""
    waiting: list[tuple[bytes, int]] = [(root, 0)]
    while waiting:
        here, level = waiting.pop()
        for name, kind in tree.listing(here).items():
            path = join(here, name)
            if kind == stat.S_IFDIR and level + 1 < _LEVELS:
                waiting.append((path, level + 1))
            elif kind in (stat.S_IFREG, stat.S_IFLNK) and level + 1 == _LEVELS:
                yield path[len(root) + 1 :], path
            else:
                yield None, path


def _add(tree: Tree, at: bytes, store: Store, name: bytes, path: bytes) -> None:
    model = store.models.setdefault(name, Model())
    model.paths.append(path)
    blob = _linked(tree, at, store, path)
    found = _read(tree, path if blob is None else join(at, b"blobs", blob))
    if blob is not None:
        model.blobs.add(blob)
    if found is None:
        model.clear = False
        return
    text, manifest = found
    # A hard link and a copy have the blob that they were made from beside them.
    digests = {*manifest.blobs, hashlib.sha256(text).hexdigest().encode()}
    weights = set(manifest.weights)
    for reference in manifest.references:
        child = _read(tree, join(at, b"blobs", store.blobs.get(reference, b"sha256-" + reference)))
        if child is None or not child[1].clear or child[1].references:
            model.clear = False
        else:
            digests |= child[1].blobs
            weights |= child[1].weights
    model.blobs |= {store.blobs[digest] for digest in digests if digest in store.blobs}
    model.weights |= {store.blobs[digest] for digest in weights if digest in store.blobs}
    model.clear = model.clear and manifest.clear
    model.created = model.created or manifest.created


def _linked(tree: Tree, at: bytes, store: Store, path: bytes) -> bytes | None:
    """The name of the blob that a manifest is a link to; None for a file, or a link to anywhere else."""
    text = tree.readlink(path)
    end = resolve(path.rpartition(b"/")[0], text) if text is not None else None
    parent, _, name = (end or b"").rpartition(b"/")
    if end is None or parent != join(at, b"blobs") or not BLOB.fullmatch(name):
        return None
    return store.blobs.get(name[7:].lower())


def _read(tree: Tree, path: bytes) -> tuple[bytes, Manifest] | None:
    text = tree.read(path, LIMIT)
    there = tree.stat(path)
    return None if text is None or there is None else (text, parse(text, there.st_mtime_ns))


def part_groups(names: list[bytes]) -> tuple[dict[bytes, list[bytes]], list[bytes]]:
    """Partial downloads among the names in `blobs`, each with its parts first, and what is none.

    `sha256-HEX-partial-N` are offsets into `sha256-HEX-partial`: offsets without their data would be believed
    (`server/download.go`). `sha256-DIGITS` is a blob that is being made.
    """
    groups: dict[bytes, list[bytes]] = {}
    rest = []
    for name in names:
        match = _PART.fullmatch(name)
        if match is None:
            rest.append(name)
        else:
            groups.setdefault(match[1], []).append(name)
    ordered = {stem: sorted(group, key=lambda name: (name == stem, name)) for stem, group in groups.items()}
    return ordered, rest
