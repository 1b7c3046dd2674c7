"""All entries of a situation in one row, with what guards them. Made once per plan, then only read.

A row number stands for an entry everywhere else in the planner: a scope may span locations, and an
integer is the cheapest name that sorts, hashes and indexes.
"""

from collections.abc import Iterator, Sequence

from cachewarden_policies.ordering import order_keys, with_ties
from cachewarden_policies.policy import Order
from cachewarden_policies.reasons import EvictReason, KeepReason
from cachewarden_policies.rules import USELESS, condemnations, hard_guards, soft_guards
from cachewarden_policies.situation import Entry, Location, Share, Situation

FREE, SOFT, HARD = 0, 1, 2


class Roster:
    """Locations sorted by key (so that the input's order does not matter) and their entries.

    `guard[row]` is the first reason to keep the entry, `level[row]` says whether it yields above a
    hard limit (SOFT) or never (HARD). Shares are in one row as well; `share_rows[row]` exists only for
    entries that share something.
    """

    def __init__(self, situation: Situation) -> None:
        self.now_ns = situation.now_ns
        self._sure_ns = situation.now_ns if situation.sure_ns is None else situation.sure_ns
        self.locations = sorted(situation.locations, key=lambda location: location.key)
        self.number = {location.key: n for n, location in enumerate(self.locations)}
        self.entries: list[Entry] = []
        self.where: list[int] = []
        self.spans: list[range] = []
        self.shares: list[Share] = []
        self.share_rows: dict[int, tuple[int, ...]] = {}
        self.guard: list[KeepReason | None] = []
        self.level = bytearray()
        self._keys: dict[Order, list[float]] = {}
        self._free: dict[tuple[int, Order], list[int]] = {}
        for number in range(len(self.locations)):
            self._enter(number)

    def _enter(self, number: int) -> None:
        location = self.locations[number]
        entries = location.entries
        start = len(self.entries)
        self.spans.append(range(start, start + len(entries)))
        self.entries.extend(entries)
        self.where.extend([number] * len(entries))
        # The daemon looked at processes, locks and pins: what it found comes before any rule.
        guard = [e.veto for e in entries]
        level = bytearray(len(guard))
        for index in [index for index, veto in enumerate(guard) if veto is not None]:
            level[index] = HARD
        for strength, rules in ((HARD, hard_guards(location.policy)), (SOFT, soft_guards(location.policy))):
            for rule in rules:
                for index in rule(entries, self._sure_ns):
                    if guard[index] is None:
                        guard[index] = rule.reason
                        level[index] = strength
        self.guard.extend(guard)
        self.level.extend(level)
        self._enter_shares(location, start)

    def _enter_shares(self, location: Location, start: int) -> None:
        """Give shared data rows in an order of its own, as groups are formed along these rows."""

        def canonical(share: Share) -> tuple[list[bytes], int, int, bool, bool]:
            names = sorted(location.entries[owner].name for owner in share.owners)
            return names, share.bytes, share.files, share.outside, share.kept

        first = len(self.shares)
        order = sorted(range(len(location.shares)), key=lambda s: canonical(location.shares[s]))
        self.shares.extend(location.shares[s] for s in order)
        row_of = {s: first + place for place, s in enumerate(order)}
        for owner in {owner for share in location.shares for owner in share.owners}:
            rows = sorted(row_of[s] for s in location.entries[owner].shares)
            self.share_rows[start + owner] = tuple(rows)

    def condemned(self, number: int, reasons: frozenset[EvictReason]) -> dict[int, EvictReason]:
        """Unguarded rows of one location that must go whatever the usage, in order, with the reason.

        What nobody can use goes before what nobody used: a brake may cut the end off.
        """
        location, start = self.locations[number], self.spans[number].start
        found: dict[int, EvictReason] = {}
        for rule in condemnations(location.policy):
            if rule.reason in reasons:
                for index in rule(location.entries, self.now_ns):
                    if self.level[start + index] == FREE:
                        found.setdefault(start + index, rule.reason)
        useless = [row for row, reason in found.items() if reason in USELESS]
        rest = [row for row, reason in found.items() if reason not in USELESS]
        order = location.policy.order
        return {row: found[row] for rows in (useless, rest) for row in self._sort(rows, order)}

    def order_of(self, numbers: list[int]) -> Order:
        """The order in which entries of these locations are ranked together.

        Orders cannot be mixed: bytes do not compare with times. Where the locations of a scope
        differ, least recently used is the one that wrongs nobody, as all of them measure it.
        """
        orders = {self.locations[number].policy.order for number in numbers}
        return orders.pop() if len(orders) == 1 else Order.LRU

    def free(self, numbers: list[int], order: Order) -> Iterator[int]:
        """Unguarded rows of these locations, in order."""
        lists = [self._free_of(number, order) for number in numbers]
        # Joined sorted runs sort in linear time.
        rows = lists[0] if len(lists) == 1 else self._by_key([r for rows in lists for r in rows], order)
        return self._in_order(rows, order)

    def soft(self, numbers: list[int], order: Order) -> Iterator[int]:
        """Rows of these locations that only a soft guard keeps, in order."""
        level = self.level
        rows = [row for number in numbers for row in self.spans[number] if level[row] == SOFT]
        return self._sort(rows, order)

    def _free_of(self, number: int, order: Order) -> list[int]:
        rows = self._free.get((number, order))
        if rows is None:
            level = self.level
            rows = self._by_key([row for row in self.spans[number] if not level[row]], order)
            self._free[number, order] = rows
        return rows

    def _sort(self, rows: list[int], order: Order) -> Iterator[int]:
        return self._in_order(self._by_key(rows, order), order)

    def _in_order(self, rows: list[int], order: Order) -> Iterator[int]:
        """Rows that are sorted by key, with ties resolved: change, name, location."""

        def tie(row: int) -> tuple[int, int, bytes, int]:
            entry = self.entries[row]
            (key,) = self._exact_keys([row], order)
            # Locations are sorted by key, so the number compares as the key does.
            return key, min(entry.changed_ns, self.now_ns), entry.name, self.where[row]

        return with_ties(rows, self._keys_of(order), tie)

    def _by_key(self, rows: list[int], order: Order) -> list[int]:
        return sorted(rows, key=self._keys_of(order).__getitem__)

    def _keys_of(self, order: Order) -> list[float]:
        keys = self._keys.get(order)
        if keys is None:
            keys = self._keys[order] = [
                float(key) for key in self._exact_keys(range(len(self.entries)), order)
            ]
        return keys

    def _exact_keys(self, rows: Sequence[int], order: Order) -> list[int]:
        entries = [self.entries[row] for row in rows]
        if order is not Order.CHEAPEST:
            return order_keys(entries, order, self.now_ns)
        won = [entry.own_bytes for entry in entries]
        for place, row in enumerate(rows):
            if row in self.share_rows:
                won[place] += self._shared_bytes(row)
        return order_keys(entries, order, self.now_ns, won)

    def _shared_bytes(self, row: int) -> int:
        """A row's part of the data that it shares: all who share it win equal parts.

        In an entry's `bytes` the first of them by name has it all.
        """
        shares = (self.shares[share_row] for share_row in self.share_rows[row])
        return sum(share.bytes // len(share.owners) for share in shares if not share.kept)
