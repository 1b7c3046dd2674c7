"""`python -m tests.soak`, as root: hammer in each way and print the table of docs/hammers.md."""

import argparse
import os
import platform
import sys
import time

from tests.soak.engines import ENGINES, Tally
from tests.soak.hammer import Plan, hammer
from tests.soak.tables import HEAD, details, row

# Enough of the others, who tear loads soon; and of nobody, who shows how long opens take anyway.
_OTHERS_EVICTIONS, _NOBODYS_SECONDS = 3000, 60


def main() -> int:
    """Run the hammers that were asked for. 1 when ours tore a load or lost what was written."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--engine", action="append", choices=ENGINES, help="may be repeated; default: all")
    parser.add_argument("--evictions", type=int, default=100_000, help="of cachewarden; others stop at 3,000")
    parser.add_argument("--seconds", type=float, default=4 * 3600, help="for each, at most")
    parser.add_argument("--filesystem", default="ext4", choices=("ext4", "xfs", "btrfs", "tmpfs", "here"))
    parser.add_argument("--entries", type=int, default=Plan.entries)
    parser.add_argument("--files", type=int, default=Plan.files, help="in each entry")
    parser.add_argument("--making", type=float, default=Plan.making, help="seconds to make an entry anew")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, Linux {platform.release()}, {options.filesystem}, seed {options.seed}")
    reports = []
    for engine in options.engine or ENGINES:
        reports.append(hammer(_plan(options, engine), Progress()))
        print(details(reports[-1]), flush=True)
    print(HEAD, *map(row, reports), sep="\n")
    ours = [report for report in reports if report.plan.engine == "cachewarden"]
    return int(any(report.torn or report.written["adder"].get("missing") for report in ours))


class Progress:
    """Says every minute how far it is."""

    def __init__(self) -> None:
        self._next = time.monotonic()

    def __call__(self, tally: Tally) -> None:
        """Called after each round."""
        if time.monotonic() >= self._next:
            self._next += 60
            print(f"{tally.removed:,} evictions, {tally.put_back:,} put back", file=sys.stderr, flush=True)


def _plan(options: argparse.Namespace, engine: str) -> Plan:
    ours, nobody = engine == "cachewarden", engine == "nobody"
    return Plan(
        engine=engine,
        evictions=options.evictions if ours else min(options.evictions, _OTHERS_EVICTIONS),
        seconds=min(options.seconds, _NOBODYS_SECONDS) if nobody else options.seconds,
        filesystem=options.filesystem,
        entries=options.entries,
        files=options.files,
        making=options.making,
        seed=options.seed,
    )


if __name__ == "__main__":
    sys.exit(main())
