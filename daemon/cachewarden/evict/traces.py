"""Our own traces: what moving one entry does to the stamps of what others measured.

Moving an entry out of a directory sets the directory's mtime and ctime; unlinking one of two hard
links changes the other's link count and ctime. To the next victim of the same pass, which was
measured before, that would look like a change by somebody else. Here is remembered what we
ourselves left behind, and for as long as nothing else touched it, the stamps from before count.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from cachewarden.evict.victim import Inode  # noqa: TC001 - no cycle, and one place to look for imports

_Stamp = tuple[int, int, int]


def _stamp(found: os.stat_result) -> _Stamp:
    return found.st_mtime_ns, found.st_ctime_ns, found.st_nlink


class Traces:
    """Remembers, for each inode that this pass touched, how it looked before and after."""

    def __init__(self) -> None:
        self._left: dict[Inode, tuple[_Stamp, os.stat_result]] = {}

    def as_measured(self, found: os.stat_result) -> os.stat_result:
        """`found`, or how it looked before us when nobody but us changed it."""
        if not self._left:
            return found
        known = self._left.get((found.st_dev, found.st_ino))
        return known[1] if known is not None and known[0] == _stamp(found) else found

    def note(self, before: os.stat_result, after: os.stat_result) -> None:
        """Something of ours turned `before` into `after`."""
        self._left[after.st_dev, after.st_ino] = (_stamp(after), self.as_measured(before))

    @contextmanager
    def of_renaming(self, *directories: int) -> Iterator[None]:
        """Around a change of names in the open directories."""
        before = [os.fstat(fd) for fd in directories]
        try:
            yield
        finally:
            for fd, earlier in zip(directories, before, strict=True):
                self.note(earlier, os.fstat(fd))
