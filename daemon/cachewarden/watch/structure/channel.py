"""What changes on one filesystem: a fanotify group, read in batches, booked for the locations on it.

The group reports directories without names, so that the kernel merges what is alike: a program that writes
ten thousand files into a directory is one event, where names would make it ten thousand. A name would tell
nothing that is needed: who measures a directory anew reads all its names.

Which directory a handle means is looked up twice. When the event is read, whose it is: whether a pass is due.
When the location asks, which path it has by then: what will be measured is compared with what was measured at
the last time, and a rename in between is a change of the directories that had and have the name, and of the
renamed one itself.

Nothing is missed by a handle that leads nowhere (ESTALE). The directory is gone, and so another one, in which
it lay last, lost a name. What was moved out of a location and deleted there is a name that the location lost
by the move. Not seen is what is written through a name outside a location (another link of a file), or by a
handle into a file whose directory the kernel does not know (an NFS server's writes).
"""

import os
import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Final

from cachewarden.kernel.fanotify import ON_CHILD, Q_OVERFLOW, Group, parse
from cachewarden.kernel.handles import Handles, open_handle
from cachewarden.mountinfo import mount_of
from cachewarden.openers.forms import mark_filesystem
from cachewarden.openers.silence import BUSY, Inode, root_above
from cachewarden.watch.structure.books import Anchors, Known, Place
from cachewarden.watch.structure.places import open_if_there, paths_of

# fanotify_mark(2). Not FAN_MODIFY: everybody's writes on the filesystem would pay for it, a download would be
# a change at each moment for as long as it lasts, and what is written through a mapping is not in it. Who
# still writes has the file open, and that is known. Not FAN_DELETE_SELF: another directory loses a name.
_ATTRIB, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO = 0x4, 0x8, 0x40, 0x80
_CREATE, _DELETE, _MOVE_SELF, _ONDIR = 0x100, 0x200, 0x800, 0x40000000
_NAMES_AND_WRITES: Final = _CREATE | _DELETE | _MOVED_FROM | _MOVED_TO | _CLOSE_WRITE
# A directory outside is silenced for these. Not for its own move: that may be one into a location.
_IN_IT: Final = _NAMES_AND_WRITES | _ATTRIB | _ONDIR
_MASK: Final = _IN_IT | _MOVE_SELF
# What asks for a pass. Not times and rights: they are looked at in the next one, and no cache grew.
_ASKS: Final = _NAMES_AND_WRITES | _MOVE_SELF

_MOST_SILENT = 1000  # each is a line of /proc/self/fdinfo

_Events = dict[bytes, tuple[bool, bool]]  # by handle: asks for a pass, was moved itself


class Channel:
    """One filesystem. Thread-safe: a lock around everything that reads events or looks handles up.

    What has no lock in its way may be called by who must not wait for a filesystem.
    """

    def __init__(self, label: str, group: Group, places: Mapping[str, Place], *, ignores: bool) -> None:
        """`places` are what an earlier process knew, where the group is its as well (`state`)."""
        self.label = label
        self.overflows = 0
        self.broken: str | None = None
        self._closed = False
        self.places = dict(places)  # replaced, never changed
        self._group = group
        self._ignores = ignores
        self._lock = threading.Lock()
        self._placing = threading.Lock()  # around a replacement of `places`; nobody waits within
        self._known = Known()
        self._silent: set[bytes] = set()
        self._notices: list[str] = []
        self._own = os.getpid()

    @property
    def _useless(self) -> bool:
        return self._closed or self.broken is not None

    @property
    def fd(self) -> int:
        """The group's descriptor."""
        return self._group.fd

    def end(self) -> None:
        """Book what is there, and let go of the group; where its descriptor is kept elsewhere, it goes on."""
        with self._lock:
            self._drain()
        self.close()

    def close(self) -> None:
        """Let go of the group."""
        with self._lock:
            self._group.close()
            self._closed = True

    def admit(self, key: str, path: bytes, root_fd: int) -> bool:
        """See a location change from now on; whether that is granted there.

        To be called in each pass: a mark goes with its filesystem, and that may have been away and come
        back. Raises OSError; LookupError where the mount is in no table.
        """
        found = os.fstat(root_fd)
        handle = Handles().of(b"", root_fd)
        with self._lock:
            if self._useless:
                return False
            if not self._group.marks_filesystem():
                self._doubt()
                if not mark_filesystem(self._group, _MASK, root_fd, mount_of(root_fd)):
                    return False
            known = self.places.get(key)
            if known is not None and known.handle == handle:
                known.path = path
                return True
            os.close(open_handle(root_fd, handle))  # or nothing that is reported could be looked up
            self._hear_again()
            self._known.forget()
            self._put(key, Place(path, (found.st_dev, found.st_ino), handle))
            return True

    def _put(self, key: str, place: Place) -> None:
        with self._placing:
            self.places = {**self.places, key: place}

    def drop(self, key: str) -> None:
        """See a location no more. Takes no lock that a filesystem could hold."""
        with self._placing:
            self.places = {known: place for known, place in self.places.items() if known != key}

    def lost(self, key: str) -> None:
        """The next `take` of a location answers None."""
        place = self.places.get(key)
        if place is not None:
            place.dirty = None

    def take(self, key: str, root_fd: int) -> tuple[frozenset[bytes] | None, frozenset[str]]:
        """What changed in a location since the last time, and which others were changed meanwhile.

        Raises nothing.
        """
        with self._lock:
            if not self._group.marks_filesystem():
                self._doubt()
            changed = self._drain()
            place = self.places.get(key)
            dirty = None
            if place is not None and not self._useless:
                dirty = place.dirty
                place.dirty = {}
                if not self._is(place, root_fd):  # then what will be measured is not what is seen
                    dirty = place.dirty = None
            if self._ignores:
                self._silence(root_fd)
        return (paths_of(root_fd, dirty) if dirty is not None else None), changed - {key}

    @staticmethod
    def _is(place: Place, root_fd: int) -> bool:
        try:
            return Handles().of(b"", root_fd) == place.handle
        except OSError:
            return False

    def drain(self) -> frozenset[str]:
        """Book all that the kernel knows up to now; the locations for which that asks for a pass.

        Raises nothing; see `broken`.
        """
        with self._lock:
            return self._drain()

    def _drain(self) -> frozenset[str]:
        if self._useless:
            return frozenset()
        try:
            events, complete = self._read()
        except (OSError, ValueError) as error:
            self.broken = str(error)
            self._notices.append(f"{self.label}: changes cannot be read any more: {error}")
            return self._doubt()
        if not complete:
            self.overflows += 1
            self._notices.append(f"{self.label}: changes were lost; everything is measured anew")
            return self._doubt()
        anchors = Anchors(self.places)
        try:
            return self._book(events, anchors) | self._doubt(anchors.missing)
        except OSError:
            return self._doubt()  # whose a change is could not be found out
        finally:
            anchors.close()

    def _read(self) -> tuple[_Events, bool]:
        """All that waits, by directory, and whether nothing was lost. Raises OSError, ValueError."""
        events: _Events = {}
        complete = True
        while batch := self._group.read():
            for event in parse(batch):
                if event.mask & Q_OVERFLOW or not event.handle:
                    complete = False
                    continue
                asks, moved = events.get(event.handle, (False, False))
                # Our own evictions are measured, too, but ask for no pass: that would never end.
                asks = asks or (event.pid != self._own and bool(event.mask & _ASKS))
                events[event.handle] = asks, moved or bool(event.mask & _MOVE_SELF)
        return events, complete

    def _book(self, events: _Events, anchors: Anchors) -> frozenset[str]:
        changed: set[str] = set()
        places = self.places
        if any(moved for _, moved in events.values()):
            self._known.forget()
        for handle, (asks, moved) in events.items():
            for key in self._whose(handle, anchors, places):
                places[key].note(handle, moved=moved)
                if asks:
                    changed.add(key)
                if moved:
                    self._hear_again()  # what was silenced outside may lie in it
        return frozenset(changed)

    def _whose(self, handle: bytes, anchors: Anchors, places: Mapping[str, Place]) -> tuple[str, ...]:
        """The locations in which a directory lies: none, one, or all names of one. Raises OSError."""
        if (keys := self._known.inside.get(handle)) is not None:
            return tuple(key for key in keys if key in places)
        if handle not in self._known.outside:
            roots = {place.root for place in places.values()}
            asked = (_root_of(fd, handle, roots, anchors.passed(fd)) for fd in anchors.fds())
            found = {root for root in asked if root is not None}
            if found:
                keys = tuple(key for key, place in places.items() if place.root in found)
                self._known.is_inside(handle, keys)
                return keys
        self._known.is_outside(handle)
        return ()

    def _doubt(self, keys: Collection[str] | None = None) -> frozenset[str]:
        """Everything may have changed, in some locations or all. Returns those where that is news."""
        doubted = {key: each for key, each in self.places.items() if keys is None or key in keys}
        news = {key for key, place in doubted.items() if place.dirty is not None}
        for place in doubted.values():
            place.dirty = None
        return frozenset(news)

    def _silence(self, root_fd: int) -> None:
        """Hear no more of busy directories outside all locations. Raises nothing.

        One that is on its way into a location at this moment will be heard of: by its own move.
        """
        for handle in self._known.take_busy(BUSY)[: _MOST_SILENT - len(self._silent)]:
            with suppress(OSError):
                fd = open_if_there(root_fd, handle)
                if fd is not None:
                    try:
                        self._group.ignore(b"/proc/self/fd/%d" % fd, _IN_IT | ON_CHILD)
                        self._silent.add(handle)
                    finally:
                        os.close(fd)

    def _hear_again(self) -> None:
        # A change that was missed meanwhile lies in what was moved in, and that is measured altogether, or in
        # a location that is new.
        if self._silent:
            self._group.heed_all()
            self._silent.clear()

    def take_notices(self) -> list[str]:
        """Sentences for the log, each given out once."""
        notices, self._notices = self._notices, []
        return notices


def _root_of(
    mount_fd: int, handle: bytes, roots: Collection[Inode], passed: dict[Inode, Inode | None]
) -> Inode | None:
    """The root above a directory, as far as the mount of `mount_fd` shows it. Raises OSError."""
    fd = open_if_there(mount_fd, handle)
    if fd is None:
        return None
    try:
        return root_above(fd, roots, passed)
    except FileNotFoundError:
        return None
    finally:
        os.close(fd)
