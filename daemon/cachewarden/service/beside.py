"""A command at work beside the running service: what that one knows of opens, it knows as well."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from cachewarden.client import connect
from cachewarden.errors import NoServiceError, ServiceRefusedError
from cachewarden.ledger import read_service_state
from cachewarden.openers.memory import Memory, Row

_SECONDS = 10.0  # the service looks at no disk for it


class Beside:
    """The ledger's live openers, brought up to date by the service whenever they are read.

    The service writes what it sees once a second, and a command sees opens from the moment on in which it
    marks a filesystem. Whoever loaded a model and closed its files in the second before that is known to the
    service alone; without asking it, a command would evict under a program that is just starting.
    """

    def __init__(self, memory: Memory, runtime_dir: bytes, notice: Callable[[str], None]) -> None:
        """`notice` is told, once, when the service runs and does not answer."""
        self._memory = memory
        self._runtime_dir = runtime_dir
        self._notice = notice
        self._knows = read_service_state(runtime_dir) is not None

    def knows(self) -> bool:
        """Whether a service saw all opens before ours, and told them."""
        return self._knows

    def load(self, boot_id: str) -> Iterable[tuple[str, bytes, int, int, int, bytes]]:
        """All rows, as `Row` has its fields, and none is missing that the service knows at this moment."""
        if self._knows:
            self._ask()
        return self._memory.load(boot_id)

    def save(self, boot_id: str, put: Sequence[Row], drop: Sequence[Row], now_ns: int) -> None:
        """As `Memory`."""
        self._memory.save(boot_id, put, drop, now_ns)

    def save_uses(
        self,
        key: str,
        seen_by: str,
        uses: Mapping[bytes, tuple[int, int | None, bytes, int | None]],
        passed: Mapping[bytes, tuple[int, int, int]],
        now_ns: int,
    ) -> None:
        """As `Memory`."""
        self._memory.save_uses(key, seen_by, uses, passed, now_ns)

    def _ask(self) -> None:
        try:
            connect(self._runtime_dir).ask("POST", "/flush", body={}, seconds=_SECONDS)
        except (NoServiceError, ServiceRefusedError) as error:
            self._knows = False
            self._notice(
                "a service runs, and did not tell who opened what a moment ago "
                f"({error}): what no process holds open now may still be in use"
            )
