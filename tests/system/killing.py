"""kill -9 the real command at random moments, start it again, and look at what is left, over and over.

    python -m tests.system.killing --kills 1000 --seed 7

Each round fills a cache, starts `cachewarden once` or `cachewarden run` under a policy that keeps nothing,
kills it, and looks: an entry whose witness is at its place must be whole. Then `cachewarden once` under a
policy without limits takes up what is left: every entry is whole or gone, what went is in the history exactly
once and was said, and nothing is left in the trash.
"""

import argparse
import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.system.command import PROGRAM, Warden, environment
from tests.system.trees import loop_mounted, mounted

from cachewarden.evict import TRASH_NAME
from cachewarden.evict.naming import location_id
from cachewarden.ledger import open_ledger

Shape = tuple[int, int, str]  # inode, size (0 for a directory), target of a link


@dataclass
class Stock:
    """Entries of a cache: for each name, the witness first, then the other paths that are the entry's.

    `shared` are paths that go with the last of several entries.
    """

    entries: dict[str, list[str]]
    shared: dict[str, set[str]] = field(default_factory=dict)


def plain(root: str, size: int) -> Stock:
    """Entries that are directories of many files."""
    names = [f"e{number}" for number in range(8)]
    for name in names:
        for file in range(size):
            put(f"{root}/{name}/{file % 7}/{file}", file)
    return Stock({name: [name] for name in names})


def hub(root: str, size: int) -> Stock:
    """Repositories of two revisions that share half of their blobs."""
    stock = Stock({})
    for number in range(4):
        repository = f"models--acme--m{number}"
        top = f"{root}/{repository}"
        for letter, blobs in (("a", range(size)), ("b", range(size // 2, size + size // 2))):
            commit = letter * 40
            os.makedirs(f"{top}/snapshots/{commit}", exist_ok=True)
            for blob in blobs:
                name = f"{number}{blob:063x}"
                if not os.path.exists(f"{top}/blobs/{name}"):
                    put(f"{top}/blobs/{name}", blob)
                link = f"{top}/snapshots/{commit}/f{blob}"
                if not os.path.lexists(link):
                    os.symlink(f"../../blobs/{name}", link)
                stock.shared.setdefault(f"{repository}/blobs/{name}", set()).add(f"{repository}@{commit}")
            put(f"{top}/refs/{letter}", 0, commit.encode())
            snapshot = f"{repository}/snapshots/{commit}"
            stock.entries[f"{repository}@{commit}"] = [snapshot, f"{repository}/refs/{letter}"]
    return stock


def put(path: str, size: int, content: bytes = b"") -> None:
    """A file, unless it is there."""
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content or b"x" * size)


def shape(root: str, path: str) -> dict[str, Shape] | None:
    """A path and all below it; None when it is not there."""
    top = os.path.join(root, path)
    if not os.path.lexists(top):
        return None
    found = {path: look(top)}
    for base, directories, files in os.walk(top):
        for name in (*directories, *files):
            full = os.path.join(base, name)
            found[os.path.relpath(full, root)] = look(full)
    return found


def look(path: str) -> Shape:
    """One name."""
    seen = os.lstat(path)
    if os.path.islink(path):
        return seen.st_ino, 0, os.readlink(path)
    return seen.st_ino, 0 if os.path.isdir(path) else seen.st_size, ""


class Killing:
    """Rounds over one location `root`, with the state in `base`."""

    def __init__(self, base: str, root: str, make: Callable[[str, int], Stock], size: int, seed: int) -> None:
        self.root, self.make, self.size = root, make, size
        self.chance = random.Random(seed)
        self.books = True  # whether the ledger can be written, so that what went has to be in it
        self.wardens = [self._warden(base, {"evict_all": True}), self._warden(base, {})]
        self.found: Counter[str] = Counter()
        self._seconds = 3.0

    def _warden(self, base: str, policy: dict[str, object]) -> Warden:
        """A configuration of its own; both share state and locks."""
        warden = Warden(f"{base}/{len(policy)}", policy=policy, state=f"{base}/state")
        warden.daemon |= {"runtime_dir": f"{base}/run", "interval": "1h"}
        warden.location("cache", self.root)
        warden.write()
        return warden

    def round(
        self, then: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
    ) -> None:
        """One kill and one start afterwards; `then()` holds while the command runs. Raises AssertionError."""
        stock = self.make(self.root, self.size)
        before = {path: shape(self.root, path) for path in self._paths(stock)}
        booked = self._history()
        with then():
            self._kill(stock)
        killed = self._history() - booked
        self._check_witnesses(stock, before)
        again = self.wardens[1]("once", "--json")
        assert again.status == 0, again.err
        gone = self._check_entries(stock, before)
        if self.books:
            self._check_books(gone, self._history() - booked, killed, again.err)
        assert self._left() == [], self._left()

    def _paths(self, stock: Stock) -> list[str]:
        return [path for paths in stock.entries.values() for path in paths] + [*stock.shared]

    def _kill(self, stock: Stock) -> None:
        """Start the command and kill it, somewhere."""
        command = [*(PROGRAM, "--config", self.wardens[0].file), self.chance.choice(["once", "once", "run"])]
        began = time.monotonic()
        nowhere = subprocess.DEVNULL
        child = subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere, env=environment())
        try:
            self._wait(child, stock, began)
        finally:
            child.kill()
            child.wait()

    def _wait(self, child: subprocess.Popen[bytes], stock: Stock, began: float) -> None:
        """Mostly for a moment after the first entry went, else for one anywhere in the command's life."""
        witnesses = [os.path.join(self.root, paths[0]) for paths in stock.entries.values()]
        if self.chance.random() < 0.15:
            time.sleep(self.chance.uniform(0, self._seconds))
            return
        while all(map(os.path.lexists, witnesses)):
            if child.poll() is not None or time.monotonic() - began > 60:
                return
            time.sleep(0.0005)
        self._seconds = time.monotonic() - began
        time.sleep(self.chance.uniform(0, self.chance.choice([0, 0.005, 0.02, 0.06, 0.3])))

    def _check_witnesses(self, stock: Stock, before: dict[str, dict[str, Shape] | None]) -> None:
        for name, paths in stock.entries.items():
            if os.path.lexists(os.path.join(self.root, paths[0])):
                assert self._whole(stock, name, before), f"{name} is at its place, and not whole"
                self.found["whole after the kill"] += 1
            else:
                self.found["absent after the kill"] += 1

    def _check_entries(self, stock: Stock, before: dict[str, dict[str, Shape] | None]) -> set[str]:
        gone = {
            name
            for name, paths in stock.entries.items()
            if not any(os.path.lexists(os.path.join(self.root, path)) for path in paths)
        }
        for name in stock.entries.keys() - gone:
            assert self._whole(stock, name, before), f"{name} is neither whole nor gone"
        for path, owners in stock.shared.items():
            there = os.path.lexists(os.path.join(self.root, path))
            assert there == bool(owners - gone), f"{path}: there is {there}, gone are {sorted(gone)}"
        self.found["gone in the end"] += len(gone)
        self.found["back or never away"] += len(stock.entries) - len(gone)
        return gone

    def _whole(self, stock: Stock, name: str, before: dict[str, dict[str, Shape] | None]) -> bool:
        paths = [*stock.entries[name], *(path for path, owners in stock.shared.items() if name in owners)]
        return all(shape(self.root, path) == before[path] for path in paths)

    def _check_books(self, gone: set[str], rows: Counter[str], killed: Counter[str], said: str) -> None:
        """`rows` are all of this round, `killed` those that the killed process could still write."""
        # A repository whose other revision is gone is called by its own name alone.
        named = {name if rows[name] else name.partition("@")[0] for name in gone}
        assert rows == Counter(dict.fromkeys(named, 1)), f"gone: {sorted(gone)}; booked: {rows}"
        late = rows - killed
        assert all(f"{name} was evicted by a pass that was interrupted" in said for name in late), said
        self.found["booked by the killed"] += sum(killed.values())
        self.found["booked by the next start"] += sum(late.values())

    def _history(self) -> Counter[str]:
        with open_ledger(os.fsencode(self.wardens[1].state_dir), time.time_ns(), read_only=True) as ledger:
            rows = ledger.history(limit=10**9)
        assert {row.outcome for row in rows} <= {"removed"}
        return Counter(os.fsdecode(row.entry) for row in rows)

    def _left(self) -> list[str]:
        """Names of ours that are still about."""
        mine = location_id(os.fsencode(self.root)).decode()
        above, places = self.root, []
        while True:
            places.append(above)
            if os.path.dirname(above) == above:
                break
            above = os.path.dirname(above)
        trash = TRASH_NAME.decode()
        left = [
            name
            for place in places
            if os.path.isdir(f"{place}/{trash}")
            for name in os.listdir(f"{place}/{trash}")
            if mine in name
        ]
        return left + [
            name for _, names, files in os.walk(self.root) for name in names + files if ".cw-" in name
        ]


@contextlib.contextmanager
def locked_ledger(state_dir: str) -> Iterator[None]:
    """Another process has the ledger locked."""
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('BEGIN IMMEDIATE'); print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, f"{state_dir}/ledger.sqlite"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        try:
            yield
        finally:
            holder.kill()


def no_trash(*places: str) -> None:
    """A file where the trash would be: the place cannot be used, and entries are renamed where they are."""
    for place in places:
        with open(f"{place}/{TRASH_NAME.decode()}", "w", encoding="ascii"):
            pass


@contextlib.contextmanager
def full(mount: str) -> Iterator[None]:
    """No block is left on a filesystem, and no inode where their number is fixed."""
    try:
        for size in (1 << 20, 65536, 4096, 512):
            with contextlib.suppress(OSError), open(f"{mount}/fill{size}", "wb", buffering=0) as file:
                while True:
                    file.write(b"\1" * size)
        if os.statvfs(mount).f_files:
            with contextlib.suppress(OSError):
                for number in range(200_000):
                    os.close(os.open(f"{mount}/i{number}", os.O_CREAT | os.O_WRONLY))
        yield
    finally:
        for name in os.listdir(mount):
            if name.startswith(("fill", "i")):
                os.unlink(f"{mount}/{name}")


SIZES = {"ext4": "64M", "xfs": "320M", "btrfs": "128M"}


@contextlib.contextmanager
def filesystem(kind: str, base: str) -> Iterator[str]:
    """A small filesystem, mounted at a directory in `base` (needs root)."""
    point = f"{base}/{kind}"
    os.makedirs(point)
    if kind == "tmpfs":
        with mounted(["-t", "tmpfs", "-o", "size=32M,nr_inodes=9000,mode=755", "none"], point):
            yield point
    else:
        with loop_mounted(f"{base}/{kind}.img", point, SIZES[kind], kind):
            yield point


def campaign(ground: str, base: str, kills: int, seed: int, size: int) -> Counter[str]:
    """So many kills on one ground: a name of `GROUNDS`. Raises AssertionError at the first violation."""
    make = hub if "hub" in ground else plain
    with contextlib.ExitStack() as stack:
        mount = ""
        if ground.startswith("full "):
            mount = stack.enter_context(filesystem(ground.split()[1], base))
        elif "no trash" in ground:
            mount = stack.enter_context(filesystem("tmpfs", base))
        root = f"{mount or base}/cache"
        os.makedirs(root)
        killing = Killing(base, root, make, size, seed)
        killing.wardens[1]("once")  # a ledger, and all that is made once
        if "no trash" in ground:
            no_trash(mount, root)
        then: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
        if ground.startswith("full "):
            then = lambda: full(mount)  # noqa: E731 - one expression, used once
        for number in range(kills):
            killing.round(then)
            if number % 50 == 49:
                print(f"{ground}: {number + 1} kills", flush=True)
        return killing.found


GROUNDS = (
    "plain",
    "hub",
    "no trash, plain",
    "no trash, hub",
    "full ext4",
    "full xfs",
    "full btrfs",
    "full tmpfs",
)


def main() -> None:
    """The long form."""
    parser = argparse.ArgumentParser(prog="python -m tests.system.killing", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="in all, over all grounds")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6)
    parser.add_argument("--size", type=int, default=300, help="files of an entry")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    grounds = GROUNDS if os.geteuid() == 0 else GROUNDS[:2]
    shares = {ground: options.kills // (2 * len(grounds)) for ground in grounds}
    rest = options.kills - sum(shares.values())
    shares["plain"] += rest // 2
    shares["hub"] += rest - rest // 2
    for number, (ground, kills) in enumerate(shares.items()):
        with tempfile.TemporaryDirectory() as base:
            found = campaign(ground, base, kills, options.seed + number, options.size)
        print(f"{ground}: {kills} kills, {dict(found)}", flush=True)


if __name__ == "__main__":
    main()
