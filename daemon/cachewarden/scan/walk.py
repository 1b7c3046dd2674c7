"""One walk down a tree, by descriptor, of any depth, with few descriptors open.

Each directory is opened relative to its parent's descriptor, so that nothing on the way can be
swapped for a link; the kernel refuses to step onto another mount. A stack replaces recursion. Of a
deep stack only the lowest directories stay open; on the way up a closed one is opened again as `..`,
and must be the same inode. That keeps the work linear in the number of directories, where opening
by path from the root would make a tree of 100,000 levels a trap.
"""

import errno
import os
import stat
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Self

from cachewarden.kernel.lstat_many import CAPACITY, Look
from cachewarden.kernel.openat2 import open_on_mount, open_path_on_mount
from cachewarden.scan.directories import LONGEST
from cachewarden.scan.regions import ROOT, Node
from cachewarden.scan.tally import Tally
from cachewarden.tree import ABSENT, open_directory
from cachewarden_policies.globs import Globs

_OPEN_FRAMES = 64
_CLOSED = -1

# A directory yet to be entered: name, region, whether it is that region's own path, names to look out
# for in it. A plain tuple, as there is one for each directory.
Step = tuple[str, int, bool, Node | None]


@dataclass(frozen=True, slots=True)
class Task:
    """Directories to be walked: `steps` are in the directory at `path`, with nothing to look out for."""

    path: bytes
    steps: list[Step]


@dataclass(slots=True)
class _Frame:
    """A directory that was listed and has subdirectories left to enter."""

    name: str  # of the first frame: its whole path
    fd: int
    inode: tuple[int, int]
    region: int
    path: str | None  # None: longer than what the kernel takes at once
    pending: list[Step] = field(default_factory=list)


class Walk:
    """A walk below `root_fd`, which stays the caller's, into `tally`.

    `exclude` matches relative paths that are left out with all that is in them. Regions that are not in
    `only` are not entered where one begins (None: all are). Use as a context manager, so that descriptors
    are closed when a walk is given up.
    """

    def __init__(
        self, root_fd: int, tally: Tally, exclude: Globs | None, only: Collection[int] | None = None
    ) -> None:
        self.tally = tally
        self._only = only
        self._root_fd = root_fd
        self._exclude = exclude
        self._stack: list[_Frame] = []
        self._entered = 0
        self._look = Look()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._stack:
            self._close(self._stack.pop())

    @property
    def idle(self) -> bool:
        """Whether nothing is left to walk."""
        return not self._stack

    def start_at_root(self, node: Node) -> None:
        """Begin with the whole tree. Raises OSError when its root cannot be listed."""
        fd = os.dup(self._root_fd)
        region = ROOT if node.region is None else node.region
        frame, found = self._push("", fd, region)
        self.tally.at_root(region, found)
        self.tally.add_directory(region, frame.path, found)
        frame.pending = self._list(frame, node)

    def start(self, task: Task) -> None:
        """Begin with a task that another walk gave away. Only when idle."""
        regions = {step[1] for step in task.steps}
        try:
            fd = open_path_on_mount(self._root_fd, task.path)
            frame, _ = self._push(os.fsdecode(task.path), fd, min(regions))
        except OSError as error:
            for region in regions:
                self._missed(task.path, region, error)
        else:
            frame.pending = task.steps

    def run(self, files: int) -> None:
        """Go on until the walk is over, or so many more files and directories were found."""
        until = self._entered + self.tally.found_files + files
        while self._stack and self._entered + self.tally.found_files < until:
            frame = self._stack[-1]
            if frame.pending:
                self._enter(frame, frame.pending.pop())
            else:
                self._leave()

    def give(self, share: float) -> Task | None:
        """Give away a share of the steps of the directory nearest to the root that has some to give.

        Only steps with nothing to look out for: whoever takes them need not know the layout. Only
        from near the root: whoever takes them has to get there.
        """
        for depth, frame in enumerate(self._stack[:_OPEN_FRAMES]):
            free = [step for step in frame.pending if step[3] is None]
            if free:
                count = max(1, int(len(free) * share))
                frame.pending = [step for step in frame.pending if step[3] is not None] + free[count:]
                return Task(self._path(depth), free[:count])
        return None

    def _enter(self, above: _Frame, step: Step) -> None:
        name, region, at_root, node = step
        self._entered += 1
        try:
            frame, found = self._push(name, open_on_mount(os.fsencode(name), above.fd), region)
        except OSError as error:
            self._could_not_enter(above, step, error)
            return
        self.tally.add_directory(region, frame.path, found)
        if at_root:
            self.tally.at_root(region, found)
        try:
            frame.pending = self._list(frame, node)
        except OSError as error:
            self._missed(self._path(), region, error)
        if not frame.pending:
            self._leave()
        elif len(self._stack) > _OPEN_FRAMES:
            self._close(self._stack[-_OPEN_FRAMES - 1])

    def _could_not_enter(self, above: _Frame, step: Step, error: OSError) -> None:
        name, region, at_root, _ = step
        path = self._base() + os.fsencode(name)
        mounted = error.errno == errno.EXDEV
        if mounted:
            self.tally.mounts.append((path, region))
        else:
            self._missed(path, region, error)
        with suppress(OSError):
            found = os.stat(name, dir_fd=above.fd, follow_symlinks=False)
            if at_root:
                self.tally.at_root(region, found)
            if not mounted and error.errno not in ABSENT:
                self.tally.add(region, found)

    def _missed(self, path: bytes, region: int, error: OSError) -> None:
        if error.errno not in ABSENT:  # gone, or replaced by a file or link, since it was listed
            self.tally.unreadable.append((path, error.errno or 0, region))

    def _push(self, name: str, fd: int, region: int) -> tuple[_Frame, os.stat_result]:
        try:
            found = os.fstat(fd)
        except OSError:
            os.close(fd)
            raise
        above = self._stack[-1].path if self._stack else ""
        path: str | None = f"{above}/{name}" if above else name
        if above is None or len(path or "") > LONGEST:  # in characters: whoever asks for it learns the rest
            path = None
        frame = _Frame(name, fd, (found.st_dev, found.st_ino), region, path)
        self._stack.append(frame)
        return frame, found

    def _leave(self) -> None:
        frame = self._stack.pop()
        if self._stack and self._stack[-1].fd == _CLOSED:
            self._open_again(self._stack[-1], frame.fd)
        self._close(frame)

    def _open_again(self, frame: _Frame, below: int) -> None:
        """Open a closed directory from the one below it; from the root where that one has been moved."""
        for way_up in (
            partial(open_directory, b"..", below),
            partial(open_path_on_mount, self._root_fd, self._path()),
        ):
            with suppress(OSError):
                fd = way_up()
                found = os.fstat(fd)
                if (found.st_dev, found.st_ino) == frame.inode:
                    frame.fd = fd
                    return
                os.close(fd)
        if frame.pending:
            self.tally.unreadable.append((self._path(), errno.ESTALE, frame.region))
            frame.pending = []

    def _path(self, depth: int | None = None) -> bytes:
        """The path of the frame at that depth, by default of the lowest."""
        frames = self._stack if depth is None else self._stack[: depth + 1]
        return os.fsencode("/".join(frame.name for frame in frames if frame.name))

    def _base(self) -> bytes:
        path = self._path()
        return path + b"/" if path else b""

    @staticmethod
    def _close(frame: _Frame) -> None:
        if frame.fd != _CLOSED:
            os.close(frame.fd)
            frame.fd = _CLOSED

    def _list(self, frame: _Frame, node: Node | None) -> list[Step]:
        """Count everything in a directory but its directories, which are the answer. Raises OSError."""
        if node is not None or self._exclude is not None:
            return self._list_with_care(frame, Node() if node is None else node)
        steps: list[Step] = []
        names = os.listdir(frame.fd)
        for start in range(0, len(names), CAPACITY):
            steps += self._count(frame, names[start : start + CAPACITY])
        return steps

    def _count(self, frame: _Frame, names: list[str]) -> list[Step]:
        """Count some names of a directory; its directories are the answer."""
        region, look = frame.region, self._look
        if not look.at(frame.fd, os.fsencode("\0".join(names)).split(b"\0")):  # one call for all names
            return self._count_one_by_one(frame, names)
        unusual = look.unusual()
        plain = look.plain(unusual)
        if plain is not None:
            self.tally.add_plain(region, plain)
        others = [names[position] for position, is_directory in unusual if not is_directory]
        steps = self._count_one_by_one(frame, others)
        return [*steps, *((names[at], region, False, None) for at, is_directory in unusual if is_directory)]

    def _count_one_by_one(self, frame: _Frame, names: list[str]) -> list[Step]:
        steps: list[Step] = []
        for name in names:
            with suppress(FileNotFoundError):
                found = os.stat(name, dir_fd=frame.fd, follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode):
                    steps.append((name, frame.region, False, None))
                else:
                    self.tally.add(frame.region, found)
        return steps

    def _list_with_care(self, frame: _Frame, node: Node) -> list[Step]:
        """The same, with an eye on each name."""
        steps: list[Step] = []
        base = self._base()
        with os.scandir(frame.fd) as entries:
            for entry in entries:
                child = node.children.get(entry.name)
                own = child is not None and child.region is not None
                region = child.region if child is not None and child.region is not None else frame.region
                path = base + os.fsencode(entry.name)
                if self._exclude is not None and self._exclude.matches(path):
                    self.tally.excluded.add(frame.region)
                    continue
                if own and self._only is not None and region not in self._only:
                    continue
                if entry.is_dir(follow_symlinks=False) and not (child and child.mounted):
                    steps.append((entry.name, region, own, child if child and child.children else None))
                    continue
                with suppress(FileNotFoundError):
                    found = entry.stat(follow_symlinks=False)
                    if own:
                        self.tally.at_root(region, found)
                    if child is not None and child.mounted:
                        self.tally.mounts.append((path, region))
                    else:
                        self.tally.add(region, found)
        return steps
