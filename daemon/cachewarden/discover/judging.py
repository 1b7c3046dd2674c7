"""Whether a place may be proposed: by what its layout makes of it, and by what is configured already."""

from collections import Counter
from collections.abc import Iterable, Sequence

from cachewarden.discover.finding import KindFound
from cachewarden.discover.places import Place
from cachewarden.inventory import Claim, Entry
from cachewarden.layouts import FALLBACKS
from cachewarden.mountinfo import relative
from cachewarden.paths import show
from cachewarden.spec import LocationSpec
from cachewarden_policies.reasons import KeepReason

# Kinds that a layout gives to what it does not know, or knows by the names of single files only.
_WEAK = frozenset({"plain", "prepared"})


def objection(place: Place, layout: str, claims: Sequence[Claim]) -> str | None:
    """Why a place is not proposed, or None. `claims` are its layout's.

    A folder's name says nothing: people, programs and workflow tools call `.accelerate` what cannot be made
    again, too. What a layout knows for certain must be in it. In a directory that some variable names there
    may be nothing else, unless its tool is known to keep independent files: it may be a disk's top.
    """
    if not claims:
        return "there is nothing in it that may go"
    expendable = [claim for claim in claims if claim.keep in (None, KeepReason.PARTIAL, KeepReason.IN_USE)]
    if not expendable:
        return "its layout protects everything in it"
    strong = [claim.kind not in _WEAK for claim in expendable]
    if layout not in FALLBACKS or (all(strong) if place.tools else any(strong)):
        return None
    if any(tool.independent for tool in place.tools):
        return None
    if any(strong):
        return "there is more in it than known caches"
    return "nothing in it has the shape of a known cache"


def configured_name(path: bytes, locations: Iterable[LocationSpec]) -> str | None:
    """The configured location that `path` is, or lies in."""
    return next((each.name for each in locations if relative(path, each.path) is not None), None)


def contained(path: bytes, locations: Iterable[LocationSpec]) -> str | None:
    """Why a path cannot become a location beside those that are configured: it is around one of them."""
    for each in locations:
        if relative(each.path, path):
            return f"location {each.name} lies in it ({show(each.path)})"
    return None


def kinds_of(entries: Sequence[Entry]) -> tuple[KindFound, ...]:
    """The entries by kind, the largest first, and how many of them their layout keeps."""
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        groups.setdefault((entry.claim.kind, entry.claim.layout), []).append(entry)
    found = []
    for (kind, layout), mine in groups.items():
        keeps = Counter(entry.claim.keep for entry in mine if entry.claim.keep is not None)
        size = sum(entry.measure.bytes for entry in mine)
        found.append(KindFound(kind, layout, len(mine), size, keeps.total(), tuple(sorted(keeps))))
    return tuple(sorted(found, key=lambda each: (-each.bytes, each.kind)))
