"""The house for users without root: the running service is asked, and answers what is theirs.

It has the methods of `service.House` that such users may call, with the same values, so that a command does
not care which of the two it has.
"""

import os
from collections.abc import Mapping
from typing import Any

from cachewarden.cli import received
from cachewarden.client import Service
from cachewarden.clock import Clock
from cachewarden.enforce.view import Explanation, Row
from cachewarden.errors import ServiceRefusedError
from cachewarden.ledger import EvictionRow, Pin
from cachewarden.paths import show
from cachewarden.report import PassReport
from cachewarden.service import Status

_ABSENT = 404


class Remote:
    """Asks `service`. All methods raise ServiceRefusedError and NoServiceError."""

    def __init__(self, service: Service, clock: Clock) -> None:
        self._service = service
        self._clock = clock

    def status(self) -> Status:
        """Sums over all locations."""
        return received.status(self._ask("GET", "/status"))

    def mine(self) -> dict[str, int]:
        """Bytes of the user's own entries, by the key of the location, where there are any."""
        found = self._ask("GET", "/status", {"mine": "true"})
        located = [each for each in found["locations"] if each["mine_bytes"] is not None]
        return {received.spec(each["name"], each["path"]).key: each["mine_bytes"] for each in located}

    def rows(self, only: str | None = None) -> list[Row]:
        """Own entries."""
        return [received.row(each) for each in self._ask("GET", "/entries", {"location": only})]

    def explain(self, path: bytes) -> Explanation:
        """All about an own entry."""
        return received.explanation(self._at(path, "GET", "/explain"))

    def history(self, *, limit: int = 1000) -> list[EvictionRow]:
        """What went of the user's own, and from locations that are his."""
        return [received.eviction(each) for each in self._ask("GET", "/history", {"limit": str(limit)})]

    def pin_list(self) -> list[Pin]:
        """The user's own pins."""
        return [received.pin(each) for each in self._ask("GET", "/pins")]

    def pin(self, path: bytes, *, until_ns: int | None = None, reason: str = "") -> Pin:
        """Pin what the user can read; without an end for as long as he may."""
        lasting = None if until_ns is None else f"{max(until_ns - self._clock.wall_ns(), 0) // 10**9}s"
        return received.pin(self._at(path, "POST", "/pins", {"for": lasting, "reason": reason}))

    def unpin(self, path: bytes) -> bool:
        """Take an own pin back; False when there is none."""
        try:
            self._at(path, "DELETE", "/pins")
        except ServiceRefusedError as error:
            if error.http != _ABSENT:
                raise
            return False
        return True

    def evict(self, path: bytes, *, wait_ns: int = 0) -> PassReport:
        """Evict an own entry."""
        return received.report(self._at(path, "POST", "/evict", {"wait": f"{wait_ns // 10**6}ms"}))

    def _ask(self, method: str, path: str, query: Mapping[str, str | None] | None = None) -> Any:
        return self._service.ask(method, path, query)

    def _at(self, path: bytes, method: str, route: str, more: Mapping[str, str | None] | None = None) -> Any:
        """Ask about a path: as it was given, and where nothing is there by that name, without its links.

        The service follows none, so that nobody's links decide what it looks at.
        """
        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        try:
            return self._once(path, method, route, more)
        except ServiceRefusedError as error:
            if error.http != _ABSENT or real == path:
                raise
        return self._once(real, method, route, more)

    def _once(self, path: bytes, method: str, route: str, more: Mapping[str, str | None] | None) -> Any:
        given = {"path": show(path), **(more or {})}
        if method == "POST":
            return self._service.ask(method, route, body=given)
        return self._service.ask(method, route, given)
