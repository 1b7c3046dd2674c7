"""How edited files get into the place of those that people wrote."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from tests.daemon.etc import Etc

from cachewarden.errors import ConfigurationError
from cachewarden.settings import Edit, rewrite

BOTH = '[locations.hub]\npath = "/srv/hub"\nenforce = false\n'


@pytest.fixture
def etc(tmp_path: Path) -> Etc:
    return Etc(tmp_path / "etc")


@pytest.fixture
def edit(etc):
    """Turning hub on in config.toml."""
    path = etc.put("config.toml", BOTH)
    path.chmod(0o640)
    return Edit(os.fsencode(path), BOTH.encode(), b"new\n")


def names(etc: Etc) -> list[str]:
    return sorted(os.listdir(etc.root))


def test_the_mode_stays_and_nothing_is_left_beside_it(etc, edit):
    rewrite([edit])
    path = etc.root / "config.toml"
    assert path.read_bytes() == b"new\n"
    assert path.stat().st_mode & 0o7777 == 0o640
    assert names(etc) == ["config.d", "config.toml"]


def test_extended_attributes_stay(etc, edit):
    path = etc.root / "config.toml"
    os.setxattr(path, "user.note", b"mine")
    rewrite([edit])
    assert os.getxattr(path, "user.note") == b"mine"


def test_an_acl_of_the_directory_opens_no_file(etc, edit):
    """A new file would inherit it; the one whose place it takes did not have it."""
    if subprocess.run(
        ["setfacl", "-d", "-m", "u:daemon:rw", etc.root], capture_output=True, check=False
    ).returncode:
        pytest.skip("needs setfacl (Debian package acl), and a filesystem with ACLs")
    rewrite([edit])
    assert "system.posix_acl_access" not in os.listxattr(etc.root / "config.toml")


def test_the_owner_stays(needs_root, etc, edit):
    os.chown(etc.root / "config.toml", 4001, 4002)
    rewrite([edit])
    found = (etc.root / "config.toml").stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (4001, 4002, 0o640)


def test_a_link_is_written_through(etc, edit, tmp_path):
    real = tmp_path / "real.toml"
    (etc.root / "config.toml").rename(real)
    (etc.root / "config.toml").symlink_to("../real.toml")
    rewrite([edit])
    assert real.read_bytes() == b"new\n"
    assert os.readlink(etc.root / "config.toml") == "../real.toml"


# Puts a link to another directory in the place of one, and takes it back, until it is ended.
SWAP = """
import ctypes, sys
libc = ctypes.CDLL(None)
one, link = sys.argv[1].encode(), sys.argv[2].encode()
print("ready", flush=True)
while True:
    libc.renameat2(-100, one, -100, link, 2)
"""


def test_a_directory_that_its_owner_swaps_meanwhile_leads_nowhere_else(tmp_path):
    """As root, on the file of a user, this would put what he wrote in the place of a file of the system."""
    (tmp_path / "his").mkdir()
    (tmp_path / "system").mkdir()
    (tmp_path / "link").symlink_to("system")
    (tmp_path / "system/passwd").write_text("precious")
    path = os.fsencode(tmp_path / "his/passwd")
    (tmp_path / "his/passwd").write_text("0")
    with subprocess.Popen(
        [sys.executable, "-c", SWAP, tmp_path / "his", tmp_path / "link"], stdout=subprocess.PIPE
    ) as swapping:
        try:
            assert swapping.stdout is not None
            swapping.stdout.readline()
            said = b"0"
            for number in range(1, 400):
                with suppress(ConfigurationError):
                    rewrite([Edit(path, said, b"%d" % number)])
                    said = b"%d" % number
        finally:
            swapping.kill()
    assert said != b"0"
    assert (tmp_path / "system/passwd").read_text() == "precious"
    assert os.listdir(tmp_path / "system") == ["passwd"]


def test_a_pipe_that_came_in_the_place_of_a_file_is_not_waited_for(etc, edit):
    (etc.root / "config.toml").unlink()
    os.mkfifo(etc.root / "config.toml")
    refused([edit], "config.toml: was changed meanwhile")


def refused(edits: list[Edit], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason) as failure:
        rewrite(edits)
    assert failure.value.problems[-1] == "nothing was changed"


def test_what_somebody_changed_meanwhile_is_left_to_him(etc, edit):
    path = etc.root / "config.toml"
    path.write_text("his")
    refused([edit], "config.toml: was changed meanwhile")
    assert path.read_text() == "his"
    path.unlink()
    refused([edit], "config.toml: cannot be changed: No such file")


def test_hard_links_are_not_parted(etc, edit):
    os.link(etc.root / "config.toml", etc.root / "other")
    refused([edit], "config.toml: has 2 names")
    assert (etc.root / "other").read_text() == BOTH
    assert names(etc) == ["config.d", "config.toml", "other"]


@pytest.fixture
def second(needs_root, etc):
    """Another file, which a rename cannot replace: it is mounted."""
    path = etc.put("config.d/b.toml", "old")
    subprocess.run(["mount", "--bind", path, path], check=True)
    yield Edit(os.fsencode(path), b"old", b"new")
    subprocess.run(["umount", "-l", path], check=True)


def test_when_one_file_cannot_be_replaced_the_others_are_as_they_were(etc, edit, second):
    refused([edit, second], "b.toml: cannot be changed: Device or resource busy")
    path = etc.root / "config.toml"
    assert path.read_text() == BOTH
    assert path.stat().st_mode & 0o7777 == 0o640
    assert names(etc) == ["config.d", "config.toml"]
    assert os.listdir(etc.root / "config.d") == ["b.toml"]


def test_on_a_filesystem_that_is_read_only_nothing_is_changed(needs_root, etc, edit):
    subprocess.run(["mount", "-t", "tmpfs", "none", etc.root], check=True)
    try:
        path = etc.put("config.toml", BOTH)
        subprocess.run(["mount", "-o", "remount,ro", etc.root], check=True)
        refused([edit], "config.toml: cannot be changed: Read-only file system")
        assert path.read_text() == BOTH
    finally:
        subprocess.run(["umount", "-l", etc.root], check=True)
