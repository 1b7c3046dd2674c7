"""What is in a location: claims that a layout makes, and the entries that measuring makes of them.

All paths are bytes relative to the location's root, without a leading or trailing slash; `b""` is
the root itself. Sizes are allocated bytes, times nanoseconds since the epoch.
"""

from dataclasses import dataclass

from cachewarden_policies.reasons import Cost, KeepReason


@dataclass(frozen=True, slots=True)
class Claim:
    """What a layout says of one entry, before it is measured.

    `name` is unique in the location: the relative path, or `PATH@NAME` where several entries share a
    directory. `paths` are what goes, the witness (whose presence means "complete") first; a claim
    inside another claim's path belongs to the inner one. `keep` is a hard guard of the layout.
    `locks` are existing lock files to be held while it goes; they are never removed. `shared` names
    `SharedClaim.path`s that it uses. `husks` are directories to be removed when this left them
    empty, deepest first. `formerly` is the name that the same thing had when its surroundings were
    others (a revision that is now its repository's only one): what is remembered of it is still true.
    `quiet` are those of `paths` that are read by whoever only lists what is there: that is no use.
    While a living process opened one entry of a `series`, none of that series goes.
    """

    name: bytes
    paths: tuple[bytes, ...]
    kind: str = "plain"
    layout: str = "plain"
    cost: Cost = Cost.DOWNLOAD
    keep: KeepReason | None = None
    partial: bool = False
    stale: bool = False
    locks: tuple[bytes, ...] = ()
    shared: tuple[bytes, ...] = ()
    husks: tuple[bytes, ...] = ()
    formerly: bytes | None = None
    quiet: tuple[bytes, ...] = ()
    series: bytes | None = None


@dataclass(frozen=True, slots=True)
class SharedClaim:
    """Data with a path of its own that several claims use: it goes with the last of them.

    `companions` go with it, before it (a payload's list of users after it would be a leak for ever).
    A `kept` one never goes: its users cannot be known for sure. `quiet` as in `Claim`, for all of it.
    """

    path: bytes
    companions: tuple[bytes, ...] = ()
    locks: tuple[bytes, ...] = ()
    kept: bool = False
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Foreign:
    """Something in a recognised cache that belongs to no entry. `known`: harmless furniture, no warning."""

    path: bytes
    known: bool = False


@dataclass(frozen=True, slots=True)
class Split:
    """How a layout divides a location. Whatever no claim covers is foreign all the same."""

    layout: str
    claims: tuple[Claim, ...] = ()
    shared: tuple[SharedClaim, ...] = ()
    foreign: tuple[Foreign, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Measure:
    """Sums over one claim's tree.

    `newest_ns` is the identity stamp: the newest mtime of everything in it, and the newest ctime of
    everything that has one link (the ctime of a hard-linked inode changes when a link elsewhere
    goes). `mtime_ns` and `ctime_ns` are the newest of files and symbolic links (of the directory where
    there are none), for last use; `atime_ns` that of regular files alone, as our own look refreshes the
    others. `obstacle`: MOUNTPOINT when another mount is
    inside, UNKNOWN when a part could not be read. `bytes` counts an inode shared with another claim
    for the first of the two by name.
    """

    bytes: int = 0
    files: int = 0
    inodes: int = 0
    newest_ns: int = 0
    mtime_ns: int = 0
    ctime_ns: int = 0
    atime_ns: int = 0
    obstacle: KeepReason | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One measured entry. `dev`, `ino`, `owner` are those of `claim.paths[0]`.

    The four gains are what goes with this entry alone; data in `shares` (indices into
    `Inventory.shares`) is in none of them. `listed_bytes`/`listed_files` count every inode found
    under its paths, shared ones too: what eviction must find again.
    """

    claim: Claim
    dev: int
    ino: int
    owner: int
    measure: Measure
    own_bytes: int
    own_files: int
    disk_bytes: int
    disk_inodes: int
    listed_bytes: int
    listed_files: int
    shares: tuple[int, ...] = ()

    @property
    def name(self) -> bytes:
        """The claim's name."""
        return self.claim.name


@dataclass(frozen=True, slots=True)
class SharedData:
    """Data of several entries: hard links among them (`claim` is None) or a `SharedClaim`.

    `outside`: a link leads out of the location, so that the disk gets nothing back.
    `owners` are indices into `Inventory.entries`.
    """

    owners: tuple[int, ...]
    bytes: int
    files: int
    outside: bool = False
    claim: SharedClaim | None = None


@dataclass(frozen=True, slots=True)
class Inventory:
    """All of a location at one moment. `bytes` = entries + foreign + trash; the same for `files`.

    `unreadable` lists (path, errno) of parts that make the figures a lower bound (`complete` is
    false then). `mounts` are paths at which another mount sits. `aside` are directories in which an
    interrupted eviction left entries under names of its own.
    """

    dev: int
    ino: int
    layout: str
    entries: tuple[Entry, ...] = ()
    shares: tuple[SharedData, ...] = ()
    foreign: tuple[tuple[Foreign, int], ...] = ()
    unreadable: tuple[tuple[bytes, int], ...] = ()
    mounts: tuple[bytes, ...] = ()
    aside: frozenset[bytes] = frozenset()
    warnings: tuple[str, ...] = ()
    foreign_bytes: int = 0
    trash_bytes: int = 0
    files: int = 0
    bytes: int = 0  # last: in a class body, this name hides the type

    @property
    def complete(self) -> bool:
        """Whether everything could be read; otherwise all figures are lower bounds."""
        return not self.unreadable
