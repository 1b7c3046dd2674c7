"""Plan files: written for `apply`, read by it. Proposed configurations: written once."""

import json
import os
import stat
import tempfile
from contextlib import suppress
from typing import Any

from cachewarden.errors import UsageError
from cachewarden.paths import show


def write_plan(path: str, document: object) -> None:
    """Write a plan so that `path` holds the old content or the new one, readable for its owner only.

    Raises UsageError. A path that is no regular file (a pipe, /dev/null) is written to and not replaced.
    """
    content = json.dumps(document, indent=2).encode() + b"\n"
    target = os.fsencode(path)
    try:
        if os.path.exists(target) and not stat.S_ISREG(os.stat(target).st_mode):
            with open(target, "wb") as file:
                file.write(content)
        else:
            _replace(target, content)
    except OSError as error:
        raise UsageError(f"-o: {show(target)} cannot be written: {error.strerror}") from error


def write_new(path: str, text: str) -> None:
    """Write text to a file that does not exist yet, readable for its owner only. Raises UsageError.

    What is there is left alone: it may be the configuration in force.
    """
    target = os.fsencode(path)
    try:
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(fd, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(fd)
    except FileExistsError:
        raise UsageError(f"-o: {show(target)} is there already, and is left as it is") from None
    except OSError as error:
        raise UsageError(f"-o: {show(target)} cannot be written: {error.strerror}") from error


def read_plan(path: str) -> Any:
    """The content of a plan file; `-` is standard input. Raises UsageError."""
    name = show(os.fsencode(path))
    try:
        with open(0 if path == "-" else path, "rb", closefd=path != "-") as file:
            return json.load(file)
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}") from error
    except (ValueError, RecursionError):
        raise UsageError(f"{name}: is no plan, as `cachewarden plan -o FILE` writes it") from None


def _replace(target: bytes, content: bytes) -> None:
    directory, base = os.path.split(target)
    fd, new = tempfile.mkstemp(prefix=b"." + base[:200] + b".", dir=directory or b".")  # mode 0600
    try:
        with open(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(fd)
        os.rename(new, target)
    except OSError:
        with suppress(OSError):
            os.unlink(new)
        raise
