"""The cache of huggingface_hub, also written by llama.cpp, vLLM, SGLang and sentence-transformers.

Facts read in huggingface_hub 2.4.0 (`file_download.py`, `utils/_cache_manager.py`,
`utils/_shared_blobs.py`, `_tree_cache.py`) and checked with its `scan_cache_dir`.
"""

import re
import stat
from collections.abc import Mapping

from cachewarden.inventory import Claim, Foreign, SharedClaim, Split
from cachewarden.layouts.base import FURNITURE, Context, Kind, directories, join, listed
from cachewarden.layouts.hub.repo import Hub, is_repo_shaped, judge
from cachewarden.layouts.hub.store import is_store, read_store, shared_claims
from cachewarden.paths import show
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost

_REPO = re.compile(rb"(models|datasets|spaces|kernels)--.+", re.DOTALL)
_LOCKS = b".locks"
_KNOWN = FURNITURE | {_LOCKS, b"version.txt", b"version_diffusers_cache.txt"}


class HubLayout:
    """Repositories, or revisions where a repository has several; blobs go with their last user."""

    name = "hub"
    shape = (
        "`models--*`, `datasets--*`, `spaces--*` or `kernels--*` with `blobs`, `refs`, `snapshots`, `trees` "
        "or `.no_exist` in it; or a marked shared store; or locks of such repositories"
    )
    unit = "a repository; with two or more snapshots in it, one revision"
    locks = "every file in `.locks/REPO/`, and the payload's own lock in the shared store"
    never = (
        "`.locks`, the shared store's marker and lock files, payloads whose list of users is missing, "
        "everything that is no repository"
    )
    checked = "huggingface_hub 0.24.7, 0.36.0, 1.33.0, 2.4.0; llama.cpp `hf-cache.cpp`"
    kinds: Mapping[str, Kind] = {
        "repo": Kind(Cost.DOWNLOAD, "the repository's directory, in one rename"),
        "revision": Kind(
            Cost.DOWNLOAD,
            "`REPO@COMMIT`: the snapshot, the references that name it, its file list, and the blobs that no "
            "other revision uses",
        ),
        "unreferenced": Kind(
            Cost.DOWNLOAD,
            "`REPO@unreferenced`: blobs that no snapshot links to; references and file lists of commits that "
            "are not there",
        ),
        "partial": Kind(Cost.DOWNLOAD, "`REPO@partial`: partial downloads older than `partial_max_idle`"),
    }

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """A directory with a repository in it, with a marked shared store, or with the locks of repositories.

        Locks stay when the last repository went: the next download takes them.
        """
        listing = tree.listing(at)
        repos = (join(at, name) for name in directories(listing) if _REPO.fullmatch(name))
        return (
            any(tree.listing(path) and is_repo_shaped(tree, path) for path in repos)
            or (listing.get(b"blobs") == stat.S_IFDIR and is_store(tree, join(at, b"blobs")))
            or (
                listing.get(_LOCKS) == stat.S_IFDIR
                and any(_REPO.fullmatch(name) for name in directories(tree.listing(join(at, _LOCKS))))
            )
        )

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:
        """Claims of all repositories below `at`; shared payloads with their users."""
        listing = tree.listing(at)
        store = read_store(tree, at)
        hub = Hub(tree, at, frozenset(listing), store, context)
        claims: list[Claim] = []
        shared: list[SharedClaim] = []
        foreign: list[Foreign] = []
        strangers: list[bytes] = []
        payloads: set[bytes] = set()
        judged: set[bytes] = set()
        for name, kind in listing.items():
            if kind == stat.S_IFDIR and _REPO.fullmatch(name) and is_repo_shaped(tree, join(at, name)):
                repo = judge(hub, name)
                claims += repo.claims
                shared += repo.shared
                foreign += repo.foreign
                payloads |= repo.payloads
                judged |= {name} if repo.known else set()
            elif name in _KNOWN or name.endswith(b".lock"):
                foreign.append(Foreign(join(at, name), known=True))
            elif name != b"blobs" or store is None:
                foreign.append(Foreign(join(at, name)))
                strangers.append(name)
        warnings = []
        place = f"{show(at)}: " if at else ""
        if strangers:
            warnings.append(f"{place}not part of a hub cache, never touched: {listed(strangers)}")
        if store is not None:
            payload_claims, rest = shared_claims(tree, store, payloads, judged)
            shared += payload_claims
            foreign += rest
            unused = sum(not each.known for each in rest)
            if unused:
                warnings.append(f"{place}the shared store has payloads that no repository uses ({unused})")
        return Split(self.name, tuple(claims), tuple(shared), tuple(foreign), tuple(warnings))
