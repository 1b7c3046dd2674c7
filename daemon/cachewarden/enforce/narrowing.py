"""Passes that may do less than an ordinary one: applying a plan, evicting one entry.

Both give a hard guard to everything else and let the planner do the rest, so that a stale plan can
only do less, and never other.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from cachewarden.enforce.survey import Survey
from cachewarden.errors import UsageError
from cachewarden.paths import unshow
from cachewarden.report import JSON_VERSION, PassReport
from cachewarden.spec import LocationSpec
from cachewarden_policies.reasons import KeepReason


@dataclass(frozen=True, slots=True)
class Planned:
    """One entry of a plan file: what it was when the plan was made."""

    dev: int
    ino: int
    size: int
    newest_ns: int


PlanFile = Mapping[tuple[str, bytes], Mapping[bytes, Planned]]  # by location's name and path, by entry


def read_plan(content: Any) -> PlanFile:
    """The entries of `plan --json`'s object. Raises UsageError that names what is wrong in it."""
    if not isinstance(content, dict) or content.get("version") != JSON_VERSION:
        raise UsageError(
            f"this is no plan of version {JSON_VERSION}, as `cachewarden plan -o FILE` writes it"
        )
    found: dict[tuple[str, bytes], dict[bytes, Planned]] = {}
    try:
        for location in content["locations"]:
            key = (str(location["name"]), unshow(location["path"]))
            found.setdefault(key, {})  # one that gives nothing still counts in its pool and on its disk
            for entry in location["would_evict"]:
                planned = Planned(*(_whole(entry, name) for name in ("dev", "ino", "bytes", "newest_ns")))
                found.setdefault(key, {})[unshow(entry["entry"])] = planned
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"the plan is damaged: {type(error).__name__}: {error}") from error
    return found


def _whole(entry: Mapping[str, Any], name: str) -> int:
    found = entry[name]
    if not isinstance(found, int) or isinstance(found, bool):
        raise TypeError(f"{name} is no whole number: {found!r}")
    return found


def only_planned(plan: PlanFile) -> Callable[[Survey], Mapping[int, KeepReason]]:
    """Hard guards for all that a plan does not list, and for what is not what it was."""

    def guards(survey: Survey) -> Mapping[int, KeepReason]:
        listed = plan.get((survey.spec.name, survey.spec.path), {})
        return {
            index: reason
            for index, entry in enumerate(survey.inventory.entries)
            if (reason := _reason(listed.get(entry.name), survey, index)) is not None
        }

    return guards


def _reason(planned: Planned | None, survey: Survey, index: int) -> KeepReason | None:
    if planned is None:
        return KeepReason.WITHIN_LIMITS
    entry = survey.inventory.entries[index]
    now = Planned(entry.dev, entry.ino, entry.measure.bytes, entry.measure.newest_ns)
    return None if now == planned else KeepReason.CHANGED


def only_of(name: str) -> Callable[[Survey], Mapping[int, KeepReason]]:
    """Hard guards for all entries of locations with another configured name.

    They are looked at all the same: pools and disks are judged with all that is in them.
    """

    def guards(survey: Survey) -> Mapping[int, KeepReason]:
        if survey.spec.name == name:
            return {}
        return dict.fromkeys(range(len(survey.inventory.entries)), KeepReason.WITHIN_LIMITS)

    return guards


def only_named(name: bytes) -> Callable[[Survey], Mapping[int, KeepReason]]:
    """Hard guards for all entries but the one of this name."""

    def guards(survey: Survey) -> Mapping[int, KeepReason]:
        return {
            index: KeepReason.WITHIN_LIMITS
            for index, entry in enumerate(survey.inventory.entries)
            if entry.name != name
        }

    return guards


def only_owned(name: bytes, uid: int | None) -> Callable[[Survey], Mapping[int, KeepReason]]:
    """Hard guards for all entries but the one of this name, and for that unless it is this user's.

    None: whoever owns it.
    """

    def guards(survey: Survey) -> Mapping[int, KeepReason]:
        return {
            index: KeepReason.WITHIN_LIMITS if entry.name != name else KeepReason.CHANGED
            for index, entry in enumerate(survey.inventory.entries)
            if entry.name != name or uid not in (None, entry.owner)
        }

    return guards


def answering(report: PassReport, name: bytes) -> PassReport:
    """A pass in which one entry was asked for, without the others that hard guards held."""
    located = (
        replace(each, spared=tuple(spared for spared in each.spared if spared.entry == name))
        for each in report.locations
    )
    return replace(report, locations=tuple(located))


def requested(spec: LocationSpec) -> LocationSpec:
    """The location under a policy that lets everything go that no hard guard holds.

    Somebody named the entry: limits, soft guards, report-only and the brake are not asked. Hard guards
    are: what is in use, pinned or protected stays, whoever asks.
    """
    policy = replace(spec.policy, evict_all=True, min_idle=0, keep_newest=0, learn=0, max_share=Fraction(1))
    return replace(spec, policy=policy, enforce=True)
