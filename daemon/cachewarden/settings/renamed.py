"""Keys that have a new name: the old one works for two minor versions, with a warning."""

from collections.abc import Mapping

from cachewarden.settings.layers import Layer, dotted
from cachewarden.settings.locate import Path

Renames = Mapping[Path, str]

# Old key (`*` stands for any name) -> new last part, for example
# ("policies", "*", "max_bytes"): "max_size". Entries go after two minor versions.
RENAMED: Renames = {}


def rename(layer: Layer, renames: Renames) -> None:
    """Give the old keys of one layer their new names; notes warnings, and a problem where both are set."""
    for path in list(layer.origins):
        for old, new in renames.items():
            if len(path) == len(old) and all(
                want in ("*", part) for part, want in zip(path, old, strict=True)
            ):
                _rename(layer, path, (*path[:-1], new))


def _rename(layer: Layer, old: Path, new: Path) -> None:
    if new in layer.origins:
        layer.problems.append(layer.problem(old, f"is set beside {dotted(new)}, its new name"))
        return
    layer.warnings.append(layer.problem(old, f"is called {dotted(new)} now; the old name will go"))
    table = layer.value(old[:-1])
    table[new[-1]] = table.pop(old[-1])
    for path in [each for each in layer.origins if each[: len(old)] == old]:
        layer.origins[(*new, *path[len(old) :])] = layer.origins.pop(path)
