"""The first half of an eviction: everything up to the leases, which are given back. Nothing moves."""

from cachewarden.evict.batch import Batch
from cachewarden.evict.ground import Ground
from cachewarden.evict.locks import SoftLocks


class Probe(Batch):
    """A batch that only asks. Cases without an outcome afterwards are those that would go."""

    def run(self) -> None:
        """Open, compare, look, lease, ask at the door; then give everything back."""
        ground = Ground(self._means.trash.root_fd, SoftLocks(self._means.now_ns))
        try:
            self._open_all(ground)
            if self._open:
                self._look_before()
                self._lease()
                self._check_door()
        finally:
            self._release(ground)
        self._name_holders()
