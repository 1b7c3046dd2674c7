"""Putting a `Split` together from what was found piece by piece, and from Splits of what lies inside."""

from dataclasses import dataclass, field

from cachewarden.inventory import Claim, Foreign, SharedClaim, Split
from cachewarden.layouts.base import FURNITURE, listed
from cachewarden.paths import show


@dataclass(slots=True)
class Parts:
    """What was found in the directory `at` so far, for the layout `layout`.

    `what` names the cache in the one warning about strangers ("a hub cache").
    """

    layout: str
    what: str
    at: bytes = b""
    claims: list[Claim] = field(default_factory=list)
    shared: list[SharedClaim] = field(default_factory=list)
    foreign: list[Foreign] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    strangers: list[bytes] = field(default_factory=list)

    def take(self, other: Split) -> None:
        """Everything that a layout found further inside; its claims keep that layout's name."""
        self.claims += other.claims
        self.shared += other.shared
        self.foreign += other.foreign
        self.warnings += other.warnings

    def known(self, path: bytes) -> None:
        """`path` belongs to the cache and to no entry: it stays, and that is worth no warning."""
        self.foreign.append(Foreign(path, known=True))

    def stranger(self, path: bytes) -> None:
        """`path` is like nothing that this cache has: it stays, and is named in a warning."""
        if path.rpartition(b"/")[2] in FURNITURE:
            self.known(path)
            return
        self.foreign.append(Foreign(path))
        self.strangers.append(path)

    def split(self) -> Split:
        """All of it. Strangers are named relative to `at`."""
        warnings = list(self.warnings)
        if self.strangers:
            place = f"{show(self.at)}: " if self.at else ""
            cut = len(self.at) + 1 if self.at else 0
            names = listed(path[cut:] for path in self.strangers)
            warnings.append(f"{place}not part of {self.what}, never touched: {names}")
        return Split(
            self.layout, tuple(self.claims), tuple(self.shared), tuple(self.foreign), tuple(warnings)
        )
