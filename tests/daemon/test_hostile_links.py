"""A user leads root astray, with links, names and manifests: nothing of others is ever touched."""

import os
import shutil
import time
from contextlib import suppress

import pytest
from tests.daemon.hostility import evict_beside, place, user
from tests.daemon.passes import Field, policy

from cachewarden.evict import TRASH_NAME
from cachewarden.report import Removed

pytestmark = pytest.mark.root
__all__ = ["place"]


def test_the_trash_swapped_for_a_link_leads_root_nowhere(place):
    """The trash lies in the user's own directory and is his: he can move it away and put anything there."""
    (place.base / TRASH_NAME.decode()).touch()  # the top is not to be had …
    with place.cache.trash() as trash:
        trash.places[0].refused = 1
        beside = trash.places[1].path
    assert beside.startswith(os.fsencode(place.home))
    spare, treasure = os.fsencode(place.home / "spare"), os.fsencode(place.treasure)

    def swap():
        with suppress(OSError):
            os.rename(beside, spare)
        with suppress(OSError):
            os.symlink(treasure, beside)
        with suppress(OSError):
            os.unlink(beside)
        with suppress(OSError):
            os.rename(spare, beside)
        with suppress(OSError):
            os.mkdir(beside, 0o700)

    removed = 0
    with user(swap):
        end = time.monotonic() + 3
        while time.monotonic() < end:
            place.put("e/sub/f", 10)
            with suppress(OSError):
                removed += isinstance(evict_beside(place), Removed)
    assert removed > 0
    assert place.unharmed
    for trash in (beside, spare):
        shutil.rmtree(trash, ignore_errors=True)


def test_folders_and_the_location_itself_swapped_for_links_lead_nowhere(place, tmp_path):
    """Whole passes, while the user makes entries and swaps his cache's root, an entry and a folder in it."""
    cache, spare = place.home / "cache", place.home / "spare"

    def swap():
        shutil.rmtree(spare, ignore_errors=True)
        for name in ("e", "n"):
            with suppress(OSError):
                (cache / name / "sub").mkdir(parents=True)
                (cache / name / "sub" / "f1").write_text("mine")
        for path in (cache / "e" / "sub", cache / "e", cache):
            with suppress(OSError):
                os.rename(path, spare)
                os.symlink(place.treasure, path)
                time.sleep(0.02)
            with suppress(OSError):
                os.unlink(path)
            with suppress(OSError):
                os.rename(spare, path)

    field = Field(tmp_path)
    field.root = cache
    removed = passes = 0
    with user(swap):
        end = time.monotonic() + 4
        while time.monotonic() < end or (removed == 0 and passes < 200):
            removed += len(field.run(policy(evict_all=True)).evicted)
            passes += 1
    assert removed > 0
    assert place.unharmed


@pytest.mark.parametrize("kind", ["a directory", "a file", "nothing", "itself"])
def test_an_entry_that_is_a_link_goes_as_a_link(place, kind):
    targets = {"a directory": place.treasure, "a file": place.treasure / "sub" / "f1", "nothing": "/no/such"}
    path = place.cache.path("e")
    os.symlink(targets.get(kind, "e"), path)
    place.give(path)
    assert isinstance(place.evict("e"), Removed)
    assert not os.path.lexists(path)
    assert place.unharmed


ESCAPES = ["../../../treasure", "..", "../..", "/", "{treasure}", "{treasure}/sub/f1", "a/../../../treasure"]


@pytest.mark.parametrize("layout", ["hub", "accelerate", "plain"])
def test_paths_in_manifests_refs_and_links_lead_nowhere(tmp_path, place, layout):
    """References of a hub cache, links for blobs, names in an index of an offload folder."""
    field = Field(tmp_path)
    escapes = [each.format(treasure=place.treasure) for each in ESCAPES]
    for number, escape in enumerate(escapes):
        hub = field.root / f"models--m--{number}"
        for part in ("blobs", "refs", f"snapshots/{'a' * 40}", "snapshots/x"):
            (hub / part).mkdir(parents=True)
        (hub / "refs" / "main").write_text(escape)
        os.symlink(escape, hub / "snapshots" / ("a" * 40) / "model")
        os.symlink(escape, hub / "snapshots" / "x" / "model")
        os.symlink(escape, hub / "blobs" / ("b" * 64))
        (hub / "blobs" / ("c" * 64)).write_text("weights")
        os.symlink(escape, hub / "snapshots" / "link")
        offload = field.root / f"offload{number}"
        offload.mkdir()
        (offload / "index.json").write_text(f'{{"{escape}": {{"dtype": "float32", "shape": [1]}}}}')
        (offload / "w.dat").write_text("weights")
    report = field.run(policy(evict_all=True, partial_max_idle=None), layout=layout)
    assert report.evicted or layout == "hub"
    assert place.unharmed
    assert tmp_path.exists()


def test_hard_links_to_files_of_others_only_lose_the_link(place):
    place.put("e/own")
    links = [place.cache.path(f"e/{number}") for number in range(40)]
    for number, link in enumerate(links):
        os.link(place.treasure / "sub" / f"f{number}", link)
    outcome = place.evict("e")
    assert isinstance(outcome, Removed)
    assert outcome.freed_bytes == 4096
    assert place.unharmed


@pytest.mark.parametrize("room", [8192, 4], ids=["at once", "in rounds"])
def test_what_goes_along_with_an_entry_is_not_sought_behind_a_link(place, room):
    """Shared data and emptied directories have no planned inode: only the way to them protects."""
    for number in range(6):
        place.put(f"e/f{number}")
    (place.treasure / "empty").mkdir()
    place.before = place.look()
    os.symlink(place.treasure, place.cache.path("store"))
    os.symlink(place.treasure / "sub", place.cache.path("way"))
    victim = place.cache.victim("e", shared_out=(b"store/sub/f1", b"way/f2"), husks=(b"store/empty",))
    assert isinstance(place.cache.evict(victim, room=room), Removed)
    assert place.unharmed
