"""The weaker form, for a victim with more files than descriptors may be open at once.

It is moved out of reach first and leased afterwards, in rounds: some files are opened, leased, found
unused and closed again, then the next. Nobody can reach the files by path meanwhile; who stood in the
entry is found by the look, who had a file open by its lease, and then everything is put back. What the
stronger form does beyond that: it never moves an entry in vain, and holds all leases at one moment.
"""

import os
import stat
from contextlib import suppress

from cachewarden.evict import case as steps
from cachewarden.evict.batch import Means
from cachewarden.evict.case import Case
from cachewarden.evict.ground import Ground
from cachewarden.evict.husks import remove_husks
from cachewarden.evict.locks import SoftLocks, lock
from cachewarden.evict.moving import commit, move, put_back
from cachewarden.evict.purge import Purge
from cachewarden.evict.staying import AbsentError, StaysError, stays_because
from cachewarden.evict.traces import Traces
from cachewarden.evict.trash import Piece
from cachewarden.evict.victim import Inode
from cachewarden.evict.walk import walk
from cachewarden.kernel import leases
from cachewarden.report import Failed, Gone, Removed, Spared
from cachewarden.sums import Sums
from cachewarden.tree import ABSENT, open_quietly, split_path
from cachewarden_policies.reasons import KeepReason

_ROUND = 64  # files that are open and leased at the same time
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Survey:
    """Sums, directories and a fingerprint over pieces, while each file is leased for a moment.

    The fingerprint is the sum of a hash for each name: its directory, name, inode, type, size, mtime and
    link count. Two surveys with the same one saw the same tree. `take_leases` false only adds up.
    """

    def __init__(self, traces: Traces, *, take_leases: bool = True) -> None:
        self._take_leases = take_leases
        self.sums = Sums()
        self.fingerprint = 0
        self.directories: set[Inode] = set()
        self._traces = traces
        self._round: list[int] = []
        self._leased: set[Inode] = set()

    def add(self, fd: int, name: bytes) -> None:
        """Survey one piece. Raises StaysError."""
        try:
            if stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                walk(fd, os.fsdecode(name), self._enter)
            else:
                self._child(fd, os.fsdecode(name), 0, named=False)
        except OSError as error:
            raise stays_because(error) from error
        finally:
            self._give_back()

    def _enter(self, fd: int, found: os.stat_result) -> list[str]:
        inode = (found.st_dev, found.st_ino)
        if self._take_leases and not lock(fd):
            raise StaysError(KeepReason.LOCKED, (inode,))
        self.directories.add(inode)
        self._count(found, 0, "")
        return [name for name in os.listdir(fd) if self._child(fd, name, found.st_ino)]

    def _child(self, fd: int, name: str, above: int, *, named: bool = True) -> bool:
        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            self.fingerprint += hash((above, name, found.st_ino))
            return True
        if not stat.S_ISREG(found.st_mode) and not stat.S_ISLNK(found.st_mode):
            raise StaysError(KeepReason.UNKNOWN)
        if stat.S_ISREG(found.st_mode) and self._take_leases:
            self._lease(fd, name, (found.st_dev, found.st_ino))
        self._count(found, above, name if named else "")
        return False

    def _count(self, found: os.stat_result, above: int, name: str) -> None:
        self.sums.add(self._traces.as_measured(found))
        seen = (above, name, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_nlink)
        self.fingerprint += hash(seen)

    def _lease(self, dir_fd: int, name: str, inode: Inode) -> None:
        if inode in self._leased:  # another name of a file of this round: a second open would break it
            return
        if len(self._round) >= _ROUND:
            self._give_back()
        fd = open_quietly(os.fsencode(name), _FILE, dir_fd)
        self._round.append(fd)
        code = leases.take(fd)
        if code:
            raise StaysError(stays_because(OSError(code, "")).reason, (inode,))
        self._leased.add(inode)

    def _give_back(self) -> None:
        for fd in self._round:
            with suppress(OSError):
                leases.give_back(fd)
            os.close(fd)
        self._round.clear()
        self._leased.clear()


def evict_in_rounds(means: Means, case: Case) -> None:
    """Evict one victim this way and set its outcome."""
    ground = Ground(means.trash.root_fd, SoftLocks(means.now_ns))
    case.stays = case.outcome = None
    case.pieces.clear()
    try:
        _take_away(means, case, ground)
        if commit(means.trash, case):
            means.at("committed")
            _unlink(means, case)
            remove_husks(case.victim.husks, ground, means.trash.traces)
    except AbsentError:
        case.outcome = Gone()
    except StaysError as error:
        case.stays = error
    finally:
        if case.moved and not isinstance(case.outcome, Removed | Failed):
            put_back(means.trash, case)
        ground.close()
    if case.outcome is None and case.stays is not None:
        named = means.surroundings.who(set(case.stays.inodes)) if case.stays.inodes else {}
        holders = tuple(each for inode in case.stays.inodes for each in named.get(inode, ()))
        standing = means.surroundings.name(case.stays.holders)
        case.outcome = Spared(case.stays.reason, standing + holders, case.rolled_back)


def _take_away(means: Means, case: Case, ground: Ground) -> None:
    victim, trash = case.victim, means.trash
    steps.check_apart(victim, ground)
    for path in victim.locks:
        ground.lock_file(path, {}, victim.soft_lock_age)
    case.husks = steps.husks_of(victim, ground)
    _find(case, ground)
    own = len(victim.paths)
    before = _survey(means, case.pieces[:own])
    sums = (before.sums.bytes, before.sums.files, before.sums.newest_ns)
    if sums != (victim.listed_bytes, victim.listed_files, victim.newest_ns):
        raise StaysError(KeepReason.CHANGED)
    shared = _survey(means, case.pieces[own:])
    means.at("opened")
    _look(means, case, before.directories | shared.directories)
    _check_openers(means, case)  # the look took its time, and no lease keeps anybody out
    move(trash, case)
    if not case.open:
        raise case.stays or StaysError(KeepReason.UNKNOWN)
    means.at("moved")
    _look(means, case, before.directories | shared.directories)
    after = _survey(means, case.pieces[:own]), _survey(means, case.pieces[own:])
    if (after[0].fingerprint, after[1].fingerprint) != (before.fingerprint, shared.fingerprint):
        raise StaysError(KeepReason.CHANGED)
    _check_openers(means, case)
    means.at("verified")


def _find(case: Case, ground: Ground) -> None:
    victim = case.victim
    first = None
    for path in (*victim.paths, *victim.shared_out):
        parent, name = split_path(path)
        try:
            steps.require_plain(name)
            home = ground.directory(parent)
            found = os.stat(name, dir_fd=home, follow_symlinks=False)
        except OSError as error:
            if error.errno not in ABSENT:
                raise stays_because(error) from error
            if path in victim.shared_out:
                continue
            raise (AbsentError() if first is None else StaysError(KeepReason.CHANGED)) from error
        first = first or found
        case.pieces.append(Piece(home, name, path))
    if first is None or (first.st_dev, first.st_ino) != (victim.dev, victim.ino):
        raise StaysError(KeepReason.CHANGED)


def _survey(means: Means, pieces: list[Piece]) -> Survey:
    survey = Survey(means.trash.traces)
    for piece in pieces:
        survey.add(*piece.here)
    return survey


def _look(means: Means, case: Case, directories: set[Inode]) -> None:
    _check_openers(means, case)
    sight = means.surroundings.look()
    for piece in case.pieces:
        fd, at = piece.here
        base, at = (fd, at) if piece.away else (means.trash.root_fd, piece.origin)
        busy = means.busy(sight, base)
        if busy is None:
            raise StaysError(KeepReason.UNKNOWN)
        if any(steps.within(path, at) or steps.within(at, path) for path in busy):
            raise StaysError(KeepReason.MOUNTPOINT)
    if holders := sight.standing_in(directories | case.husks):
        raise StaysError(KeepReason.IN_USE, holders=holders)


def _check_openers(means: Means, case: Case) -> None:
    means.openers.drain()
    if means.openers.holds(case.victim.name):
        raise StaysError(KeepReason.LIVE_OPENER)


def _unlink(means: Means, case: Case) -> None:
    purge = Purge(means.trash.traces)
    for piece in reversed(case.pieces):
        purge.unlisted(means.trash, piece)
    if purge.error is not None:
        case.outcome = Failed(*purge.error)
    else:
        case.outcome = Removed(purge.freed.bytes, purge.freed.inodes)
