"""Whether a user can read something: run as a program that becomes that user, and asks the kernel.

The program starts as the service's user, so that interpreter and library need not be readable for others;
before it looks at anything it gives up all its rights (setgroups(2), setgid(2), setuid(2)). It goes the whole
way from the location's root by descriptor and follows no link, and it opens nothing: a look is no use.
"""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be readable: `paths` in the location at `root`, whose device and inode are `inode`."""

    root: bytes
    inode: tuple[int, int]
    paths: tuple[bytes, ...]


def readable(uid: int, gid: int, groups: Sequence[int], wanted: Wanted) -> bool:
    """Whether this user can read all of it: files, and what directories list.

    False, too, where that cannot be found out: without CAP_SETUID and CAP_SETGID, for one.
    """
    asked = {
        "uid": uid,
        "gid": gid,
        "groups": list(groups),
        "root": wanted.root.hex(),
        "inode": list(wanted.inode),
        "paths": [path.hex() for path in wanted.paths],
    }
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", __file__],
            input=json.dumps(asked).encode(),
            capture_output=True,
            timeout=_SECONDS,
            env={},
            cwd="/",
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0 and done.stdout == b"yes"


def main() -> int:
    """Answer the question on standard input."""
    asked = json.load(sys.stdin)
    os.setgroups(asked["groups"])
    os.setresgid(asked["gid"], asked["gid"], asked["gid"])
    os.setresuid(asked["uid"], asked["uid"], asked["uid"])
    try:
        root = os.open(bytes.fromhex(asked["root"]), os.O_PATH | os.O_DIRECTORY)
        found = os.fstat(root)
        if [found.st_dev, found.st_ino] != asked["inode"]:
            return 1
        seen = all(_readable(root, bytes.fromhex(path)) for path in asked["paths"])
    except OSError:
        return 1
    sys.stdout.write("yes" if seen else "no")
    return 0


def _readable(root: int, path: bytes) -> bool:
    *above, name = path.split(b"/") if path else [b"."]
    here = os.dup(root)
    try:
        for part in above:
            below = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = below
        mode = os.stat(name, dir_fd=here, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            return True  # links have no rights of their own; what is pinned is the link
        right = os.R_OK | os.X_OK if stat.S_ISDIR(mode) else os.R_OK
        return os.access(name, right, dir_fd=here, follow_symlinks=False)
    finally:
        os.close(here)


if __name__ == "__main__":
    sys.exit(main())
