"""Which rows are chosen so far, what that frees, and what may be spared again.

The books of one run of the planner. Gains are marginal: data that several entries share comes off
with the last of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from cachewarden_policies.bounds import Bound, Dimension
from cachewarden_policies.policy import Order
from cachewarden_policies.reasons import EvictReason, KeepReason
from cachewarden_policies.restraint import Freedom
from cachewarden_policies.roster import Roster
from cachewarden_policies.situation import Share, Usage

Gains: TypeAlias = tuple[int, int, int, int, int]  # one for each Dimension


@dataclass(slots=True)
class Need:
    """A bound that this run is to meet; `remaining` falls with each choice, below 0 it is slack.

    `order` ranks the entries that may go for it.
    """

    bound: Bound
    dimension: int
    remaining: int
    order: Order

    @classmethod
    def of(cls, bound: Bound, order: Order, gained: int = 0) -> "Need":
        """Start from a bound, less what was chosen before and is not in its measure yet."""
        return cls(bound, int(bound.dimension), bound.excess - gained, order)


@dataclass(frozen=True, slots=True)
class Choice:
    """Why a row goes, and which scope asked for it."""

    reason: EvictReason
    scope: str


def share_gains(share: Share) -> Gains:
    """What goes with the last owner of shared data."""
    if share.kept:
        return (0, 0, 0, 0, 0)
    if share.outside:
        return (share.bytes, share.files, 0, 0, 0)
    return (share.bytes, share.files, 0, share.bytes, share.files)


class Selection:
    """The state of one run. `chosen` is in rank order; `notes` says why a row was passed over.

    `only` closes locations to all but the rows named: max_share allowed these and no others.
    """

    def __init__(
        self, roster: Roster, freedoms: list[Freedom], only: dict[int, frozenset[int]] | None = None
    ) -> None:
        self.roster = roster
        self.freedoms = freedoms
        self.only = only or {}
        self.chosen: dict[int, Choice] = {}
        self.notes: dict[int, KeepReason] = {}
        self.needs: list[list[Need]] = [[] for _ in roster.locations]
        self.gained = [[0] * len(Dimension) for _ in roster.locations]
        self.unchosen_owners = [len(share.owners) for share in roster.shares]

    def watch(self, numbers: Iterable[int], needs: list[Need]) -> None:
        """From now on, choices in these locations count for these needs."""
        for number in numbers:
            self.needs[number].extend(needs)

    def gains(self, row: int, owners_left: int = 1) -> Gains:
        """What the location and the disk get back when this row goes now, too.

        For a row that is chosen already, with `owners_left=0`: what they lose when it stays after all.
        """
        roster = self.roster
        entry = roster.entries[row]
        if row not in roster.share_rows:
            return (entry.own_bytes, entry.own_files, 1, entry.disk_bytes, entry.disk_inodes)
        size, files = entry.own_bytes, entry.own_files
        disk_bytes, inodes = entry.disk_bytes, entry.disk_inodes
        for share_row in roster.share_rows[row]:
            if self.unchosen_owners[share_row] == owners_left:
                more = share_gains(roster.shares[share_row])
                size += more[0]
                files += more[1]
                disk_bytes += more[3]
                inodes += more[4]
        return (size, files, 1, disk_bytes, inodes)

    def usage_bytes(self, number: int) -> int:
        """What the location holds once all that is chosen is gone."""
        return self.roster.locations[number].usage_bytes - self.gained[number][Dimension.BYTES]

    def usage(self, numbers: Iterable[int]) -> Usage:
        """What these locations hold together once all that is chosen is gone."""
        size = files = entries = 0
        for number in numbers:
            location, gained = self.roster.locations[number], self.gained[number]
            size += location.usage_bytes - gained[Dimension.BYTES]
            files += location.usage_files - gained[Dimension.FILES]
            entries += len(location.entries) - gained[Dimension.ENTRIES]
        return Usage(size, files, entries)

    def choose(self, row: int, gains: Gains, choice: Choice) -> None:
        """Take a row; `gains` must be what `gains(row)` says now."""
        self.chosen[row] = choice
        self._book(row, gains, 1)

    def release(self, row: int, losses: Gains) -> None:
        """Give a row back; `losses` must be what `gains(row, 0)` says now."""
        del self.chosen[row]
        self._book(row, losses, -1)

    def _book(self, row: int, amounts: Gains, sign: int) -> None:
        number = self.roster.where[row]
        gained = self.gained[number]
        size, files, one, disk_bytes, inodes = amounts
        gained[0] += sign * size
        gained[1] += sign * files
        gained[2] += sign * one
        gained[3] += sign * disk_bytes
        gained[4] += sign * inodes
        for need in self.needs[number]:
            need.remaining -= sign * amounts[need.dimension]
        if row in self.roster.share_rows:
            for share_row in self.roster.share_rows[row]:
                self.unchosen_owners[share_row] -= sign

    def spare(self, rows: Iterable[int]) -> None:
        """Give back what turned out unnecessary, the most recently used first.

        One sweep is enough: giving a row back costs at least as much slack as it can lower what
        another one loses, so a row that had to stay chosen before still has to. No set of rows can be
        given back either where no single row can, as a set loses at least what its members lose.
        """
        # Every chosen row gained something, so without slack anywhere none can be given back.
        if not any(need.remaining < 0 for needs in self.needs for need in needs):
            return
        roster, now_ns = self.roster, self.roster.now_ns

        def recency(row: int) -> tuple[int, int]:
            return roster.level[row], min(roster.entries[row].last_use_ns, now_ns)

        # Reversed first: of rows used at the same moment, the one ranked last is spared first.
        hopeful = [row for row in list(rows)[::-1] if self._is_dispensable(row, self.gains(row, 0))]
        for row in sorted(hopeful, key=recency, reverse=True):
            losses = self.gains(row, 0)
            if self._is_dispensable(row, losses):
                self.release(row, losses)

    def _is_dispensable(self, row: int, losses: Gains) -> bool:
        """Whether every need that this row may be taken for is as well met without it.

        A soft need that stays unmet does not hold on to a row that went for a hard limit only (soft
        guarded, or in quiet hours): such rows go as far as the hard limit asks, and no further.
        """
        number = self.roster.where[row]
        for need in self.needs[number]:
            loss = losses[need.dimension]
            if loss and need.remaining + loss > 0:
                if need.remaining <= 0 or need.bound.hard:
                    return False
                if need.order in self.freedoms[number].soft and not self.roster.level[row]:
                    return False
        return True
