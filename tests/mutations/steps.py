"""The steps of an eviction, and how each is taken out: edits of the source, and where to look for red."""

from dataclasses import dataclass

_EVICT = "daemon/cachewarden/evict"
_CASE, _BATCH, _MOVING = f"{_EVICT}/case.py", f"{_EVICT}/batch.py", f"{_EVICT}/moving.py"


@dataclass(frozen=True)
class Edit:
    """In `file`, the only occurrence of `old` becomes `new`."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Mutation:
    """A step taken out. `tests` are those to run, the most likely first; `only` is pytest's -k."""

    step: str
    without: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]
    only: str = ""


def _empty(file: str, signature: str) -> Edit:
    """A function that does nothing any more. `signature` up to the colon that ends its line."""
    return Edit(file, f"{signature}\n", f"{signature}\n    return\n")


_RACES = "tests/daemon/test_evict_races.py"
_IN_USE = "tests/daemon/test_evict_in_use.py"
_CRASH = "tests/daemon/test_evict_crash.py"
_EVICTING = "tests/daemon/test_evict.py"
_MOUNTS = "tests/daemon/test_hostile_mounts.py"

_NO_LEASE = _empty(_CASE, "def lease(case: Case) -> None:")
_NO_DOOR = _empty(_CASE, "def check_door(case: Case) -> None:")
_NO_LEASE_CHECK = _empty(_CASE, "def check_leases(case: Case) -> None:")
_STANDING = "steps.check_standing(case, sight)"
_HERE, _AWAY = "steps.check_mounts(case, busy)", "steps.check_mounts_away(case, known)"
_MOUNTS_AWAY = "def check_mounts_away(case: Case, busy: Mapping[int, AbstractSet[bytes]]) -> None:"
_NEW_NAME = "name = PieceName(MOVED, self.location"
_LAST = """for piece, node in reversed(list(zip(case.pieces, case.nodes, strict=True))):
            unfinished = any(each.away and not each.stray for each in case.pieces if each is not piece)
"""
_FIRST = """for piece, node in zip(case.pieces, case.nodes, strict=True):
            unfinished = False
"""
_HOLDS = "openers.holds(case.victim.name)"

MUTATIONS = (
    Mutation(
        "lease",
        "no lease is taken, and none is asked for again",
        (_NO_LEASE, _NO_DOOR, _NO_LEASE_CHECK),
        (_IN_USE,),
    ),
    Mutation(
        "drain before",
        "live openers are not asked for between the lease and the move",
        (Edit(_BATCH, f"if self._means.{_HOLDS}", "if False"),),
        (_EVICTING,),
        "live_opener",
    ),
    Mutation(
        "drain after",
        "live openers are not asked for after the move",
        (Edit(_BATCH, f"if means.{_HOLDS}", "if False"),),
        (_EVICTING,),
        "live_opener",
    ),
    Mutation(
        "re-ask before",
        "whoever came to the door since the lease is not noticed before the move",
        (_NO_DOOR,),
        (_RACES,),
        "door",
    ),
    Mutation(
        "re-ask after",
        "whoever came to the door since the move is not noticed",
        (_NO_LEASE_CHECK,),
        (_RACES,),
        "door or opener",
    ),
    Mutation(
        "identity: inode",
        "an entry of the same name and size counts as the planned one",
        (
            Edit(
                _CASE,
                "if (first.st_dev, first.st_ino) != (victim.dev, victim.ino):",
                "if False:",
            ),
        ),
        ("tests/daemon/test_evict_identity.py", _RACES),
    ),
    Mutation(
        "identity: sums",
        "size, number of files and newest time are not compared with what was planned",
        (
            Edit(
                _CASE,
                "if found != (victim.listed_bytes, victim.listed_files, victim.newest_ns):",
                "if False:",
            ),
        ),
        (_RACES,),
        "measured",
    ),
    Mutation(
        "directory look before",
        "a process that stands in the entry is only found after the move",
        (
            Edit(
                _BATCH,
                f"{_HERE}\n                {_STANDING}",
                _HERE,
            ),
        ),
        (_IN_USE,),
    ),
    Mutation(
        "directory look after",
        "a process that stepped in since is not looked for",
        (
            Edit(
                _BATCH,
                f"{_AWAY}\n                {_STANDING}",
                _AWAY,
            ),
        ),
        (_RACES,),
        "steps_into",
    ),
    Mutation(
        "mount look before",
        "a mount inside is only found after the move",
        (_empty(_CASE, "def check_mounts(case: Case, busy: AbstractSet[bytes]) -> None:"),),
        (_IN_USE,),
        "containers or mounts",
    ),
    Mutation(
        "mount look after",
        "a mount that appeared since is not looked for",
        (_empty(_CASE, _MOUNTS_AWAY),),
        (_MOUNTS,),
    ),
    Mutation(
        "verify after rename",
        "what was moved is not compared with what was leased",
        (
            _empty(_CASE, "def verify(case: Case) -> None:"),
            _empty(_CASE, "def check_directories(case: Case) -> None:"),
        ),
        (_RACES,),
    ),
    Mutation(
        "name m",
        "moved entries are called `p-` from the start: a crash finishes what was never verified",
        (
            Edit(
                f"{_EVICT}/trash.py",
                _NEW_NAME,
                _NEW_NAME.replace("MOVED", "b'p'"),
            ),
        ),
        (_CRASH,),
        "at_a_step and moved",
    ),
    Mutation(
        "name p",
        "entries stay `m-` while they are unlinked: a crash brings back half of one",
        (Edit(_MOVING, "            trash.rename(piece, PURGED)\n", "            pass\n"),),
        (_CRASH,),
        "at_a_step and committed",
    ),
    Mutation(
        "witness out first",
        "the witness is moved last",
        (Edit(_MOVING, "    index = 0\n", "    case.pieces.reverse()\n    index = 0\n"),),
        (_CRASH,),
    ),
    Mutation(
        "witness back last",
        "the witness is put back first",
        (
            Edit(
                f"{_EVICT}/recovery.py",
                "key=lambda each: -each.name.index)",
                "key=lambda each: each.name.index)",
            ),
            Edit(_MOVING, "for piece in reversed(case.pieces):", "for piece in case.pieces:"),
        ),
        ("tests/daemon/test_evict_identity.py", _CRASH),
    ),
    Mutation(
        "witness unlinked last",
        "the witness is unlinked first, and its letter is lost with it",
        (
            Edit(
                _MOVING,
                _LAST,
                _FIRST,
            ),
        ),
        ("tests/daemon/test_evict_identity.py", _CRASH),
    ),
    Mutation(
        "no replacing",
        "coming back replaces what took the place meanwhile",
        (
            Edit(
                f"{_EVICT}/trash.py",
                "rename_back(piece.name.encode(), piece.fd, piece.home_name, piece.home_fd)",
                "os.path.lexists(b'/proc/self/fd/%d/%b' % (piece.home_fd, piece.home_name)) and os.rename("
                "piece.home_name, b'replaced', src_dir_fd=piece.home_fd, dst_dir_fd=piece.home_fd); "
                "rename_back(piece.name.encode(), piece.fd, piece.home_name, piece.home_fd)",
            ),
        ),
        ("tests/daemon/test_evict_identity.py", _RACES),
    ),
    Mutation(
        "locks",
        "locks of others on directories are not asked for",
        (Edit(_CASE, "            ground.lock_directory(directory.fd)", "            pass"),),
        ("tests/daemon/test_evict_locks.py",),
    ),
    Mutation(
        "only what was listed is unlinked",
        "a committed entry is unlinked with all that is in it then",
        (Edit(_MOVING, "purge.held(trash, piece, node)", "purge.unlisted(trash, piece)"),),
        (_RACES,),
        "stranger",
    ),
    Mutation(
        "nothing is followed",
        "directories are opened by following links, and across mounts",
        (
            Edit("daemon/cachewarden/kernel/openat2.py", "0x01 | 0x04 | 0x08 ", "0 "),
            Edit(
                "daemon/cachewarden/kernel/openat2.py",
                "os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC",
                "os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC",
            ),
        ),
        ("tests/daemon/test_hostile_links.py",),
        "sought",
    ),
)
