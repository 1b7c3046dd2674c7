"""Looking for what cannot be made again, below a directory that would go whole.

What is like no cache that we know is an entry only when this found nothing, and it looks everywhere:
training tools nest as deep as their users like (`outputs/DATE/TIME/RUN/checkpoints/checkpoint_0`).
"""

from cachewarden.layouts.accelerate.shapes import is_checkpoint_name, is_irreplaceable
from cachewarden.layouts.base import LayoutTree, join
from cachewarden.layouts.descent import descend
from cachewarden.tree import Tree
from cachewarden_policies.reasons import KeepReason

# Parts of a directory with something in it that would be lost are told apart down to this level below
# the location; what is deeper stays whole.
DEEPEST = 32


def keep_for(tree: Tree, path: bytes) -> KeepReason | None:
    """Why the directory `path` must not go with all that is in it; None: no reason was found.

    PROTECTED: it holds what cannot be made again. UNKNOWN: a part of it could not be read.
    """
    known = tree.keeps if isinstance(tree, LayoutTree) else {}
    if path not in known:
        holes = len(tree.unreadable)
        lost = next((here for here, names in descend(tree, path) if is_irreplaceable(here, names)), None)
        known[path] = KeepReason.UNKNOWN if len(tree.unreadable) > holes else None
        if lost is not None:
            known.update(dict.fromkeys(_way(path, lost), KeepReason.PROTECTED))
    return known[path]


def _way(path: bytes, lost: bytes) -> list[bytes]:
    """`path` and the directories from there to `lost`, as far as somebody will ask about them.

    Each of them is judged in its turn; to look again each time would multiply the work by the depth.
    """
    way = [path]
    for part in lost[len(path) :].strip(b"/").split(b"/")[:DEEPEST]:
        way.append(join(way[-1], part))
    return way


def holds_checkpoints(tree: Tree, path: bytes) -> bool:
    """Whether checkpoints of their own lie below `path`: then it is no checkpoint but a run's folder.

    A trainer leaves its state beside its checkpoints too. Parts of one sharded checkpoint (`optimizer_0`,
    `global_step100`) do not count, what cannot be read does.
    """
    holes = len(tree.unreadable)
    found = any(
        here != path and is_checkpoint_name(here.rpartition(b"/")[2]) for here, _ in descend(tree, path)
    )
    return found or len(tree.unreadable) > holes
