"""From checked keys to the values that the rest of the daemon knows: policies, patterns, pools."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from cachewarden.settings.contradictions import contradictions
from cachewarden.settings.layers import Layer
from cachewarden.settings.model import Document, LimitKeys, LocationKeys, PoolKeys
from cachewarden.settings.patterns import is_glob, overlap, parse_pattern
from cachewarden.settings.places import account_homes, unfit
from cachewarden.settings.resolve import Effective, Resolver, setting_of, value_of
from cachewarden.settings.values import DaemonSettings, LocationPattern
from cachewarden.spec import LocationSpec, PoolSpec
from cachewarden_policies.policy import Floor, Limits, Policy

_LIMITS = tuple(LimitKeys.model_fields)
_FLOORS = ("min_free", "target_free", "hard_min_free", "min_free_files")
_PLAIN = (
    "max_idle",
    "max_age",
    "order",
    "min_idle",
    "keep_newest",
    "opener_hold",
    "protect",
    "exclude",
    "learn",
    "max_share",
    "partial_max_idle",
    "min_size",
    "soft_lock_age",
    "evict_all",
    "max_pin",
    "max_pinned_size",
)


@dataclass(slots=True)
class Built:
    """What was built, and what was wrong with it."""

    policies: dict[str, Policy] = field(default_factory=dict)
    locations: list[LocationPattern] = field(default_factory=list)
    pools: list[PoolSpec] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def build_daemon(document: Document, *, user: bool) -> DaemonSettings:
    """The section [daemon]."""
    keys = document.daemon
    return DaemonSettings(
        state_dir=keys.state_dir,
        runtime_dir=keys.runtime_dir,
        http=keys.http,
        interval=keys.interval,
        schedule=keys.schedule,
        quiet_hours=keys.quiet_hours,
        settle=keys.settle,
        enforce=keys.enforce,
        ignore_processes=keys.ignore_processes,
        log_format=keys.log_format,
        audit_file=keys.audit_file,
        metrics_users=keys.metrics_users,
        user_mode=user,
    )


def build_policy(name: str, effective: Effective) -> Policy:
    """The rules in force as a policy; what nobody set has its default."""
    return Policy(
        name=name,
        limits=Limits(**{rule: value_of(effective, rule) for rule in _LIMITS}),
        floor=Floor(**{rule: value_of(effective, rule) for rule in _FLOORS}),
        **{rule: value_of(effective, rule) for rule in _PLAIN},
    )


def build(document: Document, merged: Layer, home: bytes | None, *, user: bool) -> Built:
    """Everything but [daemon]. `home` is $HOME: what `~/` means for a user, and no location itself."""
    built = Built()
    resolver = Resolver(document, merged)
    for name in document.policies:
        effective = resolver.policy(name)
        built.policies[name] = build_policy(name, effective)
        if name not in _bases(document):
            built.problems += contradictions(effective, merged)
    for name, keys in document.locations.items():
        effective = resolver.location(name)
        built.problems += contradictions(effective, merged)
        built.locations.append(_location(name, keys, effective, document.daemon.enforce))
    built.problems = resolver.problems + built.problems
    _place(built, document, merged, home if user else None, account_homes(home))
    for name, pool in document.pools.items():
        built.pools.append(_pool(name, pool))
        built.problems += _pool_problems(name, document, merged)
    built.problems = list(dict.fromkeys(built.problems))
    return built


def _bases(document: Document) -> set[str | None]:
    """Policies that something builds on. They are judged there: a base may hold half a rule."""
    return {each.extends for each in document.policies.values()} | {
        each.policy for each in document.locations.values()
    }


def _location(name: str, keys: LocationKeys, effective: Effective, enforce: bool) -> LocationPattern:
    template = LocationSpec(
        name=name,
        path=b"",
        policy=build_policy(keys.policy or name, effective),
        layout=keys.layout,
        enforce=enforce and keys.enforce,
        shared=keys.shared,
        shared_without_agents=keys.shared_without_agents,
        shared_idle=keys.shared_idle,
        must_be_mount=keys.must_be_mount,
        follow_into=keys.follow_into,
        ignore_ctime=keys.ignore_ctime,
        accounting=keys.accounting,
        evict_checkpoints=keys.evict_checkpoints,
        delegate=keys.delegate,
    )
    return LocationPattern(name, (), template)


def _place(
    built: Built, document: Document, merged: Layer, home: bytes | None, homes: frozenset[bytes]
) -> None:
    """Give each location its patterns, as far as they are fit to be one and overlap no other."""
    own = {"state_dir": document.daemon.state_dir, "runtime_dir": document.daemon.runtime_dir}
    taken: list[tuple[bytes, str]] = []
    for index, location in enumerate(built.locations):
        path = ("locations", location.name, "path")
        patterns: list[bytes] = []
        for text in document.locations[location.name].path:
            try:
                pattern = parse_pattern(text, home)
            except ValueError as error:
                built.problems.append(merged.problem(path, str(error)))
                continue
            reasons = [*_unfit(pattern, homes, own), *_overlaps(pattern, taken)]
            built.problems += [merged.problem(path, reason) for reason in reasons[:1]]
            taken.append((pattern, location.name))
            patterns.append(pattern)
        built.locations[index] = LocationPattern(location.name, tuple(patterns), location.template)


def _unfit(pattern: bytes, homes: frozenset[bytes], own: dict[str, bytes]) -> Iterator[str]:
    """Why a literal path cannot be a location. What a glob matches is judged when it is found."""
    if is_glob(pattern):
        return
    if reason := unfit(pattern, homes):
        yield reason
    for key, directory in own.items():
        if pattern == directory or directory.startswith(pattern + b"/"):
            yield f"contains the service's own {key}"


def _overlaps(pattern: bytes, taken: list[tuple[bytes, str]]) -> Iterator[str]:
    for other, name in taken:
        if pattern == other:
            yield f"is the same as the path of location {name}"
        elif not is_glob(pattern) and not is_glob(other) and (how := overlap(pattern, other)):
            yield f"{how} of location {name}"


def _pool(name: str, keys: PoolKeys) -> PoolSpec:
    return PoolSpec(name, keys.locations, Limits(**{rule: getattr(keys, rule) for rule in _LIMITS}))


def _pool_problems(name: str, document: Document, merged: Layer) -> Iterator[str]:
    keys, table = document.pools[name], ("pools", name)
    effective = {
        rule: setting_of(merged, (*table, rule), getattr(keys, rule))
        for rule in _LIMITS
        if rule in keys.model_fields_set
    }
    yield from contradictions(effective, merged)
    if all(getattr(keys, rule) is None for rule in _LIMITS if not rule.startswith("target_")):
        yield merged.problem(table, "has no limit, and so no effect; give it a max_size")
    for index, member in enumerate(keys.locations):
        if member not in document.locations:
            yield merged.problem((*table, "locations"), f"there is no location {member}")
        elif member in keys.locations[:index]:
            yield merged.problem((*table, "locations"), f"{member} is in it twice")
