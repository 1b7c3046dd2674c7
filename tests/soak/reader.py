"""A program that loads entries, each load in a process of its own: `reader.py ORDERS` (JSON).

A load takes the shards of one entry one after the other, as a model server does. It begins with the first
shard; from then on every other one has to be there, of the same generation. The ways differ by what a reader
holds between two shards, because that is what he can be seen by.

Each load is a process, because who opened something holds it for as long as he lives, and evictions are
wanted. It ends when its input does, and prints what it saw as JSON; what went wrong it says at once. Started
without `site`: forks are cheap then.
"""

import ctypes
import json
import mmap
import os
import random
import select
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from verdicts import ABSENT, BROKEN, HOLLOW, MIXED, TORN, VERDICTS, WHOLE
from waits import Waits

WAYS = [
    (base, keep, mapped)
    for base in ("path", "descriptor", "cwd")
    for keep in (False, True)
    for mapped in (False, True)
]
_BIND, _DETACH = 4096, 2
_libc = ctypes.CDLL(None, use_errno=True)


def name_of(way):
    """For people."""
    base, keep, mapped = way
    return f"by {base}, {'keeping' if keep else 'closing'} each, {'mapped' if mapped else 'read'}"


def mount(source, target, kind, flags, data):
    """mount(2). Raises OSError."""
    arguments = [os.fsencode(each) for each in (source, target, kind)]
    if _libc.mount(*arguments, ctypes.c_ulong(flags), os.fsencode(data)):
        raise OSError(ctypes.get_errno(), f"mount {source} on {target}")


class Window:
    """Where the location is seen: as it is, or by a mount that is made for each load."""

    def __init__(self, orders):
        self.location = self.root = orders["location"]
        self.kind = orders["window"]
        if self.kind is not None:
            self.room = orders["room"]
            mount("tmpfs", self.room, "tmpfs", 0, "")  # in a namespace of our own
            for each in ("view", "upper", "work"):
                os.mkdir(f"{self.room}/{each}")
            self.root = f"{self.room}/view"

    def open(self):
        """Make it."""
        if self.kind == "bind":
            mount(self.location, self.root, "", _BIND, "")
        if self.kind == "overlay":
            layers = f"lowerdir={self.location},upperdir={self.room}/upper,workdir={self.room}/work"
            mount("overlay", self.root, "overlay", 0, layers)

    def close(self):
        """Take it away again: a container has ended."""
        if self.kind is not None:
            _libc.umount2(os.fsencode(self.root), _DETACH)


class Load:
    """One load of one entry."""

    def __init__(self, directory, way, shards, pauses):
        self.directory, self.shards, self.pauses = directory, shards, pauses
        self.base, self.keep, self.mapped = way
        self.held = []
        self.said = ""
        self.times = []  # of the opens: when each began, and was over

    def run(self, first, others):
        """Load; the verdict. How long each open took goes into `first` or `others`."""
        fd = None
        try:
            if self.base == "descriptor":
                fd = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
            elif self.base == "cwd":
                os.chdir(self.directory)
        except FileNotFoundError:
            return ABSENT
        generation = None
        for number, name in enumerate(self.shards):
            if number in self.pauses:
                time.sleep(self.pauses[number])
            path = f"{self.directory}/{name}" if self.base == "path" else name
            begun = time.monotonic_ns()
            try:
                shard = os.open(path, os.O_RDONLY, dir_fd=fd)
            except FileNotFoundError:
                self.said = f"{name} is missing"
                return TORN if number else ABSENT if self.base == "path" else HOLLOW
            self.times.append((begun, time.monotonic_ns()))
            (others if number else first).add(self.times[-1][1] - begun)
            found = self._take(shard)
            generation = generation or found
            if found != generation:
                self.said = f"{name} is of {found!r}, and what came before of {generation!r}"
                return MIXED
        return WHOLE

    def _take(self, shard):
        if not self.mapped:
            content = os.read(shard, 100)
            self._done(shard)
            return content
        pages = mmap.mmap(shard, 0, prot=mmap.PROT_READ)
        os.close(shard)
        if self.keep:
            self.held.append(pages)
        return pages[:100]

    def _done(self, shard):
        if self.keep:
            self.held.append(shard)
        else:
            os.close(shard)


def in_a_fork(work):
    """Do it in a process of its own; its exit status."""
    pid = os.fork()
    if pid == 0:
        status = BROKEN
        try:
            status = work()
        except BaseException as error:  # noqa: BLE001 - the fork must not go on as its parent
            os.write(2, f"broken: {error!r}\n".encode())
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def some_entry(dice, orders):
    """An entry that is there, if one is found soon; this opens nothing."""
    for _ in range(32):
        entry = dice.choice(orders["entries"])
        if os.path.lexists(f"{orders['location']}/{entry}"):
            break
    return entry


def pauses(dice, orders):
    """Half of the loads run through; the others rest somewhere, as one that computes meanwhile."""
    if dice.random() < 0.5:
        return {}
    return {dice.randrange(1, len(orders["shards"])): dice.uniform(0, orders["rest"])}


def read_on(orders):
    """Load until our input ends."""
    dice = random.Random(orders["seed"])
    window, first, others = Window(orders), Waits(), Waits()
    tally = {name_of(way): [0] * len(VERDICTS) for way in WAYS}
    turn = dice.randrange(len(WAYS))
    while not select.select([0], [], [], 0)[0]:
        way = WAYS[turn % len(WAYS)]
        turn += 1
        entry = some_entry(dice, orders)
        window.open()
        load = Load(f"{window.root}/{entry}", way, orders["shards"], pauses(dice, orders))

        def work(load=load, way=way, entry=entry):
            verdict = load.run(first, others)
            if verdict > HOLLOW:
                times = " ".join(f"{begun / 1e6:.3f}-{over / 1e6:.3f}" for begun, over in load.times)
                said = f"{VERDICTS[verdict]} {entry} : {load.said}; opens {times}"
                os.write(2, f"{orders['where']}, {name_of(way)}: {said}\n".encode())
            return verdict

        verdict = in_a_fork(work)
        window.close()
        tally[name_of(way)][verdict if verdict in range(BROKEN) else BROKEN] += 1
    return {"tally": tally, "first": first.as_told(), "others": others.as_told()}


if __name__ == "__main__":
    print(json.dumps(read_on(json.loads(sys.argv[1]))))
