"""Rules that contradict each other, or can have no effect: found before anything is scanned.

Each check names the key that is to blame and says why. Only keys that somebody set are blamed,
never a default.
"""

from collections.abc import Callable, Iterator

from cachewarden.settings.layers import Layer
from cachewarden.settings.resolve import Effective, value_of
from cachewarden_policies.policy import Amount

_Check = Callable[[Effective], Iterator[tuple[str, str]]]
_SUBJECTS = ("size", "files", "entries")
_KEEP_NOTHING = "would keep nothing; if that is meant, say evict_all = true"


def contradictions(effective: Effective, merged: Layer) -> list[str]:
    """One line per contradiction among the rules of one policy, location or pool."""
    found = dict.fromkeys(pair for check in _CHECKS for pair in check(effective))
    return [merged.problem(effective[rule].path, sentence) for rule, sentence in found if rule in effective]


def _zero_limits(effective: Effective) -> Iterator[tuple[str, str]]:
    if value_of(effective, "evict_all"):
        return
    for rule in ("max_size", "hard_max_size", "max_files", "max_entries", "max_idle", "max_age"):
        if value_of(effective, rule) == 0:
            yield rule, _KEEP_NOTHING
    for subject in _SUBJECTS:
        if value_of(effective, f"target_{subject}").of(100) == 0:
            yield f"target_{subject}", _KEEP_NOTHING


def _targets(effective: Effective) -> Iterator[tuple[str, str]]:
    for subject in _SUBJECTS:
        limit, target = value_of(effective, f"max_{subject}"), value_of(effective, f"target_{subject}")
        if limit is None:
            yield f"target_{subject}", f"has no effect without max_{subject}"
        elif target.absolute is not None and target.absolute > limit:
            yield f"target_{subject}", f"is above max_{subject}"


def _hard_limits(effective: Effective) -> Iterator[tuple[str, str]]:
    soft, hard = value_of(effective, "max_size"), value_of(effective, "hard_max_size")
    if soft is not None and hard is not None and hard < soft:
        yield "hard_max_size", "is below max_size"


def _floors(effective: Effective) -> Iterator[tuple[str, str]]:
    floor = value_of(effective, "min_free")
    for rule in ("target_free", "hard_min_free"):
        if floor is None and value_of(effective, rule) is not None:
            yield rule, "has no effect without min_free"
    if _above(value_of(effective, "hard_min_free"), floor):
        yield "hard_min_free", "is above min_free"
    if _above(floor, value_of(effective, "target_free")):
        yield "target_free", "is below min_free"
    for rule in ("min_free", "target_free", "hard_min_free", "min_free_files"):
        amount = value_of(effective, rule)
        if amount is not None and amount.share == 1:
            yield rule, "can never be met: something is always stored"


def _above(left: Amount | None, right: Amount | None) -> bool:
    """Whether left > right for certain; a share and a size can be compared only on a filesystem."""
    if left is None or right is None:
        return False
    if left.absolute is not None and right.absolute is not None:
        return left.absolute > right.absolute
    return left.share is not None and right.share is not None and left.share > right.share


def _times(effective: Effective) -> Iterator[tuple[str, str]]:
    idle, age = value_of(effective, "max_idle"), value_of(effective, "max_age")
    if idle and value_of(effective, "min_idle") > idle:  # of 0 enough was said already
        # Whichever of the two was set; when both were, the guard is to blame.
        blamed = "min_idle" if "min_idle" in effective else "max_idle"
        yield blamed, "min_idle is longer than max_idle, which then has no effect"
    if idle is not None and age is not None and idle > age:
        yield "max_idle", "has no effect beside a shorter max_age"


def _guards(effective: Effective) -> Iterator[tuple[str, str]]:
    entries, newest = value_of(effective, "max_entries"), value_of(effective, "keep_newest")
    if entries is not None and newest > entries:
        yield "keep_newest", "is above max_entries, which can then never be reached"
    size, least = value_of(effective, "max_size"), value_of(effective, "min_size")
    if size is not None and least > size:
        yield "min_size", "is above max_size, so that min_free has no effect"


_CHECKS: tuple[_Check, ...] = (_zero_limits, _targets, _hard_limits, _floors, _times, _guards)
