"""Finding the caches of this machine, for a proposal. It acts on nothing and creates nothing.

Known places only: what the table of tools says for each home and each environment, and folders called
`.accelerate` in homes and above where processes work. The disk is not searched.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cachewarden.clock import Clock
from cachewarden.discover.environments import Environment
from cachewarden.discover.finding import Discovery, Found, KindFound
from cachewarden.discover.homes import Home, homes
from cachewarden.discover.judging import configured_name, contained, kinds_of
from cachewarden.discover.live import Live, live
from cachewarden.discover.measuring import Measuring, would_free
from cachewarden.discover.places import Place, Places
from cachewarden.discover.proposal import Namer, location_name, toml
from cachewarden.discover.reach import Notice, Ways
from cachewarden.enforce.journal import Journal
from cachewarden.enforce.survey import Survey
from cachewarden.errors import LayoutError, LocationUnavailableError
from cachewarden.paths import show
from cachewarden.settings import Settings, home_directories, territory
from cachewarden.settings.places import unfit
from cachewarden.spec import LocationSpec, Territory

__all__ = ["Discovery", "Found", "KindFound", "Notice", "Scope", "discover"]

PRESET = "preset:workstation"
_POLICY = "discovered"


@dataclass(frozen=True, slots=True)
class Scope:
    """Where to look: for whom, and how far.

    `everybody`: in all homes and all processes; otherwise in those of the calling user. `network`: on
    network filesystems too.
    """

    everybody: bool
    network: bool = False


@dataclass(slots=True)
class _Work:
    """What the parts of one discovery share."""

    settings: Settings
    land: Territory
    ways: Ways
    measuring: Measuring
    namer: Namer
    measured: list[tuple[Place, Survey, Found]] = field(default_factory=list)


def discover(
    settings: Settings,
    scope: Scope,
    environ: Mapping[bytes, bytes],
    clock: Clock,
    journal: Journal | None = None,
    over: Callable[[LocationSpec], None] = lambda _: None,
) -> Discovery:
    """Look for caches, measure them, and propose locations for what is not configured.

    `journal` is told how far the walk through a place is, `over` when it ended.
    `environ` is the caller's environment. Raises OSError only where /proc or the account file cannot be
    read; whatever cannot be looked at is in the result.
    """
    trusted = frozenset({0} if scope.everybody else {0, os.geteuid()})
    work = _Work(
        settings,
        territory(settings),
        Ways(trusted, scope.network),
        Measuring(clock, journal or Journal(), over),
        Namer({each.name for each in settings.locations}),
    )
    users, places, processes = _look(work.ways, scope, environ)
    _measure(work, places.found())
    return _result(work, users, processes)


def _look(ways: Ways, scope: Scope, environ: Mapping[bytes, bytes]) -> tuple[list[Home], Places, Live]:
    places = Places(ways)
    own = Environment.of(environ.items())
    users = homes(ways) if scope.everybody else []
    if not scope.everybody and own is not None and (home := ways.directory(own.home)) is not None:
        users = [Home(home, os.geteuid())]
    places.of_homes(users)
    if own is not None:
        places.of_environment(own)
    processes = live(None if scope.everybody else os.geteuid())
    places.of_processes(processes)
    return users, places, processes


def _measure(work: _Work, places: Sequence[Place]) -> None:
    """Measure what may be a location, the outer ones first: what lies in one of those is part of it."""
    homes_ = home_directories(work.settings.home)
    outer: Place | None = None
    for number, place in enumerate(places):
        if outer is not None and place.is_in(outer):
            outer.join(place)
            continue
        around = number + 1 < len(places) and places[number + 1].is_in(place)
        reason = unfit(place.path, homes_)
        if reason is not None:
            work.ways.note(place.path, f"{reason}, and can be no location")
            continue
        try:
            if _taken(work, place, around=around):
                outer = place
        except LocationUnavailableError as error:
            work.ways.note(place.path, str(error).removeprefix(f"{show(place.path)}: "))
        except (LayoutError, OSError) as error:
            work.ways.note(place.path, f"could not be measured: {error}")


def _taken(work: _Work, place: Place, *, around: bool) -> bool:
    """Measure one place; whether it is a location, in force or proposed. `around`: others lie in it."""
    name = configured_name(place.path, work.land.locations)
    if name is not None:
        spec = next(each for each in work.land.locations if each.name == name)
        spec = replace(spec, path=place.path)
        reason = None
    else:
        name = location_name([tool.name for tool in place.tools], work.namer)
        spec = LocationSpec(name, place.path, work.settings.policies[PRESET], enforce=False)
        reason = work.measuring.objection(place, spec) or contained(place.path, work.land.locations)
        if reason is not None and around:
            work.ways.note(place.path, f"{reason}; other places in it were looked at by themselves")
            return False
    survey = work.measuring.survey(spec)
    work.measured.append((place, survey, _found(work, survey, reason)))
    return reason is None


def _found(work: _Work, survey: Survey, reason: str | None) -> Found:
    inventory, spec = survey.inventory, survey.spec
    return Found(
        path=spec.path,
        tools=(),
        titles=(),
        via=(),
        layout=inventory.layout,
        bytes=inventory.bytes,
        files=inventory.files,
        entries=len(inventory.entries),
        last_use_ns=max((fact.last_use_ns for fact in survey.facts), default=None),
        owner=os.stat(spec.path, follow_symlinks=False).st_uid,
        complete=inventory.complete,
        kinds=kinds_of(inventory.entries),
        location=spec.name if reason is None else None,
        configured=configured_name(spec.path, work.land.locations) is not None,
        reason=reason,
    )


def _result(work: _Work, users: Sequence[Home], processes: Live) -> Discovery:
    policy = Namer(work.settings.policies).name(_POLICY)
    free = would_free(
        [survey for _, survey, found in work.measured if found.reason is None], work.measuring.now_ns
    )
    places = [
        replace(
            found,
            tools=tuple(tool.name for tool in place.tools),
            titles=tuple(tool.title for tool in place.tools),
            via=tuple(sorted(place.via)),
            would_free_bytes=free.get(survey.spec.key),
        )
        for place, survey, found in work.measured
    ]
    for each in places:
        if not each.complete:
            work.ways.note(each.path, "could not be read wholly: its figures are lower bounds")
    proposed: dict[str, list[Found]] = {}
    for each in places:
        if each.location is not None and not each.configured:
            proposed.setdefault(each.location, []).append(each)
    return Discovery(
        tuple(sorted(places, key=lambda each: (-each.bytes, each.path))),
        toml(proposed, policy, PRESET, users, work.ways),
        policy,
        tuple(work.ways.notices[path] for path in sorted(work.ways.notices)),
        processes.unread,
    )
