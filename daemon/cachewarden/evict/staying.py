"""How a step says that its victim stays. Inside the package only: callers get values (`Spared`)."""

import errno

from cachewarden.evict.victim import Inode
from cachewarden.report import Holder
from cachewarden_policies.reasons import KeepReason

# Anything but these, said by the kernel about a path, leaves open whether it is in use.
_MEANING = {
    errno.ENOENT: KeepReason.CHANGED,
    errno.ENOTDIR: KeepReason.CHANGED,
    errno.ELOOP: KeepReason.CHANGED,
    errno.ESTALE: KeepReason.CHANGED,
    errno.EXDEV: KeepReason.MOUNTPOINT,
    errno.EAGAIN: KeepReason.IN_USE,  # a lease of somebody else, or a file that is being opened
    errno.ETXTBSY: KeepReason.IN_USE,
}


class StaysError(Exception):
    """The victim stays. `inodes` are what somebody uses, so that the holders can be named later.

    `late`: nothing is known against it, but time ran out.
    """

    def __init__(
        self,
        reason: KeepReason,
        inodes: tuple[Inode, ...] = (),
        holders: tuple[Holder, ...] = (),
        *,
        late: bool = False,
    ) -> None:
        super().__init__(reason)
        self.late = late
        self.reason = reason
        self.inodes = inodes
        self.holders = holders


class TooManyError(Exception):
    """The victim has more files and directories than descriptors may be open at once."""


class AbsentError(Exception):
    """Nothing of the victim is there any more."""


def stays_because(error: OSError) -> StaysError:
    """What an error of looking at a victim (never of moving it) means for it."""
    return StaysError(_MEANING.get(error.errno or 0, KeepReason.UNKNOWN))
