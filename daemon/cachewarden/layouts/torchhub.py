"""The cache of torch.hub: weights by file, repositories of code by directory.

Facts read in torch 2.14.1 (`hub.py`). A download goes to `FILE.UUID.partial` and is moved; nothing is locked.
"""

import os
import re
import stat
from collections.abc import Mapping

from cachewarden.inventory import Split
from cachewarden.layouts.accelerate.shapes import holds_training_state
from cachewarden.layouts.base import Context, Kind, directories, join
from cachewarden.layouts.collecting import Collector
from cachewarden.layouts.descent import descend
from cachewarden.tree import Tree
from cachewarden_policies.policy import HOUR
from cachewarden_policies.reasons import Cost, KeepReason

# `load_state_dict_from_url` names files as the web does, and there with the first digits of their hash.
_HASHED = re.compile(rb".+-[0-9a-f]{8,64}\.(pth|pt|th|pkl|bin|safetensors|tar|zip)")
_PARTIAL = re.compile(rb".+\.[0-9a-f]{32}\.partial")
_TRUST = b"trusted_list"
_TRUSTED_OWNERS = (b"facebookresearch", b"facebookincubator", b"pytorch", b"fairinternal")
_TRUST_LIMIT = 1 << 20


class TorchHub:
    """One file of weights, or one repository of code."""

    name = "torch_hub"
    kinds: Mapping[str, Kind] = {
        "weights": Kind(Cost.DOWNLOAD, "a file in `checkpoints`"),
        "repository": Kind(
            Cost.DOWNLOAD, "`OWNER_REPOSITORY_REF`, where trust does not hang on its being there"
        ),
        "partial": Kind(Cost.DOWNLOAD, "`FILE.UUID.partial`, or an archive that was not unpacked"),
    }
    shape = (
        "`trusted_list`, or `OWNER_REPOSITORY_REF` with `hubconf.py`, or `checkpoints` with files named "
        "`NAME-HASH.pth`; or such files alone"
    )
    unit = "one file in `checkpoints`; one repository"
    locks = "none"
    never = (
        "`trusted_list`, repositories that are trusted only because they are there or in which something was "
        "written later, files beside hashed ones that are not named so where nothing else shows torch.hub"
    )
    checked = "torch 2.14.1"

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """The hub directory, or its `checkpoints` by the hashes in the names."""
        return self._is_hub(tree, at) or _is_weights(tree, at)

    def _is_hub(self, tree: Tree, at: bytes) -> bool:
        listing = tree.listing(at)
        if listing.get(_TRUST) == stat.S_IFREG:
            return True
        if listing.get(b"checkpoints") == stat.S_IFDIR and _is_weights(tree, join(at, b"checkpoints")):
            return True
        return any(_is_repository(tree, at, name) for name in directories(listing))

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:
        """Claims of weights and repositories."""
        found = Collector(self.name, "a cache of torch.hub", tree, at)
        if not self._is_hub(tree, at):
            _weights(found, tree.listing(at), at, context, sure=False)
            return found.split()
        trusted = _trusted(tree, join(at, _TRUST))
        for name, kind in tree.listing(at).items():
            path = join(at, name)
            if name == b"checkpoints" and kind == stat.S_IFDIR:
                inside = found.inside(path)
                own = holds_training_state(inside) or bool(directories(inside))
                _weights(found, inside, path, context, sure=_TRUST in tree.listing(at) and not own)
            elif kind == stat.S_IFDIR and _is_repository(tree, at, name):
                keep = _keep_for(tree, path) if _stays_trusted(name, trusted) else KeepReason.PROTECTED
                found.claim((path,), "repository", keep=keep)
            elif kind == stat.S_IFREG and name.endswith(b".zip"):
                found.partial((path,), context)  # unpacked and removed at once
            elif name == _TRUST:
                found.known(path)
            else:
                found.stranger(path)
        return found.split()


def _weights(
    found: Collector, listing: Mapping[bytes, int], at: bytes, context: Context, *, sure: bool
) -> None:
    """The files of `checkpoints`; `sure`: everything that is downloaded there is torch.hub's."""
    for name, kind in listing.items():
        path = join(at, name)
        if kind == stat.S_IFREG and _PARTIAL.fullmatch(name):
            found.partial((path,), context)
        elif kind == stat.S_IFREG and (sure or _HASHED.fullmatch(name)):
            found.claim((path,), "weights")
        else:
            found.stranger(path)


def _is_weights(tree: Tree, at: bytes) -> bool:
    """A directory of downloaded weights, and none in which somebody trains."""
    listing = tree.listing(at)
    hashed = any(kind == stat.S_IFREG and _HASHED.fullmatch(name) for name, kind in listing.items())
    return hashed and not directories(listing) and not holds_training_state(listing)


def _is_repository(tree: Tree, at: bytes, name: bytes) -> bool:
    """Whether it was unpacked from an archive; a clone (`.git`) is somebody's own."""
    listing = tree.listing(join(at, name)) if name.count(b"_") > 1 else {}
    return listing.get(b"hubconf.py") == stat.S_IFREG and b".git" not in listing


def _keep_for(tree: Tree, path: bytes) -> KeepReason | None:
    """Why a repository stays that could be downloaded again: somebody may have trained in it (`runs/train`).

    All of an archive is unpacked at once (`extractall` sets no times): what is clearly younger came later.
    """
    holes = len(tree.unreadable)
    oldest_ns = min((found.st_mtime_ns for _, found in _files(tree, path)), default=0)
    since_ns = oldest_ns + HOUR
    later = any(
        found.st_mtime_ns > since_ns
        for here, _ in descend(tree, path)
        if here.rpartition(b"/")[2] != b"__pycache__"
        for _, found in _files(tree, here)
    )
    if later:
        return KeepReason.PROTECTED
    return KeepReason.UNKNOWN if len(tree.unreadable) > holes else None


def _files(tree: Tree, path: bytes) -> list[tuple[bytes, os.stat_result]]:
    return [each for each in tree.children(path) if stat.S_ISREG(each[1].st_mode)]


def _trusted(tree: Tree, path: bytes) -> frozenset[bytes]:
    """The lines `OWNER_REPOSITORY` of the list; none where it cannot be read."""
    text = tree.read(path, _TRUST_LIMIT) or b""
    return frozenset(line.strip() for line in text.splitlines() if line.strip())


def _stays_trusted(name: bytes, trusted: frozenset[bytes]) -> bool:
    """Whether `torch.hub.load` will load the repository `OWNER_REPOSITORY_REF` again without a question.

    A repository that is in no list is trusted while its directory is there; without it, a batch job fails at
    the question. All three parts may contain underscores; where that makes it unclear, it stays.
    """
    if any(name.startswith(owner + b"_") for owner in _TRUSTED_OWNERS):
        return True
    return any(name.startswith(each + b"_") and b"_" not in name[len(each) + 1 :] for each in trusted)
