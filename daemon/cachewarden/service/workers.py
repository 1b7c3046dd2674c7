"""One thread for each filesystem, so that a mount that does not answer silences only itself."""

import threading
from collections.abc import Callable

Job = Callable[[], None]


class Worker:
    """Does one job at a time. `busy_since` and `heard` tell whether it hangs.

    `awake_ns` is a clock that stands still while the machine is suspended: a night is no hang.
    """

    def __init__(
        self, name: str, failed: Callable[[str, BaseException], None], awake_ns: Callable[[], int]
    ) -> None:
        self.name = name
        self._failed = failed
        self._awake_ns = awake_ns
        self._job: Job | None = None
        self._wake = threading.Condition()
        self._ending = False
        self._busy_since: int | None = None
        self._heard = 0
        self._thread = threading.Thread(target=self._run, name=f"worker {name}", daemon=True)
        self._thread.start()

    def offer(self, job: Job) -> bool:
        """Give it a job; False when it still has one."""
        with self._wake:
            if self._job is not None or self._ending:
                return False
            self._job = job
            self._wake.notify()
            return True

    @property
    def busy(self) -> bool:
        """Whether it has a job."""
        with self._wake:
            return self._job is not None

    def alive(self) -> None:
        """Called from within a job: it makes progress."""
        self._heard = self._awake_ns()

    def silent_for(self) -> float:
        """Seconds since its job last showed progress; 0 without a job."""
        since = self._busy_since
        return (self._awake_ns() - max(since, self._heard)) / 1e9 if since is not None else 0.0

    def end(self) -> None:
        """Take no more jobs."""
        with self._wake:
            self._ending = True
            self._wake.notify()

    def join(self, seconds: float) -> bool:
        """Wait for it to end; whether it did."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._wake:
                while self._job is None:
                    if self._ending:
                        return
                    self._wake.wait()
                job = self._job
            self._busy_since = self._awake_ns()
            try:
                job()
            except Exception as error:  # noqa: BLE001 - a bug in one pass must not end the service
                self._failed(self.name, error)
            finally:
                self._busy_since = None
                with self._wake:
                    self._job = None
