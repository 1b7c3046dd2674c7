"""A few victims taken through the steps side by side, so that they share two looks at the machine."""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass

from cachewarden.clock import Clock
from cachewarden.evict import case as steps
from cachewarden.evict.case import Case
from cachewarden.evict.fallback import Fallback
from cachewarden.evict.ground import Ground
from cachewarden.evict.holding import Hands, Holding
from cachewarden.evict.husks import remove_husks
from cachewarden.evict.locks import SoftLocks
from cachewarden.evict.moving import commit, move, put_back, unlink
from cachewarden.evict.staying import AbsentError, StaysError, TooManyError, stays_because
from cachewarden.evict.trash import Trash
from cachewarden.evict.victim import LiveOpeners, Sight, Surroundings, Victim
from cachewarden.report import Gone, Spared
from cachewarden_policies.policy import SECOND
from cachewarden_policies.reasons import KeepReason

# Openers wait for us from the first lease on. After this time no further victim is leased …
_LEASING_NS = 4 * SECOND // 10
# A first look that took longer than this: no leases during the second, which may take ten times as long.
_LOOKING_NS = SECOND // 10
# After this time what is not verified goes back.
_PATIENCE_NS = SECOND
_NAMED = frozenset({KeepReason.IN_USE, KeepReason.LOCKED})


@dataclass(frozen=True, slots=True)
class Means:
    """What every step needs of the outside; see `Evictor` for their meaning."""

    trash: Trash
    surroundings: Surroundings
    openers: LiveOpeners
    clock: Clock
    now_ns: int
    at: Callable[[str], None]
    fallback: Fallback | None = None

    def busy(self, sight: Sight, fd: int) -> AbstractSet[bytes] | None:
        """What is mounted beneath a directory; None when that cannot be found out."""
        try:
            return sight.busy_below(fd)
        except (OSError, LookupError):
            return None


@contextmanager
def judging(case: Case) -> Iterator[None]:
    """Around one step of one victim: that it stays is remembered, and the others go on."""
    try:
        yield
    except StaysError as error:
        case.stays = error
    except OSError as error:
        case.stays = stays_because(error)


class Batch:
    """Runs the steps for `victims`. Afterwards `cases` are those that were tried: all, or the first ones
    when time ran out. The outcome of those that go is set by `unlink`, of `too_large` by nobody here.
    """

    def __init__(self, means: Means, victims: list[Victim], room: int) -> None:
        self.cases: list[Case] = []
        self.too_large: list[Case] = []
        self.shares_links = False
        self._means = means
        self._victims = victims
        self._hands = Hands(room)
        self._began_ns = 0
        self._slow = False
        self._committed: list[Case] = []

    @property
    def _open(self) -> list[Case]:
        return [case for case in self.cases if case.open]

    def run(self) -> None:
        """Everything up to the point of no return, and for those that stay all of it."""
        self._means.trash.make()  # ahead of the leases: making it opens it
        ground = Ground(self._means.trash.root_fd, SoftLocks(self._means.now_ns))
        try:
            self._open_all(ground)
            if self._open:
                self._means.at("opened")
                self._look_before()
            if self._open:
                self._means.at("looked")
                self._take_away()
        finally:
            # Also when a bug of ours got us here: nothing uncommitted stays away.
            self._put_back([case for case in self.cases if case not in self._committed])
            anything = bool(self._committed)
            self._release(ground)
        if anything:
            self._means.at("released")
        self._name_holders()

    def _take_away(self) -> None:
        means = self._means
        self._began_ns = means.clock.monotonic_ns()
        for number, case in enumerate(self.cases):
            if number and self._since_ns() > _LEASING_NS:
                self._leave_for_later(number)
                break
            if case.open:
                self._take(case)
        means.at("moved")
        self._verify()
        means.at("verified")
        self._commit()
        means.at("committed")

    def _take(self, case: Case) -> None:
        """Lease and move one victim, and have it back at once where somebody was quicker.

        One victim after the other, and not one step for all: whoever opens it by path waits for this one
        alone. After the move nobody new comes by path, so that who came before is at the door by now; he
        must not wait for the looks that follow, and nobody is to find the place empty and fill it meanwhile.
        """
        with judging(case):
            steps.lease(case)
            self._means.at("leased")
            self._check_door(case)
            move(self._means.trash, case)
            if case.open:
                steps.check_directories(case)
                steps.check_leases(case)
        if not case.open:
            self._give_up(case)

    def _give_up(self, case: Case) -> None:
        self._put_back([case])
        case.holding.release_files()

    def _since_ns(self) -> int:
        return self._means.clock.monotonic_ns() - self._began_ns

    def _leave_for_later(self, number: int) -> None:
        for later in self.cases[number:]:
            later.holding.release_files()
            later.holding.release_directories()
            if later in self.too_large:
                self.too_large.remove(later)
        del self.cases[number:]

    def _open_all(self, ground: Ground) -> None:
        self._means.openers.drain()
        for victim in self._victims:
            room = self._hands.room
            try:
                case = steps.open_case(victim, ground, self._hands, self._means.trash.traces)
            except (StaysError, AbsentError, TooManyError) as error:
                if isinstance(error, TooManyError) and self.cases:
                    return  # no room beside the others: it comes first in the next batch
                self._hands.room = room
                self._refuse(victim, error)
            else:
                self.cases.append(case)
                with judging(case):
                    if self._means.openers.holds(victim.name):
                        raise StaysError(KeepReason.LIVE_OPENER)
                    if self._means.fallback is not None:
                        self._means.fallback.check_layer(case)

    def _refuse(self, victim: Victim, error: StaysError | AbsentError | TooManyError) -> None:
        case = Case(victim, Holding(self._hands))
        self.cases.append(case)
        if isinstance(error, StaysError):
            case.stays = error
        elif isinstance(error, AbsentError):
            case.outcome = Gone()
        else:
            self._set_aside(case)

    def _set_aside(self, case: Case) -> None:
        case.holding.release_files()
        case.holding.release_directories()
        case.stays = StaysError(KeepReason.UNKNOWN)
        self.too_large.append(case)

    def _look_before(self) -> None:
        began = self._means.clock.monotonic_ns()
        sight = self._means.surroundings.look()
        busy = self._means.busy(sight, self._means.trash.root_fd)
        for case in self._open:
            with judging(case):
                if busy is None:
                    raise StaysError(KeepReason.UNKNOWN)
                steps.check_mounts(case, busy)
                steps.check_standing(case, sight)
        self._ask_second_witness()
        # So many processes, or so busy a machine, that a second look may not fit into the second.
        self._slow = self._means.clock.monotonic_ns() - began > _LOOKING_NS

    def _ask_second_witness(self) -> None:
        means = self._means
        if means.fallback is None or not self._open:
            return
        seen = means.fallback.look(self._open, means.surroundings)
        for case in self._open:
            with judging(case):
                means.fallback.check_users(case, seen)

    def _check_door(self, case: Case) -> None:
        self._means.openers.drain()
        if self._means.openers.holds(case.victim.name):
            raise StaysError(KeepReason.LIVE_OPENER)
        steps.check_directories(case)  # who is at work in a directory that is new is no opener of it yet
        steps.check_door(case)

    def _verify(self) -> None:
        if not self._open:
            return
        means = self._means
        if self._slow:  # nobody can come by path any more: who comes otherwise is seen or waits afterwards
            for case in self._open:
                steps.rest(case)
            means.at("resting")
        sight = means.surroundings.look()
        fds = {piece.here[0] for case in self._open for piece in case.pieces}
        busy = {fd: means.busy(sight, fd) for fd in fds}
        known = {fd: paths for fd, paths in busy.items() if paths is not None}
        self._ask_second_witness()
        if self._slow:
            self._began_ns = means.clock.monotonic_ns()
            for case in self._open:
                with judging(case):
                    steps.lease(case)
                if not case.open:
                    self._give_up(case)
            means.at("leased")
        means.openers.drain()
        for case in self._open:
            with judging(case):
                if means.openers.holds(case.victim.name):
                    raise StaysError(KeepReason.LIVE_OPENER)
                if len(known) < len(busy):
                    raise StaysError(KeepReason.UNKNOWN)
                steps.check_mounts_away(case, known)
                steps.check_standing(case, sight)
                steps.verify(case)
                steps.check_leases(case)
                if self._since_ns() > _PATIENCE_NS:
                    raise StaysError(KeepReason.UNKNOWN, late=True)
            if not case.open:
                self._give_up(case)

    def _put_back(self, cases: list[Case]) -> None:
        for case in reversed(cases):
            if case.moved:
                put_back(self._means.trash, case)

    def _commit(self) -> None:
        for case in self._open:
            if commit(self._means.trash, case):
                self._committed.append(case)
                self.shares_links |= any(file.found.st_nlink > 1 for file in case.holding.files)

    def _release(self, ground: Ground) -> None:
        for case in self.cases:
            case.holding.release_files()
            if case not in self._committed:
                case.holding.release_directories()
        gone = list(self._committed)
        if any(piece.beside for case in self._committed for piece in case.pieces):
            self.unlink()  # through directories that the ground is about to close
        for case in gone:
            remove_husks(case.victim.husks, ground, self._means.trash.traces)
        ground.close()

    def unlink(self) -> None:
        """Unlink what is past the point of no return, and set the outcomes."""
        while self._committed:
            unlink(self._means.trash, self._committed.pop(0))

    def _name_holders(self) -> None:
        staying = [case for case in self.cases if case.stays is not None and case.outcome is None]
        inodes = {
            inode
            for case in staying
            if case.stays is not None and case.stays.reason in _NAMED
            for inode in case.stays.inodes
        }
        holders = self._means.surroundings.who(inodes) if inodes else {}
        for case in staying:
            assert case.stays is not None
            named = tuple(each for inode in case.stays.inodes for each in holders.get(inode, ()))
            standing = self._means.surroundings.name(case.stays.holders)
            case.outcome = Spared(case.stays.reason, standing + named, case.rolled_back)
