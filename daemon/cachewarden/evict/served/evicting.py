"""Evicting models of an Ollama store: by hand while no server lives on it, else through the server.

With a server, a victim is first looked at as any other (nobody uses it, nothing changed since it was
measured: `Evictor.probe_all`), then the server is asked to remove it, and what is gone afterwards is booked.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from cachewarden.evict.evictor import Evictor
from cachewarden.evict.served.api import Api, ServerError
from cachewarden.evict.served.servers import servers_of
from cachewarden.evict.victim import Victim
from cachewarden.report import EvictionOutcome, Holder, Removed, Spared
from cachewarden.tree import Tree, open_beneath
from cachewarden_policies.reasons import KeepReason

_ROOTS = (b"manifests-v2", b"manifests")
_BLOCK = 512
_MANIFEST_MAX = 4 << 20


class Evicting(Protocol):
    """What a pass needs of whoever evicts."""

    def evict_all(
        self, victims: Sequence[Victim], stop: Callable[[], bool] = lambda: False
    ) -> list[EvictionOutcome]:
        """As `Evictor.evict_all`."""

    def close(self) -> None:
        """As `Evictor.close`."""


@dataclass(frozen=True, slots=True)
class _Model:
    """What a victim is called: the store's path in the location, and the model's full name.

    None for a name that no request can carry.
    """

    store: bytes
    name: str | None


class Served:
    """An evictor that asks the server of a store where there is one.

    `root_fd` is the open root of the location. Entries of other kinds, and those that a server has nothing to
    do with, are passed on.
    """

    def __init__(self, evictor: Evictor, root_fd: int) -> None:
        self._evictor = evictor
        self._root_fd = root_fd

    def close(self) -> None:
        """Wait until everything past the point of no return is unlinked."""
        self._evictor.close()

    def evict_all(
        self, victims: Sequence[Victim], stop: Callable[[], bool] = lambda: False
    ) -> list[EvictionOutcome]:
        """Evict entries in this order, those of a store with a server one by one. As `Evictor.evict_all`."""
        done: list[EvictionOutcome] = []
        waiting: list[Victim] = []
        for victim in victims:
            if _model_of(victim.name) is None and not _is_unreferenced(victim.name):
                waiting.append(victim)
                continue
            done += self._evictor.evict_all(waiting, stop)
            waiting = []
            if stop():
                return done
            done += self._evict(victim, stop)
        return [*done, *self._evictor.evict_all(waiting, stop)]

    def _evict(self, victim: Victim, stop: Callable[[], bool]) -> list[EvictionOutcome]:
        model = _model_of(victim.name)
        store = model.store if model is not None else victim.paths[0].rpartition(b"/blobs/")[0]
        try:
            fd = open_beneath(self._root_fd, store)
        except OSError:
            return [Spared(KeepReason.CHANGED)]
        try:
            servers = servers_of(fd)
        finally:
            os.close(fd)
        if not servers.complete:
            return [Spared(KeepReason.UNKNOWN)]
        if not servers.found:
            return self._evictor.evict_all([victim], stop)
        holders = tuple(Holder("opener", server.pid, "ollama") for server in servers.found)
        addresses = [server.address for server in servers.found if server.address is not None]
        if model is None or model.name is None or len(servers.found) > 1 or not addresses:
            return [Spared(KeepReason.IN_USE, holders)]
        return [self._through(Api(addresses[0]), model.name, victim, holders)]

    def _through(self, api: Api, name: str, victim: Victim, holders: tuple[Holder, ...]) -> EvictionOutcome:
        (found,) = self._evictor.probe_all([victim])
        if found is not None:
            return found
        before = self._amounts(victim)
        try:
            reason = self._remove(api, name, victim)
        except ServerError:
            reason = KeepReason.UNKNOWN
        if self._is_there(victim.paths[0]):  # whatever it answered
            return Spared(reason, holders)
        gone = [amount for path, amount in before.items() if not self._is_there(path)]
        return Removed(sum(gone), sum(amount > 0 for amount in gone))

    def _remove(self, api: Api, name: str, victim: Victim) -> KeepReason:
        """Ask the server; the reason for which the model stays, if it does."""
        known = api.models()
        alike = [each for each in known if each.lower() == name.lower()]  # it takes them for the same
        if alike != [name] or known[name] != self._digest(victim):
            return KeepReason.UNKNOWN
        if name.lower() in {each.lower() for each in api.loaded()}:
            return KeepReason.IN_USE
        api.delete(name)
        return KeepReason.UNKNOWN

    def _digest(self, victim: Victim) -> str | None:
        """The hexadecimal digest of the manifest, which is how the server knows one version from another."""
        tree = Tree(self._root_fd)
        path = victim.paths[0]
        text = tree.readlink(path)
        if text is not None:  # a link to the blob of that name
            return os.fsdecode(text.rpartition(b"/sha256-")[2])
        content = tree.read(path, _MANIFEST_MAX)
        return None if content is None else hashlib.sha256(content).hexdigest()

    def _amounts(self, victim: Victim) -> dict[bytes, int]:
        """What the disk gets back with each path that may go: nothing for links and linked inodes."""
        found = {}
        tree = Tree(self._root_fd)
        for path in (*victim.paths, *victim.shared_out):
            there = tree.stat(path)
            if there is not None:
                alone = stat.S_ISREG(there.st_mode) and there.st_nlink == 1
                found[path] = there.st_blocks * _BLOCK if alone else 0
        return found

    def _is_there(self, path: bytes) -> bool:
        return Tree(self._root_fd).stat(path) is not None


def _model_of(name: bytes) -> _Model | None:
    """The model whose manifest has this path: …/manifests/HOST/NAMESPACE/MODEL/TAG."""
    parts = name.split(b"/")
    if len(parts) < 5 or parts[-5] not in _ROOTS:
        return None
    store = b"/".join(parts[:-5])
    try:
        host, namespace, model, tag = (part.decode() for part in parts[-4:])
    except UnicodeDecodeError:
        return _Model(store, None)
    return _Model(store, f"{host}/{namespace}/{model}:{tag}")


def _is_unreferenced(name: bytes) -> bool:
    """Blobs without a manifest: of a pull or a `create`, perhaps, that is about to write it."""
    return name.rpartition(b"/")[2] == b"blobs@unreferenced"
