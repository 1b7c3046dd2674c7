"""The blob store that all repositories of a hub cache share (huggingface_hub >= 1.32).

`blobs/XX/HASH` is a payload, `HASH.refs` the append-only list of its users, `HASH.lock` a flock for
both. The directory is the store only with its marker file; see `utils/_shared_blobs.py` of
huggingface_hub 2.4.0. As there, a list that is missing or unreadable is never grounds for removal.
"""

import re
import stat
from collections.abc import Collection
from dataclasses import dataclass, field

from cachewarden.inventory import Foreign, SharedClaim
from cachewarden.layouts.base import directories, files, join
from cachewarden.layouts.hub.links import resolve, tail
from cachewarden.tree import Tree

MARKER = b".huggingface-shared-blobs"
_VERSION = b"1\n"
_PREFIX = re.compile(rb"[0-9a-f]{2}")
_HASH = re.compile(rb"[0-9a-f]{64}")
_LIST_LIMIT = 16 << 20


@dataclass(frozen=True, slots=True)
class Store:
    """The payloads of a store below `at` (the hub's directory), by path, each with its siblings' names."""

    at: bytes
    payloads: dict[bytes, frozenset[bytes]] = field(default_factory=dict)

    def target(self, directory: bytes, text: bytes) -> bytes | None:
        """The payload that a link in a repository's `blobs` directory names, if it is one of ours.

        An absolute link counts by its last components: one user too many only makes a payload stay
        longer, one too few would take it from under a repository.
        """
        path = resolve(directory, text)
        if path is None and text.startswith(b"/"):
            path = join(self.at, *tail(text, 3))
        return path if path in self.payloads else None


def is_store(tree: Tree, path: bytes) -> bool:
    """Whether `path` is a marked store of the version that we know."""
    return tree.is_dir(path) and tree.read(join(path, MARKER), 16) == _VERSION


def read_store(tree: Tree, at: bytes) -> Store | None:
    """The store of the hub cache `at`, or None where there is none."""
    root = join(at, b"blobs")
    if not is_store(tree, root):
        return None
    payloads: dict[bytes, frozenset[bytes]] = {}
    for prefix in directories(tree.listing(root)):
        if not _PREFIX.fullmatch(prefix):
            continue
        found = files(tree.listing(join(root, prefix)))
        siblings = frozenset(found)
        for name in found:
            if _HASH.fullmatch(name) and name.startswith(prefix):
                extras = {name + suffix for suffix in (b".refs", b".lock", b".lock.soft")}
                payloads[join(root, prefix, name)] = siblings & extras
    return Store(at, payloads)


def shared_claims(
    tree: Tree, store: Store, used: Collection[bytes], judged: Collection[bytes]
) -> tuple[list[SharedClaim], list[Foreign]]:
    """Claims of the payloads in `used`, and what else is in the store.

    `judged` are the names of repositories whose blobs were all read. A payload that a repository
    beyond them still lists is kept: that user has no entry that could stand for it.
    """
    claims = [_shared_claim(tree, store, path, judged) for path in sorted(used)]
    unused = [Foreign(path) for path in sorted(store.payloads) if path not in used]
    return claims, [Foreign(join(store.at, b"blobs"), known=True), *unused]


def _shared_claim(tree: Tree, store: Store, path: bytes, judged: Collection[bytes]) -> SharedClaim:
    directory, _, name = path.rpartition(b"/")
    siblings = store.payloads[path]
    refs = name + b".refs"
    return SharedClaim(
        path,
        companions=(join(directory, refs),) if refs in siblings else (),
        locks=tuple(join(directory, each) for each in sorted(siblings) if each != refs),
        kept=not _users_are_known(tree, store, join(directory, refs), judged),
    )


def _users_are_known(tree: Tree, store: Store, refs: bytes, judged: Collection[bytes]) -> bool:
    text = tree.read(refs, _LIST_LIMIT)
    if text is None or len(text) == _LIST_LIMIT:
        return False
    try:
        text.decode()
    except UnicodeDecodeError:  # huggingface_hub takes such a list for unreadable
        return False
    for line in text.splitlines():
        repo, slash, rest = line.partition(b"/")
        if not slash or repo in (b"", b".", b"..") or not rest.startswith(b"blobs/"):
            continue  # absolute, climbing or malformed: no user that huggingface_hub would honour
        there = tree.stat(join(store.at, repo))
        if repo not in judged and there is not None and not stat.S_ISREG(there.st_mode):
            return False
    return True
