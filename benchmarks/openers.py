"""What it costs to know who opened what, against watchdog on the same opens, in the same run."""

import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from watchdog.events import FileOpenedEvent, FileSystemEvent, FileSystemEventHandler
from watchdog.observers.inotify import InotifyObserver

from benchmarks import Row
from cachewarden.clock import SystemClock
from cachewarden.inventory import Claim, Split
from cachewarden.openers import OpenerFeed
from cachewarden.scan import scan

ENTRIES, FILES, PROCESSES = 36, 20, 70

# Forked processes open every file of every entry once, and stay until the parent is told to end.
_LOAD = """
import os, sys
root, processes = sys.argv[1], int(sys.argv[2])
paths = [os.path.join(here, name) for here, _, names in os.walk(root) for name in names]
done, end = os.pipe(), os.pipe()
for _ in range(processes):
    if os.fork() == 0:
        os.close(end[1])
        for path in paths:
            os.close(os.open(path, os.O_RDONLY))
        os.write(done[1], b'x')
        os.read(end[0], 1)
        os._exit(0)
for _ in range(processes):
    os.read(done[0], 1)
print('done', flush=True)
sys.stdin.read()
"""


def run(files: int) -> Iterator[Row]:  # noqa: ARG001 - every benchmark takes the size of the largest tree
    """Compare the CPU per open of both, and say how much each of them missed."""
    opens = ENTRIES * FILES * PROCESSES
    with tempfile.TemporaryDirectory(prefix="cachewarden-bench-") as root:
        for entry in range(ENTRIES):
            Path(root, f"e{entry}").mkdir()
            for number in range(FILES):
                Path(root, f"e{entry}", str(number)).write_bytes(b"x")
        ours, pairs = _in_a_process(_feed, root)
        theirs, seen = _in_a_process(_watchdog, root)
    what = f"CPU per open that is known, {opens:,} opens: {pairs:,} of {ENTRIES * PROCESSES:,} pairs known"
    peer = f"watchdog: {seen:,} of {opens:,} opens known, and not by whom"
    yield Row(what, peer, ours / opens * 1e6, theirs / seen * 1e6, "≤ 0.02, none missed", "µs")


def _in_a_process(measure: Callable[[str], tuple[float, int]], root: str) -> tuple[float, int]:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (root,))


def _load(root: str, caught_up: Callable[[], bool]) -> float:
    """Run the load; the CPU time of this process meanwhile, until `caught_up`."""
    began = time.process_time()
    command = [sys.executable, "-c", _LOAD, root, str(PROCESSES)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as load:
        assert load.stdout is not None
        load.stdout.readline()
        while not caught_up():
            time.sleep(0.05)
        load.communicate()
    return time.process_time() - began


def _feed(root: str) -> tuple[float, int]:
    feed = OpenerFeed(SystemClock())
    fd = os.open(root, os.O_RDONLY)
    names = [os.fsencode(name) for name in os.listdir(root)]
    feed.index("bench", fd, scan(fd, Split("plain", tuple(Claim(name, (name,)) for name in names))))
    feed.drain()
    feed.start()
    pairs = 0

    def caught_up() -> bool:
        nonlocal pairs
        feed.drain()
        pairs = sum(feed.pairs().values())
        return True

    spent = _load(root, caught_up)
    feed.stop()
    os.close(fd)
    return spent, pairs


class _Counting(FileSystemEventHandler):
    def __init__(self) -> None:
        self.opens = 0

    def on_opened(self, event: FileSystemEvent) -> None:
        self.opens += isinstance(event, FileOpenedEvent)


def _watchdog(root: str) -> tuple[float, int]:
    observer, counting = InotifyObserver(), _Counting()
    observer.schedule(counting, root, recursive=True)
    observer.start()
    last = -1

    def caught_up() -> bool:
        nonlocal last
        before, last = last, counting.opens
        return before == last and observer.event_queue.empty()

    spent = _load(root, caught_up)
    observer.stop()
    observer.join()
    return spent, counting.opens
