"""All filesystems of which changes are seen, and the locations on them.

feed.watch(key, path)       in each pass, before anything is measured
feed.take(key, root_fd)     what changed since the last time
"""

import os
import threading
import time
from collections.abc import Callable, Collection, Mapping

from cachewarden.kernel.fanotify import Features, Group, Kind, detect, is_group_of
from cachewarden.tree import open_directory
from cachewarden.watch.structure.channel import Channel
from cachewarden.watch.structure.kept import keep, take_kept
from cachewarden.watch.structure.reader import Reader

STRUCTURE = "structure-"  # what the labels of its groups begin with
_LEAVE_SECONDS = 1.0  # for all together; one that takes longer does not answer


class StructureFeed:
    """Calls `on_change(key)` when somebody else than this process changed something in a location.

    That comes from threads of the feed and from those that call `take`; it must return at once and not
    raise. A location is seen from `watch` to `unwatch`. Thread-safe.

    `inherited` are groups that an earlier process of ours left (`descriptors`), by label; they become the
    feed's. `state_dir` is where `stop` leaves what it knew. `unlimited`: a queue as long as memory lasts,
    which is not needed: it holds 16,384 events, of which those that are alike are one, and one that overflows
    costs no more than a walk.
    """

    def __init__(
        self,
        on_change: Callable[[str], None],
        state_dir: bytes,
        inherited: Mapping[str, int] | None = None,
        *,
        features: Features | None = None,
        unlimited: bool = False,
    ) -> None:
        self._features = features or detect()
        self._on_change = on_change
        self._state_dir = state_dir
        self._inherited = dict(inherited or {})
        self._kept = take_kept(state_dir)
        self._kind = Kind(unlimited=unlimited)
        self._lock = threading.Lock()  # all below; nobody waits for a filesystem within
        self._channels: dict[str, tuple[Channel, Reader]] = {}
        self._channel_of: dict[str, Channel] = {}
        self._said: dict[str, str] = {}
        self._notices: list[str] = []
        self._overflows = 0

    def watch(self, key: str, path: bytes) -> bool:
        """See a location change from now on; whether that is granted where it lies. Raises nothing."""
        channel: Channel | None = None
        if self._features.usable:
            try:
                root_fd = open_directory(path)
                try:
                    channel = self._admitted(key, path, root_fd)
                finally:
                    os.close(root_fd)
                self._said.pop(key, None)
            except (OSError, LookupError) as error:
                self._say(key, str(error))
        with self._lock:
            before = self._channel_of.pop(key, None)
            if channel is not None:
                self._channel_of[key] = channel
        if before is not None and before is not channel:
            self._leave(before, key)
        return channel is not None

    def _admitted(self, key: str, path: bytes, root_fd: int) -> Channel | None:
        """The channel of a filesystem, once it sees the location; None where that is refused."""
        # By device: each btrfs subvolume has its own, and marks in several of them need several groups.
        device = os.fstat(root_fd).st_dev
        label = f"{STRUCTURE}{os.major(device)}.{os.minor(device)}"
        with self._lock:
            known = self._channels.get(label)
        channel = known[0] if known is not None else self._open(label)
        granted = False
        try:
            granted = channel.admit(key, path, root_fd)
        finally:
            if known is None and not granted:
                channel.close()
        if granted and known is None:
            with self._lock:
                self._channels[label] = channel, Reader(channel.fd, lambda: self._drain(channel), channel.end)
        return channel if granted else None

    def _open(self, label: str) -> Channel:
        """A channel with a new group, or with the one that was handed down. Raises OSError."""
        fd = self._inherited.pop(label, None)
        if fd is not None and not is_group_of(fd, self._kind):
            os.close(fd)
            fd = None
        kept = self._kept.pop(label, {}) if fd is not None else {}
        return Channel(label, Group(self._kind, fd), kept, ignores=self._features.ignore)

    def _drain(self, channel: Channel) -> bool:
        for key in channel.drain():
            self._on_change(key)
        return channel.broken is None

    def unwatch(self, key: str) -> None:
        """See a location no more; an unknown one is no error. Does not wait for its filesystem."""
        with self._lock:
            channel = self._channel_of.pop(key, None)
        if channel is not None:
            self._leave(channel, key)

    def _leave(self, channel: Channel, key: str) -> None:
        channel.drop(key)
        with self._lock:
            if channel in self._channel_of.values():
                return
            known = self._channels.get(channel.label)
            if known is None or known[0] is not channel:
                return
            del self._channels[channel.label]
            self._overflows += channel.overflows
            self._notices += channel.take_notices()
        known[1].end()

    def settle(self, keys: Collection[str]) -> None:
        """These are all locations, and each was watched: forget what was kept and handed down for others."""
        for channel, _ in self._all():
            for key in channel.places.keys() - set(keys):
                channel.drop(key)
        self._kept.clear()
        while self._inherited:
            os.close(self._inherited.popitem()[1])

    def sees(self, key: str) -> bool:
        """Whether all changes in a location are seen."""
        channel = self._channel_of.get(key)
        return channel is not None and channel.broken is None

    def take(self, key: str, root_fd: int) -> frozenset[bytes] | None:
        """Paths of the directories that changed since the last time: see `enforce.changes.Changes`.

        Below a directory that was moved, all are named.
        """
        channel = self._channel_of.get(key)
        if channel is None:
            return None
        found, others = channel.take(key, root_fd)
        for other in others:
            self._on_change(other)
        return found

    def lost(self, key: str) -> None:
        """The next `take` of a location answers None."""
        channel = self._channel_of.get(key)
        if channel is not None:
            channel.lost(key)

    def stop(self, *, in_order: bool = True) -> None:
        """Read what is there, keep it for the next process, and let go of the groups.

        Not `in_order`: somebody may have taken what he did not use; then nothing is kept.
        """
        with self._lock:
            channels = list(self._channels.values())
            self._channels, self._channel_of = {}, {}
        for _, reader in channels:
            reader.end()
        end = time.monotonic() + _LEAVE_SECONDS
        ended = [channel for channel, reader in channels if reader.join(max(0.0, end - time.monotonic()))]
        known = {channel.label: channel.places for channel in ended if channel.broken is None}
        if known and in_order:
            try:
                keep(self._state_dir, known)
            except OSError as error:
                self._notices.append(f"what changed is not known at the next start: {error}")

    def descriptors(self) -> dict[str, int]:
        """The groups by label, for systemd's descriptor store; the feed keeps using them."""
        return {channel.label: channel.fd for channel, _ in self._all()}

    @property
    def overflows(self) -> int:
        """How often the kernel lost events."""
        channels = self._all()
        return self._overflows + sum(channel.overflows for channel, _ in channels)

    def take_notices(self) -> list[str]:
        """Sentences for the log, each given out once."""
        with self._lock:
            notices, self._notices = self._notices, []
        for channel, _ in self._all():
            notices += channel.take_notices()
        return notices

    def _say(self, key: str, trouble: str) -> None:
        if self._said.get(key) != trouble:
            self._said[key] = trouble
            self._notices.append(f"{key}: changes are not seen by fanotify: {trouble}")

    def _all(self) -> list[tuple[Channel, Reader]]:
        with self._lock:
            return list(self._channels.values())
