"""Where the clocks stood against each other at the last pass: a small file in the runtime directory.

Not in the ledger: it means something in this boot of the machine only, as the runtime directory does, and is
written where a full disk does not matter.
"""

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass

from cachewarden.clock import boot_id

NAME = b"clock.json"


@dataclass(frozen=True, slots=True)
class ClockMark:
    """Nanoseconds. `offset_ns`: wall clock less boot clock. `until_ns`, on the boot clock: what was judged by
    the wall clock waits after a jump; `trusted_ns` is the offset before it, None where that is not known.
    """

    offset_ns: int
    until_ns: int | None = None
    trusted_ns: int | None = None


def read_mark(runtime_dir: bytes) -> ClockMark | None:
    """The mark of this boot, or None when there is none that can be read."""
    try:
        with open(os.path.join(runtime_dir, NAME), "rb") as file:
            found = json.loads(file.read())
        if found.pop("boot_id") != boot_id():
            return None
        mark = ClockMark(**found)
    except (OSError, ValueError, TypeError, AttributeError, KeyError):
        return None
    numbers = (mark.offset_ns, mark.until_ns or 0, mark.trusted_ns or 0)
    return mark if all(type(number) is int for number in numbers) else None


def write_mark(runtime_dir: bytes, mark: ClockMark) -> None:
    """Keep it. Raises nothing: without it a jump between two processes is not noticed, and no more."""
    new = os.path.join(runtime_dir, b"%b.%d" % (NAME, os.getpid()))
    with suppress(OSError):
        os.makedirs(runtime_dir, exist_ok=True)
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as file:
            file.write(json.dumps(asdict(mark) | {"boot_id": boot_id()}).encode())
        os.rename(new, os.path.join(runtime_dir, NAME))
