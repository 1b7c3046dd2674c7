"""Without fanotify: whoever a sample of /proc finds with an entry is its opener while it lives."""

import os
import shutil
import subprocess

import pytest
from tests.daemon.opening import KEY, Program, Site, claims, fill

from cachewarden.clock import SetClock, SystemClock
from cachewarden.openers import Form, ProcSamples
from cachewarden_policies.policy import DAY


@pytest.fixture
def root(tmp_path):
    fill(tmp_path / "cache", "a/deep/1.bin", "b/1.bin", "blobs/one", "blobs/two")
    return tmp_path / "cache"


@pytest.fixture
def site(root):
    made = Site(root, ProcSamples(SystemClock()))
    assert made.index() is Form.SAMPLES
    return made


def held(site, *names):
    asked = site.feed.for_location(KEY)
    asked.drain()
    return {name for name in names if asked.holds(os.fsencode(name))}


HOLDING = {
    "open": "import sys; kept = open(sys.argv[1] + '/a/deep/1.bin')",
    "directory": "import os, sys; kept = os.open(sys.argv[1] + '/a/deep', os.O_RDONLY)",
    "standing": "import os, sys; os.chdir(sys.argv[1] + '/a')",
}


@pytest.mark.parametrize("way", HOLDING)
def test_whoever_has_it_when_a_sample_is_taken_holds(site, root, way):
    with Program(HOLDING[way], root) as program:
        assert held(site, "a", "b") == {"a"}
        assert [holder.pid for holder in site.feed.openers(KEY, b"a")] == [program.pid]
        assert site.feed.recent(KEY)[b"a"].pid == program.pid
    assert held(site, "a", "b") == set()


def test_whoever_has_it_mapped_holds(site, root):
    code = """
import mmap, os, sys
file = os.open(sys.argv[1] + '/a/deep/1.bin', os.O_RDONLY)
kept = mmap.mmap(file, 1, prot=mmap.PROT_READ); os.close(file)
"""
    with Program(code, root):
        site.feed.sample(mapped=True)
        assert site.feed.for_location(KEY).holds(b"a")


def test_whoever_runs_it_holds(site, root):
    shutil.copy("/bin/sleep", root / "b/program")
    with subprocess.Popen([root / "b/program", "600"]) as running:
        try:
            assert held(site, "a", "b") == {"b"}
        finally:
            running.kill()


def test_whoever_was_seen_holds_on_after_closing(site, root):
    code = """
import sys
with open(sys.argv[1] + '/a/deep/1.bin'):
    sys.stdout.write('open\\n'); sys.stdout.flush(); sys.stdin.readline()
"""
    with subprocess.Popen(
        [
            "python3",
            "-c",
            code + "sys.stdout.write('closed\\n'); sys.stdout.flush(); sys.stdin.readline()",
            root,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as program:
        assert program.stdout.readline() == b"open\n"
        assert held(site, "a") == {"a"}
        program.stdin.write(b"\n")
        program.stdin.flush()
        assert program.stdout.readline() == b"closed\n"
        assert held(site, "a") == {"a"}
        program.stdin.close()
    assert held(site, "a") == set()


def test_single_files_are_told_apart(root):
    site = Site(root, ProcSamples(SystemClock()))
    site.index(claims((b"one", (b"blobs/one",), ()), (b"two", (b"blobs/two",), ())))
    with Program("import sys; kept = open(sys.argv[1] + '/blobs/one')", root):
        assert held(site, "one", "two") == {"one"}


def test_shared_files_hold_each_entry_that_uses_them(root):
    site = Site(root, ProcSamples(SystemClock()))
    split = claims(
        (b"r1", (b"a",), (b"blobs/one",)), (b"r2", (b"b",), (b"blobs/one",)), shared=(b"blobs/one",)
    )
    site.index(split)
    with Program("import sys; kept = open(sys.argv[1] + '/blobs/one')", root):
        assert held(site, "r1", "r2") == {"r1", "r2"}


@pytest.mark.root
@pytest.mark.usefixtures("needs_root")
def test_the_same_path_in_another_namespace_is_another_file(site, root):
    code = (
        "import subprocess, sys\n"
        "subprocess.run(['mount', '-t', 'tmpfs', 'tmpfs', sys.argv[1] + '/b'], check=True)\n"
        "open(sys.argv[1] + '/b/1.bin', 'w').close(); kept = open(sys.argv[1] + '/b/1.bin')"
    )
    with Program(code, root, wrap=("unshare", "--mount")):
        assert held(site, "a", "b") == set()


def test_the_hold_and_the_names_that_do_not_count_are_those_of_the_feed(root):
    clock = SetClock()
    site = Site(root, ProcSamples(clock, ["python*"]))
    site.index()
    with Program("import sys; kept = open(sys.argv[1] + '/a/deep/1.bin')", root):
        assert held(site, "a") == set()
    site = Site(root, ProcSamples(clock))
    site.index(hold_ns=DAY)
    with Program("import sys\nwith open(sys.argv[1] + '/a/deep/1.bin'): time = None", root):
        assert held(site, "a") == set()
    assert site.feed.for_location(KEY).holds(b"never indexed")
    assert site.feed.for_location("no such location").holds(b"a")


def test_what_is_not_retained_is_forgotten(site):
    site.feed.retain([])
    assert site.feed.form(KEY) is Form.NONE
    assert site.feed.recent(KEY) == {}


def test_the_thread_ends_when_it_is_told():
    samples = ProcSamples(SystemClock())
    samples.start()
    samples.stop()
    assert samples.samples == 0
