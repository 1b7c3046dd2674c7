"""One victim's way through a batch: opened, compared, looked around, leased, moved, verified."""

import errno
import os
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from operator import attrgetter

from cachewarden.evict.ground import Ground
from cachewarden.evict.holding import Hands, HeldDirectory, Holding, Node, stat_of
from cachewarden.evict.staying import AbsentError, StaysError, stays_because
from cachewarden.evict.traces import Traces
from cachewarden.evict.trash import Piece
from cachewarden.evict.victim import Inode, Sight, Victim
from cachewarden.kernel import leases
from cachewarden.report import EvictionOutcome
from cachewarden.sums import Sums, all_plain
from cachewarden.tree import ABSENT, split_path
from cachewarden_policies.reasons import KeepReason

# The kernel stamps files with a clock that is up to one tick behind (10 ms at CONFIG_HZ=100).
_TICK_NS = 20_000_000


@dataclass(slots=True, eq=False)
class Case:
    """A victim, what of it is open, its pieces (witness first), and how it stands.

    `stays` is set once the victim is to stay, `outcome` when all is over. `nodes` are those of `pieces`.
    `rolled_back`: it was away and is back, all of it.
    """

    victim: Victim
    holding: Holding
    pieces: list[Piece] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    husks: set[Inode] = field(default_factory=set)
    id: bytes = b""
    in_place: bool = False  # one file, no room to rename it: it will be unlinked where it is
    rolled_back: bool = False
    stays: StaysError | None = None
    outcome: EvictionOutcome | None = None

    @property
    def open(self) -> bool:
        """Whether the victim is still on its way off the disk."""
        return self.stays is None and self.outcome is None

    @property
    def late(self) -> bool:
        """Whether it was put back only because time ran out."""
        return self.stays is not None and self.stays.late and self.rolled_back

    @property
    def moved(self) -> bool:
        """Whether any piece is away."""
        return any(piece.away for piece in self.pieces)


def open_case(victim: Victim, ground: Ground, hands: Hands, traces: Traces) -> Case:
    """Take the locks, open everything and compare with what was measured (step 2, up to the leases).

    Raises StaysError, AbsentError, TooManyError; everything opened for it is closed again then.
    """
    case = Case(victim, Holding(hands))
    try:
        check_apart(victim, ground)
        _open_paths(case, ground)
        _compare(case, traces)
        _open_shared(case, ground)
        for directory in case.holding.directories:
            ground.lock_directory(directory.fd)
        opened = hands.descriptors() if victim.locks else {}
        for path in victim.locks:
            ground.lock_file(path, opened, victim.soft_lock_age)
        case.husks = husks_of(victim, ground)
    except BaseException:
        case.holding.release_files()
        case.holding.release_directories()
        raise
    return case


def check_apart(victim: Victim, ground: Ground) -> None:
    """Whether nothing that belongs to other entries lies inside. Raises StaysError."""
    for path in victim.apart:
        parent, name = split_path(path)
        try:
            os.stat(name, dir_fd=ground.directory(parent), follow_symlinks=False)
        except OSError as error:
            if error.errno not in ABSENT:
                raise stays_because(error) from error
        else:
            raise StaysError(KeepReason.SHARED_DATA)


def _open_paths(case: Case, ground: Ground) -> None:
    missing = [path for path in case.victim.paths if not _open_piece(case, path, ground)]
    if len(missing) == len(case.victim.paths):
        raise AbsentError
    if missing:
        raise StaysError(KeepReason.CHANGED)


def _open_piece(case: Case, path: bytes, ground: Ground) -> bool:
    parent, name = split_path(path)
    try:
        require_plain(name)
        home = ground.directory(parent)
        node = case.holding.open(name, home)
    except OSError as error:
        if error.errno in ABSENT:
            return False
        raise stays_because(error) from error
    case.pieces.append(Piece(home, name, path))
    case.nodes.append(node)
    return True


def require_plain(name: bytes) -> None:
    """Raises OSError (EINVAL) for what is no name of a child: the location's root itself cannot go."""
    if name in (b"", b".", b".."):
        raise OSError(errno.EINVAL, "not the name of an entry", name)


def _open_shared(case: Case, ground: Ground) -> None:
    own = len(case.nodes)
    for path in case.victim.shared_out:
        _open_piece(case, path, ground)  # missing: gone with an earlier victim
    since = case.victim.measured_ns
    for node in case.nodes[own:]:
        found = stat_of(node)
        if since is not None and max(found.st_mtime_ns, found.st_ctime_ns) >= since - _TICK_NS:
            raise StaysError(KeepReason.CHANGED)  # somebody took it up since it was measured
    for path in case.victim.shared_in_place:
        parent, name = split_path(path)
        try:
            case.holding.open(name, ground.directory(parent))
        except OSError as error:
            if error.errno not in ABSENT:
                raise stays_because(error) from error


def _compare(case: Case, traces: Traces) -> None:
    holding, victim = case.holding, case.victim
    first = stat_of(case.nodes[0])
    if (first.st_dev, first.st_ino) != (victim.dev, victim.ino):
        raise StaysError(KeepReason.CHANGED)
    sums = Sums()
    files = [traces.as_measured(file.found) for file in holding.files]
    if files and all_plain(files):
        sums.add_plain(files)
    else:
        _add(sums, files)
    _add(sums, (traces.as_measured(directory.found) for directory in holding.directories))
    _add(sums, holding.links)
    found = (sums.bytes, sums.files, sums.newest_ns)
    if found != (victim.listed_bytes, victim.listed_files, victim.newest_ns):
        raise StaysError(KeepReason.CHANGED)


def _add(sums: Sums, found: Iterable[os.stat_result]) -> None:
    for each in found:
        sums.add(each)


def husks_of(victim: Victim, ground: Ground) -> set[Inode]:
    """Inodes of the directories that may go when the victim has left them empty."""
    found = set()
    for path in victim.husks:
        try:
            husk = os.fstat(ground.directory(path))
        except OSError:
            continue
        found.add((husk.st_dev, husk.st_ino))
    return found


def lease(case: Case) -> None:
    """Lease every inode of the victim. Raises StaysError at the first refusal."""
    for file in case.holding.files:
        if file.leased:
            continue
        if file.refused is None:
            code = leases.take(file.fd)
            if code == 0:
                file.leased = True
                continue
            file.refused = stays_because(OSError(code, "")).reason
        raise StaysError(file.refused, (file.inode,))


def rest(case: Case) -> None:
    """Give the victim's leases back for a while; `lease` takes them again."""
    for file in case.holding.files:
        if file.leased:
            leases.give_back(file.fd)
            file.leased = False


def check_door(case: Case) -> None:
    """Whether nobody waits at the door; saves a move in vain. Raises StaysError."""
    for file in case.holding.files:
        if not leases.nobody_waits(file.fd):
            raise StaysError(KeepReason.IN_USE, (file.inode,))


def check_leases(case: Case) -> None:
    """Whether all leases are whole and nobody is about to break one. Raises StaysError."""
    broken = leases.first_broken(file.fd for file in case.holding.files)
    if broken is not None:
        inodes = (file.inode for file in case.holding.files if file.fd == broken)
        raise StaysError(KeepReason.IN_USE, tuple(inodes))


def check_directories(case: Case) -> None:
    """Whether no name came or went, as far as the directories' times tell. Raises StaysError.

    `verify` knows better, and takes longer.
    """
    for directory in case.holding.directories:
        if not _alike(directory.found, os.fstat(directory.fd)):
            raise StaysError(KeepReason.CHANGED)


def check_standing(case: Case, sight: Sight) -> None:
    """Whether no process stands in it. Raises StaysError."""
    holders = sight.standing_in(case.holding.inodes() | case.husks)
    if holders:
        raise StaysError(KeepReason.IN_USE, holders=holders)


def check_mounts(case: Case, busy: AbstractSet[bytes]) -> None:
    """Whether nothing at, in or above it (below the location's root) is mounted. Raises StaysError."""
    for piece in case.pieces:
        for path in busy:
            if within(path, piece.origin) or within(piece.origin, path):
                raise StaysError(KeepReason.MOUNTPOINT)


def check_mounts_away(case: Case, busy: Mapping[int, AbstractSet[bytes]]) -> None:
    """The same after the move; `busy` has the mounts beneath each directory that pieces are in now."""
    for piece in case.pieces:
        fd, at = piece.here
        if any(within(path, at) for path in busy[fd]):
            raise StaysError(KeepReason.MOUNTPOINT)


def within(path: bytes, base: bytes) -> bool:
    """Whether `path` is `base` or lies in it."""
    return path == base or path.startswith(base + b"/")


def verify(case: Case) -> None:
    """Whether what was moved is what was leased, and nothing else. Opens nothing. Raises StaysError."""
    for piece, node in zip(case.pieces, case.nodes, strict=True):
        fd, name = piece.here
        try:
            there = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except OSError as error:
            raise StaysError(KeepReason.CHANGED) from error
        if not _alike(stat_of(node), there):
            raise StaysError(KeepReason.CHANGED)
    for directory in case.holding.directories:
        _verify_directory(directory)
    for file in case.holding.files:
        if not _alike(file.found, os.fstat(file.fd)):
            raise StaysError(KeepReason.CHANGED, (file.inode,))


def _verify_directory(directory: HeldDirectory) -> None:
    # scandir duplicates the descriptor and rewinds it; it opens nothing.
    with os.scandir(directory.fd) as children:
        seen = {child.name: child.inode() for child in children}
    expected = {name: file.found.st_ino for name, file in directory.files.items()}
    expected |= {name: below.found.st_ino for name, below in directory.directories.items()}
    for name, link in directory.links.items():
        expected[name] = link.st_ino
        try:
            now = os.stat(name, dir_fd=directory.fd, follow_symlinks=False)
        except OSError as error:
            raise StaysError(KeepReason.CHANGED) from error
        if not _alike(link, now):
            raise StaysError(KeepReason.CHANGED)
    if seen != expected:
        raise StaysError(KeepReason.CHANGED)


_identity = attrgetter("st_ino", "st_dev", "st_mtime_ns", "st_nlink", "st_size")


def _alike(before: os.stat_result, now: os.stat_result) -> bool:
    """The same inode, unchanged. Not ctime: our own rename sets it. A directory's mtime stays then."""
    return _identity(before) == _identity(now)
