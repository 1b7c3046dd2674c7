"""One thing that was tried, what it means, and what to do about it."""

import errno
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from cachewarden_policies.policy import SECOND


class Grade(StrEnum):
    """`good`: guaranteed. `weaker`: less is than could be. `note`: neither, but people should know."""

    GOOD = "good"
    WEAKER = "weaker"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """`check` names what was tried; `means` says in sentences what was found, `advice` what to do."""

    check: str
    grade: Grade
    means: str
    advice: str = ""

    def to_json(self) -> dict[str, object]:
        """The object of `findings` and `machine`."""
        return {
            "check": self.check,
            "grade": str(self.grade),
            "means": self.means,
            "advice": self.advice,
        }


def good(check: str, means: str) -> Finding:
    """As it should be."""
    return Finding(check, Grade.GOOD, means)


def note(check: str, means: str, advice: str = "") -> Finding:
    """Neither good nor weak."""
    return Finding(check, Grade.NOTE, means, advice)


def weaker(check: str, means: str, advice: str = "") -> Finding:
    """Less is guaranteed than could be."""
    return Finding(check, Grade.WEAKER, means, advice)


def named(code: int | None) -> str:
    """An errno for people: `Operation not permitted (EPERM)`."""
    number = code or errno.EIO
    return f"{os.strerror(number)} ({errno.errorcode.get(number, number)})"


def moment(time_ns: int) -> str:
    """A time for people, to the second."""
    return datetime.fromtimestamp(time_ns // SECOND, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
