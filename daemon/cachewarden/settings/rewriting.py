"""Putting edited files in the place of those that people wrote: all of them, or none."""

import errno
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import BinaryIO

from cachewarden.errors import ConfigurationError
from cachewarden.ledger.files import sync_directory
from cachewarden.paths import show
from cachewarden.settings.switching import Edit

_ACL = "system.posix_acl_access"  # acl(5); a new file may inherit one from its directory
_LABELS = "security."  # xattr(7): the kernel gives them to new files, and may refuse to be told which


def rewrite(edits: Sequence[Edit]) -> None:
    """Put what the files are to say in place, through links; owner, mode and attributes stay.

    Killed at any moment, each file says what it said or what it is to say. Raises ConfigurationError: a file
    was changed meanwhile, or the system refuses something; then all are as they were, and that is said.
    """
    with ExitStack() as opened:
        _replace(edits, opened)


def _replace(edits: Sequence[Edit], opened: ExitStack) -> None:
    ready: list[tuple[Edit, bytes, bytes]] = []
    placed: list[Edit] = []
    try:
        for edit in edits:
            with _named(edit.file):
                directory, name = os.path.split(os.path.realpath(edit.file))
                target = os.path.join(opened.enter_context(_held(directory)), name)
                ready.append((edit, target, _beside(target, edit)))
        for edit, target, new in ready:
            with _named(edit.file):
                os.rename(new, target)
                placed.append(edit)
                sync_directory(os.path.dirname(target))
    except ConfigurationError as error:
        rewrite([Edit(each.file, each.after, each.before) for each in placed])
        raise ConfigurationError([*error.problems, "nothing was changed"]) from error
    finally:
        for *_, new in ready[len(placed) :]:
            with suppress(OSError):
                os.unlink(new)


@contextmanager
def _held(directory: bytes) -> Iterator[bytes]:
    """A path to the directory that stays its path. Raises OSError.

    The directory may be a user's, and we root: swapped for a link to another one between two steps, it would
    have us put what he wrote, and as his, in the place of a file of the same name there.
    """
    fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield b"/proc/self/fd/%d" % fd
    finally:
        os.close(fd)


@contextmanager
def _named(file: bytes) -> Iterator[None]:
    """Errors of the system name the file that people know, and not the one beside it."""
    try:
        yield
    except OSError as error:
        raise ConfigurationError([f"{show(file)}: cannot be changed: {error.strerror}"]) from error


def _beside(target: bytes, edit: Edit) -> bytes:
    """A new file on the disk, with the new content, which can take the place of `target`; its path.

    Its name begins with a dot: no drop-in, should a kill leave it behind. Raises ConfigurationError, OSError.
    """
    # Without waiting: a pipe may have come in its place.
    with open(os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as old:
        if not stat.S_ISREG(os.fstat(old.fileno()).st_mode) or old.read() != edit.before:
            raise ConfigurationError([f"{show(edit.file)}: was changed meanwhile; start again"])
        links = os.fstat(old.fileno()).st_nlink
        if links > 1:
            raise ConfigurationError(
                [f"{show(edit.file)}: has {links} names (hard links), which would part: edit it by hand"]
            )
        directory, name = os.path.split(target)
        fd, new = tempfile.mkstemp(prefix=b"." + name[:200] + b".", dir=directory)  # mode 0600
        try:
            with open(fd, "wb") as file:
                file.write(edit.after)
                file.flush()
                _make_alike(file, old)
                os.fsync(fd)
        except OSError:
            with suppress(OSError):
                os.unlink(new)
            raise
    return new


def _make_alike(new: BinaryIO, old: BinaryIO) -> None:
    """Give a new file the owner, the extended attributes (ACLs among them) and the mode of the old one."""
    mine, wanted = os.fstat(new.fileno()), os.fstat(old.fileno())
    if (mine.st_uid, mine.st_gid) != (wanted.st_uid, wanted.st_gid):
        os.fchown(new.fileno(), wanted.st_uid, wanted.st_gid)
    names = _attributes(old)
    if _ACL in _attributes(new) and _ACL not in names:
        os.removexattr(new.fileno(), _ACL)
    for name in names:
        try:
            os.setxattr(new.fileno(), name, os.getxattr(old.fileno(), name))
        except PermissionError:
            if not name.startswith(_LABELS):
                raise
    os.fchmod(new.fileno(), stat.S_IMODE(wanted.st_mode))  # last: it bounds what an ACL allows


def _attributes(file: BinaryIO) -> list[str]:
    try:
        return os.listxattr(file.fileno())
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            return []
        raise
