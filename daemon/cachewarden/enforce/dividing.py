"""A location's split, and how long it is good."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from cachewarden import layouts
from cachewarden.enforce.asked import AskedTime
from cachewarden.inventory import Split
from cachewarden.scan import Changed
from cachewarden.spec import LocationSpec
from cachewarden.tree import Parts, Tree


@dataclass(frozen=True, slots=True)
class Demand:
    """What a split depends on, beside the tree and the time."""

    layout: str
    partial_max_idle: int | None
    keep_checkpoints: int | None


@dataclass(frozen=True, slots=True)
class Divided:
    """A split. `lasting`: it is good until a directory changes; otherwise it is made anew for each measure.

    `aside` are directories in which an interrupted eviction left something. `parts` is what was found out
    on the way, see `tree.Parts`.
    """

    split: Split
    aside: frozenset[bytes]
    lasting: bool
    parts: Mapping[Hashable, object] = field(default_factory=dict)


def demand_of(spec: LocationSpec) -> Demand:
    """What the configuration of a location says of its split."""
    return Demand(spec.layout, spec.policy.partial_max_idle, spec.evict_checkpoints)


def divide(
    root_fd: int, demand: Demand, now_ns: int, last: Divided | None = None, changed: Changed | None = None
) -> Divided:
    """Let the layout split what is in a location. Raises LayoutError.

    What it found out at the `last` time is used again where nothing `changed` since.
    """
    time = AskedTime(now_ns)
    tree = Tree(root_fd)
    known = last.parts if last is not None and changed is not None else {}
    tree.parts = parts = Parts(
        known, changed or Changed(), lambda: time.asked + len(tree.unreadable) + len(tree.aside)
    )
    context = layouts.Context(
        now_ns=time, partial_max_idle=demand.partial_max_idle, keep_checkpoints=demand.keep_checkpoints
    )
    split = layouts.split(tree, demand.layout, context)
    aside = frozenset(tree.aside)
    # What an eviction of ours left will be put back; then a part that has it would be out of date.
    kept = {} if aside else parts.kept
    return Divided(split, aside, not (time.asked or aside or tree.unreadable), kept)
