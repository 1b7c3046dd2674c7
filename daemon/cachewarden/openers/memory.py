"""What live openers ask of whoever keeps them over a restart; `Ledger.openers` has this shape."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from cachewarden_policies.policy import MINUTE

# A process that opens an entry all the time is not written all the time: its time on record may be so much
# behind. Read back, it counts as so much later, because holding too long harms less than letting go.
SLACK_NS = MINUTE


class Row(NamedTuple):
    """One pair on record. `opened_ns` counts from the boot; the last two mean nothing in a removal."""

    location: str
    entry: bytes
    pid: int
    start_ticks: int
    opened_ns: int
    comm: bytes


class Memory(Protocol):
    """Keeps rows of one boot of the machine."""

    def load(
        self, boot_id: str, location: str | None = None
    ) -> Iterable[tuple[str, bytes, int, int, int, bytes]]:
        """All rows of this boot, or those of one location, as `Row` has its fields."""

    def save(self, boot_id: str, put: Sequence[Row], drop: Sequence[Row], now_ns: int) -> None:
        """Write and remove rows; those of other boots go. Never fails: a full disk only delays it."""

    def save_uses(
        self,
        key: str,
        seen_by: str,
        uses: Mapping[bytes, tuple[int, int | None, bytes, int | None]],
        passed: Mapping[bytes, tuple[int, int, int]],
        now_ns: int,
    ) -> None:
        """Write last uses of a location's entries, as `Recent` and `Passing` have their fields."""


class NoMemory:
    """Keeps nothing."""

    def load(
        self,
        boot_id: str,  # noqa: ARG002 - the interface's
        location: str | None = None,  # noqa: ARG002 - the interface's
    ) -> Iterable[tuple[str, bytes, int, int, int, bytes]]:
        """Nothing was kept."""
        return ()

    def save(self, boot_id: str, put: Sequence[Row], drop: Sequence[Row], now_ns: int) -> None:
        """Nothing is kept."""

    def save_uses(
        self,
        key: str,
        seen_by: str,
        uses: Mapping[bytes, tuple[int, int | None, bytes, int | None]],
        passed: Mapping[bytes, tuple[int, int, int]],
        now_ns: int,
    ) -> None:
        """Nothing is kept."""
