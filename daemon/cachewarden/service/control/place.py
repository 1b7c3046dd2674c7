"""From a request to the locations that it is about, and to the lanes in which these are looked at."""

from collections.abc import Callable
from typing import TypeVar

from cachewarden.enforce.enforcer import Enforcer
from cachewarden.errors import ServiceRefusedError, UsageError
from cachewarden.paths import show
from cachewarden.service.control.guest import Guest, Host
from cachewarden.service.control.lanes import Lanes
from cachewarden.service.devices import devices
from cachewarden.spec import LocationSpec

LOOK_SECONDS = 300.0  # a walk over a big location takes minutes
T = TypeVar("T")


class Place:
    """The service as the desk knows it. Nothing in it touches a location but in a lane."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.lanes = Lanes()
        self._enforcer = Enforcer(host.means)

    def guest(self, *keys: str) -> Guest:
        """The house for a request that looks at these locations only, and at none without any."""
        return Guest(self.host, self._enforcer, keys)

    def knowing(self, only: str | None) -> Guest:
        """The house for a request about locations of this name (None: all) that looks at none of them.

        Raises ServiceRefusedError where none is called so.
        """
        empty = self.guest()
        try:
            empty.select(only)
        except UsageError as error:
            raise ServiceRefusedError(str(error), 404) from None
        return empty

    def location_of(self, path: bytes) -> LocationSpec:
        """The location that a path lies in, by its name alone: no link is resolved.

        Raises ServiceRefusedError.
        """
        land = self.host.land
        for spec in (*land.locations, *land.missing):
            if path == spec.path or path.startswith(spec.path + b"/"):
                return spec
        raise ServiceRefusedError(f"{show(path)}: not in any location", 404)

    def at(self, spec: LocationSpec, ask: Callable[[Guest], T], seconds: float = LOOK_SECONDS) -> T:
        """Ask about one location, in its lane. Raises ServiceRefusedError, and what `ask` raises."""
        group = devices([spec])[spec.key].decode()
        return self._in(group, [spec], ask, seconds)

    def each(
        self, only: str | None, ask: Callable[[Guest], T], seconds: float = LOOK_SECONDS
    ) -> list[tuple[Guest, T]]:
        """Ask about all locations, or those of one name: once for each filesystem.

        Without any, ask about nothing. Raises ServiceRefusedError, and what `ask` raises.
        """
        empty = self.knowing(only)
        land = empty.select(only)
        groups: dict[str, list[LocationSpec]] = {}
        for key, device in devices(land.locations).items():
            groups.setdefault(device.decode(), []).extend(each for each in land.locations if each.key == key)
        if not groups:
            return [(empty, ask(empty))]
        asked: list[tuple[Guest, T]] = []
        for group, specs in groups.items():

            def pair(guest: Guest) -> tuple[Guest, T]:
                return guest, ask(guest)

            asked.append(self._in(group, specs, pair, seconds))
        return asked

    def _in(self, group: str, specs: list[LocationSpec], ask: Callable[[Guest], T], seconds: float) -> T:
        silent = set(self.host.dispatcher.silent())
        names = ", ".join(sorted({spec.name for spec in specs}))
        if any(spec.key in silent for spec in specs):
            raise ServiceRefusedError(f"{names}: its filesystem does not answer", 504, 1)
        guest = self.guest(*(spec.key for spec in specs))
        try:
            return self.lanes.run(group, lambda: ask(guest), seconds)
        except ServiceRefusedError as error:
            if error.http in (503, 504):
                raise ServiceRefusedError(f"{names}: {error}", error.http, error.exit_status) from None
            raise
