"""The way to a location: which links are followed, and which refused."""

import os
from contextlib import suppress

import pytest

from cachewarden.enforce.root import open_root
from cachewarden.errors import LocationUnavailableError

TRUSTED = frozenset({0, os.getuid()})


@pytest.fixture
def base(tmp_path):
    """A directory as bytes, with a cache in it."""
    (tmp_path / "real" / "cache").mkdir(parents=True)
    (tmp_path / "real" / "cache" / "f").write_bytes(b"x")
    return os.fsencode(tmp_path.resolve())


def listing(path, trusted=TRUSTED):
    fd = open_root(path, trusted)
    try:
        return os.listdir(fd)
    finally:
        os.close(fd)


def test_a_plain_path_opens_and_double_slashes_do_not_matter(base):
    assert listing(base + b"//real///cache/") == ["f"]


def test_a_link_on_the_way_that_a_trusted_owner_made_is_followed(base):
    os.symlink(b"real", base + b"/relative")
    os.symlink(base + b"/real", base + b"/absolute")
    assert listing(base + b"/relative/cache") == ["f"]
    assert listing(base + b"/absolute/cache") == ["f"]


def test_a_link_on_the_way_that_an_ordinary_user_made_is_refused(base, needs_root):
    os.symlink(b"real", base + b"/theirs")
    os.lchown(base + b"/theirs", 2001, 2001)
    with pytest.raises(
        LocationUnavailableError, match="theirs on the way is a link that others could change"
    ):
        open_root(base + b"/theirs/cache", TRUSTED)


def test_a_link_in_a_directory_that_others_may_write_is_refused_unless_it_is_sticky(base, needs_root):
    os.symlink(b"real", base + b"/link")
    os.chmod(base, 0o777)
    with pytest.raises(LocationUnavailableError, match="others could change"):
        open_root(base + b"/link/cache", TRUSTED)
    os.chmod(base, 0o1777)
    assert listing(base + b"/link/cache") == ["f"]


def test_a_circle_of_links_ends_in_a_sentence(base):
    os.symlink(b"b", base + b"/a")
    os.symlink(b"a", base + b"/b")
    with pytest.raises(LocationUnavailableError):
        open_root(base + b"/a/cache", TRUSTED)


def test_a_missing_path_and_a_file_say_what_they_are(base):
    with pytest.raises(LocationUnavailableError, match="nothing-here: is not there"):
        open_root(base + b"/nothing-here", TRUSTED)
    with pytest.raises(LocationUnavailableError, match="is not a directory"):
        open_root(base + b"/real/cache/f", TRUSTED)


def test_no_descriptor_is_left_behind(base):
    os.symlink(b"real", base + b"/link")
    before = len(os.listdir("/proc/self/fd"))
    for path in (b"/link/cache", b"/missing", b"/real/cache/f"):
        with suppress(LocationUnavailableError):
            os.close(open_root(base + path, TRUSTED))
    assert len(os.listdir("/proc/self/fd")) == before
