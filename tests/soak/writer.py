"""A program that makes entries, or adds to living ones: `writer.py ORDERS` (JSON).

The builder makes each entry that is missing beside the location and renames it in, whole, with its generation
in every shard. It takes as long as it is told for it, and that matters: an eviction that has to be taken back
finds its place filled when somebody could make a new entry meanwhile. The adder puts files into entries that
live and looks, as long as it lives, whether they are still where it put them. Each piece of work is a process
of its own, as in `reader`.
"""

import errno
import json
import os
import random
import select
import sys
import time
from functools import partial

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from reader import in_a_fork, some_entry
from verdicts import AWAY, BROKEN, DONE, MISSING, NOWHERE, OUTCOMES

# Whatever an eviction has to take back is back by then, also on a busy machine.
_LONG_ENOUGH = 3.0


def missing(orders):
    """The entries that are not there."""
    return [entry for entry in orders["entries"] if not os.path.lexists(f"{orders['location']}/{entry}")]


def build(orders, entries):
    """Make these entries."""
    rooms = [build_one(orders, entry) for entry in entries]
    time.sleep(orders["making"])
    for entry, room in zip(entries, rooms, strict=True):
        try:
            os.rename(room, f"{orders['location']}/{entry}")
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):  # it is back: somebody was in it
                raise
    return DONE


def build_one(orders, entry):
    """Make one entry beside the location; where it is."""
    room = f"{orders['room']}/{os.getpid()}-{entry}"
    generation = b"%s %d" % (entry.encode(), time.monotonic_ns())
    for directory in ("", *orders["directories"]):
        os.mkdir(f"{room}/{directory}")
    for name in orders["files"]:
        fd = os.open(f"{room}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        os.write(fd, generation)
        os.close(fd)
    return room


class Addition:
    """One file that is added to a living entry; `number` is its inode once it is made."""

    def __init__(self, orders, dice):
        entry = f"{orders['location']}/{some_entry(dice, orders)}"
        self.directory = f"{entry}/more-{time.monotonic_ns()}" if dice.random() < 0.3 else entry
        self.new = self.directory != entry
        self.trash = orders["trash"]
        self.keep, self.rest = dice.random() < 0.5, dice.uniform(0, orders["rest"])

    def work(self):
        """Add it, wait, look for it."""
        path = f"{self.directory}/added-{time.monotonic_ns()}"
        try:
            if self.new:
                os.mkdir(self.directory)
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileNotFoundError:
            return NOWHERE
        os.write(fd, b"more")
        mine = os.fstat(fd).st_ino
        if not self.keep:
            os.close(fd)
        time.sleep(self.rest)
        if self._is_there(path, mine):
            return DONE
        where = self._whereabouts(mine)
        time.sleep(_LONG_ENOUGH)
        if self._is_there(path, mine):
            return AWAY
        links = os.fstat(fd).st_nlink if self.keep else "unknown"
        said = (
            f"missing: {path}, inode {mine}, links {links}, at first {where}, now {self._whereabouts(mine)}"
        )
        os.write(2, f"{said}\n".encode())
        return MISSING

    def _is_there(self, path, inode):
        try:
            return os.stat(path).st_ino == inode
        except FileNotFoundError:
            return False

    def _whereabouts(self, inode):
        """Where a file is whose place is taken: kept in the trash, or nowhere."""
        for base, directories, files in os.walk(self.trash):
            for name in (*directories, *files):
                path = f"{base}/{name}"
                try:
                    if os.lstat(path).st_ino == inode:
                        return path
                except FileNotFoundError:
                    continue
        return "nowhere"


def write_on(orders):
    """Write until our input ends."""
    dice = random.Random(orders["seed"])
    tally = [0] * len(OUTCOMES)
    while not select.select([0], [], [], orders["idle"])[0]:
        if orders["work"] == "add":
            status = in_a_fork(Addition(orders, dice).work)
        elif entries := missing(orders):  # a look opens nothing, and makes nobody a live opener
            status = in_a_fork(partial(build, orders, entries))
        else:
            continue
        tally[status if status in range(BROKEN) else BROKEN] += 1
    return {"tally": tally}


if __name__ == "__main__":
    print(json.dumps(write_on(json.loads(sys.argv[1]))))
