"""A pass that evicts everything, against `rm -rf` of an equal tree: what all the care costs."""

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from fractions import Fraction

from benchmarks import Row
from benchmarks.measure import FILES_PER_ENTRY
from cachewarden.clock import SystemClock
from cachewarden.enforce.enforcer import Enforcer, Orders
from cachewarden.enforce.surveyor import Means
from cachewarden.holders import Machine
from cachewarden.ledger import PinStore, open_ledger
from cachewarden.spec import LocationSpec, Territory
from cachewarden_policies.policy import Policy
from cachewarden_policies.reasons import Outcome

_MOST = 100_000
_ROUNDS = 3


def run(files: int) -> Iterator[Row]:
    """Evict a tree of so many files, at most 100,000, of 4 KiB each."""
    count = min(files, _MOST)
    ours: list[float] = []
    theirs: list[float] = []
    with tempfile.TemporaryDirectory(prefix="cachewarden-bench-") as base:
        for number in range(_ROUNDS):
            for times, work in ((ours, _evict), (theirs, _remove)):
                root = f"{base}/root{number}"
                entries = _make_tree(root, count)
                os.sync()
                start = time.monotonic()
                work(base, root)
                times.append(time.monotonic() - start)
                shutil.rmtree(root, ignore_errors=True)
    what = f"a pass that measures, plans and evicts {count:,} files in {entries:,} entries"
    yield Row(what, "`rm -rf`", statistics.median(ours), statistics.median(theirs), "≤ 1.2 (evicting alone)")


def _make_tree(root: str, files: int) -> int:
    entries = max(1, files // FILES_PER_ENTRY)
    for entry in range(entries):
        here = f"{root}/entry{entry:05}"
        os.makedirs(here)
        for number in range(FILES_PER_ENTRY):
            with open(f"{here}/{number}", "wb") as file:
                file.write(b"x" * 4096)
    return entries


def _evict(base: str, root: str) -> None:
    clock = SystemClock()
    state = os.fsencode(base) + b"/state"
    with open_ledger(state, clock.wall_ns()) as ledger:
        means = Means(
            ledger=ledger,
            pins=PinStore(state),
            clock=clock,
            surroundings=Machine(),
            runtime_dir=os.fsencode(base) + b"/run",
            command="benchmark",
            trusted=frozenset({0, os.geteuid()}),
        )
        spec = LocationSpec(
            "root", os.fsencode(root), Policy(evict_all=True, min_idle=0, max_share=Fraction(1))
        )
        report = Enforcer(means).run(Territory((spec,)), [spec], Orders())
    if report.outcome is not Outcome.TRIMMED or os.listdir(root):
        raise RuntimeError(f"not everything went: {report.outcome}")


def _remove(_: str, root: str) -> None:
    subprocess.run(["rm", "-rf", root], check=True)
