"""pydantic's errors as sentences with file, line, key and value."""

import difflib
from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from cachewarden.settings.layers import Layer, dotted
from cachewarden.settings.locate import Path

_SENTENCES = {
    "missing": "is missing",
    "string_type": "must be a text in quotes",
    "bool_type": "must be true or false",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "dict_type": "must be a table",
}


def problems_of(error: ValidationError, merged: Layer, known: Iterable[str]) -> list[str]:
    """One line for each of pydantic's errors. `known` are key names, for near misses."""
    return [merged.problem(_path(each, merged), _sentence(each, known)) for each in error.errors()]


def _path(error: Any, merged: Layer) -> Path:
    """The key that is wrong. pydantic goes on into lists and alternatives; a key of ours ends before."""
    path: Path = tuple(str(part) for part in error["loc"])
    if error["type"] in ("missing", "extra_forbidden"):
        return path
    while path and path not in merged.origins:
        path = path[:-1]
    return path or tuple(str(part) for part in error["loc"])


def _sentence(error: Any, known: Iterable[str]) -> str:
    if error["type"] == "extra_forbidden":
        name = str(error["loc"][-1])
        close = difflib.get_close_matches(name, list(known), n=1)
        if close == [name]:
            return "there is no such key in this table; it belongs to another kind of table"
        return "there is no such key" + (f"; did you mean {dotted((close[0],))}?" if close else "")
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    if error["type"] in ("literal_error", "enum"):
        return f"must be {error['ctx']['expected']}"
    return _SENTENCES.get(error["type"], str(error["msg"]))
