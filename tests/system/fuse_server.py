"""A FUSE filesystem of two read-only entries, as a program: `fuse_server.py MOUNTPOINT [stopped|SECONDS]`.

It speaks the kernel's protocol itself (linux/fuse.h, 7.31), because then it can be stopped in any moment:
a stopped server is a mount that does not answer, and a continued one answers what was asked meanwhile. With
`stopped`, it stops before it has answered anything at all; with a number, it takes so long for each answer.
It prints a line when it is mounted.
"""

import ctypes
import errno
import os
import signal
import stat
import struct
import sys
import time
from collections.abc import Callable

LOOKUP, FORGET, GETATTR, OPEN, STATFS, RELEASE = 1, 2, 3, 14, 17, 18
INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT, BATCH_FORGET = 26, 27, 28, 29, 36, 42
UNANSWERED = {FORGET, INTERRUPT, BATCH_FORGET}
MIB = 1 << 20
OLD = 1_700_000_000

# By inode: the name, the parent's inode, and the size of a file; None for a directory.
TREE = {
    1: (b"", 1, None),
    2: (b"a", 1, None),
    3: (b"b", 1, None),
    4: (b"f", 2, MIB),
    5: (b"f", 3, MIB),
}


def attributes(inode: int) -> bytes:
    """struct fuse_attr."""
    _, _, size = TREE[inode]
    mode = stat.S_IFDIR | 0o755 if size is None else stat.S_IFREG | 0o644
    found = size or 0
    times = (OLD, OLD, OLD, 0, 0, 0)
    return struct.pack("<6Q10I", inode, found, found // 512, *times, mode, 1, 0, 0, 0, 4096, 0)


def children(inode: int) -> list[int]:
    """Inodes in a directory."""
    return [each for each, (_, parent, _) in TREE.items() if parent == inode and each != 1]


def look_up(inode: int, body: bytes) -> bytes:
    """struct fuse_entry_out, valid for no time: whoever asks again is answered again, or not."""
    name = body.rstrip(b"\0")
    for each in children(inode):
        if TREE[each][0] == name:
            return struct.pack("<4Q2I", each, 0, 0, 0, 0, 0) + attributes(each)
    raise OSError(errno.ENOENT, "no such name")


def read_directory(inode: int, body: bytes) -> bytes:
    """structs fuse_dirent, each padded to 8 bytes. All fit into one answer."""
    (offset,) = struct.unpack_from("<Q", body, 8)
    answer = b""
    for place, each in enumerate(children(inode)[offset:], offset + 1):
        name, _, size = TREE[each]
        kind = 4 if size is None else 8  # DT_DIR, DT_REG
        answer += struct.pack("<2Q2I", each, place, len(name), kind) + name + bytes(-len(name) % 8)
    return answer


ANSWERS: dict[int, Callable[[int, bytes], bytes]] = {
    INIT: lambda _, __: struct.pack("<4I2H2I2H8I", 7, 31, 65536, 0, 12, 9, 65536, 1, 0, 0, *[0] * 8),
    LOOKUP: look_up,
    GETATTR: lambda inode, _: struct.pack("<Q2I", 0, 0, 0) + attributes(inode),
    STATFS: lambda _, __: struct.pack("<5Q10I", 2560, 1024, 1024, 100, 50, 4096, 255, 4096, *[0] * 7),
    OPEN: lambda _, __: bytes(16),
    OPENDIR: lambda _, __: bytes(16),
    READDIR: read_directory,
    RELEASE: lambda _, __: b"",
    RELEASEDIR: lambda _, __: b"",
}


def answer(request: bytes) -> bytes:
    """struct fuse_out_header, and what belongs to the request."""
    _, kind, unique, inode = struct.unpack_from("<2I2Q", request)
    try:
        body, wrong = ANSWERS[kind](inode, request[40:]), 0
    except KeyError:
        body, wrong = b"", errno.ENOSYS
    except OSError as error:
        body, wrong = b"", error.errno or errno.EIO
    return struct.pack("<IiQ", 16 + len(body), -wrong, unique) + body


def main() -> None:
    """Mount, and serve until somebody ends this process."""
    fd = os.open("/dev/fuse", os.O_RDWR)
    options = b"fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % fd
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"hang", os.fsencode(sys.argv[1]), b"fuse.hang", 0, options) != 0:
        raise OSError(ctypes.get_errno(), "mount")
    print("mounted", flush=True)
    how = sys.argv[2]
    if how == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    delay = 0.0 if how == "stopped" else float(how)
    while True:
        request = os.read(fd, 1 << 20)
        (kind,) = struct.unpack_from("<I", request, 4)
        if kind not in UNANSWERED:
            time.sleep(delay)
            try:
                os.write(fd, answer(request))
            except FileNotFoundError:  # whoever asked was killed meanwhile
                continue


if __name__ == "__main__":
    main()
