"""Pins: entries that stay because somebody said so, in a file of their own: a lost ledger loses no pin.

`pins.json` is written first and `pins.json.copy` after it, both to the disk before a pin counts as
set. When the first is damaged it is set aside and the copy is taken. When neither can be read,
nobody knows what is pinned, and unknown means pinned: `PinsUnreadableError` stops the eviction.
"""

import json
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from cachewarden.errors import PinsUnreadableError
from cachewarden.ledger.files import exclusive, set_aside, write_atomically
from cachewarden.paths import show, unshow

VERSION = 1
NAME = b"pins.json"
COPY = b"pins.json.copy"


@dataclass(frozen=True, slots=True)
class Pin:
    """A wish that what lies at `path` (absolute) stays until `until_ns`; None: until it is taken back."""

    path: bytes
    created_ns: int
    until_ns: int | None = None
    reason: str = ""
    uid: int = 0

    def active(self, now_ns: int) -> bool:
        """Whether it holds now."""
        return self.until_ns is None or now_ns < self.until_ns

    def to_json(self) -> dict[str, object]:
        """The object in the file; the path in its readable and reversible form."""
        return {
            "path": show(self.path),
            "created_ns": self.created_ns,
            "until_ns": self.until_ns,
            "reason": self.reason,
            "uid": self.uid,
        }


class Pins:
    """All pins at one moment. `notices`: what has to be said about how they were read."""

    def __init__(self, pins: Iterable[Pin] = (), notices: tuple[str, ...] = ()) -> None:
        self.all = tuple(pins)
        self.notices = notices

    def active(self, now_ns: int) -> list[Pin]:
        """The pins that hold now."""
        return [pin for pin in self.all if pin.active(now_ns)]


def covers(pin: Pin, path: bytes) -> bool:
    """Whether a pin (active or not) holds what lies at an absolute path.

    It covers what it names, everything below it, and whatever contains it: whoever pins one file of
    an entry wants to find it tomorrow, and an entry goes whole or not at all.
    """
    return path == pin.path or _contains(path, pin.path) or _contains(pin.path, path)


def _contains(above: bytes, below: bytes) -> bool:
    return below.startswith(above if above.endswith(b"/") else above + b"/")


class PinStore:
    """The pins in `state_dir`."""

    def __init__(self, state_dir: bytes) -> None:
        self._directory = state_dir

    def load(self, now_ns: int) -> Pins:
        """All pins. Raises PinsUnreadableError when it cannot be known what is pinned."""
        try:
            main, main_error = self._read(NAME), None
        except (OSError, ValueError) as error:
            main, main_error = None, error
        if main is not None:
            return Pins(main)
        try:
            copy = self._read(COPY)
        except (OSError, ValueError) as error:
            raise self._unreadable(main_error or error) from error
        if main_error is None:
            if copy is None:
                return Pins()
            return Pins(copy, ("the file with the pins is gone; the pins come from its copy",))
        if copy is None or isinstance(main_error, OSError):
            # An error of reading may be over in a moment: nothing is set aside for it.
            raise self._unreadable(main_error) from main_error
        notice = f"the file with the pins was damaged ({main_error}); the pins come from its copy"
        with suppress(OSError):
            notice += f", it is kept as {show(set_aside(self._path(NAME), now_ns))}"
        return Pins(copy, (notice,))

    def add(self, pin: Pin, now_ns: int) -> None:
        """Set a pin, in the place of an older one of the same user on the same path. On the disk when this
        returns.

        Raises OSError (nothing changed then, or the pin is set but its copy is not) and
        PinsUnreadableError.
        """
        same = (pin.path, pin.uid)
        self._change(lambda pins: [*(each for each in pins if (each.path, each.uid) != same), pin], now_ns)

    def remove(self, path: bytes, now_ns: int, uid: int | None = None) -> bool:
        """Take the pins on exactly this path back, or only that of one user; False when there is none.

        Raises as `add` does.
        """

        def meant(pin: Pin) -> bool:
            return pin.path == path and uid in (None, pin.uid)

        if not any(meant(pin) for pin in self.load(now_ns).active(now_ns)):
            return False
        self._change(lambda pins: [each for each in pins if not meant(each)], now_ns)
        return True

    def _change(self, change: Callable[[list[Pin]], list[Pin]], now_ns: int) -> None:
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        with exclusive(self._path(b"pins.lock")):
            pins = change(self.load(now_ns).active(now_ns))
            content = {"version": VERSION, "pins": [pin.to_json() for pin in pins]}
            written = json.dumps(content, indent=1).encode() + b"\n"
            write_atomically(self._directory, NAME, written)
            write_atomically(self._directory, COPY, written)

    def _path(self, name: bytes) -> bytes:
        return os.path.join(self._directory, name)

    def _read(self, name: bytes) -> list[Pin] | None:
        """The pins in one file, None when it is missing. Raises OSError, and ValueError for damage."""
        try:
            with open(self._path(name), "rb") as file:
                content = json.loads(file.read())
        except FileNotFoundError:
            return None
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        version = content.get("version") if isinstance(content, dict) else None
        if isinstance(version, int) and version > VERSION:
            raise PinsUnreadableError(f"{show(self._path(name))} was written by a newer cachewarden")
        if version != VERSION or not isinstance(content.get("pins"), list):
            raise ValueError("it is no list of pins")
        return [_pin(each) for each in content["pins"]]

    def _unreadable(self, error: Exception) -> PinsUnreadableError:
        return PinsUnreadableError(
            f"the pins in {show(self._directory)} cannot be read ({error}), so everything counts as"
            f" pinned: repair {show(NAME)}, or remove it and {show(COPY)} to start without pins"
        )


def _pin(found: object) -> Pin:
    if not isinstance(found, dict):
        raise ValueError("a pin is no object")  # noqa: TRY004
    path, reason, until = found.get("path"), found.get("reason"), found.get("until_ns")
    created, uid = found.get("created_ns"), found.get("uid")
    numbers = (created, uid, 0 if until is None else until)
    if not isinstance(path, str) or not path.startswith("/") or not isinstance(reason, str):
        raise ValueError("a pin's path or reason is wrong")
    if not all(type(number) is int for number in numbers):
        raise ValueError("a pin's time or uid is wrong")
    assert isinstance(created, int)
    assert isinstance(uid, int)
    return Pin(unshow(path), created, until, reason, uid)
