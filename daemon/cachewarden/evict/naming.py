"""Names in the trash: they alone say what a thing is, where it belongs and whether it comes back.

    m-<location>-<id>-<n>-<origin>    moved; comes back unless the eviction goes on
    p-<location>-<id>-<n>-<origin>    past the point of no return; will be unlinked
    s-<location>-<id>-<n>-<origin>    holds something that nobody listed; only people touch it
    o-<location>-<id>-<n>             a link whose text is the origin of a name too long to hold it

`<location>` is a hash of the location's path, because several locations share the trash at the top of
their mount. Pieces with the same id are one entry; piece 0 is its witness. The witness is moved
first, put back last and unlinked last, so that *its* letter speaks for all pieces: renaming it from m
to p is one system call, and the point of no return for the whole entry.

On a full disk there may be no room for the trash. A piece then gets a name in its own directory:

    .cw-m<id>.<n>-<name>              the same; `.cw-p…`, `.cw-s…` likewise
    .cw-m<id>.<n>                     where even that does not fit: the shorter name fits a gap. Where it
                                      belongs is lost with the process: it is kept until nobody uses it
"""

import hashlib
import re
from dataclasses import dataclass

TRASH_NAME = b".cachewarden-trash"
NAME_MAX = 255

MOVED, PURGED, STRAY = b"m", b"p", b"s"

_TRASH = re.compile(rb"([mps])-([0-9a-f]{12})-([0-9a-f]+)-(\d+)(?:-(.+))?", re.DOTALL)
_BESIDE = re.compile(rb"\.cw-([mps])([0-9a-f]+)\.(\d+)(?:-(.+))?", re.DOTALL)
_ESCAPED = re.compile(rb"%(2f|25)")


@dataclass(frozen=True, slots=True)
class PieceName:
    """A parsed name. `origin` is relative to the location (in the trash) or the bare name (beside);
    None where the name does not hold it. `location` is empty beside."""

    state: bytes
    location: bytes
    id: bytes
    index: int
    origin: bytes | None

    @property
    def beside(self) -> bool:
        """Whether this is a name in the entry's own directory, not in the trash."""
        return not self.location

    def encode(self) -> bytes:
        """The name on the disk; without the origin where that would be too long."""
        if self.beside:
            stem = b".cw-%b%b.%d" % (self.state, self.id, self.index)
            name = stem if self.origin is None else stem + b"-" + self.origin
        else:
            stem = b"%b-%b-%b-%d" % (self.state, self.location, self.id, self.index)
            name = stem if self.origin is None else stem + b"-" + escape(self.origin)
        return name if len(name) <= NAME_MAX else stem

    def origin_link(self) -> bytes:
        """The name of the link that holds the origin of a piece with a long one."""
        return b"o-%b-%b-%d" % (self.location, self.id, self.index)

    @property
    def holds_origin(self) -> bool:
        """Whether `encode` has room for the origin."""
        return self.origin is not None and parse(self.encode()) == self


def escape(path: bytes) -> bytes:
    """A relative path as one name; only `/` and `%` change, so that people can read it."""
    return path.replace(b"%", b"%25").replace(b"/", b"%2f")


def unescape(name: bytes) -> bytes:
    """The path that `escape` was given."""
    return _ESCAPED.sub(lambda match: b"/" if match[1] == b"2f" else b"%", name)


def parse(name: bytes) -> PieceName | None:
    """What a name says, or None when it is not one of ours."""
    if match := _TRASH.fullmatch(name):
        origin = None if match[5] is None else unescape(match[5])
        return PieceName(match[1], match[2], match[3], int(match[4]), origin)
    if match := _BESIDE.fullmatch(name):
        return PieceName(match[1], b"", match[2], int(match[3]), match[4])
    return None


def location_id(path: bytes) -> bytes:
    """The twelve letters that stand for a location: a hash of its path.

    Not of its inode: when the directory was made anew meanwhile, its entries still belong at this path.
    """
    return hashlib.blake2b(path, digest_size=6).hexdigest().encode()
