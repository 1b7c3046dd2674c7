"""Three ways to evict everything that can be evicted, over and over: ours, and two that others use."""

import os
import shutil
import time
from collections import Counter, deque
from fractions import Fraction

from tests.soak.waits import Waits

from cachewarden.clock import SystemClock
from cachewarden.enforce.enforcer import Enforcer, Orders
from cachewarden.enforce.journal import Journal
from cachewarden.enforce.surveyor import Means
from cachewarden.holders import Machine
from cachewarden.ledger import PinStore, open_ledger
from cachewarden.openers import Openers
from cachewarden.spec import LocationSpec, Territory
from cachewarden_policies.policy import Amount, Limits, Policy

KEEP_NOTHING = Policy(
    limits=Limits(max_size=0, target_size=Amount(absolute=0)),
    min_idle=0,
    max_share=Fraction(1),
    evict_all=True,
)


class Tally(Journal):
    """What became of the victims, and how long leases were held; a pass tells it so."""

    def __init__(self):
        self.removed = 0
        self.put_back = 0
        self.kept = Counter()
        self.failures = []
        self.notices = Counter()
        self.leased = Waits()
        self.history = {}  # of each entry, the latest: when, what
        self._since = None

    def _remember(self, name, what):
        latest = self.history.setdefault(os.fsdecode(name), deque(maxlen=8))
        latest.append(f"{time.monotonic_ns() / 1e6:.3f} {what}")

    def evicted(self, spec, entry):
        self.removed += 1
        self._remember(entry.entry, "evicted")

    def spared(self, spec, entry, rolled_back):
        self.kept[entry.reason.value] += 1
        self.put_back += rolled_back
        self._remember(entry.entry, f"spared: {entry.reason.value}, put back: {rolled_back}")

    def failed(self, spec, entry):
        self.failures.append(f"{entry.entry!r}: {os.strerror(entry.errno)}")

    def notice(self, text):
        what, _, where = text.partition("trash: ")
        self.notices[where.partition(": ")[2] or text] += 1
        self._remember(where.partition(":")[0] or what, text)

    def at(self, step):
        """Between the steps of an eviction: from the last moment without a lease to the first again."""
        if step == "looked" or (step == "leased" and self._since is None):
            self._since = time.monotonic_ns()
        elif step in ("resting", "released") and self._since is not None:
            self.leased.add(time.monotonic_ns() - self._since)
            self._since = None


class Passes:
    """Passes as the service runs them, in this process; `openers` false: leases alone.

    Not the command: starting it takes longer than a hundred evictions, and what is attacked here is what a
    pass does. The journal, the ledger, the survey and the thread that reads opens are the service's.
    """

    def __init__(self, location, state, *, openers):
        self.tally = Tally()
        clock = SystemClock()
        self._ledger = open_ledger(state, clock.wall_ns())
        self._openers = Openers(clock, self._ledger.openers) if openers else None
        if self._openers is not None:
            self._openers.start()
        self._enforcer = Enforcer(
            Means(
                ledger=self._ledger,
                pins=PinStore(state),
                clock=clock,
                surroundings=Machine(),
                runtime_dir=os.path.join(state, b"run"),
                command="a hammer",
                journal=self.tally,
                opens=self._openers,
                opens_since_start=lambda _: openers,
                at=self.tally.at,
            )
        )
        self._spec = LocationSpec("hammered", location, KEEP_NOTHING, layout="plain", ignore_ctime=True)

    def round(self):
        """One pass."""
        self._enforcer.run(Territory((self._spec,)), [self._spec], Orders())

    def close(self):
        """End the thread that reads opens, and the ledger."""
        if self._openers is not None:
            for notice in self._openers.take_notices():
                self.tally.notice(notice)
            self._openers.stop()
        self._ledger.close()


class LookThenDelete:
    """Look at everything that processes hold open, mapped or stand in, by inode; delete the rest.

    A careful look: each entry for itself, directly before it goes, in every namespace.
    """

    def __init__(self, location, state):
        self.tally = Tally()
        self._location = location
        self._machine = Machine()
        self._names = []

    def round(self):
        """Try the next entry."""
        self._names = self._names or os.listdir(self._location) or [b"none"]
        entry = os.path.join(self._location, self._names.pop())
        inodes = set(_inodes(entry))
        if self._machine.look().standing_in(inodes) or self._machine.who(inodes):
            self.tally.kept["in_use"] += 1
        elif os.path.lexists(entry):
            shutil.rmtree(entry, ignore_errors=True)
            self.tally.removed += 1

    def close(self):
        """Nothing is open."""


class Nobody:
    """Evicts nothing: how long opens take on a machine that is as busy."""

    def __init__(self, location, state):
        self.tally = Tally()

    def round(self):
        """Let others work."""
        time.sleep(0.01)

    def close(self):
        """Nothing is open."""


def _inodes(entry):
    for base, _, files in os.walk(entry):
        for path in (base, *(os.path.join(base, name) for name in files)):
            try:
                found = os.lstat(path)
            except FileNotFoundError:
                continue
            yield found.st_dev, found.st_ino


ENGINES = {
    "cachewarden": lambda location, state: Passes(location, state, openers=True),
    "leases alone": lambda location, state: Passes(location, state, openers=False),
    "look, then delete": LookThenDelete,
    "nobody": Nobody,
}
