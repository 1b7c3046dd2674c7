"""A location in a temporary directory and an enforcer over it, for tests of whole passes."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from cachewarden.clock import SetClock
from cachewarden.enforce.enforcer import Enforcer, Orders
from cachewarden.enforce.journal import Journal
from cachewarden.enforce.surveyor import Means
from cachewarden.holders import Machine
from cachewarden.ledger import PinStore, open_ledger
from cachewarden.spec import LocationSpec, Territory
from cachewarden_policies.policy import DAY, Amount, Limits, Policy

MIB = 1 << 20


def policy(**changes) -> Policy:
    """A policy without any guard but the hard ones, as most cases assume."""
    return Policy(**{"min_idle": 0, "max_share": Fraction(1), **changes})


def limit(high_mib: int, low_mib: int | None = None) -> Limits:
    """A soft limit in MiB, and where eviction stops."""
    target = Amount(absolute=(high_mib if low_mib is None else low_mib) * MIB)
    return Limits(max_size=high_mib * MIB, target_size=target)


class Heard(Journal):
    """A journal that remembers what it was told."""

    def __init__(self):
        self.notices = []
        self.refetched_bytes = 0

    def refetched(self, spec, size):
        self.refetched_bytes += size

    def notice(self, text):
        self.notices.append(text)


class Field:
    """A location `root` below `base`, its state beside it, and a clock that stands at now."""

    def __init__(self, base: Path):
        self.base = base
        self.root = base / "root"
        self.root.mkdir()
        self.clock = SetClock(time.time_ns(), time.monotonic_ns())
        self.heard = Heard()
        self.open()

    @property
    def state(self):
        """The state directory."""
        return os.fsencode(self.base / "state")

    def open(self):
        """Open (again) what a restart opens."""
        self.ledger = open_ledger(self.state, self.clock.wall_ns())
        self.pins = PinStore(self.state)
        self.enforcer = Enforcer(
            Means(
                ledger=self.ledger,
                pins=self.pins,
                clock=self.clock,
                surroundings=Machine(),
                runtime_dir=os.fsencode(self.base / "run"),
                command="a test",
                trusted=frozenset({0, os.geteuid()}),
                journal=self.heard,
                **self.senses(),
            )
        )

    def senses(self):
        """What more a pass has, by the names in `Means`; the ledger is open."""
        return {}

    def restart(self):
        """Close the ledger and open everything anew."""
        self.ledger.close()
        self.open()

    def entry(self, name: str, mib: int = 1, days: float = 9) -> Path:
        """A directory with one file, last touched so many days ago."""
        path = self.root / name
        path.mkdir(parents=True)
        self.file(f"{name}/f", mib, days)
        old = time.time() - days * 86400
        os.utime(path, (old, old))
        return path

    def file(self, name: str, mib: float = 1, days: float = 9) -> Path:
        """A file, last touched so many days ago."""
        path = self.root / name
        path.write_bytes(os.urandom(int(mib * MIB)))
        old = time.time() - days * 86400
        os.utime(path, (old, old))
        return path

    def spec(self, rules: Policy, **more) -> LocationSpec:
        """The location's spec. `ignore_ctime`, because tests cannot set it."""
        return LocationSpec("root", os.fsencode(self.root), rules, **{"ignore_ctime": True, **more})

    def run(self, rules: Policy, orders: Orders | None = None, **more):
        """One pass; its report of the location."""
        spec = self.spec(rules, **more)
        return self.enforcer.run(Territory((spec,)), [spec], orders or Orders()).locations[0]

    def names(self) -> list[str]:
        """What is in the location now."""
        return sorted(os.listdir(self.root))


@contextmanager
def holding(code: str, *arguments: str):
    """A process that runs `code` (which prints a line when it holds what it is to hold), then waits."""
    program = f"import os, sys, time, mmap, fcntl\n{code}\nprint('held', flush=True)\ntime.sleep(120)"
    process = subprocess.Popen([sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


__all__ = ["DAY", "MIB", "Field", "Heard", "Orders", "holding", "limit", "policy"]
