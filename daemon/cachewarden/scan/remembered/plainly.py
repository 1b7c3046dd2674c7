"""Between splits and the plain values of JSON: bytes become text of the same characters (Latin-1).

Not pickle: what is read back is read as root, and may have been damaged by whatever damages files.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, TypeVar, get_type_hints

from cachewarden.inventory import Claim, Foreign, SharedClaim, Split
from cachewarden_policies.reasons import Cost, KeepReason

T = TypeVar("T")
Maker = Callable[[Any], Any]


def _text(value: bytes) -> str:
    return value.decode("latin-1")


def _bytes(value: str) -> bytes:
    return value.encode("latin-1")


def _same(value: T) -> T:
    return value


def _texts(value: tuple[bytes, ...]) -> list[str]:
    return [_text(each) for each in value]


def _tuple(value: list[str]) -> tuple[bytes, ...]:
    return tuple(map(_bytes, value)) if value else ()


def _perhaps(make: Maker) -> Maker:
    return lambda value: None if value is None else make(value)


_KINDS: dict[object, tuple[Maker, Maker]] = {
    bytes: (_text, _bytes),
    bytes | None: (_perhaps(_text), _perhaps(_bytes)),
    tuple[bytes, ...]: (_texts, _tuple),
    tuple[str, ...]: (list, tuple),
    str: (_same, _same),
    bool: (_same, _same),
    Cost: (str, Cost),
    KeepReason | None: (_perhaps(str), _perhaps(KeepReason)),
}


class _Rows:
    """A dataclass as rows: the values of its fields, in their order."""

    def __init__(self, kind: type) -> None:
        hints = get_type_hints(kind)
        self.names = [each.name for each in fields(kind)]
        self._kind = kind
        self._ways = [_KINDS[hints[name]] for name in self.names]

    def plain(self, values: Sequence[object]) -> list[list[object]]:
        """Rows for some values of the kind."""
        ways = [(name, way[0]) for name, way in zip(self.names, self._ways, strict=True)]
        return [[way(getattr(value, name)) for name, way in ways] for value in values]

    def made(self, rows: Sequence[Sequence[object]]) -> tuple[Any, ...]:
        """The values of such rows."""
        ways = [way[1] for way in self._ways]
        return tuple(self._kind(*[way(value) for way, value in zip(ways, row, strict=True)]) for row in rows)


_CLAIMS, _SHARED, _FOREIGN = _Rows(Claim), _Rows(SharedClaim), _Rows(Foreign)

# A split written by a version with other fields is none that this one can read.
SHAPE = json.dumps([each.names for each in (_CLAIMS, _SHARED, _FOREIGN)])


def plain_split(split: Split) -> list[object]:
    """A split as JSON can have it."""
    return [
        split.layout,
        _CLAIMS.plain(split.claims),
        _SHARED.plain(split.shared),
        _FOREIGN.plain(split.foreign),
        list(split.warnings),
    ]


def split_of(plain: Sequence[Any]) -> Split:
    """The split that `plain_split` made plain. Raises ValueError, TypeError for what it did not."""
    layout, claims, shared, foreign, warnings = plain
    return Split(
        str(layout), _CLAIMS.made(claims), _SHARED.made(shared), _FOREIGN.made(foreign), tuple(warnings)
    )
