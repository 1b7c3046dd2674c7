"""What is about to be evicted is noted first, so that a killed pass is booked too, and only once.

The disk decides what became of it, not the note: an entry whose witness is at its place was not
evicted, or is back; one whose witness is gone went.
"""

import os
from collections.abc import Iterable, Sequence

from cachewarden.enforce.work import Work
from cachewarden.evict import Fate, Recovered, Victim
from cachewarden.ledger import EvictionRow, Intent, Ledger
from cachewarden.paths import show
from cachewarden.spec import LocationSpec
from cachewarden.tree import ABSENT, open_beneath, split_path
from cachewarden_policies.verdicts import Verdict

_UNDECIDED = frozenset({Fate.IN_USE, Fate.STRAY, Fate.FAILED})


def note(
    ledger: Ledger, work: Work, verdicts: Sequence[Verdict], victims: Sequence[Victim], now_ns: int
) -> None:
    """Note that these victims will be tried now. Their ids are kept in `work.intents`."""
    intents = [
        Intent(_row(work, verdict, now_ns), victim.paths[0], victim.ino)
        for verdict, victim in zip(verdicts, victims, strict=True)
    ]
    work.intents += ledger.intents.begin(intents, now_ns)


def _row(work: Work, verdict: Verdict, now_ns: int) -> EvictionRow:
    spec, number = work.survey.spec, work.numbers[verdict.index]
    facts = work.survey.facts[number]
    return EvictionRow(
        time_ns=now_ns,
        location=spec.key,
        name=spec.name,
        path=spec.path,
        entry=facts.name,
        bytes=facts.bytes,
        freed_bytes=facts.disk_bytes,  # what it should free; what it did free dies with the process
        reason=verdict.reason,
        outcome="removed",
        last_use_ns=facts.last_use_ns,
        last_use_source=facts.last_use_source,
        owner=work.survey.inventory.entries[number].owner,
    )


def settle(
    ledger: Ledger, spec: LocationSpec, root_fd: int, recovered: Iterable[Recovered], now_ns: int
) -> list[str]:
    """Book what an earlier pass over a location began and could not book; sentences for people.

    Call it with the location's lock, when all in the trash was `recovered` as far as possible. What is
    not decided yet, or cannot be looked at, is left for the next time.
    """
    begun = ledger.intents.of(spec.key)
    if not begun:
        return []
    undecided = {each.origin for each in recovered if each.fate in _UNDECIDED}
    gone: list[EvictionRow] = []
    settled: list[int] = []
    for number, intent in begun.items():
        here = None if intent.witness in undecided else _is_here(root_fd, intent)
        if here is not None:
            settled.append(number)
        if here is False:
            gone.append(intent.row)
    ledger.record_evictions(gone, now_ns, settled)
    return [
        f"{spec.name}: {show(row.entry)} was evicted by a pass that was interrupted; it is booked now"
        for row in gone
    ]


def _is_here(root_fd: int, intent: Intent) -> bool | None:
    parent, name = split_path(intent.witness)
    try:
        fd = open_beneath(root_fd, parent)
        try:
            return os.stat(name, dir_fd=fd, follow_symlinks=False).st_ino == intent.ino
        finally:
            os.close(fd)
    except OSError as error:
        return False if error.errno in ABSENT else None
