"""One request, as its handler gets it."""

from dataclasses import dataclass

from cachewarden.http import Peer
from cachewarden.service.control.fields import Fields
from cachewarden.service.control.place import Place


@dataclass(frozen=True, slots=True)
class Asked:
    """Who asks, and what."""

    peer: Peer
    fields: Fields
    place: Place

    @property
    def uid(self) -> int | None:
        """The user whose things this is about; None for those who see and may do everything."""
        return None if self.peer.privileged else self.peer.uid
