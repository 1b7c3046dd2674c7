"""A whole systemd, booted in a container over an overlay of this machine's root filesystem (needs root).

The root is only read; what the container writes goes to a tmpfs and is gone afterwards. Its network is its
own loopback.
"""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
_LEFT_OUT = shutil.ignore_patterns(".venv", ".git", ".*_cache", ".hypothesis", "__pycache__")

# Ends the machine whatever becomes of the program; ExecStopPost runs after a failure, too.
_UNIT = """
[Unit]
Description=Look at cachewarden from inside
After=multi-user.target
[Service]
Type=oneshot
TimeoutStartSec={seconds}
ExecStart={program}
ExecStopPost=systemctl poweroff --no-block
"""


class Machine:
    """A root filesystem of its own. `prepare` runs commands in it before it is booted."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.root = base / "root"

    def prepare(self, *command: str) -> str:
        """Run a command in the root, with this machine's network; its output. Raises AssertionError."""
        done = subprocess.run(
            ["chroot", str(self.root), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}"
        return done.stdout

    def write(self, path: str, content: str, mode: int = 0o644) -> None:
        """A file in the root."""
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        file.write_text(content)
        file.chmod(mode)

    def boot(self, program: str, seconds: int = 600) -> dict:
        """Boot, run `program`, which writes /report.json, and power off; the report."""
        self.write("/etc/systemd/system/inside.service", _UNIT.format(program=program, seconds=seconds - 10))
        wants = self.root / "etc/systemd/system/multi-user.target.wants"
        wants.mkdir(exist_ok=True)
        link = wants / "inside.service"
        if not link.is_symlink():
            link.symlink_to("../inside.service")
        log = self.base / "boot.log"
        with log.open("wb") as file:
            subprocess.run(
                [
                    *("systemd-nspawn", "--quiet", "-D", str(self.root), "--boot", "--register=no"),
                    # Without these two, fanotify's marks get EPERM.
                    *("--keep-unit", "--capability=all"),
                    *("--private-network", "--console=pipe", "--link-journal=no"),
                    # A filesystem that takes an answer's place, for what hangs.
                    *("--bind=/dev/fuse",),
                ],
                env={**os.environ, "SYSTEMD_SECCOMP": "0"},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                timeout=seconds,
                check=False,
            )
        report = self.root / "report.json"
        assert report.exists(), f"the machine left no report:\n{log.read_text(errors='replace')[-4000:]}"
        return json.loads(report.read_text())


@contextlib.contextmanager
def machine() -> Iterator[Machine]:
    """A machine with this repository at /src.

    Not in pytest's own directory: when a run was killed, a later one would clean that up, and through the
    overlay that is still mounted there go through all of this machine's root filesystem.
    """
    base = Path(tempfile.mkdtemp(prefix="cachewarden-machine-"))
    try:
        with _mounted(base) as made:
            yield made
    finally:
        shutil.rmtree(base)


@contextlib.contextmanager
def _mounted(base: Path) -> Iterator[Machine]:
    made = Machine(base)
    space = base / "space"
    for directory in (space, made.root):
        directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2G,mode=755", "none", str(space)], check=True)
    try:
        (space / "upper").mkdir()
        (space / "work").mkdir()
        options = f"lowerdir=/,upperdir={space}/upper,workdir={space}/work"
        subprocess.run(["mount", "-t", "overlay", "-o", options, "overlay", str(made.root)], check=True)
        try:
            shutil.copytree(REPOSITORY, made.root / "src", ignore=_LEFT_OUT, symlinks=True)
            # A name that nobody else has: the journal of the machine outside is not ours to write.
            made.write("/etc/machine-id", "")
            # The interpreter may live in root's home, and ordinary users of the machine start it, too.
            (made.root / "root").chmod(0o711)
            yield made
        finally:
            subprocess.run(["umount", "--lazy", str(made.root)], check=True)
    finally:
        subprocess.run(["umount", "--lazy", str(space)], check=True)
