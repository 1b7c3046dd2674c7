"""Models of LM Studio: `PUBLISHER/MODEL/FILE`, some of them imported and perhaps nowhere else.

Facts read in lms (`src/lmstudioPaths.ts`, `src/subcommands/importCmd.ts`): an import may leave links, and its
command line knows no way to remove a model.
"""

import stat

from cachewarden.layouts.base import directories, join
from cachewarden.layouts.reported.shelves import Reported
from cachewarden.tree import Tree

_LOOKED_AT = 2


def _shelves(tree: Tree, at: bytes) -> tuple[bytes, ...]:
    listing = tree.listing(at)
    home = listing.get(b"models") == stat.S_IFDIR and listing.get(b".internal") == stat.S_IFDIR
    place, listing = (join(at, b"models"), tree.listing(join(at, b"models"))) if home else (at, listing)
    names = [name for name in directories(listing) if not name.startswith(b".")]
    publishers = [join(place, name) for name in names]
    # The first few tell whether it is one; a folder of 20,000 other things must not be searched.
    if not any(_is_publisher(tree, path) for path in (publishers if home else publishers[:_LOOKED_AT])):
        return ()
    return tuple(path for path in publishers if _is_publisher(tree, path))


def _is_publisher(tree: Tree, path: bytes) -> bool:
    """Whether every directory in it is a model's, with a GGUF file or a link to one."""
    listing = tree.listing(path)
    models = directories(listing)
    return bool(models) and all(_is_model(tree, join(path, name)) for name in models)


def _is_model(tree: Tree, path: bytes) -> bool:
    names = tree.listing(path)
    # ModelScope's index marks a download of its own.
    return b".msc" not in names and any(
        name.endswith(b".gguf") and kind in (stat.S_IFREG, stat.S_IFLNK) for name, kind in names.items()
    )


LMSTUDIO = Reported(
    "lm_studio",
    "model",
    "directories `PUBLISHER/MODEL` with a `.gguf` in each; or `models` of that shape beside `.internal`",
    "lms 07b7252 (sources)",
    _shelves,
)
