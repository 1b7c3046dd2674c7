"""What the delegated layouts share: a shape, and that all of it is the tool's own business."""

from collections.abc import Callable, Mapping

from cachewarden.inventory import Foreign, Split
from cachewarden.layouts.base import Context, Kind, join
from cachewarden.tree import Tree


class Delegated:
    """A layout without entries. `fits` tells its shape, `shape` says the same in words."""

    def __init__(self, name: str, shape: str, checked: str, fits: Callable[[Tree, bytes], bool]) -> None:
        self.name = name
        self.kinds: Mapping[str, Kind] = {}
        self.shape = shape
        self.unit = "none: the tool's own command, with `delegate = true`"
        self.locks = "the tool takes its own"
        self.never = "everything"
        self.checked = checked
        self._fits = fits

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """Whether the shape fits."""
        return self._fits(tree, at)

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:  # noqa: ARG002 - nothing here ages
        """Nothing is an entry, and nothing of it is worth a warning."""
        return Split(
            self.name, foreign=tuple(Foreign(join(at, name), known=True) for name in tree.listing(at))
        )
