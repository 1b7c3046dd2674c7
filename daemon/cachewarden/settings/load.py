"""Reading the configuration: sources, layers, checks, values. A function of files and environment."""

import difflib
import os
import pwd
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from cachewarden.errors import ConfigurationError
from cachewarden.paths import show as show_path
from cachewarden.settings import sources
from cachewarden.settings.build import build, build_daemon
from cachewarden.settings.layers import Layer, merge
from cachewarden.settings.listing import listing
from cachewarden.settings.model import ClusterKeys, DaemonKeys, Document, LocationKeys, PolicyKeys, PoolKeys
from cachewarden.settings.problems import problems_of
from cachewarden.settings.renamed import RENAMED, Renames, rename
from cachewarden.settings.values import Settings

SYSTEM_DIRECTORY = b"/etc/cachewarden"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_KNOWN = {
    name
    for model in (DaemonKeys, PolicyKeys, LocationKeys, PoolKeys, ClusterKeys)
    for name in model.model_fields
}


@dataclass(frozen=True, slots=True)
class Read:
    """All keys of the configuration, checked one by one, with the places where they stand.

    `paths` are the files, in order. `environ` has HOME.
    """

    paths: tuple[bytes, ...]
    environ: Mapping[str, str]
    user: bool
    merged: Layer
    document: Document


def load(
    files: Sequence[bytes] | None = None,
    *,
    environ: Mapping[str, str],
    user: bool = False,
    directory: bytes | None = None,
    renames: Renames = RENAMED,
) -> Settings:
    """The configuration in force. Nothing is scanned; only configuration files are read.

    `files` replace the default files, which are those of `directory` (of /etc/cachewarden, or of
    the user's own with `user`). Raises ConfigurationError with all problems that were found.
    """
    paths = files_of(files, environ=environ, user=user, directory=directory)
    return settings_of(read(paths, environ, user=user, renames=renames))


def files_of(
    files: Sequence[bytes] | None,
    *,
    environ: Mapping[str, str],
    user: bool = False,
    directory: bytes | None = None,
) -> list[bytes]:
    """The files that `load` reads, in order. Raises ConfigurationError."""
    if files is not None:
        return list(files)
    if directory is None:
        directory = sources.user_directory(_with_home(environ)) if user else SYSTEM_DIRECTORY
    try:
        return sources.default_files(directory)
    except OSError as error:
        raise ConfigurationError([f"{show_path(directory)}: cannot be read: {error.strerror}"]) from error


def read(
    paths: Sequence[bytes],
    environ: Mapping[str, str],
    *,
    user: bool,
    renames: Renames = RENAMED,
    contents: Mapping[bytes, bytes] | None = None,
) -> Read:
    """What files and environment say. A file that is in `contents` is taken from there.

    Raises ConfigurationError.
    """
    environ = _with_home(environ)
    layers = [sources.file_layer(path, (contents or {}).get(path)) for path in paths]
    merged = _merged(layers, environ, renames, user=user)
    return Read(tuple(paths), environ, user, merged, _document(merged))


def settings_of(found: Read) -> Settings:
    """The values that the rest of the daemon gets to see. Raises ConfigurationError: they contradict."""
    home = os.fsencode(found.environ["HOME"])
    built = build(found.document, found.merged, home, user=found.user)
    if built.problems:
        raise ConfigurationError(built.problems)
    return Settings(
        daemon=build_daemon(found.document, user=found.user),
        locations=tuple(built.locations),
        pools=tuple(built.pools),
        policies=built.policies,
        sources=tuple(show_path(path) for path in found.paths),
        warnings=tuple(found.merged.warnings),
        home=home,
        listing=listing(found.document, found.merged),
    )


def _with_home(environ: Mapping[str, str]) -> Mapping[str, str]:
    return {**environ, "HOME": environ.get("HOME") or pwd.getpwuid(os.geteuid()).pw_dir}


def _merged(given: list[Layer], environ: Mapping[str, str], renames: Renames, *, user: bool) -> Layer:
    if broken := [problem for layer in given for problem in layer.problems]:
        # A half-read configuration would give false errors about what is in the other half.
        raise ConfigurationError(broken)
    names = {
        section: [name for layer in given for name in _table(layer.tree, section)]
        for section in sources.NAMED
    }
    unique = {section: list(dict.fromkeys(found)) for section, found in names.items()}
    given = [*given, sources.environment_layer(environ, unique)]
    for layer in given:
        rename(layer, renames)
        layer.problems += _name_problems(layer)
    base = [sources.preset_layer()] + ([sources.user_layer(environ)] if user else [])
    merged = merge([*base, *given])
    _drop_unset_tables(merged)
    return merged


def _table(tree: Mapping[str, Any], section: str) -> Mapping[str, Any]:
    found = tree.get(section)
    return found if isinstance(found, dict) else {}


def _name_problems(layer: Layer) -> Iterator[str]:
    for section in layer.tree:
        if section not in Document.model_fields:
            close = difflib.get_close_matches(section, Document.model_fields, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            yield layer.problem((section,), f"there is no such section{hint}")
    for section in sources.NAMED:
        for name in _table(layer.tree, section):
            if not _NAME.fullmatch(name):
                yield layer.problem(
                    (section, name),
                    "names are letters, digits, dots, dashes and underscores, up to 64 of them",
                )


def _drop_unset_tables(merged: Layer) -> None:
    """A whole section, or a named table in one, may be "none": it is as if no file before had it."""
    for section in list(merged.tree):
        if merged.tree[section] == "none":
            del merged.tree[section]
    for section in sources.NAMED:
        table = _table(merged.tree, section)
        for name in [name for name, value in table.items() if value == "none"]:
            del merged.tree[section][name]


def _document(merged: Layer) -> Document:
    # Unknown sections were reported; as arguments they could be taken for options of the library.
    tree = {section: value for section, value in merged.tree.items() if section in Document.model_fields}
    try:
        document = Document(**tree)
    except ValidationError as error:
        raise ConfigurationError(merged.problems + problems_of(error, merged, _KNOWN)) from error
    if merged.problems:
        raise ConfigurationError(merged.problems)
    return document
