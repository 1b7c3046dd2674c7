"""Whose homes there are: from the account file and from the disk, and not from a directory on the network.

Asking the name service for all accounts may take minutes where it has thousands, or for ever where
its server is down. Homes of accounts that only such a server knows are found beside the others.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from cachewarden.discover.reach import Ways
from cachewarden.tree import open_directory

PASSWD = b"/etc/passwd"
_FIRST_PERSON = 1000  # login.defs(5), UID_MIN: below are services
_MOST = 10_000  # names in one directory; more are cut off, and that is said


@dataclass(frozen=True, slots=True)
class Home:
    """A home directory, by its path without links, and the user that it belongs to."""

    path: bytes
    uid: int


def homes(ways: Ways, passwd: bytes = PASSWD) -> list[Home]:
    """All homes that exist and belong to their user, by path. Raises OSError without an account file."""
    found: dict[bytes, Home] = {}
    around = {b"/home"}
    for uid, path in accounts(passwd):
        real = ways.directory(path)
        if real is None or real == b"/" or not is_owned(real, uid):
            continue
        found[real] = Home(real, uid)
        if uid >= _FIRST_PERSON:
            around.add(os.path.dirname(real))
    for directory in sorted(around):
        for path, status in directories(ways, directory):
            if status.st_uid >= _FIRST_PERSON:
                found.setdefault(path, Home(path, status.st_uid))
    return [found[path] for path in sorted(found)]


def accounts(passwd: bytes = PASSWD) -> Iterator[tuple[int, bytes]]:
    """(uid, home) of each line of an account file, passwd(5). Raises OSError."""
    with open(passwd, "rb") as lines:
        for line in lines:
            fields = line.rstrip(b"\n").split(b":")
            if len(fields) >= 6 and fields[2].isdigit() and fields[5].startswith(b"/"):
                yield int(fields[2]), os.path.normpath(fields[5])


def is_owned(path: bytes, uid: int) -> bool:
    """Whether something is there and belongs to a user."""
    try:
        return os.lstat(path).st_uid == uid
    except OSError:
        return False


def directories(ways: Ways, at: bytes) -> Iterator[tuple[bytes, os.stat_result]]:
    """The directories in one, with their status; links are none. Nothing where it may not be looked at."""
    real = ways.directory(at)
    if real is None:
        return
    try:
        fd = open_directory(real)
        try:
            names = sorted(os.fsencode(name) for name in os.listdir(fd))
        finally:
            os.close(fd)
    except OSError as error:
        ways.note(real, f"cannot be listed: {os.strerror(error.errno or 0)}")
        return
    if len(names) > _MOST:
        ways.note(real, f"has {len(names)} names; only the first {_MOST} were looked at")
    for name in names[:_MOST]:
        path = os.path.join(real, name)
        if not ways.may_look(path):
            continue
        with suppress(OSError):
            status = os.lstat(path)
            if stat.S_ISDIR(status.st_mode):
                yield path, status
