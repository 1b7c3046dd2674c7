"""What turning enforcement on or off comes to: which keys of which files, and what is in force then.

Nothing is written here; `rewriting` does that.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from cachewarden.errors import ConfigurationError, UsageError
from cachewarden.paths import show
from cachewarden.settings.editing import with_flag
from cachewarden.settings.layers import dotted
from cachewarden.settings.load import Read, files_of, read, settings_of
from cachewarden.settings.locate import Path, locate
from cachewarden.settings.values import Settings

_ABOVE: Path = ("daemon", "enforce")
_BESIDE = "path"  # every location has it


@dataclass(frozen=True, slots=True)
class Change:
    """A key that gets a value. `line` (from 1) is that of the edited file; `before` as it was written there,
    empty where it was not set.
    """

    file: bytes
    line: int | None
    key: str
    before: str
    value: bool

    def to_json(self) -> dict[str, object]:
        """One object of `changes`."""
        return {
            "file": show(self.file),
            "line": self.line,
            "key": self.key,
            "before": self.before or None,
            "value": self.value,
        }


@dataclass(frozen=True, slots=True)
class Edit:
    """A file with what it says and what it is to say."""

    file: bytes
    before: bytes
    after: bytes


@dataclass(frozen=True, slots=True)
class Switch:
    """`names` are the locations that it is about, `settings` the whole configuration as it is then."""

    names: tuple[str, ...]
    changes: tuple[Change, ...]
    edits: tuple[Edit, ...]
    settings: Settings


def switch(
    names: Sequence[str] | None,
    value: bool,
    files: Sequence[bytes] | None,
    *,
    environ: Mapping[str, str],
    user: bool = False,
    directory: bytes | None = None,
) -> Switch:
    """What makes `enforce` of these locations (None: of all) `value`; `files` and the rest as for `load`.

    The configuration is checked as it is and as it would be. Raises UsageError for unknown names, and
    ConfigurationError: it is wrong, or something holds the locations back that is not theirs alone.
    """
    paths = files_of(files, environ=environ, user=user, directory=directory)
    contents = _contents(paths)
    now = read(paths, environ, user=user, contents=contents)
    settings = settings_of(now)
    chosen = tuple(now.document.locations) if names is None else tuple(dict.fromkeys(names))
    for name in chosen:
        settings.require(name)
    if not chosen:
        raise UsageError("no location is configured")
    changes, edited = [], dict(contents)
    for path in [*_below(now, chosen, value), *_above(now, chosen, value)]:
        file = _file_of(now, path)
        change, edited[file] = _changed(now, file, path, value, edited[file])
        changes.append(change)
    then = settings_of(read(paths, environ, user=user, contents=edited))
    _certain(now, then, chosen, value)
    edits = [Edit(file, contents[file], edited[file]) for file in contents if edited[file] != contents[file]]
    return Switch(chosen, tuple(changes), tuple(edits), then)


def _contents(paths: Sequence[bytes]) -> dict[bytes, bytes]:
    """What the files say, each read once. One that cannot be read is left out: `read` says why."""
    found = {}
    for path in paths:
        with suppress(OSError), open(path, "rb") as file:
            found[path] = file.read()
    return found


def _below(now: Read, chosen: Sequence[str], value: bool) -> list[Path]:
    """The locations' own keys that have to change."""
    return [
        ("locations", name, "enforce") for name in chosen if now.document.locations[name].enforce != value
    ]


def _above(now: Read, chosen: Sequence[str], value: bool) -> list[Path]:
    """The key that holds back all locations, where it does. Others must not begin to lose something by it."""
    if not value or now.document.daemon.enforce:
        return []
    keys = now.document.locations
    others = " ".join(name for name in keys if keys[name].enforce and name not in chosen)
    if others:
        sentence = (
            f"holds back every location, and turning it on would also turn on: {others}. If that is meant: "
            f"cachewarden enforce --all. If not, first: cachewarden enforce --off {others}"
        )
        raise ConfigurationError([now.merged.problem(_ABOVE, sentence)])
    return [_ABOVE]


def _file_of(now: Read, path: Path) -> bytes:
    """The file in which the key that counts stands, or has to stand. Raises ConfigurationError."""
    keys = now.document.daemon if path == _ABOVE else now.document.locations[path[1]]
    counts = path if path[-1] in keys.model_fields_set else (*path[:-1], _BESIDE)
    origin = now.merged.origin(counts)
    for file in now.paths:
        if show(file) == origin.source and not origin.variable:
            return file
    where = "in the environment" if origin.variable else "in no file"
    raise ConfigurationError(
        [now.merged.problem(counts, f"is set {where}, where no command can change it: change it there")]
    )


def _changed(now: Read, file: bytes, path: Path, value: bool, content: bytes) -> tuple[Change, bytes]:
    """The change, and the file with it. Raises ConfigurationError."""
    try:
        if not os.path.isfile(file):
            raise ValueError("is no regular file, and cannot be edited")  # noqa: TRY301
        text = with_flag(content.decode(), path, value, _BESIDE)
    except ValueError as error:
        raise ConfigurationError([f"{show(file)}: {dotted(path)}: {error}"]) from error
    was = now.merged.origins.get(path)
    place = locate(text.replace("\r\n", "\n")).places.get(path)
    line = place.line if place else None
    return Change(file, line, dotted(path), was.raw if was else "", value), text.encode()


def _certain(now: Read, then: Settings, chosen: Sequence[str], value: bool) -> None:
    """Look whether it came to what was wanted. Raises ConfigurationError."""
    wrong = [each.name for each in then.locations if each.name in chosen and each.template.enforce != value]
    if wrong:
        raise ConfigurationError(
            [
                now.merged.problem(("locations", name, "enforce"), "would not change what is in force")
                for name in wrong
            ]
        )
