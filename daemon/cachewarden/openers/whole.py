"""The best source of live openers for each location: fanotify, and samples of /proc where it sees nothing."""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet

from cachewarden.clock import Clock
from cachewarden.inventory import Inventory
from cachewarden.kernel.fanotify import detect
from cachewarden.openers.feed import OpenerFeed
from cachewarden.openers.forms import Form
from cachewarden.openers.lastuses import News, Recent
from cachewarden.openers.location import OpenersOf
from cachewarden.openers.memory import Memory
from cachewarden.openers.samples import ProcSamples
from cachewarden.openers.setting import Setting
from cachewarden.report import Holder
from cachewarden_policies.policy import DAY


class Openers:
    """What the service uses: `index` after each survey, `for_location` for eviction. Thread-safe.

    Without the right to use fanotify all locations are sampled; with it, only those that it cannot see.
    """

    def __init__(self, clock: Clock, memory: Memory | None = None, setting: Setting | None = None) -> None:
        setting = setting or Setting()
        self.features = detect()
        self.feed: OpenerFeed | None = None
        if self.features.usable:
            self.feed = OpenerFeed(clock, memory, setting, self.features)
        self._samples = ProcSamples(clock, setting.ignore, memory)
        self._forms: dict[str, Form] = {}
        self._notices = list(self.features.missing)

    def start(self) -> None:
        """Begin to look in the background."""
        if self.feed is not None:
            self.feed.start()
        self._samples.start()

    def stop(self) -> None:
        """Take in what is there, save it, and end."""
        self._samples.stop()
        if self.feed is not None:
            self.feed.stop()

    def flush(self) -> None:
        """Take in what is there, and save all of it: somebody else is about to read it."""
        if self.feed is not None:
            self.feed.drain()
            self.feed.save()
        self._samples.save()

    def settle(self, keys: Collection[str]) -> None:
        """These are all locations, and each was indexed: forget all others, and what was left for them."""
        self._samples.retain([key for key in keys if self._forms.get(key) is Form.SAMPLES])
        if self.feed is not None:
            self.feed.retain(keys)
            self.feed.close_inherited()

    def index(self, key: str, root_fd: int, inventory: Inventory, hold_ns: int = 7 * DAY) -> Form:
        """See opens in a location from now on, by the entries that `inventory` has.

        `hold_ns` is the policy's opener_hold. Returns how well opens are seen there. Raises nothing.
        """
        form = Form.NONE
        if self.feed is not None:
            form = self.feed.index(key, root_fd, inventory, hold_ns)
        if form is Form.NONE:
            form = self._samples.index(key, root_fd, inventory, hold_ns)
        if form is not Form.FILESYSTEM and self._forms.get(key) is not form:
            self._notices.append(f"{key}: {form.sentence}")
        self._forms[key] = form
        return form

    def _source(self, key: str) -> OpenerFeed | ProcSamples:
        sampled = self.feed is None or self._forms.get(key) is Form.SAMPLES
        return self._samples if sampled or self.feed is None else self.feed

    def for_location(self, key: str) -> OpenersOf:
        """What eviction asks about one location. One that was not indexed is held, all of it."""
        return self._source(key).for_location(key)

    def held(self, key: str, entries: Collection[bytes]) -> AbstractSet[bytes]:
        """Those of some entries that a living process opened, or of which that is not known."""
        return self._source(key).held(key, entries)

    def form(self, key: str) -> Form:
        """How well opens are seen in a location."""
        return self._forms.get(key, Form.NONE)

    def openers(self, key: str, entry: bytes) -> tuple[Holder, ...]:
        """Who holds an entry, for people."""
        return self._source(key).openers(key, entry)

    def recent(self, key: str) -> Mapping[bytes, Recent]:
        """The newest open of each entry that was seen, by name."""
        return self._source(key).recent(key)

    def take_news(self, key: str) -> News:
        """What of a location's last uses the ledger has not got; the caller brings it there."""
        return self._source(key).take_news(key)

    def descriptors(self) -> dict[str, int]:
        """The groups by label, for systemd's descriptor store; `Setting.inherited` takes them back."""
        return self.feed.descriptors() if self.feed is not None else {}

    @property
    def overflows(self) -> int:
        """How often the kernel lost events."""
        return self.feed.overflows if self.feed is not None else 0

    def take_notices(self) -> list[str]:
        """Sentences for the log, each given out once."""
        notices, self._notices = self._notices, []
        return notices + (self.feed.take_notices() if self.feed is not None else [])
