"""Planning for a million entries: seconds, and bytes of memory for each of them."""

import time
import tracemalloc
from collections.abc import Iterator
from fractions import Fraction

from benchmarks import Row
from cachewarden_policies.planning import make_plan
from cachewarden_policies.policy import Limits, Policy
from cachewarden_policies.reasons import LastUseSource
from cachewarden_policies.situation import Entry, Location, Situation

_ENTRIES = 1_000_000
_SIZE = 1 << 20
_NOW = 1_800_000_000 * 10**9


def run(files: int) -> Iterator[Row]:
    """Plan for a million entries (or twice `files`, when that is less), a tenth of which has to go."""
    count = min(_ENTRIES, 2 * files)
    situation = _situation(count)
    start = time.process_time()
    plan = make_plan(situation)
    seconds = time.process_time() - start
    gone = len(plan.evictions)
    yield Row(f"CPU of a plan for {count:,} entries, {gone:,} to go", "-", seconds, None, "≤ 2 s")
    tracemalloc.start()
    kept = _situation(count // 10)
    plan = make_plan(kept)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    yield Row(
        "memory of entries and plan, at its peak", "-", peak / (count // 10), None, "≤ 600 B", "B per entry"
    )


def _situation(count: int) -> Situation:
    entries = [
        Entry(
            name=b"entry%d" % number,
            bytes=_SIZE,
            files=1,
            own_bytes=_SIZE,
            own_files=1,
            disk_bytes=_SIZE,
            disk_inodes=2,
            last_use_ns=_NOW - number * 7_919 % 90 * 86_400 * 10**9 - number,
            last_use_source=LastUseSource.OPENS,
            changed_ns=_NOW - number,
            first_seen_ns=_NOW - number,
        )
        for number in range(count)
    ]
    limits = Limits(max_size=count * _SIZE - _SIZE)
    policy = Policy(limits=limits, max_share=Fraction(1))
    return Situation(_NOW, [Location("x", policy, count * _SIZE, count, entries)])
