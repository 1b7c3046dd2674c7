"""The best source of changes for each location: fanotify, and inotify where that is refused."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from cachewarden.kernel.fanotify import Features
from cachewarden.watch.structure import StructureFeed
from cachewarden.watch.watcher import Watcher, WatchMode


@dataclass(frozen=True, slots=True)
class Told:
    """Who is told what, from threads of all kinds: these return at once and do not raise.

    `changed(key)`: somebody changed something in a location. `roots()`: a name came or went where locations
    may appear. `overflowed()`: inotify lost events, and everything may have changed.
    """

    changed: Callable[[str], None]
    roots: Callable[[], None]
    overflowed: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Legacy:
    """What an earlier process of ours left: groups by label, and where it kept what it had read of them."""

    state_dir: bytes
    inherited: Mapping[str, int] = field(default_factory=dict)


class Watching:
    """Watches locations, and says which of their directories changed. Thread-safe.

    It is a source of changes for passes: `take` and `lost`, see `enforce.changes.Changes`.
    """

    def __init__(self, told: Told, ignore: frozenset[bytes], legacy: Legacy, features: Features) -> None:
        """Names in `ignore` are not watched with inotify; with fanotify, our own changes are told by pid."""
        self._told = told
        self._watcher = Watcher(self._on_change, told.overflowed, ignore)
        self.feed = StructureFeed(told.changed, legacy.state_dir, legacy.inherited, features=features)

    def _on_change(self, key: str | None, _: bytes) -> None:
        if key is None:
            self._told.roots()
        else:
            self._told.changed(key)

    def watch(self, key: str, path: bytes) -> None:
        """Watch a location as well as that can be done now.

        To be called in each pass, before anything is measured, and not for network filesystems: the kernel
        does not see what other nodes do.
        """
        if self.feed.watch(key, path):
            self._watcher.unwatch(key)
        elif self._watcher.mode(key) != "inotify":
            self._watcher.watch(key, path)

    def unwatch(self, key: str) -> None:
        """Forget a location; an unknown one is no error. Does not wait for its filesystem."""
        self.feed.unwatch(key)
        self._watcher.unwatch(key)

    def watch_roots(self, owner: str, paths: Collection[bytes]) -> None:
        """Watch these directories for an owner, for names that come and go in them: see `Watcher`."""
        self._watcher.watch_roots(owner, paths)

    def retain_roots(self, owners: Collection[str]) -> None:
        """Watch roots for these owners only. Does not wait for any filesystem."""
        self._watcher.retain_roots(owners)

    def mode(self, key: str) -> WatchMode:
        """How well a location is watched at this moment."""
        return "fanotify" if self.feed.sees(key) else self._watcher.mode(key)

    def take(self, key: str, root_fd: int) -> frozenset[bytes] | None:
        """Paths of the directories that changed since the last time, or None: everything may have."""
        return (self.feed if self.feed.sees(key) else self._watcher).take(key, root_fd)

    def lost(self, key: str) -> None:
        """What `take` gave was not used."""
        self.feed.lost(key)
        self._watcher.lost(key)

    @property
    def warning(self) -> str | None:
        """What the administrator should know of inotify's limits; None while all is well."""
        return self._watcher.warning

    def stop(self, *, in_order: bool) -> None:
        """End all watching. `in_order`: no pass was left behind that took what it did not use."""
        self._watcher.stop()
        self.feed.stop(in_order=in_order)
