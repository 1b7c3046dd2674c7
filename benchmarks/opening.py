"""Programs that open files: the same load for everything that is measured with it."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# Forked processes open their part and stay until their wave is heard of; told by a line for each wave.
_PROGRAM = """
import os, sys
root, flat, groups, files, processes, wave, each, rounds = sys.argv[1], *map(int, sys.argv[2:])
def part(number):
    mine = [(number * each + step) % groups for step in range(each)]
    if flat:
        return [f'{root}/e{group}' for group in mine]
    return [f'{root}/e{group}/{file}' for group in mine for file in range(files)]
def open_all(paths):
    for _ in range(rounds):
        for path in paths:
            os.close(os.open(path, os.O_RDONLY))
for first in range(0, processes, wave):
    done, end = os.pipe(), os.pipe()
    pids = []
    for number in range(first, min(first + wave, processes)):
        paths = part(number)
        pid = os.fork()
        if pid == 0:
            os.close(end[1])
            open_all(paths)
            os.write(done[1], b'x')
            os.read(end[0], 1)
            os._exit(0)
        pids.append(pid)
    for _ in pids:
        os.read(done[0], 1)
    print(first, *pids, flush=True)
    sys.stdin.readline()
    for fd in (*done, *end):
        os.close(fd)
    for pid in pids:
        os.waitpid(pid, 0)
"""


@dataclass(frozen=True, slots=True)
class Load:
    """`processes` open, `wave` of them at a time, `each` groups of files `rounds` times.

    A group is an entry: a directory of so many `files`, or with `flat` a single file in a directory of all.
    """

    name: str
    groups: int
    processes: int
    each: int
    files: int = 1
    rounds: int = 1
    wave: int = 2400
    flat: bool = False

    @property
    def opens(self) -> int:
        """How many there are in all."""
        return self.processes * self.each * self.files * self.rounds

    @property
    def pairs(self) -> int:
        """How many pairs of an entry and a process."""
        return self.processes * min(self.each, self.groups)

    def entries_of(self, process: int) -> set[bytes]:
        """What one of them opens, as names in the root."""
        return {b"e%d" % ((process * self.each + step) % self.groups) for step in range(self.each)}

    def make(self, root: str) -> None:
        """The files."""
        for group in range(self.groups):
            place = Path(root, f"e{group}")
            if self.flat:
                place.write_bytes(b"x")
                continue
            place.mkdir()
            for number in range(self.files):
                (place / str(number)).write_bytes(b"x")

    def run(self, root: str, heard: Callable[[dict[int, set[bytes]]], None]) -> None:
        """Run it; `heard` is called while a wave lives, with the pids and what each of them opened."""
        sizes = (self.flat, self.groups, self.files, self.processes, self.wave, self.each, self.rounds)
        command = [sys.executable, "-S", "-c", _PROGRAM, root, *(str(int(size)) for size in sizes)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as load:
            assert load.stdin is not None
            assert load.stdout is not None
            for line in load.stdout:
                first, *pids = map(int, line.split())
                heard({pid: self.entries_of(first + step) for step, pid in enumerate(pids)})
                load.stdin.write("\n")
                load.stdin.flush()
        if load.returncode:
            raise RuntimeError(f"the load ended with {load.returncode}")


def make_deep(root: str, entries: int, directories: int) -> None:
    """So many entries of so many directories each, with a file in each of them."""
    for entry in range(entries):
        for number in range(directories):
            place = os.path.join(root, f"e{entry}", f"d{number}")
            os.makedirs(place)
            Path(place, "f").touch()
