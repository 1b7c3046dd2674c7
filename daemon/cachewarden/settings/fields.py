"""The kinds of values that keys have: how each is read, and how the schema describes it.

All of them raise ValueError with a sentence, which pydantic hands on together with the key; a
TypeError it would not catch, hence the exceptions from the linter's TRY004.
"""

import os
import re
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema

from cachewarden.layouts import layout_names
from cachewarden.paths import unshow
from cachewarden.settings.cron import parse_cron
from cachewarden.units import (
    ClockRange,
    parse_amount,
    parse_clock_range,
    parse_count,
    parse_count_amount,
    parse_duration,
    parse_share,
    parse_size,
)
from cachewarden_policies.policy import SECOND, Amount

_HTTP = re.compile(r"(\[[0-9A-Fa-f:.%a-z]+\]|[A-Za-z0-9.-]*):([0-9]{1,5})")


def key(default: Any, description: str) -> Any:
    """A key with its default as TOML has it (None: not set), validated like everybody's."""
    return Field(default, validate_default=True, description=description)


def required(description: str) -> Any:
    """A key that has to be there."""
    return Field(description=description)


def _described(*types: str, examples: list[Any]) -> WithJsonSchema:
    return WithJsonSchema({"type": list(types) if len(types) > 1 else types[0], "examples": examples})


def parse_flag(value: object) -> object:
    """`true` or `false`; also as text, which is all that the environment has."""
    if value in ("true", "false"):
        return value == "true"
    if not isinstance(value, bool):
        raise ValueError("must be true or false")  # noqa: TRY004
    return value


def parse_interval(value: object) -> int:
    """A duration of at least a second: less would be a busy loop."""
    interval = parse_duration(value)
    if interval < SECOND:
        raise ValueError("must be at least 1s")
    return interval


def parse_http(value: object) -> tuple[str, int] | None:
    """`HOST:PORT`, `[IPv6]:PORT`, `:PORT` (all addresses); empty or None: off."""
    if value is None or value == "":
        return None
    match = _HTTP.fullmatch(value) if isinstance(value, str) else None
    if match is None or int(match[2]) > 65535:
        raise ValueError('must be "HOST:PORT", such as "127.0.0.1:9843", or "" to turn it off')
    return match[1].strip("[]"), int(match[2])


def parse_absolute(value: object) -> bytes:
    """An absolute path as normalised bytes; escapes such as `\\xff` stand for bytes that are not UTF-8."""
    if not isinstance(value, str) or not value.startswith("/"):
        raise ValueError("must be an absolute path")
    if "\0" in value:
        raise ValueError("a path cannot contain a NUL")
    # normpath keeps two leading slashes, as POSIX allows; Linux gives them no meaning.
    return os.path.normpath(b"/" + unshow(value).lstrip(b"/"))


def parse_quiet_hours(value: object) -> tuple[ClockRange, ...]:
    """A list of parts of the day."""
    if not isinstance(value, list | tuple):
        raise ValueError('must be a list, such as ["08:00-18:00"]')  # noqa: TRY004
    return tuple(parse_clock_range(each) for each in value)


def parse_inside(value: object) -> tuple[str, ...]:
    """A list of glob patterns for paths inside a location."""
    patterns = parse_texts(value)
    for pattern in patterns:
        if pattern.startswith("/") or ".." in pattern.split("/"):
            raise ValueError(f"{pattern!r} must be relative to the location")
    return patterns


def parse_texts(value: object) -> tuple[str, ...]:
    """A list of texts, none of them empty."""
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise ValueError("must be a list of texts in quotes")
    if not all(value):
        raise ValueError("contains an empty text, which would match nothing")
    return tuple(value)


def parse_one_or_more(value: object) -> tuple[str, ...]:
    """One text, or a list of at least one."""
    texts = parse_texts([value] if isinstance(value, str) else value)
    if not texts:
        raise ValueError("is empty; at least one is needed")
    return texts


def parse_checkpoints(value: object) -> int | None:
    """`"never"`, or `{ keep_newest = N }` with N of at least 1; None is never."""
    if value is None or value == "never":
        return None
    if isinstance(value, dict) and set(value) == {"keep_newest"}:
        kept = parse_count(value["keep_newest"])
        if kept >= 1:
            return kept
    raise ValueError('must be "never" or { keep_newest = N } with N at least 1')


def parse_shared(value: object) -> object:
    """`auto`, `yes` or `no`; TOML's true and false are yes and no."""
    return (
        {True: "yes", False: "no", "true": "yes", "false": "no"}.get(value, value)
        if isinstance(value, str | bool)
        else value
    )


def refuse(value: object) -> None:
    """For keys whose feature is not there yet: silence would be a promise."""
    if value is not None:
        raise ValueError("not supported by this version")


def parse_layout(value: object) -> str:
    """The name of a layout, or `auto`: a wrong one must not wait for a pass to be found out."""
    names = layout_names()
    if not isinstance(value, str) or value not in names:
        known = ", ".join(f"'{name}'" for name in names[:-1])
        raise ValueError(f"must be {known} or '{names[-1]}'")
    return value


def parse_accounting(value: object) -> object:
    """`auto` or `walk`; the sources that the filesystem sums up are not there yet."""
    if value in ("statvfs", "quota", "ceph", "btrfs"):
        raise ValueError('not supported by this version, which knows "auto" and "walk"')
    return value


def parse_coordinator(value: object) -> str:
    """`file:` only, so far."""
    if isinstance(value, str) and value.startswith("etcd:"):
        raise ValueError('not supported by this version, which knows "file:"')
    if value != "file:":
        raise ValueError('must be "file:"')
    return "file:"


Flag = Annotated[bool, BeforeValidator(parse_flag)]
Size = Annotated[int, PlainValidator(parse_size), _described("string", "integer", examples=["10GiB"])]
Count = Annotated[int, PlainValidator(parse_count), _described("integer", "string", examples=[500_000])]
Duration = Annotated[int, PlainValidator(parse_duration), _described("string", examples=["30d", "1d12h"])]
Interval = Annotated[int, PlainValidator(parse_interval), _described("string", examples=["5m"])]
Share = Annotated[Fraction, PlainValidator(parse_share), _described("string", examples=["50%"])]
SizeAmount = Annotated[
    Amount, PlainValidator(parse_amount), _described("string", "integer", examples=["10%", "50GiB"])
]
CountAmount = Annotated[
    Amount, PlainValidator(parse_count_amount), _described("string", "integer", examples=["90%", 400_000])
]
Cron = Annotated[str, PlainValidator(parse_cron), _described("string", examples=["30 3 * * *"])]
Absolute = Annotated[
    bytes, PlainValidator(parse_absolute), _described("string", examples=["/var/lib/cachewarden"])
]
Http = Annotated[
    tuple[str, int] | None, PlainValidator(parse_http), _described("string", examples=["127.0.0.1:9843", ""])
]
Layout = Annotated[
    str, PlainValidator(parse_layout), WithJsonSchema({"type": "string", "enum": list(layout_names())})
]
_LIST = WithJsonSchema({"type": "array", "items": {"type": "string"}})
QuietHours = Annotated[tuple[ClockRange, ...], PlainValidator(parse_quiet_hours), _LIST]
Texts = Annotated[tuple[str, ...], PlainValidator(parse_texts), _LIST]
Inside = Annotated[tuple[str, ...], PlainValidator(parse_inside), _LIST]
OneOrMore = Annotated[
    tuple[str, ...],
    PlainValidator(parse_one_or_more),
    WithJsonSchema({"type": ["string", "array"], "items": {"type": "string"}}),
]
Checkpoints = Annotated[
    int | None,
    PlainValidator(parse_checkpoints),
    WithJsonSchema({"type": ["string", "object"], "examples": ["never", {"keep_newest": 3}]}),
]
Unsupported = Annotated[int | None, PlainValidator(refuse), WithJsonSchema({"const": "none"})]
