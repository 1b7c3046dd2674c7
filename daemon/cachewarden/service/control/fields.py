"""What a request says, taken field by field: whatever is not taken at the end was not understood."""

import os
from collections.abc import Callable, Mapping
from typing import TypeVar

from cachewarden.errors import ServiceRefusedError
from cachewarden.paths import show, unshow
from cachewarden.units import parse_duration, parse_size

_LONGEST = 500  # characters of a reason
T = TypeVar("T")


class Fields:
    """The query of a request, or the object in its body. All methods raise ServiceRefusedError (400)."""

    def __init__(self, found: object) -> None:
        if found is None:
            found = {}
        if not isinstance(found, Mapping):
            raise _wrong("the body must be a JSON object")
        self._left: dict[str, object] = dict(found)

    def end(self) -> None:
        """Refuse what nobody took: a misspelt field must not be a wish that was not heard."""
        for name in self._left:
            raise _wrong(f"{show(name.encode('utf-8', 'replace'))}: no such field here")

    def text(self, name: str) -> str | None:
        """A text, or None where it is not given. A null is no text: it must not mean "all" by mistake."""
        if name not in self._left:
            return None
        found = self._left.pop(name)
        if not isinstance(found, str):
            raise _wrong(f"{name}: must be a text")
        return found

    def required(self, name: str) -> str:
        """A text that has to be there."""
        found = self.text(name)
        if not found:
            raise _wrong(f"{name}: is missing")
        return found

    def flag(self, name: str) -> bool:
        """true or false; false where it is not given. In a query it is a word."""
        found = self._left.pop(name, False)
        words = {"true": True, "false": False}
        found = words.get(found, found) if isinstance(found, str) else found
        if not isinstance(found, bool):
            raise _wrong(f"{name}: must be true or false")
        return found

    def duration(self, name: str) -> int | None:
        """Nanoseconds of a duration such as `7d`. A text: a number would have no unit."""
        found = self.text(name)
        return None if found is None else self._parsed(name, found, parse_duration)

    def size(self, name: str) -> int | None:
        """Bytes of a size such as `50GiB`, or a whole number of them."""
        return self._parsed(name, self._left.pop(name), parse_size) if name in self._left else None

    def number(self, name: str, most: int) -> int | None:
        """A whole number from 1 to `most`, written with digits."""
        found = self.text(name)
        if found is None:
            return None
        if not (found.isascii() and found.isdecimal()) or not 1 <= int(found[:20]) <= most:
            raise _wrong(f"{name}: must be a whole number from 1 to {most}")
        return int(found)

    def words(self, name: str) -> str:
        """A text for people, "" where it is not given. What it is shown on must not obey it."""
        found = self.text(name) or ""
        if len(found) > _LONGEST or not found.isprintable():
            raise _wrong(f"{name}: at most {_LONGEST} characters, in one line and all of them visible")
        return found

    def path(self, name: str = "path") -> bytes:
        """An absolute path as `paths.show` shows it: normal, so that it means one thing only."""
        try:
            path = unshow(self.required(name))
        except UnicodeEncodeError:
            raise _wrong(f"{name}: is no text that a path could have") from None
        if b"\0" in path:
            raise _wrong(f"{name}: a path cannot contain a NUL")
        if not path.startswith(b"/") or path.startswith(b"//") or os.path.normpath(path) != path:
            raise _wrong(f"{name}: must be absolute, without `.`, `..` and needless slashes")
        return path

    def _parsed(self, name: str, found: object, parse: Callable[[object], T]) -> T:
        try:
            return parse(found)
        except ValueError as error:
            raise _wrong(f"{name}: {error}") from None


def _wrong(text: str) -> ServiceRefusedError:
    return ServiceRefusedError(text, 400)
