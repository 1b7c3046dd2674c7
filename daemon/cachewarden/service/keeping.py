"""What people tell cachewarden, and what it remembers: pins, pauses, confirmations, trash, history."""

import os
import signal
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from cachewarden.clock import Clock
from cachewarden.enforce.finding import location_of
from cachewarden.enforce.guards import lease_trusted
from cachewarden.enforce.survey import opened
from cachewarden.errors import LocationUnavailableError, UsageError
from cachewarden.evict import Recovered, Trash, TrashItem, empty, items, restore
from cachewarden.ledger import FOREVER, EvictionRow, Ledger, Pin, PinStore, signal_service
from cachewarden.locks import location_lock, lock_path
from cachewarden.mountinfo import Mount
from cachewarden.settings import Settings, territory
from cachewarden.spec import LocationSpec, Territory

_HISTORY = 1000


@dataclass(frozen=True, slots=True)
class TrashRow:
    """One thing in the trash of a location."""

    spec: LocationSpec
    item: TrashItem


class Keeping:
    """The part of the house that runs no pass."""

    def __init__(self, settings: Settings, clock: Clock, ledger: Ledger, pins: PinStore) -> None:
        self.settings = settings
        self.clock = clock
        self.ledger = ledger
        self.pins = pins

    def close(self) -> None:
        """Write what waits, and let go of the files."""
        self.ledger.close()

    def sure_ns(self) -> int:
        """The earliest wall time that it may be: nothing ends by a clock that jumped."""
        return self.clock.wall_ns()

    def territory(self) -> Territory:
        """All locations in force at this moment."""
        return territory(self.settings)

    def select(self, only: str | None) -> Territory:
        """The territory, or its locations of one configured name. Raises UsageError for an unknown one."""
        land = self.territory()
        if only is None:
            return land
        self.settings.require(only)
        return named(land, [only])

    def pin(self, path: bytes, *, until_ns: int | None = None, reason: str = "") -> Pin:
        """Pin what lies at `path`; it must lie in a location. Raises UsageError, OSError."""
        spec, relative = location_of(self.territory(), path)
        now_ns = self.clock.wall_ns()
        absolute = os.path.join(spec.path, relative) if relative else spec.path
        pin = Pin(absolute, now_ns, until_ns, reason, os.getuid())
        self.pins.add(pin, self.sure_ns())  # which drops the ones that have ended
        return pin

    def unpin(self, path: bytes) -> bool:
        """Take the pin on `path` back; False when there is none. Raises OSError."""
        now_ns = self.sure_ns()
        if self.pins.remove(path, now_ns):
            return True
        try:
            spec, relative = location_of(self.territory(), path)
        except UsageError:
            return False
        return self.pins.remove(os.path.join(spec.path, relative) if relative else spec.path, now_ns)

    def pin_list(self) -> list[Pin]:
        """The pins in force."""
        now_ns = self.sure_ns()
        return self.pins.load(now_ns).active(now_ns)

    def history(self, *, limit: int = _HISTORY, only: str | None = None) -> list[EvictionRow]:
        """What went, newest first."""
        return self.ledger.history(limit, only)

    def confirm(self, only: str, *, for_ns: int) -> int:
        """Lift max_share from the locations of one name; until when. Raises UsageError."""
        now_ns = self.clock.wall_ns()
        for spec in self._named(only):
            self.ledger.confirm(spec, now_ns + for_ns, now_ns)
        return now_ns + for_ns

    def pause(self, only: str | None = None, *, for_ns: int | None = None) -> int | None:
        """Evict nothing from the locations of one name (None: from any); until when, None: until resumed.

        Holds for locations that appear later, too. Raises UsageError for an unknown name.
        """
        self.select(only)
        now_ns = self.clock.wall_ns()
        until_ns = FOREVER if for_ns is None else now_ns + for_ns
        self.ledger.pause(only, now_ns, until_ns)
        return None if for_ns is None else until_ns

    def resume(self, only: str | None = None) -> None:
        """Take the pause of one name back; None takes back all. Raises UsageError for an unknown name."""
        self.select(only)
        self.ledger.resume(only, self.clock.wall_ns())

    def wake_service(self) -> bool:
        """Ask a running service for a pass now; whether there is one."""
        try:
            return signal_service(self.settings.daemon.runtime_dir, signal.SIGUSR1) is not None
        except OSError:
            return True  # somebody else's; it looks by itself before long

    def trash_list(self) -> list[TrashRow]:
        """What lies in the trash of all locations."""
        rows: list[TrashRow] = []
        for spec in self.territory().locations:
            with suppress(LocationUnavailableError), self._trash(spec) as (trash, _):
                rows += [TrashRow(spec, item) for item in items(trash)]
        return rows

    def trash_restore(self, only: str | None = None) -> list[tuple[LocationSpec, Recovered]]:
        """Put back what is whole and whose place is free."""
        return self._on_trash(only, lambda trash, _: restore(trash))

    def trash_empty(self, only: str | None = None) -> list[tuple[LocationSpec, Recovered]]:
        """Remove what nobody uses."""
        return self._on_trash(only, lambda trash, mount: empty(trash, lease_trusted=lease_trusted(mount)))

    def _on_trash(
        self, only: str | None, act: Callable[[Trash, Mount], list[Recovered]]
    ) -> list[tuple[LocationSpec, Recovered]]:
        done: list[tuple[LocationSpec, Recovered]] = []
        for spec in self.select(only).locations:
            with self._trash(spec, locked=True) as (trash, mount):
                done += [(spec, each) for each in act(trash, mount)]
        return done

    @contextmanager
    def _trash(self, spec: LocationSpec, *, locked: bool = False) -> Iterator[tuple[Trash, Mount]]:
        trusted = frozenset({0, os.geteuid()})
        with opened(spec, trusted) as (root_fd, mount), Trash(root_fd, spec.path) as trash:
            if not locked:
                yield trash, mount
                return
            found = os.fstat(root_fd)
            path = lock_path(self.settings.daemon.runtime_dir, found.st_dev, found.st_ino)
            with location_lock(path, command="cachewarden trash", clock=self.clock):
                yield trash, mount

    def _named(self, only: str) -> list[LocationSpec]:
        land = self.select(only)
        specs = [*land.locations, *land.missing]
        if not specs:
            raise UsageError(f"{only}: nothing matches its path now")
        return specs


def named(land: Territory, names: Collection[str]) -> Territory:
    """The part of a territory that has one of these names."""
    return replace(
        land,
        locations=tuple(spec for spec in land.locations if spec.name in names),
        missing=tuple(spec for spec in land.missing if spec.name in names),
    )
