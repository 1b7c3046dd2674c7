"""The first measurement of a location, against `du -s`, and the memory that it takes."""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import Row, side_by_side
from cachewarden.inventory import Claim, Inventory, Split
from cachewarden.scan import scan

FILES_PER_ENTRY = 50


def run(files: int) -> Iterator[Row]:
    """Measure a tree of so many files."""
    with tempfile.TemporaryDirectory(prefix="cachewarden-bench-") as root:
        entries = make_tree(root, files)
        ours, du = side_by_side(
            lambda: take_inventory(root),
            lambda: subprocess.run(["du", "-s", root], stdout=subprocess.DEVNULL, check=True),
        )
        cores = len(os.sched_getaffinity(0))
        yield Row(f"first measurement of {files:,} files on {cores} cores", "`du -s`", ours, du, "≤ 0.8")
        here = [sys.executable, "-m", "benchmarks.measure", root]
        peak = int(subprocess.run(here, stdout=subprocess.PIPE, check=True).stdout)
        what = f"resident memory, {files:,} files in {entries:,} entries"
        yield Row(what, "-", peak / 1024, None, "≤ 120 MiB for 1,000,000 in 20,000", "MiB")


def make_tree(root: str, files: int) -> int:
    """Fill a directory with entries; returns how many.

    The files are empty: a walk asks the same of them, and a disk that discards frees them far sooner.
    """
    entries = max(1, files // FILES_PER_ENTRY)
    for entry in range(entries):
        here = Path(root, f"entry{entry}")
        here.mkdir()
        for number in range(FILES_PER_ENTRY):
            (here / f"{number:032x}.bin").touch()
    return entries


def take_inventory(root: str) -> Inventory:
    """Measure each child of a directory as an entry."""
    names = [os.fsencode(name) for name in os.listdir(root)]
    fd = os.open(root, os.O_RDONLY)
    try:
        return scan(fd, Split("plain", tuple(Claim(name, (name,)) for name in names)))
    finally:
        os.close(fd)


if __name__ == "__main__":
    kept = take_inventory(sys.argv[1])
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
