"""Reports of hammers for people: rows of a table, and what does not fit into one."""

from tests.soak.hammer import Report
from tests.soak.verdicts import VERDICTS
from tests.soak.waits import Waits

HEAD = (
    "| who evicts | evictions | loads | torn | spared | put back | first open p50 / p99 / max | "
    "leases held p50 / p99 / max |\n|---|---|---|---|---|---|---|---|"
)


def row(report: Report) -> str:
    """One report as a row."""
    tally = report.tally
    cells = (
        report.plan.engine, f"{tally.removed:,}", f"{report.first.count:,}", f"{report.torn:,}",
        f"{tally.kept.total():,}", f"{tally.put_back:,}", spread(report.first), spread(tally.leased),
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def spread(waits: Waits) -> str:
    """The median, the 99th percentile and the maximum, in milliseconds."""
    if not waits.count:
        return "-"
    figures = (waits.quantile(0.5), waits.quantile(0.99), waits.longest)
    return " / ".join(f"{ns / 1e6:.3g}" for ns in figures) + " ms"


def details(report: Report) -> str:
    """Everything, in lines."""
    tally, plan = report.tally, report.plan
    verdicts = {each: report.count(each) for each in VERDICTS}
    lines = [
        f"== {plan.engine}: {tally.removed:,} evictions in {report.seconds:.1f} s, {report.torn} torn loads",
        f"   {plan.entries} entries of {plan.files} files, {plan.making} s to make, on {plan.filesystem}",
        f"   spared {dict(tally.kept)}, put back {tally.put_back}, failures {tally.failures[:5]}",
        f"   loads {verdicts}",
        f"   writers {report.written}",
        f"   left: in the trash {report.trash[:5]}, not whole {report.torn_entries}",
        f"   first opens {spread(report.first)}; others {spread(report.others)}",
        f"   leases held {spread(tally.leased)}",
        *(f"   notice, {count} times: {text}" for text, count in tally.notices.most_common(12)),
    ]
    for (where, way), counts in report.loads.items():
        if any(counts[VERDICTS.index("torn") :]):
            lines.append(f"   {where}, {way}: {dict(zip(VERDICTS, counts, strict=True))}")
    lines += [f"   {story}" for story in report.stories[:20]]
    return "\n".join(lines)
