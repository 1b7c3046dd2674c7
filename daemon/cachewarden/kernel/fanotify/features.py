"""What this kernel lets us see of opens, found out by trying: versions lie where distributions backport."""

import errno
from dataclasses import dataclass

from cachewarden.kernel.fanotify.group import Group, Kind


@dataclass(frozen=True, slots=True)
class Features:
    """What works here. `missing` says in sentences what does not, and what is used in its place.

    `usable`: groups that report directories and processes (Linux 5.9, CAP_SYS_ADMIN). `pidfds`: Linux
    5.15. `ignore`: marks that silence directories (Linux 6.0).
    """

    usable: bool
    pidfds: bool = False
    ignore: bool = False
    missing: tuple[str, ...] = ()


def detect() -> Features:
    """Try everything once. Leaves nothing behind, and raises nothing."""
    try:
        Group(Kind()).close()
    except OSError as error:
        return Features(usable=False, missing=(f"opens are not seen ({_why(error)}): samples of /proc",))
    missing = []
    pidfds = _accepts(Kind(pidfds=True))
    if not pidfds:
        missing.append("events without pidfds (Linux 5.15): processes are told apart by their start alone")
    ignore = _ignores()
    if not ignore:
        missing.append("directories cannot be silenced (Linux 6.0): opens elsewhere are sorted out here")
    return Features(usable=True, pidfds=pidfds, ignore=ignore, missing=tuple(missing))


def _accepts(kind: Kind) -> bool:
    try:
        Group(kind).close()
    except OSError:
        return False
    return True


def _ignores() -> bool:
    with Group(Kind()) as group:
        try:
            group.ignore(b"/")
        except OSError as error:
            # Flags are looked at before the filesystem is: any other error means that they are known.
            return error.errno != errno.EINVAL
    return True


def _why(error: OSError) -> str:
    reasons = {
        errno.EPERM: "CAP_SYS_ADMIN is missing",
        errno.ENOSYS: "the kernel has no fanotify",
        errno.EINVAL: "the kernel is older than Linux 5.9",
        errno.EMFILE: "fs.fanotify.max_user_groups is used up",
    }
    return reasons.get(error.errno or 0, str(error))
