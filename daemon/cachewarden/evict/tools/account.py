"""As whom a tool runs, and which executable that is.

The owner of a cache decides what runs over it, and with his rights alone: a tool started by root over a
directory that somebody else can write to would do with root's rights what that one likes.
"""

import errno
import os
import pwd
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cachewarden.errors import CachewardenError
from cachewarden.paths import show

# Where installers put these tools for one user: pip and uv, cargo, conda.
_OF_A_USER = (
    ".local/bin",
    ".cargo/bin",
    "bin",
    "miniforge3/bin",
    "miniconda3/bin",
    "anaconda3/bin",
)
_LINKS_MAX = 40  # as path_resolution(7)
SYSTEM = ("/usr/local/bin", "/usr/bin", "/bin", "/opt/conda/bin")


class RefusedError(CachewardenError):
    """The tool is not run; the text says why."""


@dataclass(frozen=True, slots=True)
class Account:
    """The user as whom a tool runs, with all his groups."""

    uid: int
    gid: int
    name: str
    home: str
    groups: tuple[int, ...]

    @property
    def path(self) -> tuple[str, ...]:
        """The directories in which the tool is looked for, in order."""
        return (*(os.path.join(self.home, each) for each in _OF_A_USER), *SYSTEM)


def owner_of(root_fd: int, path: bytes) -> int:
    """The user id of the one owner of the cache behind `root_fd`. Raises RefusedError.

    Root and every direct child have to belong to him, and where he is root, nobody else may write there or
    to any directory below.
    An ordinary user's service prunes nothing but his own.
    """
    found = os.fstat(root_fd)
    uid = found.st_uid
    if os.geteuid() not in (0, uid):
        raise RefusedError(f"{show(path)} belongs to another user")
    for each in (found, *_children(root_fd)):
        if each.st_uid != uid:
            raise RefusedError(f"{show(path)} has parts that belong to different users")
        if uid == 0 and not stat.S_ISLNK(each.st_mode) and each.st_mode & 0o022:
            raise RefusedError(f"{show(path)} belongs to root, and others can write to it")
    if uid == 0:
        _check_roots_own(root_fd, path)
    return uid


def _check_roots_own(root_fd: int, path: bytes) -> None:
    """Who can write to a directory far down could lead root's tool out of the cache by a link there."""
    for here, _, _, fd in os.fwalk(b".", dir_fd=root_fd, onerror=_refuse):
        found = os.fstat(fd)
        if found.st_uid != 0 or found.st_mode & 0o022:
            where = show(os.path.normpath(os.path.join(path, here)))
            raise RefusedError(f"{where} is in a cache of root, and others can write to it")


def _refuse(error: OSError) -> None:
    raise RefusedError(f"it cannot be looked through: {error.strerror}") from error


def _children(root_fd: int) -> Iterable[os.stat_result]:
    with os.scandir(root_fd) as children:
        return [child.stat(follow_symlinks=False) for child in children]


def account_of(uid: int) -> Account:
    """The account of a user id. Raises RefusedError for one without a name or a home."""
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        raise RefusedError(f"uid {uid} has no account on this machine") from None
    if not entry.pw_dir.startswith("/"):
        raise RefusedError(f"{entry.pw_name} has no home")
    groups = os.getgrouplist(entry.pw_name, entry.pw_gid)
    return Account(uid, entry.pw_gid, entry.pw_name, entry.pw_dir, tuple(groups))


def find_executable(names: Iterable[str], account: Account) -> str:
    """The path of the first executable of these names that this user may be made to run.

    It and all directories on the way to it belong to root or to him, and nobody else can write to them: what
    anybody else put there, or could put there before it runs, is passed over. Raises RefusedError when there
    is none.
    """
    names = tuple(names)
    for directory in account.path:
        for name in names:
            path = os.path.join(directory, name)
            try:
                found = os.stat(path)
                if stat.S_ISREG(found.st_mode) and _is_his(found, account) and _is_way(path, account):
                    return path
            except OSError:
                continue
    raise RefusedError(
        f"no {' or '.join(names)} that root or {account.name} owns in {':'.join(account.path)}"
    )


def check_way(root_fd: int, path: bytes, account: Account) -> None:
    """See that the path of a cache leads to its open root, and for as long as a tool goes by it.

    Who can write to a directory on the way could have the tool prune something else. Raises RefusedError.
    """
    try:
        if not _is_way(os.fsdecode(path), account):
            raise RefusedError(f"others than root and {account.name} can put something else at {show(path)}")
        if not os.path.samestat(os.stat(path), os.fstat(root_fd)):
            raise RefusedError(f"{show(path)} is another directory now")
    except OSError as error:
        raise RefusedError(f"{show(path)}: {error.strerror}") from error


def _is_way(path: str, account: Account) -> bool:
    """Whether nobody but root and him decides where a path leads. Raises OSError."""
    return all(_is_his(each, account) for each in _way(path))


def _way(path: str) -> Iterator[os.stat_result]:
    """All directories in which a name on the way is looked up, and the links there. Raises OSError."""
    here, names, links = "/", path.split("/")[::-1], 0
    while names:
        name = names.pop()
        if name == "..":
            here = os.path.dirname(here)
        elif name not in ("", "."):
            yield os.stat(here)
            there = os.path.join(here, name)
            found = os.lstat(there)
            if not stat.S_ISLNK(found.st_mode):
                here = there
                continue
            yield found
            links += 1
            if links > _LINKS_MAX:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            text = os.readlink(there)
            here = "/" if text.startswith("/") else here
            names += text.split("/")[::-1]


def _is_his(found: os.stat_result, account: Account) -> bool:
    """Whether nobody but root and him decides what is there. Directories have the bits for running, too."""
    if found.st_uid not in (0, account.uid) or not found.st_mode & 0o111:
        return False
    # Of a sticky directory others can write to, but rename and remove only what is theirs; of a link the
    # mode says nothing.
    if stat.S_ISLNK(found.st_mode) or (stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX):
        return True
    # A group of one's own is what many distributions give to each user.
    others = 0o022 if found.st_uid == 0 and account.uid == 0 else 0o002
    return not found.st_mode & others
