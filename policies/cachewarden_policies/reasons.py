"""Why an entry goes, why it stays, and where a last use comes from.

Every verdict carries one of these members. The member's value is the log field, the metric label and
the JSON string; `sentence` is what a person reads. They are part of the outside face: renaming one
breaks dashboards.
"""

from enum import StrEnum
from typing import Self


class _Sentenced(StrEnum):
    """A string enum whose members also know the sentence that explains them."""

    sentence: str

    def __new__(cls, value: str, sentence: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.sentence = sentence
        return member


class EvictReason(_Sentenced):
    """Why an entry goes."""

    OVER_SIZE = "over_size", "the location is over max_size"
    OVER_HARD_SIZE = "over_hard_size", "the location is over hard_max_size"
    LOW_FREE_SPACE = "low_free_space", "the filesystem has less free space than min_free"
    LOW_FREE_FILES = "low_free_files", "the filesystem has fewer free inodes than min_free_files"
    OVER_FILES = "over_files", "the location holds more files than max_files"
    OVER_ENTRIES = "over_entries", "the location holds more entries than max_entries"
    IDLE = "idle", "unused for longer than max_idle"
    AGED = "aged", "older than max_age"
    STALE = "stale", "made by a version that is gone; nothing can use it any more"
    PARTIAL = "partial", "an abandoned partial download, older than partial_max_idle"
    OVER_USER_SIZE = "over_user_size", "its owner is over the limit per user"
    OVER_POOL_SIZE = "over_pool_size", "the pool is over max_size"
    REQUESTED = "requested", "somebody asked for it"


class KeepReason(_Sentenced):
    """Why an entry stays."""

    WITHIN_LIMITS = "within_limits", "nothing needs to go, or enough else went"
    IN_USE = "in_use", "a process has it open, mapped, or stands in it"
    LIVE_OPENER = "live_opener", "a process that opened it still runs"
    LOCKED = "locked", "somebody holds its lock"
    PINNED = "pinned", "pinned"
    MIN_IDLE = "min_idle", "used more recently than min_idle"
    KEEP_NEWEST = "keep_newest", "among the keep_newest most recently used"
    PROTECTED = "protected", "protected by the layout or by the policy"
    FOREIGN = "foreign", "not part of the cache as its layout knows it"
    MOUNTPOINT = "mountpoint", "something is mounted in it, or it is mounted elsewhere"
    SHARED_DATA = "shared_data", "its data is shared with an entry that stays"
    NO_GAIN = "no_gain", "its data would stay on the disk, or its removal would not help"
    PARTIAL = "partial", "a download that may still be running"
    CHANGED = "changed", "it changed since it was looked at"
    LEARNING = "learning", "last use is not known here yet (learn)"
    CLOCK = "clock", "the clock jumped; age and idle rules wait one interval"
    QUIET_HOURS = "quiet_hours", "quiet hours: only hard limits act"
    NOT_ENFORCED = "not_enforced", "report only, or paused"
    CONFIRMATION = "confirmation", "over max_share: waits for confirmation"
    UNKNOWN = "unknown", "whether it is in use could not be found out"
    OTHER_NODE = "other_node", "another node may use it"


class LastUseSource(_Sentenced):
    """Where a last use comes from, most trusted first."""

    OPENS = "opens", "an open that was seen"
    ATIME = "atime", "the access time of its files"
    RELATIME = "relatime", "the access time of its files, accurate to a day"
    STAMPS = "stamps", "the newest modification or change time of its files"
    FIRST_SEEN = "first_seen", "when it was seen first"


class Cost(_Sentenced):
    """What a miss costs, cheapest first. `LOST` never goes unless the administrator opted in."""

    DERIVED = "derived", "remade from another cache in moments"
    REBUILD = "rebuild", "computed again, minutes to hours"
    DOWNLOAD = "download", "downloaded again"
    LOST = "lost", "cannot be made again"

    @property
    def rank(self) -> int:
        """Position in the order of cost, 0 for the cheapest."""
        return list(Cost).index(self)


class Outcome(_Sentenced):
    """How a pass over a location ended. `severity` orders them; the worst one wins."""

    WITHIN_LIMITS = "within_limits", "within its limits"
    TRIMMED = "trimmed", "was over a limit, and is within it again"
    WAITING = "waiting_for_confirmation", "waits for `cachewarden confirm`"
    SHORT = "short", "over a limit, and nothing more may go"
    UNAVAILABLE = "unavailable", "not there, or does not answer"
    FAILED = "failed", "an error stopped the pass"

    @property
    def severity(self) -> int:
        """0 for the best outcome, growing; DESIGN fixes the order."""
        return list(Outcome).index(self)
