"""Setting one key in a file that people write: everything else in it stays as it is, to the byte.

tomlkit keeps comments, order and spaces; `tomllib` decides, as everywhere, what a text means. What is
handed back was read by it again: another line, or another key, that came out differently is refused.
"""

import tomllib
from typing import Any

import tomlkit
from tomlkit.container import Container
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable, Table

from cachewarden.settings.locate import Path

_Holder = Container | Table | InlineTable


def with_flag(text: str, path: Path, value: bool, beside: str) -> str:
    """The TOML text `text` with the key `path` set to `value`.

    Where it is not set yet, it goes into the table of the key `beside`, after the last key there. Raises
    ValueError with a sentence: there is no such table, or the text cannot be changed in this key alone.
    """
    try:
        document = tomlkit.parse(text)
        _set(document, path, value, beside)
        edited = tomlkit.dumps(document)
    except TOMLKitError as error:
        raise ValueError(f"cannot be edited: {error}") from error
    if not _only(text, edited, path, value):
        raise ValueError("cannot be edited without changing more than this key; do it by hand")
    return edited


def _set(document: Container, path: Path, value: bool, beside: str) -> None:
    found = _holder(document, path)
    if found is not None:
        found[path[-1]] = value
        return
    found = _holder(document, (*path[:-1], beside))
    if found is None:
        raise ValueError("has no table to which the key could be added; do it by hand")
    if isinstance(found, Table):
        _after_the_last(found.value, path[-1], value)
    else:
        found[path[-1]] = value


def _holder(holder: _Holder, path: Path) -> _Holder | None:
    """The table that holds the key; None where the key is not set.

    By the parts as they stand in the text, since the parts of one table may stand in several places.
    """
    container = holder if isinstance(holder, Container) else holder.value
    for key, item in container.body:
        if key is None or key.key != path[0]:
            continue
        if len(path) == 1:
            return holder
        if isinstance(item, Table | InlineTable) and (found := _holder(item, path[1:])) is not None:
            return found
    return None


def _after_the_last(table: Container, name: str, value: bool) -> None:
    """Add a key below the last one that is there, and indented like it.

    tomlkit itself would put it below comments, too: between the next table and what is said about that one.
    """
    own = [(key, item) for key, item in table.body if key is not None and not isinstance(item, Table)]
    last, item = own[-1]
    added = tomlkit.item(value)
    added.trivia.indent = item.trivia.indent
    added.trivia.trail = item.trivia.trail or added.trivia.trail
    table._insert_after(last, name, added)


def _only(before: str, after: str, path: Path, value: bool) -> bool:
    """Whether `path` is the one key that means something else now, and one line the most that changed."""
    wanted = tomllib.loads(before)
    table: dict[str, Any] = wanted
    for part in path[:-1]:
        table = table.setdefault(part, {})
    table[path[-1]] = value
    if tomllib.loads(after) != wanted:
        return False
    old, new = before.split("\n"), after.split("\n")
    while old and new and old[0] == new[0]:
        del old[0], new[0]
    while old and new and old[-1] == new[-1]:
        del old[-1], new[-1]
    return len(old) <= 1 and len(new) <= 2
