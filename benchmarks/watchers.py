"""Three that hear of opens: our feed, watchdog's observer, and plain inotify marks."""

import ctypes
import logging
import os
import struct
import threading
import time
from collections import Counter
from typing import Protocol

from watchdog.events import FileOpenedEvent, FileSystemEvent, FileSystemEventHandler
from watchdog.observers.inotify import InotifyObserver

from cachewarden.clock import SystemClock
from cachewarden.inventory import Claim, Split
from cachewarden.openers import OpenerFeed
from cachewarden.scan import scan

_KEY = "bench"


class Watcher(Protocol):
    """Hears of opens below a root from when it is made. Lives in a process of its own."""

    setup_seconds: float

    def settle(self) -> None:
        """Wait until everything that there is has been read."""

    def entries(self) -> set[bytes]:
        """Entries of which an open was heard."""

    def pairs(self, pids: set[int]) -> set[tuple[bytes, int]]:
        """Entries and the processes that opened them, of these."""

    @property
    def opens(self) -> int | None:
        """How many opens it heard of; None where alike ones are one on purpose."""

    @property
    def overflows(self) -> int:
        """How often events were lost."""

    def stop(self) -> None:
        """End it."""


class Ours:
    """`openers.OpenerFeed` with its thread, as the service has it."""

    def __init__(self, root: str) -> None:
        self._fd = os.open(root, os.O_RDONLY)
        names = [os.fsencode(name) for name in os.listdir(root)]
        inventory = scan(self._fd, Split("plain", tuple(Claim(name, (name,)) for name in names)))
        self._names = names
        began = time.monotonic()
        self._feed = OpenerFeed(SystemClock())
        self._feed.index(_KEY, self._fd, inventory)
        self.setup_seconds = time.monotonic() - began
        self._feed.drain()
        self._feed.start()

    def settle(self) -> None:
        self._feed.drain()

    def entries(self) -> set[bytes]:
        return set(self._feed.recent(_KEY))

    def pairs(self, pids: set[int]) -> set[tuple[bytes, int]]:
        return {
            (name, holder.pid)
            for name in self._names
            for holder in self._feed.openers(_KEY, name)
            if holder.pid in pids
        }

    @property
    def opens(self) -> int | None:
        return None

    @property
    def overflows(self) -> int:
        return self._feed.overflows

    def stop(self) -> None:
        self._feed.stop()
        os.close(self._fd)


class _Overflows(logging.Handler):
    """What watchdog says of lost events goes into its log, and nowhere else."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += "events were lost" in record.getMessage()


class _Heard:
    """What both peers know: how often something was opened in each entry, and of no process."""

    def __init__(self) -> None:
        super().__init__()
        self._heard: Counter[bytes] = Counter()

    def entries(self) -> set[bytes]:
        return set(self._heard)

    def pairs(self, pids: set[int]) -> set[tuple[bytes, int]]:  # noqa: ARG002 - the interface's
        return set()

    @property
    def opens(self) -> int | None:
        return self._heard.total()

    def settle(self) -> None:
        last = -1
        while last != self._heard.total() or self._behind():
            last = self._heard.total()
            time.sleep(0.3)

    def _behind(self) -> bool:
        return False


class Watchdog(_Heard, FileSystemEventHandler):
    """watchdog's observer, recursive."""

    def __init__(self, root: str) -> None:
        super().__init__()
        self._overflows = _Overflows()
        logging.getLogger().addHandler(self._overflows)
        self._skip = len(os.fsencode(root)) + 1
        began = time.monotonic()
        self._observer = InotifyObserver()
        self._observer.schedule(self, root, recursive=True)
        self._observer.start()
        self.setup_seconds = time.monotonic() - began

    def on_opened(self, event: FileSystemEvent) -> None:
        if isinstance(event, FileOpenedEvent):
            self._heard[os.fsencode(event.src_path)[self._skip :].partition(b"/")[0]] += 1

    def _behind(self) -> bool:
        return not self._observer.event_queue.empty()

    @property
    def overflows(self) -> int:
        return self._overflows.count

    def stop(self) -> None:
        self._observer.stop()
        self._observer.join()


class Inotify(_Heard):
    """One mark for each directory, and a thread that reads as fast as it can: inotify(7)."""

    _OPEN, _OVERFLOW, _ISDIR = 0x20, 0x4000, 0x40000000
    _EVENT = struct.Struct("iIII")

    def __init__(self, root: str) -> None:
        super().__init__()
        libc = ctypes.CDLL(None, use_errno=True)
        began = time.monotonic()
        self._fd: int = libc.inotify_init1(os.O_CLOEXEC)
        self._directories: dict[int, bytes] = {}
        for here, _, _ in os.walk(os.fsencode(root)):
            mark: int = libc.inotify_add_watch(self._fd, here, self._OPEN)
            if mark < 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            self._directories[mark] = here[len(root) + 1 :]
        self.setup_seconds = time.monotonic() - began
        self._overflows = 0
        self._stopping = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping:
            batch = os.read(self._fd, 1 << 16)
            at = 0
            while at < len(batch):
                mark, mask, _, length = self._EVENT.unpack_from(batch, at)
                at += self._EVENT.size + length
                if mask & self._OVERFLOW:
                    self._overflows += 1
                elif not mask & self._ISDIR:
                    name = batch[at - length : at].rstrip(b"\0")
                    self._heard[self._directories[mark].partition(b"/")[0] or name] += 1

    @property
    def overflows(self) -> int:
        return self._overflows

    def stop(self) -> None:
        self._stopping = True  # its process ends with it
