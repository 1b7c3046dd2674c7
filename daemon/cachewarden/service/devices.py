"""On which filesystem a path lies, without touching the path: a stat on a hung mount never returns."""

from collections.abc import Iterable, Mapping

from cachewarden.mountinfo import Mount, own_mounts, relative
from cachewarden.spec import LocationSpec


def devices(specs: Iterable[LocationSpec]) -> Mapping[str, bytes]:
    """The filesystem (major:minor) of each location, by key, from the mount table alone."""
    table = own_mounts()
    return {spec.key: mount_above(table, spec.path).major_minor for spec in specs}


def mount_above(table: Iterable[Mount], path: bytes) -> Mount:
    """The mount that an absolute path lies on."""
    # The longest mount point wins; of mounts on one point, the last lies on top.
    best: Mount | None = None
    for mount in table:
        above = relative(path, mount.point) is not None
        if above and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    assert best is not None, "every absolute path lies on the root mount"
    return best
