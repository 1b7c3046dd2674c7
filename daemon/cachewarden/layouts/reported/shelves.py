"""What the reported layouts share: they know some directories, and show each child of those with its size."""

from collections.abc import Callable, Mapping

from cachewarden.inventory import Split
from cachewarden.layouts.base import FURNITURE, Context, Kind, join
from cachewarden.layouts.collecting import Collector
from cachewarden.tree import Tree
from cachewarden_policies.reasons import Cost

Shelves = Callable[[Tree, bytes], tuple[bytes, ...]]


class Reported:
    """A layout of which nothing ever goes.

    `shelves` answers with the directories whose children are shown, none where the shape does not fit;
    `shape` says the same in words.
    """

    def __init__(self, name: str, kind: str, shape: str, checked: str, shelves: Shelves) -> None:
        self.name = name
        self.kinds: Mapping[str, Kind] = {kind: Kind(Cost.LOST, "reported only")}
        self.shape = shape
        self.unit = "reported only"
        self.locks = "none"
        self.never = "everything"
        self.checked = checked
        self._kind = kind
        self._shelves = shelves

    def recognises(self, tree: Tree, at: bytes) -> bool:
        """Whether there is anything to show."""
        return bool(self._shelves(tree, at))

    def split(self, tree: Tree, at: bytes, context: Context) -> Split:  # noqa: ARG002 - nothing here ages
        """One claim that never goes for each child of a shelf; what lies beside them is foreign."""
        found = Collector(self.name, f"what {self.name} knows", tree, at)
        shelves = frozenset(self._shelves(tree, at))
        for shelf in sorted(shelves):
            for name in found.inside(shelf):
                path = join(shelf, name)
                if path not in shelves:
                    found.known(path) if name in FURNITURE else found.protected(path, self._kind)
        waiting = [] if at in shelves else [at]
        while waiting:
            here = waiting.pop()
            for path in (join(here, name) for name in found.inside(here)):
                if any(shelf.startswith(path + b"/") for shelf in shelves):
                    waiting.append(path)
                elif path not in shelves:
                    found.known(path)
        return found.split()
