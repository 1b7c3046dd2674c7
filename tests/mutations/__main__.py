"""Take each step of an eviction out in turn, and see which test goes red: `python -m tests.mutations`.

Works on copies of the source in a temporary directory. The answer is a table; the exit status is 1 when a
step can be taken out and every test stays green, or when an edit does not fit the source any more.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutations.steps import MUTATIONS, Mutation

ROOT = Path(__file__).resolve().parents[2]
_COPIED = ("daemon", "policies", "tests", "pyproject.toml")
_RED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


def main() -> int:
    """Run all, or those that were named, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("steps", nargs="*", help="only these steps")
    parser.add_argument("--jobs", type=int, default=1, help="so many at once")
    options = parser.parse_args()
    chosen = [each for each in MUTATIONS if not options.steps or each.step in options.steps]
    print("| step | taken out | goes red |\n|---|---|---|", flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        answers = list(pool.map(_tried, chosen))
    return int(not all(answers))


def _tried(mutation: Mutation) -> bool:
    """One row of the table; whether a test went red."""
    with tempfile.TemporaryDirectory() as copy:
        for name in _COPIED:
            _copy(ROOT / name, Path(copy) / name)
        missing = apply(mutation, Path(copy))
        red = [f"does not apply: {missing}"] if missing else red_tests(mutation, copy)
    print(f"| {mutation.step} | {mutation.without} | {'<br>'.join(red) or '**nothing**'} |", flush=True)
    return bool(red) and missing is None


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def apply(mutation: Mutation, tree: Path) -> str | None:
    """Make the edits in a copy; the name of the file that one does not fit, or None."""
    for edit in mutation.edits:
        path = tree / edit.file
        text = path.read_text(encoding="utf-8")
        if text.count(edit.old) != 1:
            return edit.file
        path.write_text(text.replace(edit.old, edit.new), encoding="utf-8")
    return None


def red_tests(mutation: Mutation, tree: str) -> list[str]:
    """The first test of each file that goes red (at least one of all), as names for people."""
    places = os.pathsep.join(f"{tree}/{name}" for name in ("daemon", "policies", ""))
    options = ["-q", "-x", "-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib"]
    options += ["-k", mutation.only] if mutation.only else []
    for test in mutation.tests:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, f"{tree}/{test}"],
            cwd=tree,
            env=os.environ | {"PYTHONPATH": places},
            capture_output=True,
            text=True,
            check=False,
        )
        if red := [name.partition("/")[2] for name in _RED.findall(done.stdout)]:
            return [f"`{name}`" for name in red]
        assert done.returncode == 0, done.stdout
    return []


if __name__ == "__main__":
    sys.exit(main())
