"""Who evicts the entries of a location: most by hand, some through a server that keeps them."""

from cachewarden.enforce.survey import Survey
from cachewarden.evict import Evictor
from cachewarden.evict.served import Evicting, Served
from cachewarden.layouts.ollama import Ollama


def evicting(evictor: Evictor, found: Survey) -> Evicting:
    """The evictor itself, or one around it that asks the servers of stores in the location."""
    if any(entry.claim.layout == Ollama.name for entry in found.inventory.entries):
        return Served(evictor, found.root_fd)
    return evictor
