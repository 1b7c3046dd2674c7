"""One location of made-up entries, and the plan for it."""

from fractions import Fraction

from cachewarden_policies.planning import make_plan
from cachewarden_policies.policy import DAY, Amount, Limits, Policy
from cachewarden_policies.reasons import LastUseSource
from cachewarden_policies.situation import Circumstances, Entry, Location, Situation

NOW = 20_000 * DAY
MIB = 1024 * 1024


def entry(name, mib=1, *, idle=DAY, age=None, files=1, **more):
    size = int(mib * MIB)
    values = {
        "own_bytes": size,
        "own_files": files,
        "disk_bytes": size,
        "disk_inodes": files,
        "last_use_ns": NOW - idle,
        "last_use_source": LastUseSource.STAMPS,
        "changed_ns": NOW - (idle if age is None else age),
        "first_seen_ns": NOW - (idle if age is None else age),
    }
    return Entry(name.encode(), size, files, **{**values, **more})


def sharing(name, mib, shares, **more):
    """An entry whose data is all shared."""
    nothing = {"own_bytes": 0, "own_files": 0, "disk_bytes": 0, "disk_inodes": 0}
    return entry(name, mib, shares=shares, **nothing, **more)


def location(entries, *, shares=(), usage=None, circumstances=None, files=None, **policy):
    size = sum(e.own_bytes for e in entries) + sum(s.bytes for s in shares) if usage is None else usage
    count = sum(e.own_files for e in entries) + sum(s.files for s in shares) if files is None else files
    policy = Policy(**{"max_share": Fraction(1), **policy})
    return Location("cache", policy, size, count, entries, shares, circumstances or Circumstances())


def size(limit, target=None, hard=None):
    """Limits in MiB."""
    goal = Amount(share=Fraction(9, 10)) if target is None else Amount(absolute=int(target * MIB))
    return Limits(
        None if limit is None else int(limit * MIB), goal, None if hard is None else int(hard * MIB)
    )


def plan_of(place):
    return make_plan(Situation(NOW, [place])).of("cache")


def gone(place):
    return [place.entries[v.index].name.decode() for v in plan_of(place).evictions]


def reasons(place):
    return {place.entries[v.index].name.decode(): v.reason for v in plan_of(place).verdicts}


def ten_entries():
    return [entry(f"e{i}", idle=(20 - i) * DAY) for i in range(10)]
