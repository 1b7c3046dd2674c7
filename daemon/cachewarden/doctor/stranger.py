"""A process in a mount namespace of its own that has a file open there: would we see it?

python -m cachewarden.doctor.stranger FD NAME

FD is an inherited descriptor of the directory with the file NAME. Says `ready`, and leaves when its standard
input ends. A fresh interpreter and no fork, because a fork copies the locks of other threads.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from cachewarden.kernel.namespace import bind_working_directory, leave_namespace


@contextmanager
def stranger(dir_fd: int, name: bytes) -> Iterator[bool]:
    """Such a process for the length of the block; false where it could not get a namespace or the file."""
    # -P: the current directory may be anybody's, and must not be imported from.
    command = [sys.executable, "-P", "-m", "cachewarden.doctor.stranger", str(dir_fd), os.fsdecode(name)]
    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pass_fds=(dir_fd,),
    )
    with child:  # its end closes the child's input, and waits
        assert child.stdout is not None
        yield child.stdout.readline() == b"ready\n"


def _main(dir_fd: int, name: bytes) -> None:
    os.fchdir(dir_fd)  # the working directory moves along into the new namespace
    leave_namespace()
    bind_working_directory()
    os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    os.close(dir_fd)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    _main(int(sys.argv[1]), os.fsencode(sys.argv[2]))
