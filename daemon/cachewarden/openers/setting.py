"""How a feed of opens works: what the service decides."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Setting:
    """How a feed works. `ignore`: patterns of programs that neither refresh nor hold.

    `inherited` are groups that an earlier process of ours left (`OpenerFeed.descriptors`), by label; they
    become the feed's. `unlimited` false gives queues that can overflow. `shared`: a service writes the same
    memory meanwhile, so that who opened a location's entries is read when the location is indexed.
    """

    ignore: tuple[str, ...] = ()
    inherited: Mapping[str, int] = field(default_factory=dict)
    unlimited: bool = True
    shared: bool = False
