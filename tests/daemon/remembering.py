"""A location whose changes and opens are seen as the service sees them, for tests of what is remembered."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from tests.daemon.passes import Field, Heard

from cachewarden.enforce.measures import MeasureFiles
from cachewarden.openers import Openers, Setting
from cachewarden.watch import STRUCTURE, Legacy, Told, Watching


class Attentive(Heard):
    """Remembers how many files were walked, and what was recalled."""

    def __init__(self):
        super().__init__()
        self.walked = 0
        self.recalls = []

    def measured(self, spec, files, size):
        self.walked = max(self.walked, files)

    def recalled(self, spec, totals, changed):
        self.recalls.append((totals, changed))


class Remembering(Field):
    """A location with the service's sources of changes. `settle` makes what is there known, and still."""

    def __init__(self, base: Path, ignore: tuple[str, ...] = ()):
        self.ignore = ignore
        self.store = {}
        super().__init__(base)

    def open(self):
        self.heard = Attentive()
        super().open()

    def senses(self):
        structure = {name: fd for name, fd in self.store.items() if name.startswith(STRUCTURE)}
        opens = {name: fd for name, fd in self.store.items() if name not in structure}
        self.store = {}
        self.openers = Openers(self.clock, self.ledger.openers, Setting(self.ignore, opens))
        told = Told(lambda _: None, lambda: None, lambda: None)
        self.watching = Watching(told, frozenset(), Legacy(self.state, structure), self.openers.features)
        return {
            "opens": self.openers,
            "opens_since_start": lambda _: True,
            "changes": self.watching,
            "measures": MeasureFiles(self.state),
        }

    def run(self, rules, orders=None, **more):
        spec = self.spec(rules, **more)
        self.watching.watch(spec.key, spec.path)
        self.heard.walked = 0
        return super().run(rules, orders, **more)

    def let_times_settle(self):
        """Wait until the times of what is there prove something: until then everything is looked at."""
        time.sleep(2.1)
        self.clock.advance(time.time_ns() - self.clock.wall_ns())

    def settle(self, rules, **more):
        """Pass until nothing is measured any more; the last report."""
        for _ in range(4):
            report = self.run(rules, **more)
            if not self.heard.walked:
                return report
        raise AssertionError(f"{self.heard.walked} files are still measured")

    def close(self, *, in_order: bool = True, kept: bool = False):
        """End as the service ends; `kept`: systemd keeps the groups, and `open` takes them back."""
        if kept:
            groups = self.openers.descriptors() | self.watching.feed.descriptors()
            self.store = {name: os.dup(fd) for name, fd in groups.items()}
        if in_order:
            self.enforcer.surveyor.measuring.leave()
        self.watching.stop(in_order=in_order)
        self.openers.stop()
        self.ledger.close()

    def restart(self, *, in_order: bool = True, kept: bool = False):
        self.close(in_order=in_order, kept=kept)
        self.open()


def elsewhere(code: str, *arguments) -> None:
    """Run Python in a process that ends: who made or changed an entry and lives on would hold it."""
    subprocess.run([sys.executable, "-c", f"import os, sys\n{code}", *map(str, arguments)], check=True)


def make(path: Path, *, files: int = 5, kib: int = 64) -> None:
    """An entry of some files."""
    code = """
os.makedirs(sys.argv[1])
for number in range(int(sys.argv[2])):
    with open(f"{sys.argv[1]}/{number}", "wb") as file:
        file.write(os.urandom(int(sys.argv[3]) * 1024))
"""
    elsewhere(code, path, files, kib)


def grow(path: Path, kib: int = 64) -> None:
    """Let a file grow where it is."""
    elsewhere("open(sys.argv[1], 'ab').write(os.urandom(int(sys.argv[2]) * 1024))", path, kib)


_WRITER = """
import os, sys
file = open(sys.argv[1], "ab", buffering=0)
print("open", flush=True)
for _ in sys.stdin:
    file.write(os.urandom(1 << 16))
    print("grown", flush=True)
"""


@contextmanager
def writer(path: Path):
    """A process that has a file open; what is yielded lets it grow by 64 KiB."""
    command = [sys.executable, "-c", _WRITER, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "open\n"

        def more():
            process.stdin.write("more\n")
            process.stdin.flush()
            assert process.stdout.readline() == "grown\n"

        yield more
        process.stdin.close()
