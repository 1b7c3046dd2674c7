"""The first half of an eviction: everything up to the leases, which are given back. Nothing moves."""

from cachewarden.evict import case as steps
from cachewarden.evict.batch import Batch, judging
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
            for case in self._open:
                with judging(case):
                    steps.lease(case)
                    self._check_door(case)
                case.holding.release_files()
        finally:
            self._release(ground)
        self._name_holders()
