"""The opens on one filesystem: two fanotify groups, read in batches, booked for the locations on it.

*Opens* reports directories and processes without names, so that the kernel merges what is alike: a program
that loads a thousand files of a directory is one event. *Names* is for shared directories alone, where single
files are entries. A group for each filesystem, and not one for all: handles are unique without a filesystem
id then (btrfs has one for each subvolume), an overflow concerns one filesystem, and so does a hung one.
"""

import os
import threading
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from cachewarden.kernel.fanotify import NO_PIDFD, Q_OVERFLOW, Group, Kind, is_group_of, parse
from cachewarden.mountinfo import Mount
from cachewarden.openers.acquaintances import Acquaintances, Met, Standing
from cachewarden.openers.book import Alive, Book
from cachewarden.openers.elsewhere import Elsewhere, Where
from cachewarden.openers.forms import Form, establish, mark_directory
from cachewarden.openers.index import Index, Place, moves
from cachewarden.openers.lastuses import Moment
from cachewarden.openers.processes import UNKNOWN, Ignored, Who
from cachewarden.openers.silence import BUSY, Inode, silence


class Opening(NamedTuple):
    """How groups are made: what they report, and what an earlier process of ours handed down."""

    kind: Kind
    inherited: dict[str, int]

    def group(self, label: str, *, names: bool) -> Group:
        """A new group, or the one handed down under this label. Raises OSError."""
        # Names come one by one, and what they come with costs as much again; see `_Batch.ended`.
        kind = Kind(names=names, pidfds=self.kind.pidfds and not names, unlimited=self.kind.unlimited)
        fd = self.inherited.pop(label, None)
        if fd is not None and not is_group_of(fd, kind):
            os.close(fd)
            fd = None
        return Group(kind, fd)


class Channel:
    """One filesystem. Thread-safe: a lock around everything that reads or books events.

    `books` is shared by all channels, and holds the book of every location on this one. `now` reads both
    clocks. Raises OSError.
    """

    def __init__(self, label: str, opening: Opening, ignored: Ignored, now: Callable[[], Moment]) -> None:
        self.label = label
        self.lock = threading.Lock()
        self.form = Form.NONE
        self.index = Index()
        self.elsewhere = Elsewhere()
        self.keys: set[str] = set()  # whoever needs the channel; the owner's to change
        self.books: dict[str, Book] = {}
        self.overflows = 0
        self.events = 0
        self.overflow_boot_ns: int | None = None
        self.broken: str | None = None
        self._silent: set[bytes] = set()
        self._notices: list[str] = []
        self._now = now
        self._met = Acquaintances(ignored, os.getpid())
        self._drained_ns = now().wall_ns  # everything that waits happened after it
        self._opens = opening.group(f"{label}-opens", names=False)
        try:
            self._names = opening.group(f"{label}-names", names=True)
        except OSError:
            self._opens.close()
            raise

    def close(self) -> None:
        """End both groups."""
        with self.lock:
            self._opens.close()
            self._names.close()

    @property
    def groups(self) -> Mapping[str, Group]:
        """Both groups by their label."""
        return {f"{self.label}-opens": self._opens, f"{self.label}-names": self._names}

    def establish(self, root_fd: int, mount: Mount) -> Form:
        """See to it that opens below `root_fd` are reported. Raises OSError."""
        self.form = establish(self._opens, root_fd, mount)
        return self.form

    def directory(self, name: bytes, dir_fd: int) -> None:
        """Called for each directory of an entry before it is listed (see `grounds.Marker`)."""
        if self.form is Form.DIRECTORIES:
            mark_directory(self._opens, name, dir_fd)

    def shared(self, dir_fd: int, handle: bytes) -> None:  # noqa: ARG002 - the interface's
        """Called for each directory in which single files are entries."""
        mark_directory(self._names, b".", dir_fd)
        if self.form is Form.DIRECTORIES:
            mark_directory(self._opens, b".", dir_fd)

    def drain(self) -> None:
        """Book everything that the kernel knows up to now. Raises nothing; see `broken`."""
        with self.lock:
            self._drain()

    def _drain(self) -> None:
        if self.broken is None:
            batch = _Batch(self._met, self._now())
            try:
                self._read(self._opens, batch)
                self._read(self._names, batch)
            except (OSError, ValueError) as error:
                self.broken = str(error)
                self._notices.append(f"{self.label}: opens cannot be read any more, all are unknown: {error}")
            self._drained_ns = batch.now.wall_ns
            self.events += batch.events
            if batch.overflowed:
                self.overflows += 1
                self.overflow_boot_ns = batch.now.boot_ns
                self._notices.append(f"{self.label}: opens were lost; for now everything counts as in use")

    def _read(self, group: Group, batch: "_Batch") -> None:
        """Book what waits in a group, until nothing does. Raises OSError, ValueError.

        The kernel has merged what is alike. Each line here is run for every event of a busy machine.
        """
        nameless, pidfds, place_of = not group.kind.names, group.kind.pidfds, self.index.get
        while waiting := group.read():
            for mask, pid, handle, name, pidfd in parse(waiting):
                batch.events += 1
                if mask & Q_OVERFLOW:
                    batch.overflowed = True
                    continue
                if pidfd >= 0:
                    os.close(pidfd)
                    if pid in batch.ended:
                        batch.lives(pid)
                elif pidfds and pidfd == NO_PIDFD:
                    batch.ended.add(pid)
                place = place_of(handle)
                if place is None:
                    self._book_elsewhere((handle, name), batch.meet(pid), batch)
                elif not (nameless and place.names):  # otherwise the names will tell better
                    self._book(place, (handle, name), batch.meet(pid), batch)

    def _book(self, place: Place, where: Where, met: Met, batch: "_Batch") -> None:
        entries = place.names.get(where[1], place.entries) if place.names else place.entries
        if not entries:
            self._book_elsewhere(where, met, batch)
            return
        book = self.books[place.key]
        if met.standing is Standing.RUNS:
            for entry in entries:
                book.note(entry, met.who, batch.now)
        elif met.standing is Standing.ENDED:
            for entry in entries:
                book.used(entry, met.who, batch.now)
        elif met.standing is Standing.PASSES:
            for entry in entries:
                book.uses.passed(entry, self._drained_ns, batch.now.wall_ns)

    def _book_elsewhere(self, where: Where, met: Met, batch: "_Batch") -> None:
        if met.standing in (Standing.RUNS, Standing.ENDED):
            self.elsewhere.count(where[0])
        if met.standing is Standing.RUNS:
            self.elsewhere.note(where, met.who, batch.now)

    def take_over(self, book: Book, found: Mapping[bytes, Place]) -> None:
        """Use the places of a look at the location of `book` from now on.

        What waits in the groups is booked by the old places first: in a directory that is shared only now,
        names were not reported until its mark was set, just before.
        """
        with self.lock:
            self._drain()
            self.books[book.key] = book
            if self.index.has(book.key, found):
                return
            before = self.index.replace(book.key, found)
            for move in moves(before, found):
                old = self.books.get(move.old_key)
                if old is not None:
                    old.carry_over(move.old, book, move.new)
            for handle, place in found.items():
                if handle not in before:
                    self._claim((handle, b""), place.all_entries(), book)
                for name, entries in place.names.items():
                    self._claim((handle, name), entries, book)
            self._hear_again(found, book)

    def _hear_again(self, found: Mapping[bytes, Place], book: Book) -> None:
        """A silenced directory was moved into a location: whoever opened something in it is not known."""
        if not self._silent.isdisjoint(found):
            for handle in self._silent & found.keys():
                for entry in found[handle].all_entries():
                    book.note(entry, Who(UNKNOWN), self._now())
            self._opens.heed_all()
            self._silent.clear()

    def _claim(self, where: Where, entries: Collection[bytes], book: Book) -> None:
        for seen in self.elsewhere.claim(where):
            for entry in entries:
                book.note(entry, seen.who, seen.when)

    def release(self, key: str) -> None:
        """A location is no more."""
        with self.lock:
            self.index.remove(key)
            self.books.pop(key, None)

    def heed_all(self) -> None:
        """Hear of all directories again, because a location is added. Raises OSError."""
        with self.lock:
            if self._silent:
                self._opens.heed_all()
                self._silent.clear()

    def silence(self, root_fd: int, roots: Collection[Inode]) -> None:
        """Hear no more of busy directories outside all locations, whose `roots` these are."""
        if self.form is Form.FILESYSTEM:
            with self.lock:
                silent = silence(self._opens, root_fd, self.elsewhere.hot(BUSY), roots, self._now().wall_ns)
                for handle in silent:
                    self.elsewhere.forget(handle)
                self._silent.update(silent)

    def sweep(self, alive: Alive) -> None:
        """Forget processes that have ended."""
        with self.lock:
            self.elsewhere.sweep(alive)

    def take_notices(self) -> list[str]:
        """Sentences for the log, each given out once."""
        notices, self._notices = self._notices, []
        forgotten, self.elsewhere.forgotten = self.elsewhere.forgotten, 0
        if forgotten:
            notices.append(f"{self.label}: {forgotten} openers outside all entries were forgotten")
        return notices

    def certain(self, boot_ns: int, hold_ns: int) -> bool:
        """Whether no event was lost that could matter still.

        After an overflow anybody may have opened anything. Whoever did may run on, so that this lasts as
        long as an open that we saw would hold.
        """
        lost = self.overflow_boot_ns
        return self.broken is None and (lost is None or boot_ns - lost >= hold_ns)


class _Batch:
    """What is read at one time, with one look at each process.

    `ended` are pids whose process the kernel has no more: whoever has such a pid by now is somebody else.
    Groups with names do not tell, but the other one reports the same opens and is read first.
    """

    def __init__(self, acquaintances: Acquaintances, now: Moment) -> None:
        self.now = now
        self.events = 0
        self.overflowed = False
        self.ended: set[int] = set()
        self._acquaintances = acquaintances
        self._met: dict[int, Met] = {}

    def lives(self, pid: int) -> None:
        """A pid of one that had ended is another's by now, and that one opened something too."""
        self.ended.discard(pid)
        self._met.pop(pid, None)

    def meet(self, pid: int) -> Met:
        """Who that is."""
        met = self._met.get(pid)
        if met is None:
            ended = pid in self.ended
            met = self._met[pid] = self._acquaintances.meet(pid, self.now.boot_ns, ended=ended)
        return met
