"""A location's split, and how long it is good."""

from dataclasses import dataclass

from cachewarden import layouts
from cachewarden.enforce.asked import AskedTime
from cachewarden.inventory import Split
from cachewarden.spec import LocationSpec
from cachewarden.tree import Tree


@dataclass(frozen=True, slots=True)
class Demand:
    """What a split depends on, beside the tree and the time."""

    layout: str
    partial_max_idle: int | None
    keep_checkpoints: int | None


@dataclass(frozen=True, slots=True)
class Divided:
    """A split. `lasting`: it is good until a directory changes; otherwise it is made anew for each measure.

    `aside` are directories in which an interrupted eviction left something.
    """

    split: Split
    aside: frozenset[bytes]
    lasting: bool


def demand_of(spec: LocationSpec) -> Demand:
    """What the configuration of a location says of its split."""
    return Demand(spec.layout, spec.policy.partial_max_idle, spec.evict_checkpoints)


def divide(root_fd: int, demand: Demand, now_ns: int) -> Divided:
    """Let the layout split what is in a location. Raises LayoutError."""
    tree = Tree(root_fd)
    time = AskedTime(now_ns)
    context = layouts.Context(
        now_ns=time, partial_max_idle=demand.partial_max_idle, keep_checkpoints=demand.keep_checkpoints
    )
    split = layouts.split(tree, demand.layout, context)
    aside = frozenset(tree.aside)
    return Divided(split, aside, lasting=not (time.asked or aside or tree.unreadable))
