"""From a process to a command and back: errors become a line on standard error and an exit status."""

import os
import sys
import traceback

from cachewarden import __version__
from cachewarden.cli.app import app

BUG = 70  # EX_SOFTWARE of sysexits(3)
_CODE = os.sep + os.path.join("cachewarden", "")


def main() -> None:
    """The console script. Ends the process with the statuses that `cachewarden --help` lists."""
    for stream in (sys.stdout, sys.stderr):
        # In a locale without UTF-8 a name must not end a command, even less an eviction half reported.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        app(prog_name="cachewarden")
    except Exception as bug:  # noqa: BLE001 - what nobody raised on purpose
        sys.stderr.write(bug_report(bug))
        sys.exit(BUG)


def bug_report(bug: Exception) -> str:
    """One line to report (type, place, version), and the traceback after it."""
    place = "an unknown place"
    for frame in traceback.extract_tb(bug.__traceback__):
        if _CODE in frame.filename:
            place = f"{frame.filename.rpartition(_CODE)[2]}:{frame.lineno}"
    text = " ".join(str(bug).split())
    return (
        f"cachewarden {__version__}: this is a bug, please report it: {type(bug).__name__} in {place}"
        f"{f': {text}' if text else ''}\n" + "".join(traceback.format_exception(bug))
    )
