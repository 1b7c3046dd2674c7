"""Helper processes that walk parts of a large tree beside us.

A helper is a fresh interpreter and not a fork: the daemon has threads, and a fork would copy their
locks in whatever state they are. It inherits the root's descriptor, takes a task from its standard
input, and answers with a tally and with what it did not get done within its budget, so that work
spreads evenly whatever the shape of the tree. It ends when its input ends: with us, however we end.
A helper that dies loses nothing, as its task is taken back.
"""

import os
import pickle
import select
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO, Self

from cachewarden.scan.directories import Directories
from cachewarden.scan.tally import Tally
from cachewarden.scan.walk import Task, Walk
from cachewarden_policies.globs import Globs

_BUDGET = 10_000  # files a helper looks at before it answers
_PATIENCE = 5.0  # seconds for a killed helper to go; one that hangs in a dead mount cannot
_RUN = "from cachewarden.scan.crew import help_out; help_out()"


@dataclass(frozen=True, slots=True)
class _Orders:
    root_fd: int
    exclude: Globs | None
    settled_ns: int | None


@dataclass(frozen=True, slots=True)
class _Answer:
    tally: Tally
    left: list[Task]


class Crew:
    """Helpers for one walk below `root_fd`. Use as a context manager: none outlives it.

    With `settled_ns`, they note directories too, see `Directories`.
    """

    def __init__(self, root_fd: int, size: int, exclude: Globs | None, settled_ns: int | None = None) -> None:
        self.backlog: list[Task] = []
        self._idle: list[subprocess.Popen[bytes]] = []
        self._busy: dict[subprocess.Popen[bytes], Task] = {}
        with suppress(OSError):  # no memory, no more processes: then we walk alone
            for _ in range(size):
                self._idle.append(_hire(root_fd))
        for helper in self._idle:
            with suppress(BrokenPipeError):  # it will be found dead when it is given work
                _send(helper, _Orders(root_fd, exclude, settled_ns))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for helper in (*self._idle, *self._busy):
            self._dismiss(helper)

    @property
    def busy(self) -> bool:
        """Whether some helper has not answered yet."""
        return bool(self._busy)

    def feed(self, give: Callable[[float], Task | None]) -> None:
        """Give each idle helper work: what others left, else a share of what `give` can spare."""
        share = 1 / (4 * (len(self._idle) + len(self._busy)) or 1)
        while self._idle:
            task = self.backlog.pop() if self.backlog else give(share)
            if task is None:
                return
            helper = self._idle.pop()
            try:
                _send(helper, task)
            except BrokenPipeError:
                self.backlog.append(task)
                self._dismiss(helper)
            else:
                self._busy[helper] = task

    def collect(self, tally: Tally, *, wait: bool) -> None:
        """Take in the answers that are there; with `wait`, at least one."""
        pipes = {_output(helper).fileno(): helper for helper in self._busy}
        poll = select.poll()
        for fd in pipes:
            poll.register(fd, select.POLLIN)
        for fd, _ in poll.poll(None if wait else 0):
            helper = pipes[fd]
            task = self._busy.pop(helper)
            try:
                answer = pickle.load(_output(helper))  # noqa: S301  our own process wrote it
            except (EOFError, pickle.UnpicklingError):
                self.backlog.append(task)
                self._dismiss(helper)
            else:
                tally.merge(answer.tally)
                self.backlog += answer.left
                self._idle.append(helper)

    @staticmethod
    def _dismiss(helper: subprocess.Popen[bytes]) -> None:
        helper.kill()
        for pipe in (helper.stdin, helper.stdout):
            with suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()
        with suppress(subprocess.TimeoutExpired):
            helper.wait(_PATIENCE)


def _hire(root_fd: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        # -P: the current directory may be anybody's, and must not be imported from.
        [sys.executable, "-P", "-c", _RUN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=(root_fd,),
        process_group=0,  # a terminal's Ctrl-C is ours to handle
    )


def _output(helper: subprocess.Popen[bytes]) -> BinaryIO:
    assert helper.stdout is not None
    return helper.stdout  # type: ignore[return-value]


def _send(helper: subprocess.Popen[bytes], message: object) -> None:
    assert helper.stdin is not None
    pickle.dump(message, helper.stdin)
    helper.stdin.flush()


def help_out() -> None:
    """What a helper runs: tasks from standard input, answers to standard output, until there are no more."""
    source, sink = os.fdopen(0, "rb", closefd=False), os.fdopen(1, "wb", closefd=False)
    orders: _Orders = pickle.load(source)  # noqa: S301  our own parent wrote it
    with suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        while True:
            task: Task = pickle.load(source)  # noqa: S301
            pickle.dump(_do(orders, task), sink)
            sink.flush()


def _do(orders: _Orders, task: Task) -> _Answer:
    noted = None if orders.settled_ns is None else Directories(orders.settled_ns)
    tally, left = Tally(directories=noted), []
    with Walk(orders.root_fd, tally, orders.exclude) as walk:
        walk.start(task)
        walk.run(_BUDGET)
        while not walk.idle:
            rest = walk.give(1.0)
            if rest is not None:
                left.append(rest)
            else:  # what is left lies deep down: getting there again would cost more
                walk.run(_BUDGET)
    return _Answer(tally, left)
