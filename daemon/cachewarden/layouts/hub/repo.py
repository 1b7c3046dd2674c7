"""One repository of a hub cache: one entry, or one entry for each of its revisions."""

import stat
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from cachewarden.inventory import Claim, Foreign, SharedClaim
from cachewarden.layouts.base import FURNITURE, Context, directories, files, join, open_elsewhere
from cachewarden.layouts.hub.partials import Partials, find_partials
from cachewarden.layouts.hub.revisions import blobs_used, references, snapshots
from cachewarden.layouts.hub.store import Store
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost, KeepReason

# In the order in which they are removed when they are left empty; `refs` has directories of its own.
_PARTS = (b"blobs", b"snapshots", b"trees", b".no_exist")


@dataclass(frozen=True, slots=True)
class Hub:
    """What a repository is judged in: the hub's directory and its names, its store, what is asked."""

    tree: Tree
    at: bytes
    names: frozenset[bytes]
    store: Store | None
    context: Context


@dataclass(frozen=True, slots=True)
class Judged:
    """A repository divided. `payloads` are those of the shared store that it uses.

    `known` is false when a part of it could not be read, so that it may use more than was seen.
    """

    claims: tuple[Claim, ...]
    shared: tuple[SharedClaim, ...] = ()
    foreign: tuple[Foreign, ...] = ()
    payloads: frozenset[bytes] = frozenset()
    known: bool = True


@dataclass(frozen=True, slots=True)
class _Repo:
    """A repository as it was read: what all its claims have in common."""

    hub: Hub
    name: bytes
    blobs: tuple[bytes, ...]
    partials: Partials
    payload_of: dict[bytes, bytes]
    locks: tuple[bytes, ...]
    keep: KeepReason | None
    names: set[bytes] = field(default_factory=set)

    @property
    def path(self) -> bytes:
        return join(self.hub.at, self.name)

    def part_name(self, part: bytes) -> bytes:
        """`REPO@PART`, with more `@` where another entry has that name already."""
        separator = b"@"
        while self.name + separator + part in self.hub.names | self.names:
            separator += b"@"
        self.names.add(self.name + separator + part)
        return join(self.hub.at, self.name + separator + part)

    def claim(self, name: bytes, paths: Iterable[bytes], kind: str, blobs: Iterable[bytes]) -> Claim:
        """A claim that removes `paths` and uses `blobs`, through them payloads of the shared store."""
        payloads = {self.payload_of[blob] for blob in blobs if blob in self.payload_of}
        return Claim(
            name,
            tuple(paths),
            kind,
            "hub",
            Cost.DOWNLOAD,
            self.keep,
            locks=self.locks,
            shared=tuple(sorted(payloads)),
        )


def judge(hub: Hub, name: bytes) -> Judged:
    """Divide the repository `name`, a directory of the hub."""
    holes = len(hub.tree.unreadable)
    repo = _read(hub, name)
    revisions, plain = snapshots(hub.tree, repo.path)
    used = {commit: blobs_used(hub.tree, repo.path, commit) for commit in revisions}
    clear = {commit: blobs for commit, blobs in used.items() if blobs is not None}
    known = len(hub.tree.unreadable) == holes
    if len(revisions) < 2 or not plain or len(clear) < len(used) or not known:
        only = revisions[0] if len(revisions) == 1 else None
        return _whole(repo if known else replace(repo, keep=KeepReason.UNKNOWN), only, known=known)
    return _by_revision(repo, clear)


def _read(hub: Hub, name: bytes) -> _Repo:
    path = join(hub.at, name)
    directory = join(path, b"blobs")
    listing = hub.tree.listing(directory)
    names = [name for name, kind in listing.items() if kind in (stat.S_IFREG, stat.S_IFLNK)]
    partials = find_partials(hub.tree, directory, names, hub.context)
    payload_of = {}
    for blob, kind in listing.items():
        text = hub.tree.readlink(join(directory, blob)) if kind == stat.S_IFLNK and hub.store else None
        payload = hub.store.target(directory, text) if hub.store and text is not None else None
        if payload is not None:
            payload_of[blob] = payload
    locks = join(hub.at, b".locks", name)
    lock_files = [each for each in files(hub.tree.listing(locks)) if each.endswith((b".lock", b".lock.soft"))]
    keep = KeepReason.PARTIAL if partials.resumable else None
    if open_elsewhere([*listing, *hub.tree.listing(path), *hub.tree.listing(join(path, b"snapshots"))]):
        keep = KeepReason.IN_USE
    return _Repo(
        hub,
        name,
        tuple(blob for blob, kind in listing.items() if kind != stat.S_IFDIR and blob not in FURNITURE),
        partials,
        payload_of,
        tuple(join(locks, each) for each in lock_files),
        keep,
    )


def _whole(repo: _Repo, only: bytes | None, *, known: bool) -> Judged:
    claim = repo.claim(repo.path, (repo.path,), "repo", repo.blobs)
    if only is not None:
        claim = replace(claim, formerly=join(repo.hub.at, repo.name + b"@" + only))
    return Judged((claim, *_abandoned(repo)), payloads=frozenset(repo.payload_of.values()), known=known)


def _by_revision(repo: _Repo, used: dict[bytes, frozenset[bytes]]) -> Judged:
    tree = repo.hub.tree
    users = Counter(blob for blobs in used.values() for blob in blobs)
    refs = references(tree, repo.path)
    parts = {part: tree.listing(join(repo.path, part)) for part in (b"trees", b".no_exist")}
    husks = (
        *refs.directories,
        *(join(repo.path, part) for part in _PARTS if tree.is_dir(join(repo.path, part))),
    )
    claims = []
    shared: dict[bytes, SharedClaim] = {}
    taken: set[bytes] = set()
    for commit, blobs in used.items():
        there = [blob for blob in repo.blobs if blob in blobs]
        witnesses = [join(repo.path, b"snapshots", commit), *refs.by_commit.get(commit, ())]
        beside = [
            join(repo.path, part, name)
            for part, name in ((b"trees", commit + b".json"), (b".no_exist", commit))
            if name in parts[part]
        ]
        own = [join(repo.path, b"blobs", blob) for blob in there if users[blob] == 1]
        several = [join(repo.path, b"blobs", blob) for blob in there if users[blob] > 1]
        shared |= {path: SharedClaim(path) for path in several}
        paths = (*witnesses, *beside, *own)
        taken.update(paths)
        claim = repo.claim(repo.part_name(commit), paths, "revision", there)
        shared_data = (*several, *claim.shared)
        claims.append(replace(claim, shared=shared_data, husks=(*husks, repo.path), formerly=repo.path))
    everything = [
        *(join(repo.path, part, name) for part, listing in parts.items() for name in listing),
        *(path for paths in refs.by_commit.values() for path in paths),
    ]
    left = [path for path in everything if path not in taken and path.rpartition(b"/")[2] not in FURNITURE]
    claims += _unreferenced(repo, users, left, (*husks, repo.path))
    return Judged(
        (*claims, *_abandoned(repo)),
        tuple(shared.values()),
        tuple(Foreign(path, known=True) for path in _running(repo)),
        frozenset(repo.payload_of.values()),
    )


def _unreferenced(
    repo: _Repo, users: Counter[bytes], left: list[bytes], husks: tuple[bytes, ...]
) -> list[Claim]:
    """One claim for blobs that no snapshot names, and for references and lists of absent commits."""
    blobs = [blob for blob in repo.blobs if blob not in users and blob not in repo.partials.names]
    paths = [*sorted(left), *(join(repo.path, b"blobs", blob) for blob in blobs)]
    if not paths:
        return []
    claim = repo.claim(repo.part_name(b"unreferenced"), paths, "unreferenced", blobs)
    return [replace(claim, husks=husks)]


def _abandoned(repo: _Repo) -> list[Claim]:
    """One claim for downloads that nobody goes on with, so that they go and the repository stays."""
    paths = [join(repo.path, b"blobs", name) for name in repo.partials.abandoned]
    if not paths:
        return []
    claim = repo.claim(repo.part_name(b"partial"), paths, "partial", ())
    return [replace(claim, partial=True, keep=KeepReason.IN_USE if repo.keep is KeepReason.IN_USE else None)]


def _running(repo: _Repo) -> list[bytes]:
    names = repo.partials.names - set(repo.partials.abandoned)
    return [join(repo.path, b"blobs", name) for name in sorted(names)]


def is_repo_shaped(tree: Tree, path: bytes) -> bool:
    """Whether a directory with a repository's name is one: empty, or with a part of a repository."""
    listing = tree.listing(path)
    parts = {b"refs", *_PARTS}
    return not listing or any(name in parts for name in directories(listing))
