"""Who is at the other end of a unix socket, as the kernel says: unix(7), SO_PEERCRED and SO_PEERGROUPS."""

import errno
import os
import socket
import struct
from dataclasses import dataclass
from typing import Protocol

_CREDENTIALS = struct.Struct("=iII")  # struct ucred: pid, uid, gid
_SO_PEERGROUPS = 59  # asm-generic/socket.h, Linux 4.13; no architecture that we run on has another number
_LARGEST = 1024  # bytes that Python hands to getsockopt(2): 256 groups


class Socket(Protocol):
    """A socket, or what asyncio hands out for one."""

    def getsockopt(self, level: int, option: int, buflen: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Peer:
    """The process that connected, with the rights that it had then. `pid` is for the log: pids return."""

    pid: int
    uid: int
    gid: int
    groups: tuple[int, ...] = ()

    @property
    def privileged(self) -> bool:
        """Whether it is root, or the user as whom the service runs: they may do everything by other ways."""
        return self.uid in (0, os.geteuid())


def peer_of(connected: Socket) -> Peer:
    """The peer of a connected unix socket. Raises OSError."""
    found = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, gid = _CREDENTIALS.unpack(found)
    try:
        groups = connected.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _LARGEST)
    except OSError as error:
        if error.errno not in (errno.ERANGE, errno.ENOPROTOOPT):
            raise
        groups = b""  # more of them, or an old kernel: fewer groups are fewer rights
    return Peer(pid, uid, gid, struct.unpack(f"={len(groups) // 4}I", groups))
