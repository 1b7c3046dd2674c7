"""Where a hammer works: a filesystem of its own in a loop device, or a directory that is there."""

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager

_MAKE = {
    "ext4": ["mkfs.ext4", "-q", "-F", "-m", "0"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
    "btrfs": ["mkfs.btrfs", "-q", "-f"],
}


@contextmanager
def place(kind):
    """A directory on a new filesystem of this kind ("here": on that of temporary files), gone afterwards."""
    base = tempfile.mkdtemp(prefix="cachewarden-hammer-")
    mounted = os.path.join(base, "disk")
    os.mkdir(mounted)
    try:
        if kind == "here":
            yield mounted
            return
        _mount(kind, base, mounted)
        try:
            yield mounted
        finally:
            subprocess.run(["umount", "--lazy", mounted], check=True)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _mount(kind, base, mounted):
    if kind == "tmpfs":
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1g", "hammer", mounted], check=True)
        return
    image = os.path.join(base, "image")
    with open(image, "wb") as file:
        file.truncate(2 << 30)
    subprocess.run([*_MAKE[kind], image], check=True)
    subprocess.run(["mount", "-o", "loop", image, mounted], check=True)
