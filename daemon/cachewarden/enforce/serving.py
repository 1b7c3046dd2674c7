"""Who evicts the entries of a location: most by hand, some through a server that keeps them."""

from cachewarden.enforce.survey import Survey
from cachewarden.evict import Evictor
from cachewarden.evict.served import Evicting, Served
from cachewarden.layouts.ollama import Ollama

# While a server lives, `unreferenced` blobs may be of a pull or a `create` that has not written its manifest
# yet. Partial downloads are open while they run.
_KINDS = frozenset({"model", "unreferenced"})


def evicting(evictor: Evictor, found: Survey) -> Evicting:
    """The evictor itself, or one around it that asks the servers of stores in the location."""
    names = frozenset(
        entry.name
        for entry in found.inventory.entries
        if entry.claim.layout == Ollama.name and entry.claim.kind in _KINDS
    )
    return Served(evictor, found.root_fd, names) if names else evictor
