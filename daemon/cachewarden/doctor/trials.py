"""What is tried in a location's filesystem, with files of our own in a directory in our trash.

Nothing is made in the cache itself, and nothing stays.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from cachewarden.clock import Clock
from cachewarden.doctor.finding import Finding, good, named, note, weaker
from cachewarden.doctor.stranger import stranger
from cachewarden.evict import Trash
from cachewarden.evict.places import Place
from cachewarden.evict.trial import Trial, probe_file, try_leases
from cachewarden.kernel import leases
from cachewarden.kernel.rename import rename_noreplace
from cachewarden.mountinfo import busy_below, foreign_mounts
from cachewarden.paths import show
from cachewarden.tree import open_directory
from cachewarden_policies.policy import SECOND

# A file server's clock that is off by this much makes what is new there look old here, or the reverse.
_SKEW_NS = 2 * SECOND
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


def trial_findings(root_fd: int, path: bytes, clock: Clock) -> Iterator[Finding]:
    """Try the trash, leases, renames, a foreign mount namespace and the clock for one location."""
    with Trash(root_fd, path) as trash:
        place = trash.make()
        if place is None or place.fd is None:
            yield _no_trash(trash)
            return
        yield _trash(place)
        try:
            with _own_directory(place.fd) as (name, fd):
                yield from _tried(fd, name, place.fd, clock)
        except OSError as error:
            yield weaker("trial", f"no file of ours could be made in the trash: {named(error.errno)}")


@contextmanager
def _own_directory(trash_fd: int) -> Iterator[tuple[bytes, int]]:
    name = b"doctor-%d-%s" % (os.getpid(), os.urandom(4).hex().encode())
    os.mkdir(name, 0o700, dir_fd=trash_fd)
    try:
        fd = open_directory(name, trash_fd)
        try:
            yield name, fd
        finally:
            for each in os.listdir(fd):
                os.unlink(each, dir_fd=fd)
            os.close(fd)
    finally:
        os.rmdir(name, dir_fd=trash_fd)


def _tried(fd: int, name: bytes, trash_fd: int, clock: Clock) -> Iterator[Finding]:
    before = clock.wall_ns()
    with probe_file(fd) as file:
        yield _clock(os.stat(file, dir_fd=fd).st_mtime_ns, before, clock.wall_ns())
        trial = try_leases(file, fd)
        yield from _leases(trial)
        yield from _from_elsewhere(fd, file, name, trash_fd, trial)
        yield _rename(fd, file)


def _no_trash(trash: Trash) -> Finding:
    tried = "; ".join(f"{show(each.path)}: {named(each.refused or errno.ENOSPC)}" for each in trash.places)
    return weaker(
        "trash",
        f"it can be nowhere ({tried}): entries get another name in their own directory; nothing was tried",
        "make room, or see to the owner and mode of what is there",
    )


def _trash(place: Place) -> Finding:
    if place.inside:
        return note("trash", f"{show(place.path)}: inside the location, because it is a mount of its own")
    return good("trash", show(place.path))


def _clock(stamp_ns: int, before_ns: int, after_ns: int) -> Finding:
    off = max(before_ns - stamp_ns, stamp_ns - after_ns, 0)
    if off > _SKEW_NS:
        return weaker(
            "clock",
            f"the filesystem's clock is {off / SECOND:.1f} s off: ages and idle times are wrong by that",
            "let a time service set both clocks",
        )
    return good("clock", "the filesystem's clock is ours")


def _leases(trial: Trial) -> Iterator[Finding]:
    if trial.errno:
        why = "neither owner nor CAP_LEASE" if trial.errno == errno.EACCES else "the filesystem has none"
        yield weaker("lease", f"refused: {named(trial.errno)}, {why}: nothing goes")
        return
    if trial.sees_open:
        yield good("lease", "refused while another descriptor is open, granted without")
    else:
        yield weaker("lease", "granted although the file is open: nothing goes that leases alone tell about")
    if trial.sees_mapping:
        yield good("mapping", "a lease sees a file that is mapped and has no descriptor")
    else:
        yield weaker(
            "mapping", "a lease is granted while the file is mapped: looks at all processes must tell"
        )


def _from_elsewhere(fd: int, file: bytes, name: bytes, trash_fd: int, trial: Trial) -> Iterator[Finding]:
    if os.geteuid() != 0:
        yield note("container", "not tried: a mount namespace of its own takes root")
        return
    with stranger(fd, file) as there:
        if not there:
            yield note("container", "not tried: no process could get a mount namespace of its own")
            return
        seen = trial.errno == 0 and _refused(fd, file)
        try:
            mounted = name in busy_below(trash_fd, foreign_mounts())
        except (OSError, LookupError):
            mounted = False
    if seen and mounted:
        yield good("container", "an open file and a mount in a mount namespace of its own are seen")
    else:
        missed = " and ".join(
            what for what, found in (("an open file", seen), ("a mount", mounted)) if not found
        )
        yield weaker("container", f"{missed} in a mount namespace of its own is not seen")


def _refused(fd: int, file: bytes) -> bool:
    descriptor = os.open(file, _READ, dir_fd=fd)
    try:
        code = leases.take(descriptor)
        if code == 0:
            leases.give_back(descriptor)
        return code == errno.EAGAIN
    finally:
        os.close(descriptor)


def _rename(fd: int, file: bytes) -> Finding:
    with probe_file(fd) as other:
        try:
            rename_noreplace(file, fd, other, fd)
        except FileExistsError:
            return good("rename", "a rename that would replace something is refused")
        except OSError as error:
            return note(
                "rename",
                f"not known here ({named(error.errno)}): unique names and link(2) replace nothing either",
            )
    return weaker(
        "rename",
        "a rename that must not replace anything did: what is made in an entry's place meanwhile may be lost",
        "keep no caches on this filesystem",
    )
