"""A whole pass over compile caches: key directories go whole, and deletion does not climb."""

import json
import os
import stat
import threading
import time

from tests.daemon.passes import Field, policy

from cachewarden_policies.policy import DAY

DAYS = 86400


def key(folder, members):
    """A key of Triton whose group names its members."""
    folder.mkdir(parents=True)
    for name in members:
        (folder / name).write_bytes(b"x" * 4096)
    group = {"child_paths": {name: str(folder / name) for name in members}}
    (folder / "__grp__k.json").write_text(json.dumps(group))


def age(folder, days):
    """Everything in it, and itself, last touched so many days ago."""
    then = time.time() - days * DAYS
    for here, below, names in os.walk(folder, topdown=False):
        for name in (*below, *names):
            os.utime(os.path.join(here, name), (then, then))
    os.utime(folder, (then, then))


class Watcher(threading.Thread):
    """Looks all the time whether a group names what is not there."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder
        self.torn = 0
        self.ended = threading.Event()

    def run(self):
        while not self.ended.is_set():
            missing = not (self.folder / "k.cubin").exists()  # this first: the directory goes in one step
            self.torn += missing and (self.folder / "__grp__k.json").exists()


def test_a_key_goes_as_a_whole_by_its_newest_member_and_the_cache_stays(tmp_path):
    """An old key goes; one with a young member and one that is being written stay, and so does the cache."""
    field = Field(tmp_path)
    cache = field.root / "triton"
    for name in ("K1", "K2"):
        key(cache / name, ("k.cubin", "k.json", "k.ttir"))
    writing = cache / "K3" / f"tmp.pid_{os.getpid()}_u"
    writing.mkdir(parents=True)
    (writing / "k.cubin").write_bytes(b"x" * 4096)
    age(field.root, 30)
    os.utime(cache / "K2" / "k.json")
    os.utime(writing / "k.cubin")
    os.utime(writing)
    os.chmod(cache, 0o2775)
    before = os.stat(cache)
    field.clock.advance(DAY // 1000)
    watcher = Watcher(cache / "K1")
    watcher.start()
    try:
        report = field.run(policy(max_idle=10 * DAY))
    finally:
        watcher.ended.set()
        watcher.join()
    assert [each.entry for each in report.evicted] == [b"triton/K1"]
    assert watcher.torn == 0
    assert sorted(os.listdir(cache)) == ["K2", "K3"]
    assert sorted(os.listdir(cache / "K2")) == ["__grp__k.json", "k.cubin", "k.json", "k.ttir"]
    assert (writing / "k.cubin").exists()
    report = field.run(policy(evict_all=True))
    assert [each.entry for each in report.evicted] == [b"triton/K2"]
    assert os.listdir(cache) == ["K3"]
    age(cache / "K3", 30)
    field.run(policy(evict_all=True))
    after = os.stat(cache)
    assert os.listdir(cache) == []
    assert (after.st_ino, stat.S_IMODE(after.st_mode)) == (before.st_ino, 0o2775)
