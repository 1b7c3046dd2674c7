"""What a person sees while a command works: a walk that lasts, evictions as they happen.

Progress goes to standard error and only to a terminal. Notices always go to standard error.
"""

import threading
import time
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn

from cachewarden.cli.blocks import Style
from cachewarden.cli.screen import Screen
from cachewarden.cli.views.passes import evicted_line, failed_line
from cachewarden.enforce.journal import Journal
from cachewarden.report import EvictedEntry, FailedEntry, LocationReport
from cachewarden.spec import LocationSpec
from cachewarden.units import format_size

_PATIENCE_SECONDS = 0.5


class Watcher(Journal):
    """A pass's journal for a person. Use it in `with`: it clears away what it drew."""

    def __init__(self, screen: Screen, *, live: bool = False) -> None:
        self._screen = screen
        self._live = live and screen.terminal
        self._drawn = screen.messages.is_terminal
        self._begun: dict[str, float] = {}
        self._progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._clear()

    def measured(self, spec: LocationSpec, files: int, size: int) -> None:
        """Draw how far the walk is, once it has lasted long enough to make somebody wonder."""
        if not self._drawn:
            return
        with self._lock:
            begun = self._begun.setdefault(spec.key, time.monotonic())
            if time.monotonic() - begun < _PATIENCE_SECONDS:
                return
            progress = self._progress or self._start()
            text = f"{files:,} files, {format_size(size)}"
            task = self._tasks.get(spec.key)
            if task is None:
                self._tasks[spec.key] = progress.add_task(spec.name, total=None, found=text)
            else:
                progress.update(task, found=text)

    def evicted(self, spec: LocationSpec, entry: EvictedEntry) -> None:
        """One line."""
        if self._live:
            with self._lock:
                self._clear()
                self._screen.show([evicted_line(entry, spec.name, time.time_ns())])

    def failed(self, spec: LocationSpec, entry: FailedEntry) -> None:
        """One line."""
        if self._live:
            with self._lock:
                self._clear()
                self._screen.show([failed_line(entry, spec.name)])

    def finished(self, spec: LocationSpec, report: LocationReport, seconds: float) -> None:  # noqa: ARG002
        """Its walk is over."""
        self.over(spec)

    def over(self, spec: LocationSpec) -> None:
        """Nothing more is measured there."""
        with self._lock:
            self._begun.pop(spec.key, None)
            task = self._tasks.pop(spec.key, None)
            if self._progress is not None and task is not None:
                self._progress.remove_task(task)

    def notice(self, text: str) -> None:
        """Something that people should know."""
        with self._lock:
            self._clear()
            self._screen.say(text, Style.WARN)

    def _start(self) -> Progress:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("measuring {task.description}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[found]}", markup=False),
            console=self._screen.messages,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._progress.start()
        return self._progress

    def _clear(self) -> None:
        """Take the bar away before anything else is written to the same terminal."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
            self._tasks.clear()
