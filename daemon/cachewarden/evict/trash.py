"""The trash of one location: what is in it, and moving things there and back.

Nothing in here decides anything; see `evictor` for the order of events and `recovery` for what
becomes of things that a crash left.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from cachewarden.evict.naming import MOVED, STRAY, PieceName, location_id, parse
from cachewarden.evict.places import Place, places
from cachewarden.evict.traces import Traces
from cachewarden.kernel.rename import rename_back, rename_to_unique

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.ENAMETOOLONG, errno.EMLINK})
# Somebody took the place, or the directory that it was in is gone.
_TAKEN = frozenset({errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR, errno.ENOENT})


@dataclass(slots=True, eq=False)
class Piece:
    """One path of an entry while it is away: where it belongs and where it is.

    `home_fd` is the open directory that it belongs into, under `home_name`; `name` in `fd` is where it
    is now (None: at home).
    """

    home_fd: int
    home_name: bytes
    origin: bytes
    name: PieceName | None = None
    fd: int = -1

    @property
    def away(self) -> bool:
        """Whether it was moved and is not back."""
        return self.name is not None

    @property
    def here(self) -> tuple[int, bytes]:
        """The open directory that it is in now, and its name there."""
        return (self.home_fd, self.home_name) if self.name is None else (self.fd, self.name.encode())

    @property
    def beside(self) -> bool:
        """Whether it is in its own directory, under another name."""
        return self.name is not None and self.name.beside

    @property
    def stray(self) -> bool:
        """Whether it holds something that nobody listed."""
        return self.name is not None and self.name.state == STRAY


class Trash:
    """The trash of the location at `path`, whose open root is `root_fd` (both stay the caller's).

    Raises OSError when even the location itself cannot be looked at. Close it, or use it in `with`.
    """

    def __init__(self, root_fd: int, path: bytes) -> None:
        self.root_fd = root_fd
        self.location = location_id(path)
        self.places = places(root_fd)
        self.traces = Traces()
        for place in self.places:
            place.open_existing()
        self._next = 1 + max((int(name.id, 16) for _, name, _ in self.pieces()), default=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the trash where it is empty, and close its descriptors."""
        for place in self.places:
            place.remove_if_empty()
            place.close()

    def make(self) -> Place | None:
        """Make the trash ahead of the first move, while there still is room. None: nowhere possible."""
        return next((place for place in self.places if place.open_or_make()), None)

    def pieces(self) -> Iterator[tuple[Place, PieceName, bytes]]:
        """Everything of this location that is in the trash: place, what the name says, the name."""
        for place in self.places:
            for raw in list(_names(place)):
                name = parse(raw)
                if name is not None and name.location == self.location:
                    yield place, name, raw

    def origin(self, place: Place, name: PieceName) -> bytes | None:
        """Where a piece belongs: from its name, or from the link beside it. None: nobody knows."""
        if name.origin is not None or place.fd is None:
            return name.origin
        with suppress(OSError):
            return os.readlink(name.origin_link(), dir_fd=place.fd)
        return None

    def forget_orphans(self) -> None:
        """Remove links to origins of pieces that are not there: a crash came before the move."""
        here = {(place, name.origin_link()) for place, name, _ in self.pieces()}
        for place in self.places:
            for raw in _names(place):
                if raw.startswith(b"o-" + self.location + b"-") and (place, raw) not in here:
                    with suppress(OSError):
                        os.unlink(raw, dir_fd=place.fd)

    def new_id(self) -> bytes:
        """An id that no entry of this location in the trash has."""
        self._next += 1
        return b"%x" % (self._next - 1)

    def put_away(self, piece: Piece, id_: bytes, index: int) -> None:
        """Move a piece out of reach, as `m`. Raises OSError; the piece is at home then."""
        name = PieceName(MOVED, self.location, id_, index, piece.origin)
        for place in self.places:
            if not place.open_or_make() or place.fd is None:
                continue  # refused, or no room for the directory
            try:
                self._move(piece, name, place.fd)
                return
            except OSError as error:
                if error.errno == errno.EXDEV:  # another quota project: here it will never work
                    place.refused = error.errno
                elif error.errno not in _FULL:
                    raise
        self._put_beside(piece, PieceName(MOVED, b"", id_, index, piece.home_name))

    def _move(self, piece: Piece, name: PieceName, trash_fd: int) -> None:
        if not name.holds_origin:
            os.symlink(piece.origin, name.origin_link(), dir_fd=trash_fd)
        try:
            with self.traces.of_renaming(piece.home_fd):
                rename_to_unique(piece.home_name, piece.home_fd, name.encode(), trash_fd)
        except OSError:
            _forget_origin(name, trash_fd)
            raise
        piece.name, piece.fd = name, trash_fd

    def _put_beside(self, piece: Piece, name: PieceName) -> None:
        # Where the directory has no room for the longer name, the bare one fits into a gap.
        bare = PieceName(name.state, b"", name.id, name.index, None)
        for candidate in (name, bare) if name.holds_origin else (bare,):
            try:
                with self.traces.of_renaming(piece.home_fd):
                    rename_to_unique(piece.home_name, piece.home_fd, candidate.encode(), piece.home_fd)
                piece.name, piece.fd = candidate, piece.home_fd
                return
            except OSError as error:
                if error.errno not in _FULL or candidate is bare:
                    raise

    def put_back(self, piece: Piece) -> bool:
        """Move a piece home. False: somebody took its place, or its directory is gone; it stays away.

        Raises OSError for anything else.
        """
        if piece.name is None:
            return True
        try:
            with self.traces.of_renaming(piece.home_fd):
                rename_back(piece.name.encode(), piece.fd, piece.home_name, piece.home_fd)
        except OSError as error:
            if error.errno in _TAKEN:
                return False
            raise
        _forget_origin(piece.name, piece.fd)
        piece.name = None
        return True

    def rename(self, piece: Piece, state: bytes) -> None:
        """Give a piece that is away another letter. Raises OSError."""
        assert piece.name is not None
        there = PieceName(state, piece.name.location, piece.name.id, piece.name.index, piece.name.origin)
        rename_to_unique(piece.name.encode(), piece.fd, there.encode(), piece.fd)
        piece.name = there

    def forget(self, piece: Piece) -> None:
        """A piece was unlinked: remove what told its origin."""
        if piece.name is not None:
            _forget_origin(piece.name, piece.fd)
            piece.name = None


def _names(place: Place) -> list[bytes]:
    if place.fd is None:
        return []
    return [os.fsencode(name) for name in os.listdir(place.fd)]


def _forget_origin(name: PieceName, fd: int) -> None:
    if not name.beside and not name.holds_origin:
        with suppress(FileNotFoundError):
            os.unlink(name.origin_link(), dir_fd=fd)
