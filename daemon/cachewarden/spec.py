"""What the configuration says of locations and pools, resolved: globs expanded, units converted.

Settings make these values; a pass runs under one set of them from its start to its end.
"""

from dataclasses import dataclass, field
from typing import Literal

from cachewarden_policies.policy import HOUR, Limits, Policy


@dataclass(frozen=True, slots=True)
class LocationSpec:
    """One cache root after globbing. `name` is the configuration's, shared by all matches of a glob.

    `evict_checkpoints` is how many of the newest training checkpoints stay; None: all of them do.
    `enforce` is false for report only. `delegate`: the tool that owns such a cache may be run to prune it.
    """

    name: str
    path: bytes
    policy: Policy
    layout: str = "auto"
    enforce: bool = True
    shared: Literal["auto", "yes", "no"] = "auto"
    shared_without_agents: Literal["refuse", "idle"] = "refuse"
    shared_idle: int = 24 * HOUR
    must_be_mount: bool = False
    follow_into: tuple[str, ...] = ()
    ignore_ctime: bool = False
    accounting: str = "auto"
    evict_checkpoints: int | None = None
    delegate: bool = False

    @property
    def key(self) -> str:
        """Unique over all locations, stable over restarts; the ledger's and the planner's key."""
        return (
            f"{self.name}:{self.path.hex()}"
            if not self.path.isascii()
            else f"{self.name}:{self.path.decode()}"
        )


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """One limit over several locations (by configured name; a glob's matches all belong)."""

    name: str
    locations: tuple[str, ...]
    limits: Limits


@dataclass(frozen=True, slots=True)
class Refusal:
    """A match of a location's glob that is not taken up, and why (it overlaps another, is a link …)."""

    name: str
    path: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class Territory:
    """All locations and pools in force, and what was refused or is missing at this moment."""

    locations: tuple[LocationSpec, ...] = ()
    pools: tuple[PoolSpec, ...] = ()
    refused: tuple[Refusal, ...] = ()
    missing: tuple[LocationSpec, ...] = field(default=())
