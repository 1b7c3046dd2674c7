"""Downloads that are not complete, as the writers of hub caches name them.

huggingface_hub >= 1.24 writes `ETAG.XXXXXXXX.incomplete`, held open while it lives and useless to any
other process; older ones write `ETAG.incomplete`, llama.cpp `OID.downloadInProgress`: both are
resumed after a pause in which nobody has them open. Beside them lie what the client makes for a moment:
`tmp_UUID` to learn the umask, `.NAME.XXXXXXXX.new`, `.old` and `.shared` on the way to NAME
(huggingface_hub 2.4, `file_download.py`, `utils/_shared_blobs.py`).
"""

import re
from dataclasses import dataclass

from cachewarden.layouts.base import Context
from cachewarden.tree import Tree
from cachewarden_policies.policy import DAY

_PARTIAL = re.compile(rb".*\.(incomplete|downloadInProgress)", re.DOTALL)
# Of no use to any process but the one that made it.
_UNIQUE = re.compile(
    rb".*\.[0-9a-f]{8}\.incomplete|tmp_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    rb"|\..+\.[0-9a-f]{8}\.(new|old|shared)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Partials:
    """Names in a `blobs` directory: all partial files, the abandoned ones, and whether to wait.

    `resumable` is true while a partial file that may be resumed is fresh: only time tells whether
    its download still runs, since nobody has it open between two attempts.
    """

    names: frozenset[bytes] = frozenset()
    abandoned: tuple[bytes, ...] = ()
    resumable: bool = False


def find_partials(tree: Tree, blobs: bytes, names: list[bytes], context: Context) -> Partials:
    """The partial files among the files and links `names` of the directory `blobs`."""
    partial = [name for name in names if _PARTIAL.fullmatch(name) or _UNIQUE.fullmatch(name)]
    abandoned = []
    resumable = False
    for name in partial:
        found = tree.stat(blobs + b"/" + name)
        age = context.now_ns - found.st_mtime_ns if found is not None else 0
        limit = context.partial_max_idle
        if limit is not None and age > limit:
            abandoned.append(name)
        elif not _UNIQUE.fullmatch(name) and age <= (DAY if limit is None else limit):
            resumable = True
    return Partials(frozenset(partial), tuple(abandoned), resumable)
