"""Run all benchmarks and write docs/BENCHMARKS.md; `python -m benchmarks --help` tells the options."""

import argparse
import importlib
import os
import pkgutil
import platform
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import benchmarks
from benchmarks import HEADER, Row
from cachewarden.mountinfo import mount_of

_INTRODUCTION = """# Benchmarks

Each figure is the median of several runs, taken in turns with its peer on the same warm tree, so that the
ratio means something on any machine.

Written by `{command}` on {date}: {machine}.

"""


def main() -> None:
    """Parse the arguments, run, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--files", type=int, default=500_000, help="files in the largest tree")
    parser.add_argument("--only", action="append", help="run only this benchmark (may be repeated)")
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/BENCHMARKS.md"))
    options = parser.parse_args()
    rows: list[Row] = []
    for module in pkgutil.iter_modules(benchmarks.__path__):
        if module.name != "__main__" and (options.only is None or module.name in options.only):
            run = getattr(importlib.import_module(f"benchmarks.{module.name}"), "run", None)
            for row in run(options.files) if run is not None else ():
                print(row, flush=True)
                rows.append(row)
    command = f"python -m benchmarks --files {options.files}"
    introduction = _INTRODUCTION.format(command=command, date=_today(), machine=_machine())
    options.output.write_text(introduction + "\n".join([HEADER, *map(str, rows)]) + "\n")


def _today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")


def _machine() -> str:
    fstype = mount_of(os.fsencode(tempfile.gettempdir())).fstype.decode()
    return f"{len(os.sched_getaffinity(0))} cores, Linux {platform.release().split('-')[0]}, {fstype}"


if __name__ == "__main__":
    main()
