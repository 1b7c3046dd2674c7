"""Where requests touch a disk: one thread for each filesystem, so that one that hangs stops only its own.

Not the workers of passes: a look must not wait for an hour of measuring. Not a thread for each request: on a
mount that does not answer they would pile up.
"""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from cachewarden.errors import ServiceRefusedError

_WAITING = 8  # requests for one filesystem
T = TypeVar("T")
_Job = tuple["Future[Any]", Callable[[], Any]]


class _Lane:
    """One thread with a short queue."""

    def __init__(self, name: str) -> None:
        self.jobs: queue.Queue[_Job | None] = queue.Queue(_WAITING)
        self.late = False  # somebody gave up waiting for what it does now
        threading.Thread(target=self._run, name=f"lane {name}", daemon=True).start()

    def _run(self) -> None:
        while (job := self.jobs.get()) is not None:
            future, work = job
            try:
                if future.done() or not future.set_running_or_notify_cancel():
                    continue  # nobody waits for it any longer
                result = work()
            except BaseException as error:  # noqa: BLE001  it is raised where the job was given
                _settle(future, error=error)
            else:
                _settle(future, result)
            self.late = False


class Lanes:
    """Its methods may be called by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lanes: dict[str, _Lane] = {}
        self._open: set[Future[Any]] = set()
        self._ending = False

    def run(self, name: str, work: Callable[[], T], seconds: float) -> T:
        """What `work` returns or raises, run in the lane of this name. Raises ServiceRefusedError.

        A job that takes longer goes on; it is only not waited for.
        """
        future: Future[T] = Future()
        with self._lock:
            if self._ending:
                raise ServiceRefusedError("the service leaves", 503, 1)
            lane = self._lanes.setdefault(name, _Lane(name)) if name not in self._lanes else self._lanes[name]
            if lane.late:
                raise _silent()
            try:
                lane.jobs.put_nowait((future, work))
            except queue.Full:
                raise ServiceRefusedError("too many requests wait for this filesystem", 503, 1) from None
            self._open.add(future)
        try:
            return future.result(seconds)
        except TimeoutError:
            if future.done():  # it is the job's own
                raise
            if not future.cancel():
                lane.late = True
            raise _silent() from None
        finally:
            with self._lock:
                self._open.discard(future)

    def end(self) -> None:
        """Take no more jobs, and let nobody wait any longer."""
        with self._lock:
            self._ending = True
            waiting, self._open = self._open, set()
            lanes, self._lanes = self._lanes, {}
        for future in waiting:
            _settle(future, error=ServiceRefusedError("the service leaves", 503, 1))
        for lane in lanes.values():
            if lane.jobs.empty():
                lane.jobs.put(None)


def _silent() -> ServiceRefusedError:
    return ServiceRefusedError("its filesystem does not answer, or not in time", 504, 1)


def _settle(future: "Future[Any]", result: object = None, error: BaseException | None = None) -> None:
    """Give a future its end, unless it has one."""
    if future.done():
        return
    try:
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)
    except Exception:  # noqa: BLE001,S110  somebody was faster
        pass
