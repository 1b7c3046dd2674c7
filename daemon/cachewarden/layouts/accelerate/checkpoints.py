"""Which training checkpoints may go when the administrator opted in.

Checkpoints are lost, not rebuilt. A *series* is what one training run writes: the same directory and
the same name apart from its number. Of each series the newest stay: by number, then by time.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

# Tools that copy a tree or set its times write siblings within moments and in any order.
_TOGETHER_NS = 60 * 10**9

_NUMBER = re.compile(rb"\d+(?=\D*$)")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint's directory and the modification time (ns) of that directory."""

    path: bytes
    mtime_ns: int

    @property
    def number(self) -> int:
        """The last number in its name; -1 without one."""
        found = _NUMBER.search(self.path.rpartition(b"/")[2])
        return int(found[0]) if found else -1

    @property
    def series(self) -> bytes:
        """The path with the number left out."""
        parent, slash, name = self.path.rpartition(b"/")
        return parent + slash + _NUMBER.sub(b"", name)


def expendable(checkpoints: Iterable[Checkpoint], keep: int | None) -> frozenset[bytes]:
    """Paths of the checkpoints that may go when `keep` of each series stay; none for None.

    At least one always stays. So does one that is clearly younger than the highest number: a run
    that was started again counts from 0, and its checkpoints have the lowest numbers.
    """
    if keep is None:
        return frozenset()
    series: dict[bytes, list[Checkpoint]] = defaultdict(list)
    for each in checkpoints:
        series[each.series].append(each)
    may_go: set[bytes] = set()
    for members in series.values():
        members.sort(key=lambda each: (each.number, each.mtime_ns))
        younger_ns = members[-1].mtime_ns + _TOGETHER_NS
        may_go.update(each.path for each in members[: -max(1, keep)] if each.mtime_ns <= younger_ns)
    return frozenset(may_go)
