"""The watches of one directory tree."""

import contextlib
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from watchdog.observers.inotify_c import (
    CallbackId,
    InotifyConstants,
    InotifyEvent,
    InotifyFD,
    Mask,
    WatchDescriptor,
)

from cachewarden.tree import ABSENT, open_beneath, open_directory

_NAMES = (
    InotifyConstants.IN_CREATE
    | InotifyConstants.IN_DELETE
    | InotifyConstants.IN_MOVED_FROM
    | InotifyConstants.IN_MOVED_TO
    | InotifyConstants.IN_DELETE_SELF
    | InotifyConstants.IN_MOVE_SELF
    | InotifyConstants.IN_ONLYDIR
)
# Opens and reads are not asked for: they come by the thousand, and are no change.
_NAMES_AND_WRITES = _NAMES | InotifyConstants.IN_CLOSE_WRITE
_COMES = InotifyConstants.IN_CREATE | InotifyConstants.IN_MOVED_TO
_GOES = InotifyConstants.IN_DELETE | InotifyConstants.IN_MOVED_FROM
_SELF_GOES = InotifyConstants.IN_DELETE_SELF | InotifyConstants.IN_MOVE_SELF | InotifyConstants.IN_UNMOUNT

# Each directory is opened from the root, so that one descriptor does for any depth, at the price of
# a quadratic walk down a single chain. Real caches are ten deep; what is deeper is polled.
_DEEPEST = 256

_ids = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Rules:
    """Names that are left out, and whether the tree is watched or its top alone."""

    ignore: frozenset[bytes] = frozenset()
    recursive: bool = True


class _Directory:
    """A watched directory. `walk` is the number of the last walk that met it."""

    __slots__ = ("children", "id", "name", "parent", "walk", "wd")

    def __init__(self, parent: "_Directory | None", name: bytes) -> None:
        self.parent = parent
        self.name = name
        self.children: dict[bytes, _Directory] = {}
        self.wd: WatchDescriptor | None = None
        self.id = CallbackId(0)
        self.walk = 0

    def path(self) -> bytes:
        """Relative to the root, which is `b""`."""
        names: list[bytes] = []
        here = self
        while here.parent is not None:
            names.append(here.name)
            here = here.parent
        return b"/".join(reversed(names))

    def all(self) -> Iterator["_Directory"]:
        """This one and all below it."""
        stack = [self]
        while stack:
            here = stack.pop()
            yield here
            stack += here.children.values()


class Group:
    """Watches below `path`; what the reader of `inotify` calls for each of them.

    `changed` is told the relative path (`b""`: the root) and whether a directory came there.

    `granted` and `refused` count directories; `exhausted`: the kernel had no watch left; `lost`: the
    root is not there, or is not the one that was watched.
    """

    def __init__(
        self,
        inotify: InotifyFD,
        path: bytes,
        rules: Rules,
        changed: Callable[[bytes, bool], None],
        overflowed: Callable[[], None],
    ) -> None:
        self.inotify = inotify
        self.path = path
        self.lost = False
        self.exhausted = False
        self._rules = rules
        self._changed = changed
        self._overflowed = overflowed
        self._lock = threading.Lock()
        self._root = _Directory(None, b"")
        self._by_wd: dict[WatchDescriptor, _Directory] = {}
        self._refused = 0
        self._stale = False
        self._walk = 0
        self._closed = False

    @property
    def granted(self) -> int:
        """How many directories are watched."""
        return len(self._by_wd)

    @property
    def complete(self) -> bool:
        """Whether nothing was refused, and no events were lost, since the last walk began."""
        return not self._refused and not self._stale

    def refresh(self) -> None:
        """Walk, add what is not watched, and drop what is no longer met. Reports nothing."""
        with self._lock:
            self._walk += 1
            self._refused, self._stale, self.exhausted = 0, False, False
        try:
            self._add_tree(b"")
            self.lost = False
        except OSError:
            self.lost = True
        with self._lock:
            behind = [each for each in self._root.all() if each.wd is not None and each.walk < self._walk]
            # Not after a walk that was cut short: what it did not come to may be all right.
            for each in behind if not self.exhausted else ():
                self._forget(each)

    def close(self) -> None:
        """Give all watches back."""
        with self._lock:
            self._closed = True
            self._forget_tree(self._root)

    def on_event(self, event: InotifyEvent) -> None:
        """One event, on the reader's thread."""
        with self._lock:
            directory = self._by_wd.get(event.wd)
            if directory is None:
                return
            is_root, path = directory is self._root, directory.path()
            if is_root and event.mask & _SELF_GOES:
                self.lost = True
                self._forget_tree(self._root)
        if event.mask & _SELF_GOES:
            # Of a move, the parent's event has the new name.
            if is_root or not event.is_move_self:
                self._changed(path, False)
        elif event.name and event.name not in self._rules.ignore:
            self._child(directory, os.path.join(path, event.name), event)

    def on_watch_deleted(self, wd: WatchDescriptor) -> None:
        """The kernel took a watch away: its directory is gone, or its filesystem."""
        with self._lock:
            directory = self._by_wd.pop(wd, None)
            if directory is not None and directory.wd == wd:
                directory.wd = None
                self._detach(directory)

    def on_queue_overflow(self) -> None:
        """The kernel dropped events: directories may have come that are not watched."""
        self._stale = True
        self._overflowed()

    def _child(self, directory: _Directory, path: bytes, event: InotifyEvent) -> None:
        if event.is_directory and self._rules.recursive:
            if event.mask & _GOES:
                with self._lock:
                    moved = directory.children.get(event.name)
                    if moved is not None:
                        # A watch follows its directory to wherever it is moved.
                        self._forget_tree(moved)
            elif event.mask & _COMES:
                # First the watches, then the report: what the caller does not find when it measures
                # now will be reported later.
                try:
                    self._add_tree(path)
                except OSError:
                    self._refused += 1
        self._changed(path, event.is_directory and bool(event.mask & _COMES))

    def _add_tree(self, start: bytes) -> None:
        """Watch `start` and what is below. Raises OSError when the root is not there."""
        root_fd = open_directory(self.path)
        try:
            device = os.fstat(root_fd).st_dev
            pending = [start]
            while pending and not self.exhausted:
                path = pending.pop()
                with self._opened(root_fd, path) as fd:
                    # Another mount is not part of the location, and may hang.
                    if fd is None or os.fstat(fd).st_dev != device:
                        continue
                    self._add(path, fd)
                    if self._rules.recursive:
                        pending += [
                            os.path.join(path, name)
                            for name in _directories_in(fd)
                            if name not in self._rules.ignore
                        ]
        finally:
            os.close(root_fd)

    @contextlib.contextmanager
    def _opened(self, root_fd: int, path: bytes) -> Iterator[int | None]:
        """A descriptor of a directory, or None when it is gone or cannot be watched (counted)."""
        if path.count(b"/") >= _DEEPEST:
            self._refused += 1
            yield None
            return
        try:
            fd = open_beneath(root_fd, path)
        except OSError as error:
            self._refused += error.errno not in ABSENT
            yield None
            return
        try:
            yield fd
        finally:
            os.close(fd)

    def _add(self, path: bytes, fd: int) -> None:
        mask = Mask(_NAMES_AND_WRITES if self._rules.recursive else _NAMES)
        with self._lock:
            if self._closed:
                return
            id_ = CallbackId(next(_ids))
            try:
                # By descriptor: no component can be swapped for a link, and the look-up, under the
                # reader's lock, does not touch a filesystem that may hang.
                wd = self.inotify.add_callback(b"/proc/self/fd/%d" % fd, mask, self, id_)
            except OSError:  # ENOSPC: no watch is left
                self._refused += 1
                self.exhausted = True
                return
            if wd == -1:  # how watchdog 7.1 says EACCES
                self.inotify.remove_callbacks([(wd, id_)])
                self._refused += 1
                return
            directory = self._place(path)
            before = self._by_wd.get(wd)
            for old in {before, directory} - {None}:
                assert old is not None
                self._forget(old)
            directory.wd, directory.id, directory.walk = wd, id_, self._walk
            self._by_wd[wd] = directory

    def _place(self, path: bytes) -> _Directory:
        here = self._root
        for name in path.split(b"/") if path else ():
            below = here.children.get(name)
            if below is None:
                below = here.children[name] = _Directory(here, name)
            here = below
        return here

    def _forget_tree(self, top: _Directory) -> None:
        for each in list(top.all()):
            self._forget(each)
        self._detach(top)
        top.children.clear()

    def _forget(self, directory: _Directory) -> None:
        """Give one watch back."""
        if directory.wd is not None:
            self._by_wd.pop(directory.wd, None)
            self.inotify.remove_callbacks([(directory.wd, directory.id)])
            directory.wd = None

    def _detach(self, directory: _Directory) -> None:
        parent = directory.parent
        if parent is not None and parent.children.get(directory.name) is directory:
            del parent.children[directory.name]


def _directories_in(fd: int) -> list[bytes]:
    """Names of the directories in a directory; an error on the way ends the list."""
    names: list[bytes] = []
    with contextlib.suppress(OSError), os.scandir(fd) as entries:
        names.extend(os.fsencode(each.name) for each in entries if each.is_dir(follow_symlinks=False))
    return names
