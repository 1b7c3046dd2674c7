"""What this kernel, our rights and the limits in force allow, whatever the filesystem."""

import os
import re
import resource
from collections.abc import Iterator
from typing import Final

from cachewarden.doctor.finding import Finding, good, named, note, weaker
from cachewarden.holders import snapshot, uses
from cachewarden.kernel.capabilities import effective
from cachewarden.kernel.fanotify import detect
from cachewarden.mountinfo import foreign_mounts

# The oldest kernel that this version is made for (a long-term one): fanotify with directories, openat2.
_OLDEST = (5, 10)
# What is lost without each.
_CAPABILITIES: Final = {
    "CAP_CHOWN": "a trash in a user's directory cannot be given to that user",
    "CAP_DAC_OVERRIDE": "entries in directories of others cannot be moved",
    "CAP_DAC_READ_SEARCH": "caches of others cannot be measured",
    "CAP_FOWNER": "measuring moves the access times of what others own",
    "CAP_LEASE": "whether files of others are in use stays unknown, and they stay",
    "CAP_SYS_ADMIN": "opens are not seen, nor what is mapped on an overlay",
    "CAP_SYS_PTRACE": "who stands in an entry is seen of our own processes only",
}
_FEW_WATCHES = 65_536
_FEW_DESCRIPTORS = 65_536
_OUR_LEASES_SECONDS = 2  # they last for one second at most
_SHOWN = 5


def machine_findings(*, user_mode: bool) -> Iterator[Finding]:
    """Everything that is the same for all locations. `user_mode`: as an ordinary user, with --user."""
    yield _kernel(os.uname().release)
    yield _capabilities(user_mode=user_mode)
    yield from _processes()
    yield _opens()
    yield _leases()
    yield _watches()
    yield _descriptors()


def _kernel(release: str) -> Finding:
    numbers = re.match(r"(\d+)\.(\d+)", release)
    version = (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)
    if version < _OLDEST:
        return weaker(
            "kernel", f"Linux {release} is older than 5.10: parts are missing", "use a newer kernel"
        )
    return good("kernel", f"Linux {release} has what this version needs")


def _capabilities(*, user_mode: bool) -> Finding:
    held = effective()
    missing = {name: lost for name, lost in _CAPABILITIES.items() if name not in held}
    if not missing:
        return good("capabilities", "all that are needed are there")
    if user_mode:
        return note(
            "capabilities", "none, as for any user: caches that you own are looked after, and no others"
        )
    lost = "; ".join(f"{name}: {each}" for name, each in missing.items())
    return weaker("capabilities", f"missing: {lost}", "give the service these capabilities (see its unit)")


def _processes() -> Iterator[Finding]:
    seen = uses(frozenset())
    if not seen.all_visible:
        yield weaker(
            "processes",
            "not all are visible: we are in a pid namespace of our own, or /proc hides others (hidepid). "
            "Leases see their open files; who only stands in an entry is not seen",
            "run the service on the host or in its pid namespace, with CAP_SYS_PTRACE",
        )
    else:
        unreadable = seen.unreadable | snapshot().unreadable
        if unreadable:
            yield weaker(
                "processes",
                f"{_some(unreadable)} cannot be looked at: leases see their open files; who only stands in "
                "an entry is not seen, and on an overlay nothing goes",
                "run as root with CAP_SYS_PTRACE; a sandbox may hide its first process all the same",
            )
        else:
            yield good("processes", "every process can be looked at")
    hidden = foreign_mounts().unreadable
    if hidden:
        yield weaker(
            "mount namespaces",
            f"of {_some(hidden)} the mounts cannot be read: what they have mounted is not known to be free",
            "run as root with CAP_SYS_PTRACE",
        )
    else:
        yield good("mount namespaces", "the mounts of every container can be read")


def _some(pids: set[int] | tuple[int, ...]) -> str:
    shown = ", ".join(f"{pid} ({_name(pid)})" for pid in sorted(pids)[:_SHOWN])
    more = f" and {len(pids) - _SHOWN} more" if len(pids) > _SHOWN else ""
    return f"{'process' if len(pids) == 1 else 'processes'} {shown}{more}"


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", "rb") as comm:
            return comm.read().decode("utf-8", "replace").strip()
    except OSError:
        return "gone"


def _opens() -> Finding:
    features = detect()
    if not features.usable:
        return weaker(
            "opens",
            "; ".join(features.missing) + "; who opens and closes between two of them is missed",
            "run as root with CAP_SYS_ADMIN, on Linux 5.9 or newer",
        )
    if features.missing:
        return note("opens", "; ".join(features.missing))
    return good("opens", "fanotify reports who opens what")


def _leases() -> Finding:
    try:
        enabled, seconds = _number("/proc/sys/fs/leases-enable"), _number("/proc/sys/fs/lease-break-time")
    except (OSError, ValueError) as error:
        return weaker("leases", f"whether leases are enabled cannot be read: {error}")
    if not enabled:
        return weaker("leases", "leases are turned off: nothing goes", "sysctl fs.leases-enable=1")
    if 0 < seconds < _OUR_LEASES_SECONDS:
        return weaker(
            "leases",
            f"the kernel breaks a lease after {seconds} s, perhaps before we are done: entries go back then",
            "sysctl fs.lease-break-time=45",
        )
    return good(
        "leases",
        f"enabled; whoever waits for ours waits for one second at most (the kernel's limit: {seconds} s)",
    )


def _watches() -> Finding:
    try:
        watches = _number("/proc/sys/fs/inotify/max_user_watches")
        instances = _number("/proc/sys/fs/inotify/max_user_instances")
    except (OSError, ValueError) as error:
        return weaker("inotify", f"its limits cannot be read ({named(getattr(error, 'errno', None))})")
    found = f"{watches:,} watches, {instances:,} instances; a directory takes one watch"
    if watches < _FEW_WATCHES:
        advice = "sysctl fs.inotify.max_user_watches=524288"
        return weaker("inotify", f"{found}: what is above that is looked at once per interval only", advice)
    return good("inotify", found)


def _descriptors() -> Finding:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < _FEW_DESCRIPTORS:
        return weaker(
            "descriptors",
            f"{hard:,} at most: an entry of more than {hard // 2:,} files is moved first, leased in rounds",
            "LimitNOFILE=1048576 in the unit, or ulimit -Hn",
        )
    return good("descriptors", "enough to hold all files of a large entry at once")


def _number(path: str) -> int:
    with open(path, encoding="ascii") as file:
        return int(file.read())
