"""What becomes of the things in the trash: after a crash, and when people ask.

`p-` was past the point of no return: it is finished. `m-` comes back. Where its place was taken meanwhile,
or is no more, the new one stays, and the old one goes as soon as nobody uses it. `s-` holds
something that nobody listed: only `restore` and `empty` touch it.
"""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from cachewarden.evict.naming import MOVED, PURGED, STRAY, PieceName, parse
from cachewarden.evict.purge import Purge
from cachewarden.evict.rounds import Survey
from cachewarden.evict.staying import StaysError
from cachewarden.evict.traces import Traces
from cachewarden.evict.trash import Piece, Trash
from cachewarden.kernel import leases
from cachewarden.paths import show
from cachewarden.sums import Sums
from cachewarden.tree import open_beneath, split_path


class Fate(StrEnum):
    """What became of one thing in the trash, or what it waits for."""

    PUT_BACK = "put back"
    FINISHED = "removed"
    IN_USE = "kept in the trash: its place was taken, and somebody still uses it"
    STRAY = "kept in the trash: something in it was never listed"
    FAILED = "kept in the trash: an error"


@dataclass(frozen=True, slots=True)
class Recovered:
    """One piece: where it belongs (relative to the location; None: not known), its fate, what was freed."""

    origin: bytes | None
    fate: Fate
    freed_bytes: int = 0
    errno: int = 0

    @property
    def sentence(self) -> str:
        """For people."""
        where = "something of unknown origin" if self.origin is None else show(self.origin)
        error = f" ({errno.errorcode.get(self.errno, self.errno)})" if self.errno else ""
        return f"{where}: {self.fate}{error}"


@dataclass(frozen=True, slots=True)
class TrashItem:
    """One piece in the trash, for people. `state`: "moved", "purged" or "stray"; bytes are allocated."""

    path: bytes
    origin: bytes | None
    state: str
    bytes: int
    files: int


@dataclass(slots=True, eq=False)
class _Found:
    """A piece that was found, not moved by us. `home_fd` is -1 where its directory is gone."""

    piece: Piece
    name: PieceName
    place: bytes


def recover(
    trash: Trash, directories: Iterable[bytes] = (b"",), *, lease_trusted: bool = True
) -> list[Recovered]:
    """Put back and finish what an earlier process left. Call it with the location's lock, before scanning.

    `directories` (relative to the location) are searched for the names of the full-disk form: those
    that entries lie in. Where leases are not to be trusted, nothing is removed for being unused.
    """

    def fate(found: _Found, purged: bool) -> Recovered:
        if found.name.state == STRAY:
            return Recovered(_origin(found), Fate.STRAY)
        if purged or found.name.state == PURGED:
            return _finish(trash, found)
        return _put_back(trash, found) or _finish_if_unused(trash, found, lease_trusted)

    return _each(trash, directories, fate)


def restore(trash: Trash, directories: Iterable[bytes] = (b"",)) -> list[Recovered]:
    """Put back whatever is whole or stray and whose place is free; nothing is removed."""

    def fate(found: _Found, purged: bool) -> Recovered:
        if purged or found.name.state == PURGED:
            return Recovered(_origin(found), Fate.FAILED, errno=errno.EBUSY)
        return _put_back(trash, found) or Recovered(_origin(found), Fate.FAILED, errno=errno.EEXIST)

    return _each(trash, directories, fate)


def empty(
    trash: Trash, directories: Iterable[bytes] = (b"",), *, lease_trusted: bool = True
) -> list[Recovered]:
    """Remove everything of this location from the trash that nobody uses."""
    return _each(trash, directories, lambda found, _: _finish_if_unused(trash, found, lease_trusted))


def items(trash: Trash, directories: Iterable[bytes] = (b"",)) -> list[TrashItem]:
    """What is in the trash of this location. Unreadable parts count nothing."""
    states = {MOVED: "moved", PURGED: "purged", STRAY: "stray"}
    found = []
    for group in _groups(trash, directories):
        for each in group:
            sums = _measure(each.piece)
            path = os.path.join(each.place, each.name.encode())
            found.append(TrashItem(path, _origin(each), states[each.name.state], sums.bytes, sums.files))
            _close(each)
    return found


def _each(
    trash: Trash, directories: Iterable[bytes], fate: Callable[[_Found, bool], Recovered]
) -> list[Recovered]:
    leases.ignore_sigio()
    done: list[Recovered] = []
    for group in _groups(trash, directories):
        # The witness (index 0) speaks for all; it comes back last and is unlinked last. Beside the entries
        # a name's id is unique in one process only: where two share one, the other's word does not count.
        letters = {each.name.state for each in group if each.name.index == 0}
        purged = letters == {PURGED}
        failed = False
        for each in group:
            if failed and purged and each.name.index == 0:
                outcome = Recovered(_origin(each), Fate.FAILED)  # again next time, with the others
            else:
                try:
                    outcome = fate(each, purged)
                except OSError as error:
                    outcome = Recovered(_origin(each), Fate.FAILED, errno=error.errno or errno.EIO)
            failed |= outcome.fate is Fate.FAILED
            done.append(outcome)
            _close(each)
    return done


def _groups(trash: Trash, directories: Iterable[bytes]) -> list[list[_Found]]:
    trash.forget_orphans()
    groups: dict[bytes, list[_Found]] = {}
    for each in (*_in_trash(trash), *_beside(trash, directories)):
        groups.setdefault(each.name.id, []).append(each)
    return [sorted(group, key=lambda each: -each.name.index) for group in groups.values()]


def _in_trash(trash: Trash) -> Iterator[_Found]:
    for place, name, raw in trash.pieces():
        origin = trash.origin(place, name)
        home, home_name = _home(trash.root_fd, origin)
        assert place.fd is not None
        # `full` knows the origin also where the name had no room for it, so that it encodes to `raw`.
        full = PieceName(name.state, name.location, name.id, name.index, origin)
        if full.encode() == raw:
            yield _Found(Piece(home, home_name, origin or b"", full, place.fd), name, place.path)
        elif home >= 0:
            os.close(home)


def _beside(trash: Trash, directories: Iterable[bytes]) -> Iterator[_Found]:
    for directory in directories:
        with suppress(OSError):
            fd = open_beneath(trash.root_fd, directory)
            names = [(raw, parse(raw)) for raw in map(os.fsencode, os.listdir(fd))]
            for raw, name in names:
                if name is not None and name.beside and name.encode() == raw:
                    # Without a name of its own it has no home: -1, but its directory stays open as `fd`.
                    home = os.dup(fd) if name.origin is not None else -1
                    origin = os.path.join(directory, name.origin) if name.origin is not None else b""
                    piece = Piece(home, name.origin or b"", origin, name, os.dup(fd))
                    yield _Found(piece, name, directory)
            os.close(fd)


def _home(root_fd: int, origin: bytes | None) -> tuple[int, bytes]:
    """The open directory that a piece belongs into, and its name there; (-1, ...) where there is none.

    The origin comes from a name that, in a user's trash, the user may have written.
    """
    if origin is None:
        return -1, b""
    parent, name = split_path(origin)
    if name in (b"", b".", b".."):
        return -1, b""
    try:
        return open_beneath(root_fd, parent), name
    except OSError:
        return -1, name


def _close(found: _Found) -> None:
    if found.piece.home_fd >= 0:
        os.close(found.piece.home_fd)
    if found.name.beside:
        os.close(found.piece.fd)


def _origin(found: _Found) -> bytes | None:
    return found.piece.origin or None


def _put_back(trash: Trash, found: _Found) -> Recovered | None:
    if found.piece.home_fd < 0 or not trash.put_back(found.piece):
        return None
    return Recovered(_origin(found), Fate.PUT_BACK)


def _finish_if_unused(trash: Trash, found: _Found, lease_trusted: bool) -> Recovered:
    try:
        if not lease_trusted:
            return Recovered(_origin(found), Fate.IN_USE)
        Survey(trash.traces).add(*found.piece.here)
    except StaysError:
        return Recovered(_origin(found), Fate.IN_USE)
    if found.name.state != PURGED:
        trash.rename(found.piece, PURGED)  # a second crash must not bring back half of it
    return _finish(trash, found)


def _finish(trash: Trash, found: _Found) -> Recovered:
    purge = Purge(trash.traces)
    purge.unlisted(trash, found.piece)
    if purge.error is not None:
        return Recovered(_origin(found), Fate.FAILED, purge.freed.bytes, purge.error[0])
    return Recovered(_origin(found), Fate.FINISHED, purge.freed.bytes)


def _measure(piece: Piece) -> Sums:
    survey = Survey(Traces(), take_leases=False)
    with suppress(OSError, StaysError):
        survey.add(*piece.here)
    return survey.sums
