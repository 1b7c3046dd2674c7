"""Looking into a location by directory descriptor: no path component is ever followed.

Layouts read through this and nothing else. A tree is rooted at an open directory; every step is an
`openat` with O_NOFOLLOW, so that a component swapped for a link between two looks yields "not
there" and never a file outside (the race of CVE-2018-6954).
"""

import errno
import os
import stat
from collections.abc import Callable, Hashable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast

T = TypeVar("T")

# O_NOATIME needs ownership or CAP_FOWNER (open(2)); without it the open is tried again without.
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

# What "it is not there" looks like: missing, a component is no directory, a component is a link.
ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


def open_quietly(name: bytes, flags: int, dir_fd: int | None = None) -> int:
    """`open` with O_NOATIME where that is allowed. Raises OSError as open(2) does."""
    try:
        return os.open(name, flags | os.O_NOATIME, dir_fd=dir_fd)
    except PermissionError:
        return os.open(name, flags, dir_fd=dir_fd)


def open_directory(name: bytes, dir_fd: int | None = None) -> int:
    """A descriptor of a directory; its last component is not followed. Raises OSError."""
    return open_quietly(name, _DIRECTORY, dir_fd)


def open_beneath(root_fd: int, path: bytes) -> int:
    """A descriptor of the directory `path` below `root_fd`; no component is followed.

    `b""` duplicates the root. Raises OSError (ELOOP or ENOTDIR for a link on the way, EINVAL for
    `..`, which no inventory contains).
    """
    here = os.dup(root_fd)
    for part in path.split(b"/") if path else ():
        if part in (b"", b".", b".."):
            os.close(here)
            raise OSError(errno.EINVAL, "not a plain relative path", path)
        try:
            below = open_directory(part, here)
        finally:
            os.close(here)
        here = below
    return here


def split_path(path: bytes) -> tuple[bytes, bytes]:
    """Parent and last component of a relative path."""
    parent, _, name = path.rpartition(b"/")
    return parent, name


def _type_of(child: "os.DirEntry[str]") -> int:
    # Most children are files: one question instead of three for each of them.
    if child.is_file(follow_symlinks=False):
        return stat.S_IFREG
    if child.is_dir(follow_symlinks=False):
        return stat.S_IFDIR
    return stat.S_IFLNK if child.is_symlink() else 0


class Touched(Protocol):
    """Says what may be different from the last time."""

    def touches(self, path: bytes) -> bool:
        """Whether anything at or below a path may be."""

    def touches_names(self, path: bytes) -> bool:
        """Whether the names in the directory at a path may be."""


class Parts:
    """What was found out by looking at a directory and all that is below it, to be used again.

    `odd` counts what makes an answer unfit to be kept: a part that could not be read, a question for the
    time. What is not asked for any more is forgotten: the next tree gets `kept`.
    """

    def __init__(self, known: Mapping[Hashable, object], touched: Touched, odd: Callable[[], int]) -> None:
        self.kept: dict[Hashable, object] = {}
        self._known = known
        self._touched = touched
        self._odd = odd

    def of(self, what: Hashable, path: bytes, make: Callable[[], T]) -> T:
        """What `make` answers, or answered when nothing was different. `what` tells questions apart."""
        key = (what, path)
        if key in self._known and not self._touched.touches(path):
            answer = cast("T", self._known[key])
        else:
            before = self._odd()
            answer = make()
            if self._odd() != before:
                return answer
        self.kept[key] = answer
        return answer

    def recall(self, what: Hashable, path: bytes) -> object:
        """What was kept with the names in some directories, while they are the same; None: nothing was."""
        key = (what, path)
        known = self._known.get(key)
        if not isinstance(known, _Kept) or any(map(self._touched.touches_names, known.directories)):
            return None
        self.kept[key] = known
        return known.answer

    def keep(
        self, what: Hashable, path: bytes, answer: object, also: AbstractSet[bytes] = frozenset()
    ) -> None:
        """What is true of the directory `path` while the names in it, and in others, are the same."""
        self.kept[what, path] = _Kept(answer, also | {path})


@dataclass(frozen=True, slots=True)
class _Kept:
    answer: object
    directories: AbstractSet[bytes]


class Tree:
    """Read access to the directory behind `root_fd`, which stays the caller's.

    What is missing reads as nothing; what is there and cannot be read is remembered in
    `unreadable` as (path, errno), because silence would make it look empty. `aside` are the directories
    in which names of eviction's own were met, which layouts do not get to see. `parts` remembers answers
    from tree to tree.
    """

    def __init__(self, root_fd: int, parts: Parts | None = None) -> None:
        self.root_fd = root_fd
        self.parts = parts
        self.unreadable: list[tuple[bytes, int]] = []
        self.aside: set[bytes] = set()

    def part(self, what: Hashable, path: bytes, make: Callable[[], T]) -> T:
        """What `make` finds out by looking at `path` and below it, and nowhere else."""
        return make() if self.parts is None else self.parts.of(what, path, make)

    @contextmanager
    def _parent(self, path: bytes) -> Iterator[tuple[int, bytes]]:
        parent, name = split_path(path)
        fd = open_beneath(self.root_fd, parent)
        try:
            yield fd, name
        finally:
            os.close(fd)

    def children(self, path: bytes = b"") -> list[tuple[bytes, os.stat_result]]:
        """(name, lstat) of each child, sorted by name; empty when `path` is no directory."""
        try:
            fd = open_beneath(self.root_fd, path)
        except OSError as error:
            self._missed(path, error)
            return []
        try:
            found = []
            for name in sorted(os.fsencode(each) for each in os.listdir(fd)):
                with suppress(FileNotFoundError):
                    found.append((name, os.stat(name, dir_fd=fd, follow_symlinks=False)))
            return found
        except OSError as error:
            self._missed(path, error)
            return []
        finally:
            os.close(fd)

    def listing(self, path: bytes = b"") -> dict[bytes, int]:
        """File type (`S_IFMT` bits; 0 for special files) of each child by name, in the names' order.

        Far cheaper than `children` where names and types say enough: the type comes with the name
        (`d_type` of readdir(3)), and nothing is stat'ed where the filesystem knows it.
        """
        try:
            fd = open_beneath(self.root_fd, path)
        except OSError as error:
            self._missed(path, error)
            return {}
        try:
            with os.scandir(fd) as found:
                types = {os.fsencode(each.name): _type_of(each) for each in found}
            return dict(sorted(types.items()))
        except OSError as error:
            self._missed(path, error)
            return {}
        finally:
            os.close(fd)

    def stat(self, path: bytes) -> os.stat_result | None:
        """lstat of `path`, or None when it is not there."""
        try:
            if not path:
                return os.fstat(self.root_fd)
            with self._parent(path) as (fd, name):
                return os.stat(name, dir_fd=fd, follow_symlinks=False)
        except OSError as error:
            self._missed(path, error)
            return None

    def is_dir(self, path: bytes) -> bool:
        """Whether `path` is a directory (and not a link to one)."""
        found = self.stat(path)
        return found is not None and stat.S_ISDIR(found.st_mode)

    def is_file(self, path: bytes) -> bool:
        """Whether `path` is a regular file (and not a link to one)."""
        found = self.stat(path)
        return found is not None and stat.S_ISREG(found.st_mode)

    def readlink(self, path: bytes) -> bytes | None:
        """The link's target as it is written, or None when `path` is no link."""
        try:
            with self._parent(path) as (fd, name):
                return os.readlink(name, dir_fd=fd)
        except OSError as error:
            if error.errno != errno.EINVAL:  # EINVAL: there, but not a link
                self._missed(path, error)
            return None

    def read(self, path: bytes, limit: int = 1 << 20) -> bytes | None:
        """The first `limit` bytes of a regular file, or None. Leaves its access time alone."""
        try:
            with self._parent(path) as (dir_fd, name):
                # A FIFO must not be opened at all: opening one can wake its writer.
                if not stat.S_ISREG(os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode):
                    return None
                fd = open_quietly(name, _FILE, dir_fd)
            try:
                return os.read(fd, limit) if stat.S_ISREG(os.fstat(fd).st_mode) else None
            finally:
                os.close(fd)
        except OSError as error:
            self._missed(path, error)
            return None

    def _missed(self, path: bytes, error: OSError) -> None:
        if error.errno not in ABSENT:
            self.unreadable.append((path, error.errno or 0))
