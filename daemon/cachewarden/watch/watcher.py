"""All watches of the service, over one inotify instance."""

import contextlib
import os
import threading
from collections.abc import Callable, Collection
from functools import partial
from typing import Literal

from watchdog.observers.inotify_c import InotifyFD

from cachewarden.watch.group import Group, Rules
from cachewarden.watch.noted import Noted
from cachewarden.watch.structure.places import TooManyError, below

WatchMode = Literal["fanotify", "inotify", "partial", "polling", "none"]


class Watcher:
    """Calls `on_change(key, path)` when something in a location was created, deleted, moved, or
    closed after writing; `key` is None for what came or went in a root (see `watch_roots`).

    `on_overflow()` is called once each time that the kernel dropped events: anything may have
    changed. Both are called on the thread that reads events; they must return at once and not raise.
    What is named in `ignore`, at any depth, is neither watched nor reported.

    Of watchdog, only the reader of inotify is used, and not its Observer: that one starts as if
    nothing were wrong when most of its watches were refused, tells nobody of an overflow, and takes
    a thread for each location.
    """

    def __init__(
        self,
        on_change: Callable[[str | None, bytes], None],
        on_overflow: Callable[[], None],
        ignore: frozenset[bytes] = frozenset(),
    ) -> None:
        self._on_change = on_change
        self._on_overflow = on_overflow
        self._ignore = ignore
        self._lock = threading.Lock()
        self._inotify: InotifyFD | None = None
        self._groups: dict[str, Group | None] = {}  # None: there was no inotify to watch it with
        self._roots: dict[bytes, Group] = {}
        self._owners: dict[str, frozenset[bytes]] = {}  # who wants which roots
        self._noted = Noted()
        self._overflowing = False
        self._stopped = False

    def watch(self, key: str, path: bytes) -> WatchMode:
        """Watch a location, or look again at one that is watched in part; how well that went.

        To be called at the start, and again in each pass while `mode` is not `inotify`: limits are
        raised, directories become readable, and what was missing appears. Walks the location in the
        caller's thread, so it is called where the location is measured; and not for network
        filesystems, where inotify sees nothing of what other nodes do.
        """
        inotify = self._reader()
        with self._lock:
            group = self._groups.get(key)
        if group is None or group.path != path or group.inotify is not inotify:
            self.unwatch(key)
            group = self._group(key, path, Rules(self._ignore)) if inotify is not None else None
            with self._lock:
                self._groups[key] = group
        self._noted.doubt([key])
        if group is not None:
            group.refresh()
        return self.mode(key)

    def take(self, key: str, root_fd: int) -> frozenset[bytes] | None:
        """Paths of the directories that changed since the last time: see `enforce.changes.Changes`.

        What inotify has not told yet is in the next answer. None unless each directory is watched, and was
        all the time. Below a directory that came, all are named. Raises nothing.
        """
        changed = self._noted.take(key)
        if changed is None or self.mode(key) != "inotify":
            return None
        try:
            return frozenset(changed.directories).union(
                *((path, *below(root_fd, path)) for path in changed.came)
            )
        except (OSError, TooManyError):
            return None

    def lost(self, key: str) -> None:
        """The next `take` of a location answers None."""
        self._noted.doubt([key])

    def unwatch(self, key: str) -> None:
        """Forget a location; an unknown one is no error."""
        self._noted.forget(key)
        with self._lock:
            group = self._groups.pop(key, None)
        if group is not None:
            group.close()

    def watch_roots(self, owner: str, paths: Collection[bytes]) -> None:
        """Watch these directories for an owner, and no others for him, for names that come and go in them,
        not below: new matches of a glob, or a location that is missing. What is no directory is passed over.

        Opens them in the caller's thread, so each owner has one: a directory whose filesystem does not
        answer then holds up its owner alone.
        """
        inotify = self._reader()
        with self._lock:
            self._owners[owner] = frozenset(paths)
            dropped = self._settle_roots(inotify)
            groups = [group for path, group in self._roots.items() if path in self._owners[owner]]
        for group in dropped:
            group.close()
        for group in groups:
            group.refresh()

    def retain_roots(self, owners: Collection[str]) -> None:
        """Watch roots for these owners only. Opens nothing."""
        with self._lock:
            self._owners = {owner: paths for owner, paths in self._owners.items() if owner in owners}
            dropped = self._settle_roots(self._inotify)
        for group in dropped:
            group.close()

    def _settle_roots(self, inotify: InotifyFD | None) -> list[Group]:
        """Make a group for each root that somebody wants; those that nobody does."""
        wanted = frozenset[bytes]().union(*self._owners.values()) if inotify is not None else frozenset()
        kept = {p: g for p, g in self._roots.items() if p in wanted and g.inotify is inotify}
        dropped = [group for path, group in self._roots.items() if path not in kept]
        fresh = {p: self._group(None, p, Rules(self._ignore, False)) for p in wanted - kept.keys()}
        self._roots = kept | fresh
        return dropped

    def mode(self, key: str) -> WatchMode:
        """How well a location is watched at this moment.

        `inotify`: each directory is. `partial`: some are not, or events were lost since. `polling`:
        none is, though the location is there. `none`: it is not there, or nobody asked for it.
        """
        with self._lock:
            if key not in self._groups:
                return "none"
            group, inotify = self._groups[key], self._inotify
        if group is not None and group.lost:
            return "none"
        # A reader that died would leave everything silent and looking well.
        if group is None or inotify is None or not inotify.is_alive() or group.granted == 0:
            return "polling"
        return "inotify" if group.complete else "partial"

    @property
    def warning(self) -> str | None:
        """What the administrator should know, with the sysctl to raise; None while all is well."""
        with self._lock:
            groups, no_reader = list(self._groups.values()), self._inotify is None
        if groups and no_reader:
            return (
                "no inotify instance is left: changes are noticed at each interval only; "
                f"raise the sysctl {_sysctl('instances')}"
            )
        short = sum(group is not None and group.exhausted for group in groups)
        if short:
            return (
                f"inotify watches ran out in {short} of {len(groups)} locations: what is not watched "
                f"is noticed at each interval only; raise the sysctl {_sysctl('watches')}"
            )
        return None

    def stop(self) -> None:
        """End all watching, for good."""
        with self._lock:
            self._stopped = True
            inotify, self._inotify = self._inotify, None
        if inotify is not None:
            inotify.stop()
            inotify.join(2)

    def _reader(self) -> InotifyFD | None:
        """The running inotify reader, made when there is none; None when the kernel refuses one."""
        with self._lock:
            if self._inotify is not None and self._inotify.is_alive():
                return self._inotify
            self._inotify = None
            if not self._stopped:
                with contextlib.suppress(OSError):  # EMFILE: no instance is left
                    self._inotify = InotifyFD()
                    self._inotify.start()
            return self._inotify

    def _group(self, key: str | None, path: bytes, rules: Rules) -> Group:
        assert self._inotify is not None
        return Group(self._inotify, path, rules, partial(self._changed, key, path), self._overflowed)

    def _changed(self, key: str | None, root: bytes, path: bytes, came: bool) -> None:
        self._overflowing = False
        if key is not None:
            self._noted.note(key, path, came=came)
        self._on_change(key, os.path.join(root, path) if path else root)

    def _overflowed(self) -> None:
        # The reader tells each group of the same overflow, one after the other.
        self._noted.doubt()
        if not self._overflowing:
            self._overflowing = True
            self._on_overflow()


def _sysctl(what: str) -> str:
    name = f"fs.inotify.max_user_{what}"
    try:
        with open(f"/proc/sys/{name.replace('.', '/')}") as setting:
            now = f" (now {setting.read().strip()})"
    except OSError:
        now = ""
    return f"{name}{now}, in a user namespace also user.max_inotify_{what}"
