"""Locks of the tools that own a cache: three kinds, all through the lock file's own descriptor.

A lock file is opened only where it exists, read-only, and never truncated or unlinked: a second one
beside it would let two holders in. Its presence means nothing, except for the third kind:

- flock(2): filelock's FileLock, Hugging Face, datasets, uv. Also on directories.
- record locks, fcntl(2): MIOpen. Asked for and held as open file description locks (Linux 3.15), which
  unlike the old ones do not vanish when anything else of this process closes the file.
- soft locks: the text names pid and host. The pid lives here: held. It does not: free. Another host (or
  anything unreadable): held until the file is older than `soft_lock_age`. Empty: one of the other two.
"""

import fcntl
import os
import socket
import struct
from contextlib import suppress

_FLOCK = struct.Struct("hhqqi4x")  # struct flock: l_type, l_whence, l_start, l_len, l_pid (0 for OFD)
_WHOLE = (os.SEEK_SET, 0, 0, 0)
_TEXT_MAX = 4096


def lock(fd: int) -> bool:
    """Take both kinds of kernel lock on an open file or directory, without waiting; False: held."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return _record_lock(fd)
    except OSError:  # EWOULDBLOCK, and ENOLCK or EOPNOTSUPP: then nobody can say, which counts as held
        return False


def unlock(fd: int) -> None:
    """Give back both, before closing: a child that has not executed anything yet shares the description."""
    with suppress(OSError):
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_UNLCK, *_WHOLE))
    with suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_UN)


def lockers(fd: int) -> set[int]:
    """The real users of the processes that hold kernel locks on an open file, as far as that is known.

    From /proc/locks (proc_locks(5)), by inode alone: on btrfs the device there is not stat's. A lock's
    process is the one that took it; of one that has ended or took an open file description lock, nobody
    can say whose it is. Not by the owner of /proc/PID: a process can make that root.
    """
    inode = b":%d" % os.fstat(fd).st_ino
    with open("/proc/locks", "rb") as table:
        fields = [line.split() for line in table]
    pids = {line[4] for line in fields if len(line) > 5 and line[1] != b"->" and line[5].endswith(inode)}
    found = set()
    for pid in pids - {b"-1", b"0", b"%d" % os.getpid()}:
        with suppress(OSError), open(b"/proc/%b/status" % pid, "rb") as status:
            found |= {int(line.split()[1]) for line in status if line.startswith(b"Uid:")}
    return found


def _record_lock(fd: int) -> bool:
    # An exclusive record lock needs a descriptor for writing. So ask whether one would be granted, and
    # hold a shared one, which keeps out everybody who wants to write.
    asked = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, _FLOCK.pack(fcntl.F_WRLCK, *_WHOLE))
    if _FLOCK.unpack(asked)[0] != fcntl.F_UNLCK:
        return False
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_RDLCK, *_WHOLE))
    return True


class SoftLocks:
    """Judges soft locks at one moment: `now_ns` is the wall clock, `host` this machine's name."""

    def __init__(self, now_ns: int, host: str | None = None) -> None:
        self._now_ns = now_ns
        self._host = (host or socket.gethostname()).encode()

    def held(self, fd: int, soft_lock_age: int) -> bool:
        """Whether the text in an open lock file says that somebody holds it. Reads, never writes."""
        try:
            text = os.pread(fd, _TEXT_MAX, 0)
            if not text:
                return False
            young = self._now_ns - os.fstat(fd).st_mtime_ns < soft_lock_age
        except OSError:
            return True
        lines = text.split(b"\n")
        if len(lines) < 2 or not lines[0].strip().isdigit() or lines[1].strip() != self._host:
            return young
        return _lives(int(lines[0]))


def _lives(pid: int) -> bool:
    """Whether a process has this number, here or in a pid namespace below ours.

    A container may share the host's name: then its pid is only found as the last of NSpid
    (proc_pid_status(5), Linux 4.1).
    """
    try:
        os.kill(pid, 0)
        return True
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        pass
    wanted = str(pid).encode()
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/status", "rb") as status:
                numbers = next((line for line in status if line.startswith(b"NSpid:")), b"")
                if wanted in numbers.split()[1:]:
                    return True
    return False
