"""Write leases: the kernel's own answer to "does anybody have this file open or mapped?".

fcntl(2) F_SETLEASE, Linux 2.4. A write lease on a read-only descriptor is granted only if no other
open file description of the inode exists (i_readcount and i_writecount, `check_conflicting_open` in
fs/locks.c): descriptors anywhere, mappings, executables. It needs ownership of the file or CAP_LEASE.
While it is held, an open(2) by others blocks until it is given back, at most
/proc/sys/fs/lease-break-time (45 s), and with O_NONBLOCK it fails with EWOULDBLOCK.
"""

import errno
import fcntl
import signal
from collections.abc import Iterable

_AT_THE_DOOR = errno.EAGAIN  # held, or being opened, by somebody else
WRITE = fcntl.F_WRLCK
_SET, _GET, _NONE = fcntl.F_SETLEASE, fcntl.F_GETLEASE, fcntl.F_UNLCK


def ignore_sigio() -> None:
    """Ignore the signal that a breaking lease sends; its default action ends the process.

    Must be called from the main thread, before the first lease; ValueError otherwise (signal(2) is per
    process, Python only sets it there). Already ignored: nothing is done, from any thread.
    """
    if signal.getsignal(signal.SIGIO) is not signal.SIG_IGN:
        signal.signal(signal.SIGIO, signal.SIG_IGN)


def take(fd: int) -> int:
    """Take a write lease on an open regular file. 0, or the errno: EAGAIN means in use.

    Any other errno (EACCES: neither owner nor CAP_LEASE; EINVAL, ENOLCK: the filesystem has none)
    means that nothing is known.
    """
    try:
        fcntl.fcntl(fd, _SET, WRITE)
    except OSError as error:
        return error.errno or errno.EIO
    return 0


def nobody_waits(fd: int) -> bool:
    """Whether a lease that was taken is whole: no open has begun to break it."""
    return fcntl.fcntl(fd, _GET) == WRITE


def unbroken(fd: int) -> bool:
    """Whether a lease that was taken is whole, and nobody is about to break it.

    F_GETLEASE tells once a break has begun, also when its opener has given up (O_NONBLOCK). Asking for the
    lease again also sees an opener that is already counted and has not come to the lease yet
    (do_dentry_open counts before it breaks).
    """
    return fcntl.fcntl(fd, _GET) == WRITE and take(fd) == 0


def first_broken(fds: Iterable[int]) -> int | None:
    """The first of many leased descriptors that is not `unbroken`, or None."""
    ask, broken = fcntl.fcntl, None
    try:
        for fd in fds:  # the body of `unbroken`, without two calls for every file that ever goes
            broken = fd
            if ask(fd, _GET) != WRITE:
                return fd
            ask(fd, _SET, WRITE)
    except OSError:
        return broken
    return None


def give_back(fd: int) -> None:
    """Release a lease. None held (it was broken by time-out) is no error."""
    try:
        fcntl.fcntl(fd, _SET, _NONE)
    except OSError as error:
        if error.errno != _AT_THE_DOOR:
            raise
