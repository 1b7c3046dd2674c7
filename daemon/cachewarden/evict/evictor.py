"""Eviction: one victim is one transaction, many victims share their looks around.

    open, compare, lock        everything open, nothing opened again until the end
    look                       who stands in it, what of it is mounted: once for the batch
    lease                      every inode of it: nobody has it open or mapped
    move       m-              no new path look-up finds it
    look, verify               the same inodes, nobody came in; otherwise back with it
    commit     p-              the point of no return
    release, unlink            beside the next batch's steps

From the first lease to the last nothing is opened outside /proc, nothing is forked and nothing waited
for: whoever opens a leased file waits for us, and if he is a scanner with permission events, we would wait
for him. What takes longer than a second is put back.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from types import TracebackType
from typing import Self

from cachewarden.clock import Clock
from cachewarden.evict.batch import Batch, Means
from cachewarden.evict.case import Case
from cachewarden.evict.fallback import Fallback, fallback_for
from cachewarden.evict.probe import Probe
from cachewarden.evict.room import descriptor_room
from cachewarden.evict.rounds import evict_in_rounds
from cachewarden.evict.trash import Trash
from cachewarden.evict.victim import LiveOpeners, NoOpeners, Surroundings, Victim
from cachewarden.kernel import leases
from cachewarden.report import EvictionOutcome, Spared
from cachewarden_policies.reasons import KeepReason

# So many files and directories of one batch are open at once: what can be leased, looked around for and
# verified well within the second.
_ROOM = 8192
_VICTIMS = 256


def _nothing(step: str) -> None:
    """The default for `at`."""


class Evictor:
    """Evicts victims of one location. Use it in `with`, or close it; one pass, one Evictor.

    `trash` stays the caller's. `now_ns` is the pass's wall clock (for the age of soft locks), `clock` is
    read for the second only. `lease_trusted` is false on overlays, network and unknown filesystems: then
    a `fallback` has to agree (None: the one for the filesystem), and without one every victim is spared
    as unknown. `room` is how many descriptors a batch may open at most, beside what the process's
    own limit allows. `at` is called between the steps, with "opened", "looked", "leased" (for each
    victim), "moved", "verified", "committed", "released", and where a look takes long "resting" and "leased"
    again before "verified": a place for tests to interfere and to measure.
    Raises ValueError outside the main thread when nobody called `leases.ignore_sigio` before.
    """

    def __init__(  # noqa: PLR0913 - the seams of the outside world, each named at the call
        self,
        trash: Trash,
        surroundings: Surroundings,
        *,
        now_ns: int,
        clock: Clock,
        openers: LiveOpeners | None = None,
        lease_trusted: bool = True,
        fallback: Fallback | None = None,
        room: int = _ROOM,
        at: Callable[[str], None] = _nothing,
    ) -> None:
        leases.ignore_sigio()
        self._trash = trash
        doubted = None if lease_trusted else fallback or fallback_for(trash.root_fd)
        self._proves = True if lease_trusted else False if doubted is None else None  # None: not tried yet
        self._most = room
        self._means = Means(trash, surroundings, openers or NoOpeners(), clock, now_ns, at, doubted)
        self._unlinking = ThreadPoolExecutor(1, thread_name_prefix="unlink")
        self._pending: Future[None] | None = None

    @cached_property
    def _room(self) -> int:
        # Not before there is a victim: a pass makes an evictor for each location, most of a thousand of them
        # have none, and counting what is open takes the longer the more of them are open.
        return min(self._most, descriptor_room())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Wait until everything past the point of no return is unlinked."""
        self._settle()
        self._unlinking.shutdown()

    def evict(self, victim: Victim) -> EvictionOutcome:
        """Evict one entry. Everything that can happen to it is in the outcome."""
        return self.evict_all([victim])[0]

    def evict_all(
        self, victims: Sequence[Victim], stop: Callable[[], bool] = lambda: False
    ) -> list[EvictionOutcome]:
        """Evict entries in this order, each by itself, several at once where that is safe.

        `stop` is asked between batches; then the outcomes are fewer than the victims, in their order. A
        victim's `shared_out` must not depend on what becomes of another one in the same call.
        """
        if not self._can_prove():
            return [Spared(KeepReason.UNKNOWN) for _ in victims]
        done: list[Case] = []
        todo = list(victims)
        while todo and not stop():
            cases = self._batch(todo[: _fitting(todo, self._room)])
            todo = todo[len(cases) :]
            done += self._again_if_late(cases, stop)
        self._settle()
        return [case.outcome for case in done if case.outcome is not None]

    def _batch(self, victims: list[Victim]) -> list[Case]:
        """Evict the first of these, as many as time permits."""
        batch = Batch(self._means, victims, self._room)
        batch.run()
        self._unlink_beside(batch)
        for case in batch.too_large if self._means.fallback is None else ():
            self._settle()
            evict_in_rounds(self._means, case)
        return batch.cases

    def _again_if_late(self, cases: list[Case], stop: Callable[[], bool]) -> list[Case]:
        """Try those once more, a few at a time, that were put back only because time ran out.

        A machine that is busy for a second must not cost others, used later, their place.
        """
        late = [number for number, case in enumerate(cases) if case.late]
        few = max(1, len(late) // 4)
        while late and not stop():
            again = self._batch([cases[number].victim for number in late[:few]])
            for number, case in zip(late, again, strict=False):
                cases[number] = case
            late = late[len(again) :]
        return cases

    def probe_all(self, victims: Sequence[Victim]) -> list[EvictionOutcome | None]:
        """What would become of each victim, found out with leases that are given back; None: it would go.

        Nothing is moved. One that is too large to be leased as a whole counts as one that would go.
        """
        if not self._can_prove():
            return [Spared(KeepReason.UNKNOWN) for _ in victims]
        done: list[Case] = []
        todo = list(victims)
        while todo:
            batch = Probe(self._means, todo[: _fitting(todo, self._room)], self._room)
            batch.run()
            for case in batch.too_large if self._means.fallback is None else ():
                case.outcome = None
            done += batch.cases
            todo = todo[len(batch.cases) :]
        return [case.outcome for case in done]

    def _can_prove(self) -> bool:
        """Whether it can be found out here that nobody uses an entry."""
        if self._proves is None:
            fallback = self._means.fallback
            self._proves = fallback is not None and fallback.works(self._trash)
        return self._proves

    def _unlink_beside(self, batch: Batch) -> None:
        self._settle()
        self._pending = self._unlinking.submit(batch.unlink)
        if batch.shares_links:  # unlinking changes what the next batch would compare
            self._settle()

    def _settle(self) -> None:
        if self._pending is not None:
            pending, self._pending = self._pending, None
            pending.result()


def _fitting(victims: Sequence[Victim], room: int) -> int:
    """How many of the first victims go into one batch; at least one.

    Of two where one lies inside the other, the second comes later: moving the first changes it.
    """
    taken: set[bytes] = set()
    above: set[bytes] = set()
    files = 0
    for count, victim in enumerate(victims):
        files += victim.listed_files + 2 * len(victim.paths)
        paths = {*victim.paths, *victim.shared_out, *victim.apart}
        parents = {parent for path in paths for parent in _parents(path)}
        inside = not (taken.isdisjoint(paths | parents) and above.isdisjoint(paths))
        if count and (files > room or count == _VICTIMS or inside):
            return count
        taken |= paths
        above |= parents
    return len(victims)


def _parents(path: bytes) -> Iterator[bytes]:
    while b"/" in path:
        path = path.rpartition(b"/")[0]
        yield path
