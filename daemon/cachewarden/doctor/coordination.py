"""Whether other machines have to be asked before anything goes, and what happens while none can be."""

from collections.abc import Sequence

from cachewarden.doctor.finding import Finding, good, note, weaker
from cachewarden.enforce.guards import is_exported, is_shared, lease_trusted
from cachewarden.evict.fallback import fallback_for
from cachewarden.mountinfo import Mount, is_network_or_unknown
from cachewarden.paths import show
from cachewarden.spec import LocationSpec
from cachewarden.units import format_duration

_NETWORK_ADVICE = "keep caches on a local disk, or let each node clean its own"
_LOCAL_ADVICE = (
    'shared_without_agents = "idle" for what is long unused; shared = "no" if no other machine uses it'
)


def coordination_finding(root_fd: int, mount: Mount, specs: Sequence[LocationSpec]) -> Finding:
    """How the locations of one mount are enforced, by what is configured and what may use them."""
    shared = [spec for spec in specs if is_shared(spec, mount)]
    network = is_network_or_unknown(mount.fstype)
    if shared:
        how = "; ".join(_how(root_fd, mount, spec) for spec in shared)
        return weaker(
            "coordinator",
            f"other machines may use what is here, and this version has no coordinator to ask them: {how}",
            _NETWORK_ADVICE if network else _LOCAL_ADVICE,
        )
    told = [spec for spec in specs if network or is_exported(mount, spec.path)]
    if told:
        names = ", ".join(spec.name for spec in told)
        return note(
            "coordinator",
            f'none is asked: shared = "no" says of {names} that no other machine uses it',
            "see that this is so",
        )
    return good("coordinator", "none is needed: no other machine uses what is here")


def _how(root_fd: int, mount: Mount, spec: LocationSpec) -> str:
    where = f"{spec.name} at {show(spec.path)}"
    if spec.shared_without_agents == "refuse":
        return f"{where} is measured and reported, and nothing goes"
    if lease_trusted(mount) or fallback_for(root_fd) is not None:
        return f"of {where} goes only what is unused for {format_duration(spec.shared_idle)}"
    return f"{where}: nothing goes, because nothing tells who uses a file there"
