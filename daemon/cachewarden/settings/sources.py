"""Where configuration comes from: files, drop-ins, the environment, presets. Each becomes a layer.

A broken source is a layer with problems and no tree, so that all broken files are reported at once.
"""

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from cachewarden.paths import show
from cachewarden.settings.layers import Layer, Origin, printable, shortened
from cachewarden.settings.locate import Located, locate

PREFIX = "CACHEWARDEN_"
# Sections whose second level is a name that the administrator chose.
NAMED = ("policies", "locations", "pools")

_AT_LINE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_KEY_LINE = re.compile(r"\s*([A-Za-z0-9_.\"' -]+?)\s*=\s*(.*?)\s*$")
_HEADER_LINE = re.compile(r"\s*\[([^\[\]]+)\]")


def default_files(directory: bytes) -> list[bytes]:
    """`config.toml` and then `config.d/*.toml` in the bytewise order of names; those that exist.

    Names that begin with a dot are left out: editors keep their backups so. Raises OSError.
    """
    main = os.path.join(directory, b"config.toml")
    dropins = os.path.join(directory, b"config.d")
    found = [main] if os.path.lexists(main) else []
    if os.path.isdir(dropins):
        names = sorted(name for name in os.listdir(dropins) if name.endswith(b".toml"))
        found += [os.path.join(dropins, name) for name in names if not name.startswith(b".")]
    return found


def file_layer(path: bytes, content: bytes | None = None) -> Layer:
    """A file as a layer, or `content` as if it stood there; unreadable or no TOML: a layer that says so."""
    name = show(path)
    if content is None:
        try:
            with open(path, "rb") as file:
                content = file.read()
        except OSError as error:
            return Layer(problems=[f"{name}: cannot be read: {error.strerror}"])
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return Layer(problems=[f"{name}:{line}: byte {content[error.start]:#04x} is not UTF-8"])
    return text_layer(text.replace("\r\n", "\n"), name)


def text_layer(text: str, source: str) -> Layer:
    """TOML text as a layer whose origins name `source` and the line."""
    located = locate(text)
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return Layer(problems=_syntax_problems(text, source, located, str(error)))
    origins = {path: Origin(source, place.line, place.raw) for path, place in located.places.items()}
    return Layer(tree, origins)


def _syntax_problems(text: str, source: str, located: Located, error: str) -> list[str]:
    """Duplicates by name where that is what stopped tomllib; otherwise its words, with the key nearby."""
    if located.duplicates:
        return [
            Layer(origins={path: Origin(source, place.line, place.raw)}).problem(
                path, f"was set in line {first} already"
            )
            for path, place, first in located.duplicates
        ]
    lines = text.split("\n")
    where = _AT_LINE.search(error)
    line = int(where[1]) if where and where[1] else len(text.rstrip("\n").split("\n"))
    sentence = f"not valid TOML: {error[: where.start()] if where else error}"
    typed = _KEY_LINE.match(lines[line - 1])
    if typed is None:
        return [printable(f"{source}:{line}: {sentence}")]
    headers = [match[1].strip() for each in lines[:line] if (match := _HEADER_LINE.match(each))]
    key = f"{headers[-1]}.{typed[1]}" if headers else typed[1]
    return [printable(f"{source}:{line}: {key} = {shortened(typed[2])}: {sentence}")]


def preset_names() -> list[str]:
    """The presets that come with the policies, as `extends` names them."""
    folder = resources.files("cachewarden_policies") / "presets"
    return sorted(
        f"preset:{each.name.removesuffix('.toml')}"
        for each in folder.iterdir()
        if each.name.endswith(".toml")
    )


def preset_layer() -> Layer:
    """All presets as policies, so that `extends` treats them like any other."""
    folder = resources.files("cachewarden_policies") / "presets"
    layer = Layer()
    for name in preset_names():
        text = (folder / f"{name.removeprefix('preset:')}.toml").read_text(encoding="utf-8")
        layer.put(("policies", name), {}, Origin(name))
        for key, value in tomllib.loads(text).items():
            layer.put(("policies", name, key), value, Origin(name, raw=repr(value)))
    return layer


def user_layer(environ: Mapping[str, str]) -> Layer:
    """What `--user` changes: directories of the user's own, and no network port."""
    home = environ.get("HOME", "")
    state = environ.get("XDG_STATE_HOME") or f"{home}/.local/state"
    layer = Layer()
    own = {
        "state_dir": f"{state}/cachewarden",
        # Without a session there is no runtime directory; the state directory is as private.
        "runtime_dir": f"{environ.get('XDG_RUNTIME_DIR') or f'{state}/cachewarden/run'}"
        + ("/cachewarden" if environ.get("XDG_RUNTIME_DIR") else ""),
        "http": "",
    }
    for key, value in own.items():
        layer.put(("daemon", key), value, Origin("default of --user"))
    return layer


def user_directory(environ: Mapping[str, str]) -> bytes:
    """Where `--user` keeps its configuration."""
    base = environ.get("XDG_CONFIG_HOME") or f"{environ.get('HOME', '')}/.config"
    return os.fsencode(f"{base}/cachewarden")


def environment_layer(environ: Mapping[str, str], names: Mapping[str, Sequence[str]]) -> Layer:
    """`CACHEWARDEN_SECTION__KEY` (and `…__NAME__KEY` for what has names) as a layer.

    `names` are those that the files know by section: a variable cannot spell dashes and case, so
    it means the one name that it fits.
    """
    layer = Layer()
    for variable in sorted(environ):
        if not variable.startswith(PREFIX):
            continue
        typed = environ[variable]
        parts = variable.removeprefix(PREFIX).lower().split("__")
        problem = _name_problem(parts, names)
        if problem is None:
            path = (*_real_names(parts, names),)
            origin = Origin(variable, raw=typed, variable=True)
            try:
                if not layer.put(path, _environment_value(typed), origin):
                    problem = "another variable sets the table around it already"
            except tomllib.TOMLDecodeError as error:
                problem = f"not a TOML list or table: {error}"
        if problem is not None:
            layer.problems.append(printable(f"{variable}={shortened(typed)}: {problem}"))
    return layer


def _name_problem(parts: Sequence[str], names: Mapping[str, Sequence[str]]) -> str | None:
    depth = 3 if parts[0] in NAMED else 2
    if len(parts) < depth or not all(parts):
        shape = "__".join(["SECTION", "NAME", "KEY"] if depth == 3 else ["SECTION", "KEY"])
        return f"no such variable; variables are called {PREFIX}{shape}"
    if depth == 3 and len(_fitting(parts[1], names[parts[0]])) > 1:
        return f"fits several names: {', '.join(_fitting(parts[1], names[parts[0]]))}"
    return None


def _real_names(parts: Sequence[str], names: Mapping[str, Sequence[str]]) -> list[str]:
    if parts[0] not in NAMED:
        return list(parts)
    fitting = _fitting(parts[1], names[parts[0]])
    return [parts[0], fitting[0] if fitting else parts[1], *parts[2:]]


def _fitting(part: str, names: Sequence[str]) -> list[str]:
    return [name for name in names if re.sub(r"[.-]", "_", name.lower()) == part]


def _environment_value(typed: str) -> Any:
    """A list or table as TOML writes it, anything else as text: `[1]`, `{ a = 1 }`, `5m`."""
    if typed.lstrip().startswith(("[", "{")):
        return tomllib.loads(f"value = {typed}")["value"]
    return typed
