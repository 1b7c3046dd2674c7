"""How a feed of opens works: what the service decides."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Setting:
    """How a feed works. `ignore`: patterns of programs that neither refresh nor hold.

    `inherited` are groups that an earlier process of ours left (`OpenerFeed.descriptors`), by label; they
    become the feed's. `unlimited` false gives queues that can overflow. `ask` has a service that writes
    the same memory write all that it knows: who opened entries is then read when their location is indexed.
    """

    ignore: tuple[str, ...] = ()
    inherited: Mapping[str, int] = field(default_factory=dict)
    unlimited: bool = True
    ask: Callable[[], None] | None = None
