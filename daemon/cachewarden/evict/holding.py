"""A victim in our hands: every directory and regular file of it open, and listed once.

Nothing is opened again until the eviction has ended: from the first lease to the last, an open could
wait for a scanner that itself waits for our lease. So verifying after the rename reads through the
descriptors that are open since before it.
"""

import errno
import os
import re
import stat
from dataclasses import dataclass, field

from cachewarden.evict.locks import unlock
from cachewarden.evict.staying import StaysError, TooManyError, stays_because
from cachewarden.evict.victim import Inode
from cachewarden.kernel import leases
from cachewarden.kernel.openat2 import open_on_mount
from cachewarden_policies.reasons import KeepReason

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_QUIET = _FILE | os.O_NOATIME
# What an NFS client renames a file to that is removed while somebody still has it open.
_SILLY_RENAME = re.compile(r"\.nfs[0-9a-f]{8,}")


@dataclass(slots=True, eq=False)
class HeldFile:
    """One regular file's inode, opened once per batch, whatever its names and victims.

    `users` are the victims that still need it; with the last of them, lease and descriptor go.
    """

    fd: int
    found: os.stat_result
    users: int = 0
    leased: bool = False
    refused: KeepReason | None = None

    @property
    def inode(self) -> Inode:
        """(device, inode)."""
        return self.found.st_dev, self.found.st_ino


@dataclass(slots=True, eq=False)
class HeldDirectory:
    """One directory, open, with all its names."""

    fd: int
    found: os.stat_result
    files: dict[str, HeldFile] = field(default_factory=dict)
    links: dict[str, os.stat_result] = field(default_factory=dict)
    directories: dict[str, "HeldDirectory"] = field(default_factory=dict)

    def names(self) -> set[str]:
        """All names in it."""
        return self.files.keys() | self.links.keys() | self.directories.keys()


Node = HeldFile | HeldDirectory | os.stat_result  # the last: a symbolic link, which nobody can hold


def stat_of(node: Node) -> os.stat_result:
    """How a node looked when it was opened."""
    return node if isinstance(node, os.stat_result) else node.found


class Hands:
    """Opens nodes for a batch of victims. `room` is how many descriptors may be open at once."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.files: dict[Inode, HeldFile] = {}

    def descriptors(self) -> dict[Inode, int]:
        """The open regular files by inode."""
        return {inode: file.fd for inode, file in self.files.items()}

    def spend(self) -> None:
        """Count one more descriptor. Raises TooManyError."""
        self.room -= 1
        if self.room < 0:
            raise TooManyError


@dataclass(slots=True, eq=False)
class Holding:
    """All that one victim made us open; `nodes` in the order in which they were opened."""

    hands: Hands
    nodes: list[Node] = field(default_factory=list)
    directories: list[HeldDirectory] = field(default_factory=list)
    files: dict[HeldFile, None] = field(default_factory=dict)  # each once, in order: a dict as a set
    links: list[os.stat_result] = field(default_factory=list)

    def open(self, name: bytes, dir_fd: int) -> Node:
        """Open everything at and below `name`. Raises StaysError, TooManyError; OSError for `name` itself."""
        try:
            node = self._open(os.fsdecode(name), dir_fd)
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise TooManyError from error
            raise
        self.nodes.append(node)
        todo = [node] if isinstance(node, HeldDirectory) else []
        while todo:
            try:
                todo += self._list(todo.pop())
            except OSError as error:
                raise _cannot(error) from error
        return node

    def _open(self, name: str, dir_fd: int) -> Node:
        mode = os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            return self._open_directory(name, dir_fd)
        if stat.S_ISREG(mode):
            return self._open_file(name, dir_fd)
        if stat.S_ISLNK(mode):
            return self._look_at_link(name, dir_fd)
        # A socket, FIFO or device: no lease says whether somebody uses it, and opening it has effects.
        raise StaysError(KeepReason.UNKNOWN)

    def _list(self, directory: HeldDirectory) -> list[HeldDirectory]:
        fd = directory.fd
        with os.scandir(fd) as children:
            for child in children:
                name = child.name
                if child.is_file(follow_symlinks=False):
                    directory.files[name] = self._open_file(name, fd)
                elif child.is_dir(follow_symlinks=False):
                    below = self._open_directory(name, fd)
                    if below.found.st_dev != directory.found.st_dev:  # a btrfs subvolume
                        raise StaysError(KeepReason.MOUNTPOINT)
                    directory.directories[name] = below
                elif child.is_symlink():
                    directory.links[name] = self._look_at_link(name, fd)
                else:
                    raise StaysError(KeepReason.UNKNOWN)
        return list(directory.directories.values())

    def _open_directory(self, name: str, dir_fd: int) -> HeldDirectory:
        self.hands.spend()
        fd = open_on_mount(os.fsencode(name), dir_fd)
        directory = HeldDirectory(fd, os.fstat(fd))
        self.directories.append(directory)
        return directory

    def _look_at_link(self, name: str, dir_fd: int) -> os.stat_result:
        found = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
        if not stat.S_ISLNK(found.st_mode):
            raise StaysError(KeepReason.CHANGED)
        self.links.append(found)
        return found

    def _open_file(self, name: str, dir_fd: int) -> HeldFile:
        if _SILLY_RENAME.fullmatch(name):
            raise StaysError(KeepReason.IN_USE)
        self.hands.spend()
        try:  # open_quietly, without its two conversions: this is called for every file that ever goes
            fd = os.open(name, _QUIET, dir_fd=dir_fd)
        except PermissionError:
            fd = os.open(name, _FILE, dir_fd=dir_fd)
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            os.close(fd)
            raise StaysError(KeepReason.CHANGED)
        inode = (found.st_dev, found.st_ino)
        known = self.hands.files.get(inode)
        if known is None:
            known = self.hands.files[inode] = HeldFile(fd, found)
        else:  # another name of an inode that is open already: two descriptors would break our own lease
            os.close(fd)
            self.hands.room += 1
        if known not in self.files:
            known.users += 1
            self.files[known] = None
        return known

    def inodes(self) -> set[Inode]:
        """Everything in which a process can stand: directories, and files for executables."""
        held = [each.found for each in self.directories] + [each.found for each in self.files]
        return {(found.st_dev, found.st_ino) for found in held}

    def release_files(self) -> None:
        """Give back leases and descriptors of the files that no other victim needs."""
        known = self.hands.files
        for file in self.files:
            file.users -= 1
            if file.users > 0:
                continue
            if file.leased:
                leases.give_back(file.fd)
            os.close(file.fd)
            del known[file.inode]
            self.hands.room += 1
        self.files.clear()

    def release_directories(self) -> None:
        """Unlock and close the directories."""
        for directory in self.directories:
            unlock(directory.fd)
            os.close(directory.fd)
        self.hands.room += len(self.directories)
        self.directories.clear()


def _cannot(error: OSError) -> Exception:
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return TooManyError()
    return stays_because(error)
