"""From an entry of the inventory to what `evict` is asked to do."""

from collections.abc import Collection, Mapping

from cachewarden.enforce.survey import Survey
from cachewarden.evict import Victim
from cachewarden.inventory import Inventory
from cachewarden.tree import split_path


class Victims:
    """Makes victims of one survey's entries. `measured_ns` is when the survey began (wall clock)."""

    def __init__(self, survey: Survey, measured_ns: int) -> None:
        self._survey = survey
        self._measured_ns = measured_ns
        self._nested = nested(survey.inventory)

    def of(self, index: int, removed: Collection[int]) -> Victim:
        """The victim for entry `index`, given the entries of this location that are `removed` already.

        Shared data goes along when every other owner is gone, unless it is `kept`; otherwise it stays
        in place, and its use means that this entry is in use.
        """
        entry = self._survey.inventory.entries[index]
        out: list[bytes] = []
        in_place: list[bytes] = []
        locks = list(entry.claim.locks)
        for number in entry.shares:
            share = self._survey.inventory.shares[number]
            if share.claim is None:
                continue  # hard links: their inodes lie under the entry's own paths
            locks += share.claim.locks
            last = all(owner == index or owner in removed for owner in share.owners)
            if last and not share.claim.kept:
                out += (*share.claim.companions, share.claim.path)
            else:
                in_place.append(share.claim.path)
        return Victim(
            name=entry.name,
            paths=entry.claim.paths,
            dev=entry.dev,
            ino=entry.ino,
            listed_bytes=entry.listed_bytes,
            listed_files=entry.listed_files,
            newest_ns=entry.measure.newest_ns,
            shared_out=tuple(out),
            shared_in_place=tuple(in_place),
            apart=self._nested.get(index, ()),
            husks=entry.claim.husks,
            locks=tuple(dict.fromkeys(locks)),
            measured_ns=self._measured_ns,
            soft_lock_age=self._survey.spec.policy.soft_lock_age,
        )


def nested(inventory: Inventory) -> Mapping[int, tuple[bytes, ...]]:
    """For each entry, the paths inside its own that belong to other entries."""
    owner = {path: index for index, entry in enumerate(inventory.entries) for path in entry.claim.paths}
    shared = {share.claim.path: -1 for share in inventory.shares if share.claim is not None}
    inside: dict[int, list[bytes]] = {}
    for path, index in (owner | shared).items():
        parent = split_path(path)[0]
        while parent:
            above = owner.get(parent)
            if above is not None and above != index:
                inside.setdefault(above, []).append(path)
            if above is not None:
                break
            parent = split_path(parent)[0]
    return {index: tuple(sorted(paths)) for index, paths in inside.items()}
