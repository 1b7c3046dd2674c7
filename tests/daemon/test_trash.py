"""Where the trash is, whose it is, and what people can do with what is in it."""

import os
import stat
import subprocess

import pytest
from tests.daemon.evicting import Cache, at_step

from cachewarden.clock import SystemClock
from cachewarden.evict import TRASH_NAME, Evictor, empty, items, restore
from cachewarden.evict.naming import PieceName, escape, location_id, parse, unescape
from cachewarden.holders import Machine
from cachewarden.report import Removed

pytestmark = pytest.mark.root


@pytest.fixture
def mounted(tmp_path, needs_root):
    """A filesystem of its own, in this process's mount namespace only for as long as the test lasts."""
    top = tmp_path / "top"
    top.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64M,mode=755", "none", top], check=True)
    yield os.fsencode(top)
    subprocess.run(["umount", "-l", top], check=True)


def where(cache):
    """The trash directory that is used, relative to nothing."""
    with cache.trash() as trash:
        place = trash.make()
        return None if place is None else place.path


def test_it_is_at_the_top_of_the_mount_private_and_gone_when_empty(mounted):
    cache = Cache(mounted + b"/home/u/cache")
    with cache.trash() as trash:
        place = trash.make()
        assert place.path == mounted + b"/" + TRASH_NAME
        assert stat.S_IMODE(os.stat(place.path).st_mode) == 0o700
        assert not place.inside
    assert os.listdir(mounted) == [b"home"]


def test_where_the_location_is_a_mount_it_is_inside(mounted):
    cache = Cache(mounted)
    cache.put("e/f")
    assert where(cache) == mounted + b"/" + TRASH_NAME
    assert isinstance(cache.evict(cache.victim("e")), Removed)
    assert os.listdir(mounted) == []


@pytest.mark.parametrize("name", [b"hub", b"checkpoints", b"blobs"])
def test_it_is_never_inside_what_a_tool_scans_while_there_is_another_place(mounted, name):
    cache = Cache(mounted + b"/" + name)
    cache.put("e/f")
    os.mkdir(mounted + b"/" + TRASH_NAME, 0o755)  # not private: not ours, and so no place
    assert where(cache) is None
    os.rmdir(mounted + b"/" + TRASH_NAME)
    assert where(cache) == mounted + b"/" + TRASH_NAME


def test_a_bind_mount_of_the_same_filesystem_is_another_mount(mounted):
    outer, inner = mounted + b"/data", mounted + b"/bound"
    cache = Cache(outer + b"/home/cache")
    cache.put("e/f")
    os.mkdir(inner)
    subprocess.run(["mount", "--bind", outer, inner], check=True)
    try:
        bound = Cache(inner + b"/home/cache")
        assert where(bound) == inner + b"/" + TRASH_NAME
        assert isinstance(bound.evict(bound.victim("e")), Removed)
    finally:
        subprocess.run(["umount", inner], check=True)


def test_beside_the_location_when_the_top_is_not_to_be_had(mounted):
    cache = Cache(mounted + b"/home/u/cache")
    cache.put("e/f")
    open(mounted + b"/" + TRASH_NAME, "w").close()
    assert where(cache) == mounted + b"/home/u/" + TRASH_NAME
    assert isinstance(cache.evict(cache.victim("e")), Removed)


def test_inside_the_location_when_nothing_else_is_to_be_had(mounted):
    cache = Cache(mounted + b"/home/u/cache")
    for parent in (b"", b"/home/u"):
        open(mounted + parent + b"/" + TRASH_NAME, "w").close()
    with cache.trash() as trash:
        place = trash.make()
        assert place.path == cache.path(TRASH_NAME)
        assert place.inside


def test_in_a_users_directory_it_is_the_users_and_he_can_remove_it(mounted):
    os.chmod(mounted, 0o755)
    open(mounted + b"/" + TRASH_NAME, "w").close()
    cache = Cache(mounted + b"/home/u/cache")
    for path in (b"/home/u", b"/home/u/cache"):
        os.chown(mounted + path, 2001, 2002)
    cache.put("e/f")
    with cache.trash() as trash:
        place = trash.make()
        assert place.path == mounted + b"/home/u/" + TRASH_NAME
        found = os.stat(place.path)
        assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (2001, 2002, 0o700)
        theirs = ["setpriv", "--reuid", "2001", "--regid", "2002", "--clear-groups", "rm", "-rf"]
        subprocess.run([*theirs, TRASH_NAME], cwd=mounted + b"/home/u", check=True)
        assert not os.path.exists(place.path)
    assert isinstance(cache.evict(cache.victim("e")), Removed)


@pytest.mark.parametrize("trap", ["a link", "of another user", "open to others", "another mount"])
def test_what_somebody_put_there_ahead_of_us_is_not_used(mounted, tmp_path, trap):
    """In a directory that all may write to, such as /tmp."""
    os.chmod(mounted, 0o1777)
    name, elsewhere = mounted + b"/" + TRASH_NAME, tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    if trap == "a link":
        os.symlink(elsewhere, name)
    else:
        os.mkdir(name, 0o755 if trap == "open to others" else 0o700)
    if trap == "of another user":
        os.chown(name, 2001, 2001)
    if trap == "another mount":
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=700", "none", name], check=True)
    try:
        cache = Cache(mounted + b"/x/cache")
        cache.put("e/f")
        assert where(cache) == mounted + b"/x/" + TRASH_NAME
        assert isinstance(cache.evict(cache.victim("e")), Removed)
        assert list(elsewhere.iterdir()) == []
    finally:
        if trap == "another mount":
            subprocess.run(["umount", name], check=True)


def test_it_may_vanish_at_any_time_and_is_made_again(mounted):
    cache = Cache(mounted + b"/a/cache")
    for name in ("e", "n"):
        cache.put(f"{name}/f")
    remove = at_step("leased", lambda: os.rmdir(mounted + b"/" + TRASH_NAME))
    with cache.trash() as trash:
        trash.make()
        with Evictor(trash, Machine(), now_ns=0, clock=SystemClock(), at=remove) as evictor:
            assert isinstance(evictor.evict(cache.victim("e")), Removed)


def test_people_see_restore_and_empty_what_is_in_it(mounted):
    cache = Cache(mounted + b"/a/cache")
    cache.put("e/f", 10_000)
    cache.put("models/x/g", 4096)
    victims = cache.victim("e"), cache.victim("models/x")
    child = os.fork()
    if child == 0:
        cache.evict(*victims, at=at_step("verified", lambda: os.kill(os.getpid(), 9)))
    os.waitpid(child, 0)
    with cache.trash() as trash:
        listed = {(item.origin, item.state, item.bytes, item.files) for item in items(trash)}
        assert listed == {(b"e", "moved", 12_288, 1), (b"models/x", "moved", 4096, 1)}
        cache.put("e/new")
        assert {(each.origin, each.fate) for each in restore(trash)} == {
            (b"e", "kept in the trash: an error"),
            (b"models/x", "put back"),
        }
        assert [(each.origin, each.freed_bytes) for each in empty(trash)] == [(b"e", 12_288)]
        assert items(trash) == []
    assert cache.has("models/x/g")
    assert os.listdir(cache.path("e")) == [b"new"]


@pytest.mark.parametrize("path", [b"a", b"a/b%2f%25", b"%", b"\xff\n/-rf", b"x" * 255, b"-/-"])
def test_a_name_tells_where_its_piece_belongs(path):
    assert unescape(escape(path)) == path
    assert b"/" not in escape(path)
    for location in (location_id(b"/srv/cache"), b""):
        origin = path if location else path.replace(b"/", b"_")
        name = PieceName(b"m", location, b"1f", 3, origin)
        assert len(name.encode()) <= 255
        assert parse(name.encode()) == (
            name if name.holds_origin else PieceName(b"m", location, b"1f", 3, None)
        )


@pytest.mark.parametrize(
    "name", [b"m-1", b"x-000000000000-1-0-e", b".cw-m", b"models--x", b"", b"m-00-1-0-a"]
)
def test_a_name_of_somebody_else_is_not_ours(name):
    assert parse(name) is None
