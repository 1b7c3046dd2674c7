"""What a pass asks of whoever sees a location change, so that it need not walk what did not.

`structure` and `watch` have sources of this shape; a pass without one walks in full each time.
"""

from typing import Protocol


class Changes(Protocol):
    """Knows which directories of a location changed. Locations are named by their keys."""

    def take(self, key: str, root_fd: int) -> frozenset[bytes] | None:
        """Relative paths of the directories in which a name came or went, or a file was written, since the
        last `take`; b"" is the root. None: not known, anything may have changed (the first time, after an
        overflow, without a source).

        What has several directories beneath it and came or went as a whole (a tree that was moved in) is told
        by the directory that had or has its name. A path may be gone by now, and a directory may be told that
        did not change; one that did must not be left out. It is called before anything is measured: what
        changes during the measuring is in the next answer. Raises nothing.
        """

    def lost(self, key: str) -> None:
        """What `take` gave was not used up, as the pass failed: the next `take` answers None."""
