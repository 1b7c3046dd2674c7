"""A policy: the limits, the order and the guards that the configuration names. Values only.

Built by the daemon's settings from TOML; every field has the configuration's name. Times are in
nanoseconds, sizes in bytes, and `None` means "no such limit".
"""

from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

SECOND = 1_000_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


class Order(StrEnum):
    """In which order unguarded entries are taken; ties are broken by the name's bytes."""

    LRU = "lru"
    OLDEST = "oldest"
    LARGEST = "largest"
    CHEAPEST = "cheapest"


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of bytes (or inodes), or a share of a whole that is known only at run time.

    Exactly one of the two is set. `of(whole)` gives the number, rounded down.
    """

    absolute: int | None = None
    share: Fraction | None = None

    def of(self, whole: int) -> int:
        """The amount as an integer, where a share is taken of `whole`."""
        if self.absolute is not None:
            return self.absolute
        assert self.share is not None
        return int(self.share * whole)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on what is stored: of a location, or of a pool.

    A limit is crossed when usage is *greater* than it; eviction then goes on until usage is at or
    below the target.
    """

    max_size: int | None = None
    target_size: Amount = Amount(share=Fraction(9, 10))
    hard_max_size: int | None = None
    max_files: int | None = None
    target_files: Amount = Amount(share=Fraction(9, 10))
    max_entries: int | None = None
    target_entries: Amount = Amount(share=Fraction(9, 10))


@dataclass(frozen=True, slots=True)
class Floor:
    """What must stay free on the filesystem. Crossed when less than it is available."""

    min_free: Amount | None = None
    target_free: Amount | None = None  # None: the same as min_free
    hard_min_free: Amount | None = None
    min_free_files: Amount | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """Everything that decides which entries of one location go. No limits: nothing goes."""

    name: str = "default"
    limits: Limits = field(default_factory=Limits)
    floor: Floor = field(default_factory=Floor)
    max_idle: int | None = None
    max_age: int | None = None
    order: Order = Order.LRU
    min_idle: int = HOUR
    keep_newest: int = 0
    opener_hold: int = 7 * DAY
    protect: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    learn: int = 0
    max_share: Fraction = Fraction(1, 2)
    partial_max_idle: int | None = DAY
    min_size: int = 0
    soft_lock_age: int = DAY
    evict_all: bool = False
    max_pin: int | None = 30 * DAY
    max_pinned_size: int | None = None
