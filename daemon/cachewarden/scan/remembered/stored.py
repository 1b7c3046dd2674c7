"""What is remembered of a location, as bytes to be kept over a restart.

In three parts, so that the figures are known before the rest is read: a head with what it is of and what it
came to, the directories, and the regions with their sums.
"""

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cachewarden import __version__
from cachewarden.scan.attribution import attribute
from cachewarden.scan.directories import Directories
from cachewarden.scan.regions import Regions
from cachewarden.scan.remembered.plainly import SHAPE, plain_split, split_of
from cachewarden.scan.remembered.value import Facts, Remembered
from cachewarden.scan.tally import Linked, Tally
from cachewarden.sums import Sums
from cachewarden_policies.globs import Globs, compile_globs

_FORMAT = 1
_LENGTHS = struct.Struct("<QQQ")
_DIGEST_SIZE = 32


class UnfitError(Exception):
    """The bytes are damaged, or of another version; the text says which."""


@dataclass(frozen=True, slots=True)
class Totals:
    """What a location came to when it was measured."""

    bytes: int
    files: int
    entries: int


@dataclass(frozen=True, slots=True)
class Stored:
    """What was kept. `more` is what the keeper had put beside it; `remembered` reads the rest."""

    facts: Facts
    totals: Totals
    more: Mapping[str, Any]
    directories: Directories
    _rest: bytes

    def remembered(self) -> Remembered:
        """All of it. Raises UnfitError."""
        try:
            return _remembered(self.facts, self.directories, json.loads(self._rest))
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise UnfitError(f"it cannot be read: {error}") from error


def pack(remembered: Remembered, more: Mapping[str, Any]) -> bytes:
    """The bytes of what is remembered, and of `more` (as JSON can have it)."""
    tally, facts, inventory = remembered.tally, remembered.facts, remembered.inventory
    assert tally.directories is not None
    numbers, lengths, blobs = [], [], []
    for number, packed in tally.directories.packed.items():
        numbers.append(number)
        lengths.append(len(packed))
        blobs.append(packed)
    head = {
        "format": _FORMAT,
        "version": __version__,
        "shape": SHAPE,
        "root": facts.root,
        "trash": [_text(path) for path in facts.trash],
        "exclude": None if facts.exclude is None else facts.exclude.patterns,
        "mounts": [_text(path) for path in facts.mounts],
        "totals": [inventory.bytes, inventory.files, len(inventory.entries)],
        "directories": [numbers, lengths, sorted(tally.directories.deep)],
        "more": dict(more),
    }
    rest = {
        "split": plain_split(remembered.split),
        "sums": [[number, *sums.values()] for number, sums in tally.sums.items()],
        "roots": [[number, *root] for number, root in tally.roots.items()],
        "linked": [
            [*inode, each.seen, each.links, each.bytes, each.files, *each.regions]
            for inode, each in tally.linked.items()
        ],
        "unreadable": [[_text(path), error, number] for path, error, number in tally.unreadable],
        "mounts": [[_text(path), number] for path, number in tally.mounts],
        "excluded": sorted(tally.excluded),
        "restless": sorted(remembered.restless),
    }
    parts = [_json(head), b"".join(blobs), _json(rest)]
    body = _LENGTHS.pack(*map(len, parts)) + b"".join(parts)
    return hashlib.blake2b(body, digest_size=_DIGEST_SIZE).digest() + body


def unpack(kept: bytes) -> Stored:
    """What `pack` packed. Raises UnfitError."""
    body = memoryview(kept)[_DIGEST_SIZE:]
    if hashlib.blake2b(body, digest_size=_DIGEST_SIZE).digest() != kept[:_DIGEST_SIZE]:
        raise UnfitError("it is damaged")
    try:
        lengths = _LENGTHS.unpack_from(body)
        parts, place = [], _LENGTHS.size
        for length in lengths:
            parts.append(bytes(body[place : place + length]))
            place += length
        head = json.loads(parts[0])
        written = (head["format"], head["version"], head["shape"])
        if written != (_FORMAT, __version__, SHAPE):
            raise UnfitError(f"it was written by version {head['version']}")
        device, inode = head["root"]
        facts = Facts(
            tuple(map(_bytes, head["trash"])),
            _globs(head["exclude"]),
            tuple(map(_bytes, head["mounts"])),
            (device, inode),
        )
        directories = _directories(head["directories"], parts[1])
        return Stored(facts, Totals(*head["totals"]), head["more"], directories, parts[2])
    except (ValueError, TypeError, KeyError, struct.error) as error:
        raise UnfitError(f"it cannot be read: {error}") from error


def _directories(plain: tuple[list[int], list[int], list[int]], blob: bytes) -> Directories:
    numbers, lengths, deep = plain
    found = Directories(0)
    place = 0
    for number, length in zip(numbers, lengths, strict=True):
        found.packed[number] = bytearray(blob[place : place + length])
        place += length
    found.deep = set(deep)
    return found


def _remembered(facts: Facts, directories: Directories, rest: dict[str, Any]) -> Remembered:
    split = split_of(rest["split"])
    regions = Regions(split, facts.trash, facts.mounts)
    tally = Tally(
        sums={row[0]: Sums.of_values(row[1:]) for row in rest["sums"]},
        linked={
            (row[0], row[1]): Linked(tuple(row[6:]), row[2], row[3], row[4], row[5]) for row in rest["linked"]
        },
        roots={row[0]: (row[1], row[2], row[3]) for row in rest["roots"]},
        unreadable=[(_bytes(path), error, number) for path, error, number in rest["unreadable"]],
        mounts=[(_bytes(path), number) for path, number in rest["mounts"]],
        excluded=set(rest["excluded"]),
        directories=directories,
    )
    inventory = attribute(split, regions, tally, facts.root)
    # No single path reaches a deep directory, so that nobody could ask whether it is still the same.
    return Remembered(facts, split, regions, tally, inventory, directories.deep.union(rest["restless"]))


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _text(value: bytes) -> str:
    return value.decode("latin-1")


def _bytes(value: str) -> bytes:
    return value.encode("latin-1")


def _globs(patterns: list[str] | None) -> Globs | None:
    return None if patterns is None else compile_globs(patterns)
