"""What a plan is made from: entries, locations, pools and filesystems at one moment. Values only.

The daemon measures and fills these in; nothing here is read from a disk or a clock. Sizes are
allocated bytes (`st_blocks * 512`), times are nanoseconds since the epoch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cachewarden_policies.policy import Limits, Policy
from cachewarden_policies.reasons import Cost, KeepReason, LastUseSource


@dataclass(frozen=True, slots=True)
class Share:
    """Data that several entries of one location use; it goes off the location with the last of them.

    `owners` are indices into `Location.entries`. `inodes` is what the disk gets back with it; an
    `outside` share has a link beyond the location, so the disk gets back nothing. A `kept` share
    stays even when the last owner goes (a payload whose list of users is missing: never guess).
    """

    owners: tuple[int, ...]
    bytes: int
    files: int
    outside: bool = False
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry as the planner sees it. `bytes` and `files` are what is attributed to it.

    `own_bytes`/`own_files` come off the location when this entry alone goes; `disk_bytes` and
    `disk_inodes` are what the disk gets back then. Data in `shares` (indices into
    `Location.shares`) is in none of the four. `veto` is a hard guard that the daemon found.
    `changed_ns` is the newest of mtime and ctime of its files (mtime alone with `ignore_ctime`).
    """

    name: bytes
    bytes: int
    files: int
    own_bytes: int
    own_files: int
    disk_bytes: int
    disk_inodes: int
    last_use_ns: int
    last_use_source: LastUseSource
    changed_ns: int
    first_seen_ns: int
    cost: Cost = Cost.DOWNLOAD
    owner: int = 0
    partial: bool = False
    stale: bool = False
    veto: KeepReason | None = None
    shares: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """What is stored, in the three dimensions that limits count."""

    bytes: int = 0
    files: int = 0
    entries: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.bytes + other.bytes, self.files + other.files, self.entries + other.entries)

    def __sub__(self, other: "Usage") -> "Usage":
        return Usage(self.bytes - other.bytes, self.files - other.files, self.entries - other.entries)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What restrains a location in this pass, beside its policy.

    `waiting`: an earlier pass met `max_share` and nobody confirmed yet. `confirmed`: `max_share` does
    not apply to this pass. `*_at_start` and `evicted_*` describe the pass so far: a pass plans
    again when a victim turned out to be busy, and the brake must see the whole pass, and limits where it
    began. `evicted_for` has what of that went for pools, by the scope's name.
    """

    enforce: bool = True
    quiet: bool = False
    learning: bool = False
    clock_suspect: bool = False
    waiting: bool = False
    confirmed: bool = False
    bytes_at_start: int = 0
    files_at_start: int = 0
    entries_at_start: int = 0
    evicted_bytes: int = 0
    evicted_entries: int = 0
    evicted_for: Mapping[str, Usage] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Location:
    """One location: its policy, its usage (foreign bytes and trash included) and its entries.

    `key` is unique over all locations of a situation (the configured name and the path).
    """

    key: str
    policy: Policy
    usage_bytes: int
    usage_files: int
    entries: Sequence[Entry]
    shares: Sequence[Share] = ()
    circumstances: Circumstances = Circumstances()

    @property
    def usage(self) -> Usage:
        """What it holds now."""
        return Usage(self.usage_bytes, self.usage_files, len(self.entries))

    @property
    def usage_at_start(self) -> Usage:
        """What it held when the pass began, or holds now where that is more; now if nothing went yet."""
        past = self.circumstances
        if not past.evicted_entries:
            return self.usage
        return Usage(
            max(self.usage_bytes, past.bytes_at_start),
            max(self.usage_files, past.files_at_start),
            max(len(self.entries), past.entries_at_start),
        )


@dataclass(frozen=True, slots=True)
class Pool:
    """One limit over several locations, which are ranked together. Members are `Location.key`s."""

    name: str
    limits: Limits
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Filesystem:
    """Free space of one filesystem (`f_bavail`, `f_favail`) and the locations on it.

    `pending_bytes` are planned gains of this pass that the filesystem has not shown yet (xfs and
    btrfs free late): they are credited, so that a lagging statvfs does not flush the cache.
    `requested_free` is what `once --free` asks for, beside the policies' floors. `futile`: evicting gave
    this filesystem nothing back, so that its need is stated and nothing goes for it.
    """

    name: str
    size_bytes: int
    avail_bytes: int
    size_inodes: int
    avail_inodes: int
    members: tuple[str, ...]
    pending_bytes: int = 0
    pending_inodes: int = 0
    requested_free: int = 0
    futile: bool = False


@dataclass(frozen=True, slots=True)
class Situation:
    """All that one plan looks at. `now_ns` is the only clock.

    `sure_ns` is given while that clock is in doubt: the earliest that it may be now. Guards are judged by it.
    """

    now_ns: int
    locations: Sequence[Location]
    pools: Sequence[Pool] = ()
    filesystems: Sequence[Filesystem] = ()
    sure_ns: int | None = None
