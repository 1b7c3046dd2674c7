"""One walk along an order for the needs of one scope: take, set aside, take together.

A row is taken when it gains something in a dimension whose need is not met. A row that gains nothing
is set aside: its data stays while another entry uses it. When all that share the data are set
aside or taken, they go together, at the rank of the youngest.
"""

from collections import Counter
from collections.abc import Iterable

from cachewarden_policies.bounds import Dimension
from cachewarden_policies.reasons import KeepReason
from cachewarden_policies.selection import Choice, Gains, Need, Selection, share_gains


class Round:
    """A walk for one scope. `taken` is what it chose, in order; `unmet` the needs that are left.

    With `respect_min_size` (needs of a filesystem) no location is taken below its policy's min_size.
    """

    def __init__(
        self, selection: Selection, scope: str, needs: list[Need], *, respect_min_size: bool
    ) -> None:
        self.selection = selection
        self.scope = scope
        self.taken: list[int] = []
        self.unmet = [need for need in needs if need.remaining > 0]
        self._respect_min_size = respect_min_size
        # One object for each reason: a million would keep the garbage collector busy.
        self._choices = {need.bound.reason: Choice(need.bound.reason, scope) for need in needs}
        self._aside: dict[int, list[int]] = {}
        self._settled: set[int] = set()

    def walk(self, rows: Iterable[int]) -> None:
        """Take rows in this order until the needs are met or the rows are used up."""
        selection = self.selection
        chosen, only, where = selection.chosen, selection.only, selection.roster.where
        for row in rows:
            if not self.unmet:
                return
            if row not in chosen and not (only and row not in only.get(where[row], (row,))):
                self._consider(row)

    def _consider(self, row: int) -> None:
        gains = self.selection.gains(row)
        need = self._helped(gains)
        if need is None:
            self._set_aside(row)
        elif self._respect_min_size and self._would_undercut(row, gains):
            # Not set aside: for those that share its data it is an owner that stays.
            self.selection.notes[row] = KeepReason.PROTECTED
            return
        else:
            self._take(row, gains, need)
        if row in self.selection.roster.share_rows:
            self._settle(row)

    def _helped(self, gains: Gains) -> Need | None:
        """The first unmet need that the gains lower."""
        for need in self.unmet:
            if gains[need.dimension] > 0:
                return need
        return None

    def _would_undercut(self, row: int, gains: Gains) -> bool:
        if not gains[Dimension.BYTES]:
            return False
        number = self.selection.roster.where[row]
        left = self.selection.usage_bytes(number) - gains[Dimension.BYTES]
        return left < self.selection.roster.locations[number].policy.min_size

    def _take(self, row: int, gains: Gains, need: Need) -> None:
        self.selection.choose(row, gains, self._choices[need.bound.reason])
        self.taken.append(row)
        for unmet in self.unmet:
            if unmet.remaining <= 0:
                self.unmet = [left for left in self.unmet if left.remaining > 0]
                return

    def _set_aside(self, row: int) -> None:
        """Remember a row without gain under what it shares, and why it gains nothing."""
        roster = self.selection.roster
        note = KeepReason.NO_GAIN
        for share_row in roster.share_rows.get(row, ()):
            self._aside.setdefault(share_row, []).append(row)
            if self._helped(share_gains(roster.shares[share_row])):
                note = KeepReason.SHARED_DATA
        self.selection.notes[row] = note

    def _settle(self, row: int) -> None:
        """Take what shares data with this row, where that was all the data waited for.

        Taking a row may settle what it shares with others, so there is a list of work and no recursion:
        chains of shared data are as long as a cache has revisions.
        """
        roster = self.selection.roster
        work = list(roster.share_rows[row])
        while work:
            share_row = work.pop()
            mates = self._waiting(share_row)
            if not mates:
                continue
            self._settled.add(share_row)
            gains = share_gains(roster.shares[share_row])
            need = self._helped(gains)
            if need is None or (self._respect_min_size and self._group_would_undercut(mates)):
                continue
            for mate in mates:
                self._take(mate, self.selection.gains(mate), need)
                work.extend(roster.share_rows[mate])

    def _waiting(self, share_row: int) -> list[int]:
        """The set-aside owners of shared data, when no other owner is left; else nothing."""
        aside = self._aside.get(share_row, [])
        left = self.selection.unchosen_owners[share_row]
        # Settled once: needs only shrink, so what did not help then does not help later.
        if share_row in self._settled or len(aside) < left:
            return []
        mates = [row for row in aside if row not in self.selection.chosen]
        return mates if len(mates) == left else []

    def _group_would_undercut(self, mates: list[int]) -> bool:
        """The same for a group: its members' own data and all that only they share."""
        roster = self.selection.roster
        size = sum(roster.entries[mate].own_bytes for mate in mates)
        owners = Counter(share_row for mate in mates for share_row in roster.share_rows[mate])
        for share_row, count in owners.items():
            if count == self.selection.unchosen_owners[share_row]:
                size += share_gains(roster.shares[share_row])[Dimension.BYTES]
        return self._would_undercut(mates[0], (size, 0, 0, 0, 0))
