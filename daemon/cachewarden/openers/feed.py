"""Live openers as the kernel reports them, for all locations.

feed.index(key, root_fd, inventory)     after each survey, before anything is evicted
feed.for_location(key)                  what eviction asks
"""

import os
import threading
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from cachewarden.clock import Clock
from cachewarden.inventory import Inventory
from cachewarden.kernel.fanotify import Features, Kind, detect
from cachewarden.mountinfo import mount_of
from cachewarden.openers.book import Book
from cachewarden.openers.channel import Channel, Opening
from cachewarden.openers.forms import Form
from cachewarden.openers.lastuses import NO_NEWS, Moment, News, Recent
from cachewarden.openers.location import OpenersOf, holders
from cachewarden.openers.looks import Look, Site, look
from cachewarden.openers.memory import Memory, NoMemory
from cachewarden.openers.processes import Ignored, alive
from cachewarden.openers.reader import Reader
from cachewarden.openers.setting import Setting
from cachewarden.openers.shelf import Shelf
from cachewarden.report import Holder
from cachewarden_policies.policy import DAY


@dataclass(frozen=True, slots=True)
class _Located:
    channel: Channel
    book: Book
    look: Look
    root: tuple[int, int]


class OpenerFeed:
    """Sees opens with fanotify. Thread-safe; `start` makes a thread that reads in batches.

    Without the thread, everything works by `drain` alone. `features.usable` must be true.
    """

    def __init__(
        self,
        clock: Clock,
        memory: Memory | None = None,
        setting: Setting | None = None,
        features: Features | None = None,
    ) -> None:
        setting = setting or Setting()
        self.features = features or detect()
        self._clock = clock
        self._ignored = Ignored(setting.ignore)
        self._opening = Opening(
            Kind(pidfds=self.features.pidfds, unlimited=setting.unlimited), dict(setting.inherited)
        )
        self._saving = threading.Lock()  # before any other: who saves ends when all before him is saved
        self._lock = threading.Lock()  # all below; never held while a channel is read
        self._channels: dict[str, Channel] = {}
        self._located: dict[str, _Located] = {}
        self._notices: list[str] = []
        self._shelf = Shelf(memory or NoMemory(), setting.ask)
        self._reader = Reader(self.drain, lambda: self.save(every=False), self.sweep)

    def start(self) -> None:
        """Begin to read in the background."""
        self._reader.start()

    def stop(self) -> None:
        """Read what is there, save, and let go of the groups (`descriptors` were handed on before)."""
        self._reader.stop()
        self.drain()
        self.save()
        for channel in self._all_channels():
            channel.close()
        self.close_inherited()

    def close_inherited(self) -> None:
        """Close inherited groups that no location took, once all are indexed: they only fill up."""
        while self._opening.inherited:
            os.close(self._opening.inherited.popitem()[1])

    def descriptors(self) -> dict[str, int]:
        """The groups by label, for systemd's descriptor store; the feed keeps using them.

        The labels are fit for FDNAME of sd_notify(3).
        """
        found: dict[str, int] = {}
        for channel in self._all_channels():
            found |= {label: group.fd for label, group in channel.groups.items()}
        return found

    def index(self, key: str, root_fd: int, inventory: Inventory, hold_ns: int = 7 * DAY) -> Form:
        """See opens in a location from now on, by the entries that `inventory` has.

        `hold_ns` is the policy's opener_hold. Returns how well opens can be seen there; with Form.NONE the
        location is not known here. Raises nothing; see `take_notices`.
        """
        try:
            mount = mount_of(root_fd)
            channel = self._channel(root_fd, key)
            form = channel.establish(root_fd, mount)
            if form is Form.NONE:
                self._forget(key)
                self._leave(channel, key)
            else:
                self._index(channel, Site(key, root_fd, mount, self._clock.wall_ns()), inventory, hold_ns)
            return form
        except (OSError, LookupError) as error:
            self._notices.append(f"{key}: opens could not be seen to, all is taken for in use: {error}")
            return self._doubt(key)

    def _doubt(self, key: str) -> Form:
        """What was known of a location may be out of date. Nobody who holds something is forgotten."""
        with self._lock:
            located = self._located.get(key)
            if located is None:
                return Form.NONE
            self._located[key] = replace(located, look=Look())
        return located.channel.form

    def _index(self, channel: Channel, site: Site, inventory: Inventory, hold_ns: int) -> None:
        key = site.key
        located = self._located.get(key)
        if located is not None and located.channel is not channel:
            self._forget(key)  # it lies on another filesystem now, or on the same one under another number
            located = None
        if located is None:
            channel.heed_all()
        # Marks of directories go with a filesystem that was away: then each is marked anew.
        last = located.look if located is not None and channel.form is Form.FILESYSTEM else Look()
        found = look(site, inventory, channel, last)
        # Not before each directory is marked: what is known from before must reach to what we see ourselves.
        book = located.book if located is not None else self._shelf.take(key)
        book.hold_ns = hold_ns
        channel.take_over(book, found.places)
        with channel.lock:
            book.uses.measured({entry.name: entry.measure.atime_ns for entry in inventory.entries})
        root = os.fstat(site.root_fd)
        with self._lock:
            self._located[key] = _Located(channel, book, found, (root.st_dev, root.st_ino))
            roots = {each.root for each in self._located.values()}
        if self.features.ignore:
            channel.silence(site.root_fd, roots)

    def _channel(self, root_fd: int, key: str) -> Channel:
        # By device: each btrfs subvolume has its own, and marks in several of them need several groups.
        device = os.fstat(root_fd).st_dev
        label = f"fanotify-{os.major(device)}.{os.minor(device)}"
        with self._lock:
            channel = self._channels.get(label)
            if channel is None:
                channel = Channel(label, self._opening, self._ignored, self._now)
                self._channels[label] = channel
                for group in channel.groups.values():
                    self._reader.add(group.fd)
            channel.keys.add(key)
        return channel

    def _now(self) -> Moment:
        return Moment(self._clock.wall_ns(), self._clock.monotonic_ns())

    def retain(self, keys: Collection[str]) -> None:
        """See no more of any location but these; who opened something in others is remembered."""
        for key in self._located.keys() - set(keys):
            self._forget(key)

    def _forget(self, key: str) -> None:
        with self._lock:
            located = self._located.pop(key, None)
            if located is not None:
                self._shelf.put(located.book)
        if located is not None:
            self._leave(located.channel, key)

    def _leave(self, channel: Channel, key: str) -> None:
        channel.release(key)
        with self._lock:
            channel.keys.discard(key)
            if channel.keys:
                return
            self._channels.pop(channel.label, None)
        for group in channel.groups.values():
            self._reader.remove(group.fd)
        channel.close()

    def for_location(self, key: str) -> OpenersOf:
        """What eviction asks about one location."""
        return OpenersOf(self, key)

    def form(self, key: str) -> Form:
        """How well opens are seen in a location."""
        located = self._located.get(key)
        return located.channel.form if located is not None else Form.NONE

    def drain(self, key: str | None = None) -> None:
        """Take in all that the kernel knows up to now, of one location's filesystem or of all.

        Opens nothing outside /proc. Raises nothing: what cannot be read makes all uncertain.
        """
        located = self._located.get(key) if key is not None else None
        for channel in self._all_channels() if located is None else [located.channel]:
            channel.drain()

    def holds(self, key: str, entry: bytes) -> bool:
        """Whether a living process opened this entry within the hold. Unknown means yes.

        Unknown is: a location or entry that was not indexed, one of which a part could not be looked at,
        and for as long as an open would hold after events were lost.
        """
        located = self._located.get(key)
        if located is None or entry not in located.look.entries or entry in located.look.unknown:
            return True
        boot_ns = self._clock.monotonic_ns()
        with located.channel.lock:
            if not located.channel.certain(boot_ns, located.book.hold_ns):
                return True
            return any(True for _ in located.book.of(entry, boot_ns, alive))

    def held(self, key: str, entries: Collection[bytes]) -> AbstractSet[bytes]:
        """Those of some entries that `holds` holds, at the cost of those that anybody opened."""
        located = self._located.get(key)
        if located is None:
            return set(entries)
        asked, boot_ns = set(entries), self._clock.monotonic_ns()
        with located.channel.lock:
            if not located.channel.certain(boot_ns, located.book.hold_ns):
                return asked
            held = located.book.held(boot_ns, alive)
        return asked & (held | located.look.unknown) | (asked - located.look.entries)

    def openers(self, key: str, entry: bytes) -> tuple[Holder, ...]:
        """Who holds an entry, for people."""
        located = self._located.get(key)
        if located is None:
            return ()
        with located.channel.lock:
            return holders(located.book, entry, self._clock.monotonic_ns())

    def recent(self, key: str) -> Mapping[bytes, Recent]:
        """The newest open of each entry that was seen, by name."""
        located = self._located.get(key)
        if located is None:
            return {}
        with located.channel.lock:
            return located.book.recent()

    def take_news(self, key: str) -> News:
        """What of a location's last uses the ledger has not got; the caller brings it there."""
        located = self._located.get(key)
        if located is None:
            return NO_NEWS
        with located.channel.lock:
            return located.book.uses.take_news(every=True)

    @property
    def overflows(self) -> int:
        """How often the kernel lost events."""
        return sum(channel.overflows for channel in self._all_channels())

    def take_notices(self) -> list[str]:
        """Sentences for the log, each given out once."""
        with self._lock:
            notices, self._notices = self._notices, []
        return notices + [each for channel in self._all_channels() for each in channel.take_notices()]

    def _all_channels(self) -> list[Channel]:
        with self._lock:
            return list(self._channels.values())

    def sweep(self) -> None:
        """Save all, and forget processes that have ended."""
        self.save()
        boot_ns = self._clock.monotonic_ns()
        self._shelf.sweep(boot_ns)
        for each in self._all_located():
            with each.channel.lock:
                each.book.sweep(boot_ns, alive, each.look.entries)
        for channel in self._all_channels():
            channel.sweep(alive)

    def save(self, *, every: bool = True) -> None:
        """Bring what changed since the last time to the ledger.

        Unless `every` use is asked for, those that the ledger has to within a minute wait.
        """
        changes, news = [], {}
        with self._saving:
            for each in self._all_located():
                with each.channel.lock:
                    changes.append(each.book.take_unsaved())
                    news[each.book.key] = each.book.uses.take_news(every=every)
            self._shelf.save(changes, news, self._clock.wall_ns())

    def _all_located(self) -> list[_Located]:
        with self._lock:
            return list(self._located.values())
