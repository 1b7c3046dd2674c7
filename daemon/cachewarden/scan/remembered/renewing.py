"""The inventory after some regions were measured again, without judging again what they do not concern."""

from bisect import bisect_left
from collections.abc import Set as AbstractSet
from dataclasses import replace

from cachewarden.inventory import Entry, Inventory
from cachewarden.scan.accounts import Account
from cachewarden.scan.attribution import attribute, entry_of
from cachewarden.scan.regions import ROOT, Kind
from cachewarden.scan.remembered.value import Remembered, holes
from cachewarden.scan.tally import Tally


def renewed(known: Remembered, tally: Tally, chosen: AbstractSet[int], *, same_split: bool) -> Inventory:
    """The inventory of `tally`, which differs from what is known in the `chosen` regions alone.

    What is as it was is the same object as in the inventory that is known.
    """
    before = known.inventory
    if same_split:
        if not chosen:
            return before
        apart = _apart(known, tally, chosen)
        if apart is not None:
            return apart
    after = attribute(known.split, known.regions, tally, known.facts.root)
    return _interned(before, after)


def _apart(known: Remembered, tally: Tally, chosen: AbstractSet[int]) -> Inventory | None:
    """The inventory where each of the regions is all of one entry or no entry's; None where one is not."""
    before = known.inventory
    owned = _owned(known, tally, chosen)
    if owned is None:
        return None
    entries = list(before.entries)
    for index in owned:
        claim = known.split.claims[index]
        place = bisect_left(entries, claim.name, key=lambda each: each.name)
        if place == len(entries) or entries[place].name != claim.name:
            return None
        account = _account(known, tally, index, owned[index])
        if account is None:
            return None
        entry = entry_of(known.split, account)
        if entry != entries[place]:
            entries[place] = entry
    files, size, rest = 0, 0, 0
    for number in chosen:
        for sums, sign in ((tally.sums.get(number), 1), (known.tally.sums.get(number), -1)):
            if sums is not None:
                files += sign * sums.files
                size += sign * sums.bytes
                rest += sign * sums.bytes if number == ROOT else 0
    if not files and not size and all(map(_is, entries, before.entries)):
        return before
    return replace(
        before,
        entries=tuple(entries),
        files=before.files + files,
        bytes=before.bytes + size,
        foreign_bytes=before.foreign_bytes + rest,
    )


def _is(one: Entry, other: Entry) -> bool:
    return one is other


def _owned(known: Remembered, tally: Tally, chosen: AbstractSet[int]) -> dict[int, list[int]] | None:
    """All regions of each claim that one of the chosen belongs to, by the claim's index.

    None where what is found in one of them may concern others: names of inodes that have several, what
    could not be looked at, regions inside others, data that entries share.
    """
    odd = {
        region
        for linked in (known.tally, tally)
        for each in linked.linked.values()
        for region in each.regions
    }
    for each in (known.tally, tally):
        odd |= holes(each) | {region for _, region in each.mounts} | each.excluded
    numbered = known.regions.numbered
    indices: set[int] = set()
    for number in chosen:
        region = numbered[number]
        if number in odd:
            return None
        if region.kind is Kind.CLAIM:
            indices.add(region.index)
        elif number != ROOT or known.regions.tree.region is not None:
            return None
    owned: dict[int, list[int]] = {index: [] for index in indices}
    above = {region.parent for region in numbered}
    for number, region in enumerate(numbered):
        if region.kind is Kind.CLAIM and region.index in owned:
            if number in odd or number in above or not _is_outermost(known, region.parent):
                return None
            owned[region.index].append(number)
    return owned


def _is_outermost(known: Remembered, parent: int | None) -> bool:
    return parent is not None and all(region.kind is Kind.FOREIGN for region in known.regions.around(parent))


def _account(known: Remembered, tally: Tally, index: int, numbers: list[int]) -> Account | None:
    claim = known.split.claims[index]
    root = next((tally.roots[number] for number in numbers if number in tally.roots), None)
    if root is None or claim.shared:
        return None
    account = Account(index, root)
    for number in numbers:
        sums = tally.sums.get(number)
        if sums is not None:
            for amount in (account.attributed, account.own, account.disk):
                amount.add(sums.bytes, sums.files, sums.inodes)
            account.uses(sums, quiet=known.regions.numbered[number].path in claim.quiet)
            account.whole.append(sums)
    return account


def _interned(before: Inventory, after: Inventory) -> Inventory:
    known = {entry.name: entry for entry in before.entries}
    entries = tuple(known[entry.name] if known.get(entry.name) == entry else entry for entry in after.entries)
    found = replace(after, entries=entries, aside=before.aside)
    return before if found == before else found
