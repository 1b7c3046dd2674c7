"""Side-by-side measurements: each against its peer, in the same run, on the same tree.

Every module here with a `run(files)` is a benchmark. `python -m benchmarks` runs them all and writes
the table to docs/BENCHMARKS.md.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `ours` and `theirs` are in `unit`; `goal` is for the ratio or for `ours`."""

    what: str
    peer: str
    ours: float
    theirs: float | None
    goal: str
    unit: str = "s"

    @property
    def ratio(self) -> float | None:
        """Ours by theirs; None without a peer."""
        return self.ours / self.theirs if self.theirs else None

    def __str__(self) -> str:
        theirs = "-" if self.theirs is None else f"{self.theirs:.3g} {self.unit}"
        ratio = "-" if self.ratio is None else f"{self.ratio:.3g}"
        return (
            f"| {self.what} | {self.ours:.3g} {self.unit} | {self.peer} | {theirs} | {ratio} | {self.goal} |"
        )


HEADER = "| what | cachewarden | peer | peer's figure | ratio | goal |\n|---|---|---|---|---|---|"


def side_by_side(
    ours: Callable[[], object], theirs: Callable[[], object], rounds: int = 5
) -> tuple[float, float]:
    """Median seconds of both, after one round unmeasured; in turns, so that both are disturbed alike."""
    ours()
    theirs()
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for times, work in zip(taken, (ours, theirs), strict=True):
            start = time.monotonic()
            work()
            times.append(time.monotonic() - start)
    return statistics.median(taken[0]), statistics.median(taken[1])
