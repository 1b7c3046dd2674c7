"""What a prepared dataset says of itself: `dataset_info.json`, as datasets 5.2 (`info.py`) writes it."""

import json
from dataclasses import dataclass
from typing import Any

INFO = b"dataset_info.json"
# A description of features can be long; one that is longer is taken for one that says nothing.
LIMIT = 16 << 20


@dataclass(frozen=True, slots=True)
class Info:
    """The builder that prepared it, and the bytes of its source files; None where that is not said."""

    builder: str | None = None
    source_bytes: int | None = None


def parse(text: bytes | None) -> Info:
    """What can be told from the file's content; nothing from one that is missing, cut off or damaged.

    Raises nothing, whatever is in it.
    """
    if text is None or len(text) >= LIMIT:
        return Info()
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):  # not JSON, not Unicode, a number too long, or nested too deep
        return Info()
    if not isinstance(found, dict):
        return Info()
    builder, size = found.get("builder_name"), found.get("download_size")
    return Info(
        builder if isinstance(builder, str) else None,
        size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else None,
    )
