"""Live openers from samples of /proc: the weaker form, for who may not use fanotify.

A process that a sample finds with something of an entry open, mapped, as its executable or as where it stands
is taken for an opener. Who opens and closes between two samples is missed; so is whoever may not be looked
at, and who has the location under another path (a container).
"""

import os
import stat
import threading
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass

from cachewarden.clock import Clock
from cachewarden.inventory import Inventory
from cachewarden.mountinfo import relative
from cachewarden.openers.book import Book
from cachewarden.openers.forms import Form
from cachewarden.openers.lastuses import NO_NEWS, Moment, News, Recent, save_news
from cachewarden.openers.location import OpenersOf, holders
from cachewarden.openers.memory import Memory, NoMemory
from cachewarden.openers.processes import Ignored, Who, alive, look, user_of
from cachewarden.report import Holder
from cachewarden.tree import split_path
from cachewarden_policies.policy import DAY

SAMPLE_SECONDS = 10.0
_SAVE_SAMPLES = 6  # every use is brought to the ledger with each so-many-th sample, a minute apart
_SEEN_BY = "proc"


@dataclass(slots=True)
class _Located:
    book: Book
    root: bytes
    owners: dict[bytes, tuple[bytes, ...]]
    entries: frozenset[bytes]


class ProcSamples:
    """Takes samples in a thread (`start`), and whenever it is drained. Thread-safe.

    `OpenerFeed` has the same interface; what is said there holds here.
    """

    def __init__(self, clock: Clock, ignore: Collection[str] = (), memory: Memory | None = None) -> None:
        self._clock = clock
        self._memory = memory or NoMemory()
        self._ignored = Ignored((*ignore, "cachewarden"))
        self._saving = threading.Lock()  # before the other: who saves ends when all before him is saved
        self._lock = threading.Lock()
        self._located: dict[str, _Located] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="samples", daemon=True)
        self.samples = 0

    def start(self) -> None:
        """Begin to take samples in the background."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, and save."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self.save()

    def _run(self) -> None:
        while not self._stop.wait(SAMPLE_SECONDS):
            if self._located:
                self.sample(mapped=True)
                self.sweep()
                self.save(every=self.samples % _SAVE_SAMPLES == 0)

    def save(self, *, every: bool = True) -> None:
        """Bring last uses to the ledger. Live openers are left out: the next sample meets them again."""
        with self._saving:
            with self._lock:
                news = {key: each.book.uses.take_news(every=every) for key, each in self._located.items()}
            save_news(self._memory, _SEEN_BY, news, self._clock.wall_ns())

    def index(self, key: str, root_fd: int, inventory: Inventory, hold_ns: int = 7 * DAY) -> Form:
        """Look for users of a location from now on. Raises nothing."""
        owners: dict[bytes, tuple[bytes, ...]] = {}
        for entry in inventory.entries:
            owners |= {path: (*owners.get(path, ()), entry.name) for path in entry.claim.paths}
        for share in inventory.shares:
            if share.claim is not None:
                names = tuple(inventory.entries[owner].name for owner in share.owners)
                owners |= dict.fromkeys((share.claim.path, *share.claim.companions), names)
        try:
            root = os.readlink(b"/proc/self/fd/%d" % root_fd)
        except OSError:
            return Form.NONE
        with self._lock:
            known = self._located.get(key)
            book = known.book if known is not None else Book(key)
            book.hold_ns = hold_ns
            names_of_all = frozenset(entry.name for entry in inventory.entries)
            self._located[key] = _Located(book, root, owners, names_of_all)
        self.sample(mapped=True)
        return Form.SAMPLES

    def retain(self, keys: Collection[str]) -> None:
        """Forget all locations but these."""
        with self._lock:
            for key in self._located.keys() - set(keys):
                del self._located[key]

    def for_location(self, key: str) -> OpenersOf:
        """What eviction asks about one location."""
        return OpenersOf(self, key)

    def form(self, key: str) -> Form:
        """How well users of a location are seen."""
        return Form.SAMPLES if key in self._located else Form.NONE

    def drain(self, key: str | None = None) -> None:  # noqa: ARG002 - a sample is for all locations
        """Look again. Mappings are left out: leases are held perhaps, and tell about those themselves."""
        self.sample(mapped=False)

    def sample(self, *, mapped: bool) -> None:
        """Book whoever uses something now."""
        now = Moment(self._clock.wall_ns(), self._clock.monotonic_ns())
        own = os.getpid()
        with self._lock:
            self.samples += 1
            roots = [(located.root, located) for located in self._located.values()]
        prefixes = tuple(root.rstrip(b"/") + b"/" for root, _ in roots)
        found = [
            (pid, located, path)
            for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
            if pid != own
            for target in _targets(b"/proc/%d/" % pid, prefixes, mapped=mapped)
            for root, located in roots
            if (path := relative(target, root)) is not None
        ]
        with self._lock:
            for pid, located, path in found:
                met = look(pid)
                if met is not None and not self._ignored.matches(*met):
                    for entry in _owners(path, located.owners):
                        located.book.note(entry, Who(*met, user_of(pid)), now)

    def holds(self, key: str, entry: bytes) -> bool:
        """Whether a living process was seen with this entry. Unknown entries are held."""
        with self._lock:
            located = self._located.get(key)
            if located is None or entry not in located.entries:
                return True
            return any(True for _ in located.book.of(entry, self._clock.monotonic_ns(), alive))

    def held(self, key: str, entries: Collection[bytes]) -> AbstractSet[bytes]:
        """Those of some entries that `holds` holds."""
        return {entry for entry in entries if self.holds(key, entry)}

    def openers(self, key: str, entry: bytes) -> tuple[Holder, ...]:
        """Who holds an entry, for people."""
        with self._lock:
            located = self._located.get(key)
            return holders(located.book if located else None, entry, self._clock.monotonic_ns())

    def recent(self, key: str) -> Mapping[bytes, Recent]:
        """When each entry was seen in use last, by name."""
        with self._lock:
            located = self._located.get(key)
            return located.book.recent() if located is not None else {}

    def take_news(self, key: str) -> News:
        """What of a location's last uses the ledger has not got; the caller brings it there."""
        with self._lock:
            located = self._located.get(key)
            return located.book.uses.take_news(every=True) if located is not None else NO_NEWS

    def sweep(self) -> None:
        """Forget processes that have ended."""
        with self._lock:
            for located in self._located.values():
                located.book.sweep(self._clock.monotonic_ns(), alive, located.entries)

    def take_notices(self) -> list[str]:
        """Nothing to tell."""
        return []


def _targets(process: bytes, prefixes: tuple[bytes, ...], *, mapped: bool) -> set[bytes]:
    """Paths below `prefixes` of whatever a process has open, stands in, runs or has mapped."""
    found: set[bytes] = set()
    links = [process + name for name in (b"cwd", b"exe")]
    with suppress(OSError):
        links += [process + b"fd/" + name for name in os.listdir(process + b"fd")]
    for link in links:
        with suppress(OSError):
            target = os.readlink(link)
            if target.startswith(prefixes) and target not in found and _is(target, os.stat(link).st_ino):
                found.add(target)
    if mapped:
        with suppress(OSError), open(process + b"maps", "rb") as lines:
            for line in lines:  # address, rights, offset, device, inode, path: proc_pid_maps(5)
                fields = line.rstrip(b"\n").split(maxsplit=5)
                target = fields[5] if len(fields) == 6 else b""
                if target.startswith(prefixes) and target not in found and _is(target, int(fields[4])):
                    found.add(target)
    return found


def _is(target: bytes, inode: int) -> bool:
    """Whether a path of /proc means the same here: the process may see other mounts under it.

    By inode number alone, because on btrfs the device in maps is not that of stat(2). One that is equal by
    chance holds an entry too many.
    """
    try:
        found = os.lstat(target)
    except OSError:
        return False
    return found.st_ino == inode and not stat.S_ISLNK(found.st_mode)


def _owners(path: bytes, owners: Mapping[bytes, tuple[bytes, ...]]) -> tuple[bytes, ...]:
    while path:
        if path in owners:
            return owners[path]
        path = split_path(path)[0]
    return ()
