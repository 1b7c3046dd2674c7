"""In which order unguarded entries are taken: least recently used, oldest, largest or cheapest.

Every order is total and does not depend on the order of the input: ties go to the earlier last
change, then to the name's bytes, then to the location's key.

Times from the future count as now where they would make an entry young, so that a wrong stamp never
evicts. They do not count for age: a stamp of the year 2040 would keep its entry for ever.
"""

from collections.abc import Callable, Iterator, Sequence

from cachewarden_policies.policy import Order
from cachewarden_policies.reasons import Cost
from cachewarden_policies.situation import Entry

# What a miss costs, relative to the other classes. Remaking from a neighbouring cache takes moments,
# computing minutes to hours, a download the same and another site's bandwidth; what is lost is not remade
# at all. A factor of four keeps classes apart until size times idle time differ by more than that.
WEIGHTS = {Cost.DERIVED: 1, Cost.REBUILD: 4, Cost.DOWNLOAD: 16, Cost.LOST: 64}

# The weight divides; multiplied by what all of them divide, the ranking stays in exact integers.
_CHEAPNESS = {cost: max(WEIGHTS.values()) // weight for cost, weight in WEIGHTS.items()}

# More than any score (63 bits of bytes, 63 of time, 6 of weight): stale entries rank before all others.
_STALE_BITS = 140


def born_ns(entry: Entry, now_ns: int) -> int:
    """When the entry got its present content: the latest of first seen and a credible last change."""
    if entry.changed_ns > now_ns:
        return entry.first_seen_ns
    return max(entry.first_seen_ns, entry.changed_ns)


def cheapness(entry: Entry, won_bytes: int, now_ns: int) -> int:
    """How much is won by the entry's removal for what a miss would cost: the highest goes first.

    bytes won * time since the last use / weight of a miss (`WEIGHTS`); what is stale comes before all else,
    as nothing can miss it. `won_bytes` is what goes with the entry, its part of shared data included. One is
    added to bytes and time, so that of two equal ones the dearer never goes first.

    This is the family of GreedyDual-Size (P. Cao and S. Irani, "Cost-Aware WWW Proxy Caching Algorithms",
    USITS 1997: keep by cost / size, aged by a clock) and GreedyDual-Size-Frequency (L. Cherkasova, "Improving
    WWW Proxies Performance with Greedy-Dual-Size-Frequency Caching Policy", HP Labs HPL-98-69, 1998: keep by
    frequency * cost / size). Here the inverse of the idle time stands for frequency and clock, as no history
    is needed for it. The cost is that of a miss and not of a byte: of what is equally dear, the bigger wins.

    Example: 8 GiB of weights (download, 16) idle for 10 days score 8 * 10 / 16 = 5; 2 GiB of compiled
    kernels (rebuild, 4) idle for 12 days score 2 * 12 / 4 = 6 and go before them.
    """
    idle_ns = max(now_ns - entry.last_use_ns, 0)
    score = (won_bytes + 1) * (idle_ns + 1) * _CHEAPNESS[entry.cost]
    return score << _STALE_BITS if entry.stale else score


def order_keys(
    entries: Sequence[Entry], order: Order, now_ns: int, won_bytes: Sequence[int] = ()
) -> list[int]:
    """One integer for each entry, lowest first out. `won_bytes`: for `cheapest`, one for each entry."""
    if order is Order.LRU:
        # Twice as fast as min() here, a tenth of a second for a million entries.
        return [e.last_use_ns if e.last_use_ns < now_ns else now_ns for e in entries]  # noqa: FURB136
    if order is Order.OLDEST:
        return [born_ns(e, now_ns) for e in entries]
    if order is Order.LARGEST:
        return [-e.bytes for e in entries]
    return [-cheapness(e, won, now_ns) for e, won in zip(entries, won_bytes, strict=True)]


def with_ties(
    rows: Sequence[int], keys: Sequence[float], tie: Callable[[int], tuple[int, int, bytes, int]]
) -> Iterator[int]:
    """Rows that are sorted by `keys[row]`, and those of the same key by `tie(row)`.

    The keys are the exact ones as floats, which sort faster and are up to 256 ns off for a time of day:
    `tie` begins with the exact key. A tuple for each row would take twice as long, real keys hardly
    ever tie, and a plan looks at a part of the rows only: ties are resolved where the walk gets to.
    """
    start, total = 0, len(rows)
    while start < total:
        key = keys[rows[start]]
        stop = start + 1
        while stop < total and keys[rows[stop]] == key:
            stop += 1
        if stop - start == 1:
            yield rows[start]
        else:
            yield from sorted(rows[start:stop], key=tie)
        start = stop
