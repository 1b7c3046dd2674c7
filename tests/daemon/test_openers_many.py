"""Many processes and directories: none is missed, the alike are merged, those elsewhere silenced."""

import json
import os
import subprocess

import pytest
from tests.daemon.opening import KEY, OPEN_AND_CLOSE, Program, Site, feeding, fill, until

from cachewarden.clock import SetClock
from cachewarden.inventory import Claim, Split
from cachewarden.openers.elsewhere import Elsewhere
from cachewarden.openers.lastuses import Moment
from cachewarden.openers.processes import Process, Who

ONLY_A = Split("plain", (Claim(b"a", (b"a",)),))

BUSY = """
import json, os, sys, time
root, out, processes, each = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
names = sorted(os.listdir(root))
expected = {}
for number in range(processes):
    chosen = [names[(number * each // 2 + step) % len(names)] for step in range(each)]
    pid = os.fork()
    if pid == 0:
        for name in chosen:
            open(root + '/' + name + '/f').close()
        open(f'{out}.{number}', 'w').close()
        time.sleep(600)
    expected[pid] = chosen
while not all(os.path.exists(f'{out}.{number}') for number in range(processes)):
    time.sleep(0.01)
with open(out, 'w') as file:
    json.dump(expected, file)
"""


@pytest.mark.root
@pytest.mark.usefixtures("needs_root")
def test_of_ten_thousand_opens_by_two_hundred_processes_every_pair_is_known(tmp_path):
    root = tmp_path / "cache"
    for number in range(500):
        fill(root, f"e{number}/f")
    with feeding(root, start=True) as site, Program(BUSY, root, tmp_path / "pairs", 200, 50):
        expected = {
            int(pid): set(names) for pid, names in json.loads((tmp_path / "pairs").read_text()).items()
        }
        site.feed.drain()
        found = {}
        for number in range(500):
            for holder in site.feed.openers(KEY, b"e%d" % number):
                found.setdefault(holder.pid, set()).add(f"e{number}")
        assert sum(map(len, expected.values())) == 10_000
        assert found == expected


@pytest.fixture
def quiet(tmp_path):
    """A filesystem on which nobody else opens anything."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", tmp_path], check=True)
    yield tmp_path
    subprocess.run(["umount", "-l", tmp_path], check=True)


@pytest.mark.root
@pytest.mark.usefixtures("needs_root")
class TestOnAQuietFilesystem:
    """The number of events can be counted there."""

    def events(self, site):
        (channel,) = site.feed._channels.values()
        site.feed.drain()
        return channel.events

    def test_a_thousand_opens_of_one_process_in_one_directory_are_one_event(self, quiet):
        fill(quiet / "cache", *(f"a/{number}" for number in range(1000)))
        with feeding(quiet / "cache") as site:
            before = self.events(site)
            with Program(OPEN_AND_CLOSE, *(quiet / "cache").glob("a/*")):
                assert self.events(site) - before == 1
                assert site.held() == {"a"}

    def test_the_thread_reads_by_itself(self, quiet):
        fill(quiet / "cache", "a/1")
        with feeding(quiet / "cache", start=True) as site, Program(OPEN_AND_CLOSE, quiet / "cache/a/1"):
            assert until(lambda: site.feed.openers(KEY, b"a"))

    def busy(self, quiet):
        """Sixty processes open something outside the location, in a directory that is old."""
        fill(quiet, "outside/f", "cache/a/f")
        for _ in range(60):
            subprocess.run(["cat", quiet / "outside/f"], stdout=subprocess.DEVNULL, check=True)

    def test_busy_directories_outside_are_silenced_and_those_inside_are_not(self, quiet):
        clock = SetClock(wall_ns=4_000_000_000 * 10**9)
        fill(quiet, "cache/a/f", "outside/f")
        with feeding(quiet / "cache", clock=clock) as site:
            self.busy(quiet)
            fill(quiet, "cache/foreign/f")
            for _ in range(60):
                subprocess.run(["cat", quiet / "cache/foreign/f"], stdout=subprocess.DEVNULL, check=True)
            assert self.events(site) >= 120
            site.index(ONLY_A)
            before = self.events(site)
            subprocess.run(["cat", quiet / "outside/f"], stdout=subprocess.DEVNULL, check=True)
            assert self.events(site) == before
            subprocess.run(["cat", quiet / "cache/foreign/f"], stdout=subprocess.DEVNULL, check=True)
            assert self.events(site) == before + 1

    def test_young_directories_are_not_silenced_for_they_may_become_entries(self, quiet):
        fill(quiet, "cache/a/f", "outside/f")
        with feeding(quiet / "cache") as site:
            self.busy(quiet)
            site.index(ONLY_A)
            before = self.events(site)
            subprocess.run(["cat", quiet / "outside/f"], stdout=subprocess.DEVNULL, check=True)
            assert self.events(site) == before + 1

    def test_a_silenced_directory_that_becomes_an_entry_is_held_and_heard_again(self, quiet):
        clock = SetClock(wall_ns=4_000_000_000 * 10**9)
        fill(quiet, "cache/a/f", "outside/f")
        with feeding(quiet / "cache", clock=clock) as site:
            self.busy(quiet)
            site.index()
            os.rename(quiet / "outside", quiet / "cache/moved")
            site.index()
            assert site.held() == {"moved"}  # who opened something in it meanwhile is not known
            with Program(OPEN_AND_CLOSE, quiet / "cache/moved/f") as reader:
                assert reader.pid in site.pids("moved")

    def test_a_location_that_is_added_is_heard_whatever_was_silenced_before(self, quiet):
        clock = SetClock(wall_ns=4_000_000_000 * 10**9)
        fill(quiet, "cache/a/f", "outside/f")
        with feeding(quiet / "cache", clock=clock) as site:
            self.busy(quiet)
            site.index()
            added = Site(quiet / "outside", site.feed, "cache:/added")
            added.index(Split("plain"))  # nothing in it is an entry yet
            before = self.events(site)
            subprocess.run(["cat", quiet / "outside/f"], stdout=subprocess.DEVNULL, check=True)
            assert self.events(site) == before + 1


def test_what_is_remembered_of_elsewhere_is_bounded_and_the_loss_is_counted():
    elsewhere = Elsewhere(bound=10)
    for number in range(12):
        elsewhere.note((b"%d" % number, b""), Who(Process(number, 1), b"x"), Moment(0, 0))
    assert len(elsewhere) == 10
    assert elsewhere.forgotten == 2
    assert list(elsewhere.claim((b"0", b""))) == []
    assert [seen.who.process.pid for seen in elsewhere.claim((b"11", b""))] == [11]
    assert list(elsewhere.claim((b"11", b""))) == []
    elsewhere.sweep(lambda process: process.pid == 5)
    assert len(elsewhere) == 1
