"""The moves of one victim: out of reach, back again, past the point of no return."""

import errno
import os

from cachewarden.evict.case import Case
from cachewarden.evict.holding import HeldFile
from cachewarden.evict.naming import PURGED
from cachewarden.evict.purge import Purge
from cachewarden.evict.staying import StaysError
from cachewarden.evict.trash import Trash
from cachewarden.report import Failed, Removed
from cachewarden.sums import allocated
from cachewarden_policies.reasons import KeepReason

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.ENAMETOOLONG})


def move(trash: Trash, case: Case) -> None:
    """Move all pieces away, the witness first. What fails is noted in the case; see `put_back`."""
    case.id = trash.new_id()
    index = 0
    while index < len(case.pieces):
        piece = case.pieces[index]
        try:
            trash.put_away(piece, case.id, index)
        except OSError as error:
            if error.errno == errno.EEXIST and index == 0:  # an id that a crash left beside the entry
                case.id = trash.new_id()
                continue
            if error.errno in _NO_ROOM and len(case.pieces) == 1 and isinstance(case.nodes[0], HeldFile):
                case.in_place = True  # one file is removed as a whole by one unlink
                return
            _give_up(case, error, piece.origin)
            return
        index += 1


def _give_up(case: Case, error: OSError, path: bytes) -> None:
    if error.errno == errno.ENOENT:
        case.stays = StaysError(KeepReason.CHANGED)
    else:
        case.outcome = Failed(error.errno or errno.EIO, path)


def put_back(trash: Trash, case: Case) -> None:
    """Bring all pieces home, the witness last.

    Where somebody took a place meanwhile, what is there now stays and the piece remains in the trash until
    nobody uses it (`recovery`).
    """
    case.rolled_back = True
    for piece in reversed(case.pieces):
        try:
            case.rolled_back &= trash.put_back(piece)
        except OSError as error:
            case.rolled_back = False
            case.outcome = Failed(error.errno or errno.EIO, piece.origin)
    if case.open:  # neither staying nor failed: something unexpected is on its way up
        case.stays = StaysError(KeepReason.UNKNOWN)
    if case.late:  # renaming set their ctime, which would look like a change when it is tried again
        for node in case.nodes:
            if not isinstance(node, os.stat_result):
                trash.traces.note(node.found, os.fstat(node.fd))


def commit(trash: Trash, case: Case) -> bool:
    """Pass the point of no return. False: that failed, and the victim is back."""
    piece = case.pieces[0]
    try:
        if case.in_place:
            _unlink_in_place(case)
        else:
            # The witness speaks for all pieces: one rename decides for the whole entry.
            trash.rename(piece, PURGED)
    except OSError as error:
        put_back(trash, case)
        case.outcome = Failed(error.errno or errno.EIO, piece.origin)
        return False
    return True


def _unlink_in_place(case: Case) -> None:
    piece, node = case.pieces[0], case.nodes[0]
    assert isinstance(node, HeldFile)
    found = os.stat(piece.home_name, dir_fd=piece.home_fd, follow_symlinks=False)
    if (found.st_dev, found.st_ino) != node.inode:
        raise OSError(errno.ESTALE, "another file took its place")
    os.unlink(piece.home_name, dir_fd=piece.home_fd)
    gone = found.st_nlink == 1
    case.outcome = Removed(allocated(found) if gone else 0, int(gone))


def unlink(trash: Trash, case: Case) -> None:
    """Unlink a committed victim, the witness last, and set its outcome."""
    purge = Purge(trash.traces)
    try:
        # The witness last: as long as anything is left, its name says that all of it is to go.
        for piece, node in reversed(list(zip(case.pieces, case.nodes, strict=True))):
            unfinished = any(each.away and not each.stray for each in case.pieces if each is not piece)
            if piece.away and not (piece is case.pieces[0] and unfinished):
                purge.held(trash, piece, node)
    finally:
        case.holding.release_directories()
    if purge.error is not None:
        case.outcome = Failed(*purge.error)
    elif case.outcome is None:
        case.outcome = Removed(purge.freed.bytes, purge.freed.inodes)
