"""The command with which each tool prunes its own cache, and where it is told which one.

Facts read in uv (`docs/concepts/cache.md`), pip 26.3 (`_internal/commands/cache.py`), conda
(`cli/main_clean.py`), ccache 4.7 (`doc/MANUAL.adoc`). Bazel has no such command: its collector is a part of
it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_KIB = 1024


@dataclass(frozen=True, slots=True)
class Command:
    """`names` are those that the executable may have; `environment` says which cache is meant.

    `question`: arguments with which the tool says which caches it would prune, see `answers`.
    """

    names: tuple[str, ...]
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    question: tuple[str, ...] = ()


def answers(output: bytes, path: str) -> bool:
    """Whether a tool that was asked said that it means this cache, and no other.

    It says that in JSON, `{"pkgs_dirs": [PATH]}`, with warnings around it perhaps.
    """
    text = output[output.find(b"{") : output.rfind(b"}") + 1]
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("pkgs_dirs") == [path]


def command_for(layout: str, path: str, target_bytes: int | None) -> Command | None:
    """The command for a cache of this layout at `path`; None for a tool without one.

    `target_bytes` is where eviction stops; only ccache can be told.
    """
    make = _COMMANDS.get(layout)
    return None if make is None else make(path, target_bytes)


def _uv(path: str, _: int | None) -> Command:
    return Command(("uv",), ("cache", "prune"), {"UV_CACHE_DIR": path})


def _pip(path: str, _: int | None) -> Command:
    quiet = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PIP_CONFIG_FILE": "/dev/null"}
    return Command(("pip", "pip3"), ("cache", "purge"), {"PIP_CACHE_DIR": path, **quiet})


def _conda(path: str, _: int | None) -> Command:
    # Without --force-pkgs-dirs: packages that environments link to stay.
    arguments = ("clean", "--packages", "--tarballs", "--yes")
    # It cleans what the user's configuration names as well, and takes a colon and `$` for more than a name
    # (`SequenceLoadedParameter.merge` and `expand` in `common/configuration.py`).
    question = ("config", "--show", "pkgs_dirs", "--json")
    return Command(("conda",), arguments, {"CONDA_PKGS_DIRS": path}, question)


def _ccache(path: str, target_bytes: int | None) -> Command:
    # A bare number would be GiB. 0 would be no limit at all.
    limit = {} if target_bytes is None else {"CCACHE_MAXSIZE": f"{max(1, target_bytes // _KIB)}Ki"}
    return Command(("ccache",), ("--cleanup",), {"CCACHE_DIR": path, **limit})


_COMMANDS: Mapping[str, Callable[[str, int | None], Command]] = {
    "uv": _uv,
    "pip": _pip,
    "conda": _conda,
    "ccache": _ccache,
}
