"""The models of an Ollama server, by manifest.

Facts read in ollama (`manifest/manifest.go`, `manifest/layer.go`, `manifest/paths.go`, `server/images.go`,
`server/download.go`, `envconfig/config.go`). While a server lives, its models go through it: see
`evict.served`.
"""

import stat
from collections import Counter
from collections.abc import Mapping

from cachewarden.inventory import Claim, SharedClaim, Split
from cachewarden.layouts.base import Context, Kind, join
from cachewarden.layouts.collecting import Collector, is_young
from cachewarden.layouts.ollama.store import ROOTS, Model, Store, is_store, part_groups, read_store
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost, KeepReason

_PARTS = frozenset({b"blobs", *ROOTS})


class Ollama:
    """One model (a name with its tag) is an entry; a blob that several use goes with the last of them."""

    name = "ollama"
    kinds: Mapping[str, Kind] = {
        "model": Kind(Cost.DOWNLOAD, "a model that was pulled, with the blobs that only it uses"),
        "created": Kind(
            Cost.LOST, "a model that was, or may have been, made on this machine: no registry has it"
        ),
        "broken": Kind(Cost.LOST, "a manifest that is none, or does not say all that it uses"),
        "unreferenced": Kind(
            Cost.DOWNLOAD, "`blobs@unreferenced`: blobs that no manifest names, older than a day"
        ),
        "partial": Kind(Cost.DOWNLOAD, "a pull that nobody goes on with: its offsets, then its data"),
    }
    shape = (
        "`blobs/sha256-*` beside `manifests` or `manifests-v2`; or a `models` directory of that shape in it"
    )
    unit = "a model with its tag: its manifest, and the blobs that no other manifest names"
    locks = "none; while a server runs, entries go through its API"
    never = (
        "models that were made on this machine, manifests that cannot be read, everything beside `models` "
        "in `~/.ollama`"
    )
    checked = "ollama fb3076099 (sources)"

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """The store itself, or the directory `~/.ollama` around it."""
        return is_store(tree, at) or self._is_home(tree, at)

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:
        """Claims of all models below `at`."""
        found = Collector(self.name, "a store of Ollama", tree, at)
        place = at
        if not is_store(tree, at) and self._is_home(tree, at):
            place = join(at, b"models")
            found.all_known(join(at, name) for name in tree.listing(at) if name != b"models")
        for name in tree.listing(place):
            if name not in _PARTS:
                found.stranger(join(place, name))
        for part in sorted(_PARTS & tree.listing(place).keys()):
            found.inside(join(place, part))
        store = read_store(tree, place)
        _models(found, store, place)
        _leftovers(found, tree, store, place, context)
        return found.split()

    def _is_home(self, tree: Tree, at: bytes) -> bool:
        return tree.listing(at).get(b"models") == stat.S_IFDIR and is_store(tree, join(at, b"models"))


def _models(found: Collector, store: Store, at: bytes) -> None:
    users = Counter(blob for model in store.models.values() for blob in model.blobs)
    weights = {blob for model in store.models.values() for blob in model.weights}
    for model in store.models.values():
        own = sorted(blob for blob in model.blobs if users[blob] == 1)
        several = tuple(join(at, b"blobs", blob) for blob in sorted(model.blobs) if users[blob] > 1)
        kind, cost, keep = _judged(found, model)
        paths = (*model.paths, *(join(at, b"blobs", blob) for blob in own))
        # Who lists the models reads every manifest, and the small blobs of each.
        loud = {join(at, b"blobs", blob) for blob in weights}
        found.claims.append(
            Claim(
                paths[0],
                paths,
                kind,
                Ollama.name,
                cost,
                keep,
                shared=several,
                husks=_husks(model),
                quiet=tuple(path for path in paths if path not in loud),
            )
        )
    found.shared += [
        SharedClaim(join(at, b"blobs", blob), quiet=blob not in weights)
        for blob in sorted(users)
        if users[blob] > 1
    ]


def _judged(found: Collector, model: Model) -> tuple[str, Cost, KeepReason | None]:
    if not model.clear:
        return "broken", Cost.LOST, KeepReason.UNKNOWN
    if model.created:
        return "created", Cost.LOST, KeepReason.PROTECTED
    return "model", Cost.DOWNLOAD, found.guard(model.paths)


def _husks(model: Model) -> tuple[bytes, ...]:
    """The directories of its tag, name, namespace and host, deepest first; Ollama removes them too."""
    husks = []
    for path in model.paths:
        for _ in range(3):
            path = path.rpartition(b"/")[0]  # noqa: PLW2901 - climbs
            husks.append(path)
    return tuple(husks)


def _leftovers(found: Collector, tree: Tree, store: Store, at: bytes, context: Context) -> None:
    """What no manifest names: downloads under way or abandoned, blobs without a model."""
    groups, rest = part_groups(store.others)
    blobs = join(at, b"blobs")
    for group in groups.values():
        found.partial((join(blobs, name) for name in group), context)
    for path in (*(join(blobs, name) for name in rest), *store.strangers):
        found.stranger(path)
    found.all_known(store.furniture)
    named = {blob for model in store.models.values() for blob in model.blobs}
    unnamed = [join(blobs, name) for name in store.blobs.values() if name not in named]
    # A pull and a `create` write the blobs first and the manifest last; Ollama waits an hour.
    young = [path for path in unnamed if is_young(tree, path, context)]
    found.all_known(young)
    old = tuple(path for path in unnamed if path not in young)
    if old:
        keep = None if store.complete else KeepReason.UNKNOWN
        name = join(at, b"blobs@unreferenced")
        found.claims.append(Claim(name, old, "unreferenced", Ollama.name, Cost.DOWNLOAD, keep))
