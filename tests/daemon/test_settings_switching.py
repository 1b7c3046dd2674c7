"""Which key of which file counts for `enforce`, and how edited files get into place."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from tests.daemon.etc import Etc

from cachewarden.errors import ConfigurationError, UsageError
from cachewarden.settings import Edit, Switch, load, rewrite, switch

HUB = '[locations.hub]\npath = "/srv/hub"\n'
BOTH = f'{HUB}enforce = false\n[locations.b]\npath = "/srv/b"\nenforce = false\n'


class Switched(Etc):
    """A configuration in which keys are switched."""

    def switch(self, *names: str, on: bool = True, **environ: str) -> Switch:
        """Of all, without names."""
        return switch(
            names or None, on, None, environ={"HOME": "/root", **environ}, directory=os.fsencode(self.root)
        )

    def refused(self, *names: str, on: bool = True, **environ: str) -> str:
        """The sentences with which nothing is changed."""
        before = [path.read_bytes() for path in sorted(self.root.rglob("*.toml"))]
        with pytest.raises(ConfigurationError) as failure:
            self.switch(*names, on=on, **environ)
        assert [path.read_bytes() for path in sorted(self.root.rglob("*.toml"))] == before
        return str(failure.value).replace(f"{self.root}/", "")

    def report_only(self) -> list[str]:
        """The names of what is not enforced, by the files as they are."""
        found = load(environ={"HOME": "/root"}, directory=os.fsencode(self.root))
        return list(found.report_only)


@pytest.fixture
def etc(tmp_path: Path) -> Switched:
    return Switched(tmp_path / "etc")


def places(found: Switch) -> list[str]:
    """`FILE:LINE KEY BEFORE -> VALUE` of each change."""
    return [
        f"{os.path.basename(each.file).decode()}:{each.line} {each.key} {each.before or '-'} -> {each.value}"
        for each in found.changes
    ]


def test_the_key_is_changed_where_it_stands_and_the_other_location_is_left_alone(etc):
    etc.put("config.toml", BOTH)
    found = etc.switch("hub")
    assert places(found) == ["config.toml:3 locations.hub.enforce false -> True"]
    assert found.settings.report_only == ("b",)
    rewrite(found.edits)
    assert (etc.root / "config.toml").read_text() == BOTH.replace("false", "true", 1)
    assert etc.report_only() == ["b"]


def test_of_several_files_the_one_that_counts_is_changed(etc):
    etc.put("config.toml", f"{HUB}enforce = false\n")
    etc.put("config.d/10.toml", "# mine\n[locations]\nhub.enforce = false\n")
    etc.put("config.d/20.toml", "[locations.hub]\nmax_size = 1\n")
    found = etc.switch("hub")
    assert places(found) == ["10.toml:3 locations.hub.enforce false -> True"]
    rewrite(found.edits)
    assert etc.report_only() == []


def test_keys_in_two_files_are_changed_together(etc):
    etc.put("config.toml", f"[daemon]\nenforce = false\n{HUB}")
    etc.put("config.d/b.toml", '[locations.b]\npath = "/srv/b"\nenforce = false\n')
    found = etc.switch()
    assert places(found) == [
        "b.toml:3 locations.b.enforce false -> True",
        "config.toml:2 daemon.enforce false -> True",
    ]
    rewrite(found.edits)
    assert etc.report_only() == []


def test_report_only_is_added_to_the_file_that_has_the_path(etc):
    etc.put("config.toml", "[locations.hub]\nmax_size = 1\n")
    etc.put("config.d/10.toml", HUB)
    etc.put("config.d/20.toml", "[locations.hub]\nmax_size = 2\n")
    found = etc.switch("hub", on=False)
    assert places(found) == ["10.toml:3 locations.hub.enforce - -> False"]
    rewrite(found.edits)
    assert etc.report_only() == ["hub"]


def test_what_is_so_already_needs_no_change(etc):
    etc.put("config.toml", f'{HUB}[locations.b]\npath = "/srv/b"\nenforce = "none"\n')
    assert etc.switch("hub", "b").changes == ()
    assert etc.switch("hub", "hub", on=False).names == ("hub",)
    assert etc.switch("b", on=False).edits[0].after.endswith(b"enforce = false\n")


def test_a_location_of_a_glob_and_of_a_preset_has_one_key(etc):
    etc.put(
        "config.toml",
        f'[locations.h]\npath = "/home/*/.c"\npolicy = "preset:workstation"\nenforce=false\n{HUB}',
    )
    assert places(etc.switch("h")) == ["config.toml:4 locations.h.enforce false -> True"]


def test_what_holds_back_all_is_named_with_its_line_where_others_would_begin_to_lose_something(etc):
    etc.put("config.toml", f'{HUB}enforce = false\n[locations.b]\npath = "/srv/b"\n')
    etc.put("config.d/x.toml", "[daemon]\nenforce = false\n")
    said = etc.refused("hub")
    assert "config.d/x.toml:2: daemon.enforce = false: holds back every location" in said
    assert "would also turn on: b." in said
    assert "cachewarden enforce --all" in said
    assert "cachewarden enforce --off b" in said
    rewrite(etc.switch("b", on=False).edits)
    rewrite(etc.switch("hub").edits)
    assert etc.report_only() == ["b"]


def test_what_holds_back_all_goes_when_nobody_else_begins_to_lose_something(etc):
    etc.put("config.toml", f"[daemon]\nenforce = false\n{BOTH}")
    assert places(etc.switch("hub")) == [
        "config.toml:5 locations.hub.enforce false -> True",
        "config.toml:2 daemon.enforce false -> True",
    ]


def test_report_only_for_all_leaves_the_key_above_alone(etc):
    """So that one after the other can be turned on again."""
    etc.put("config.toml", f'[daemon]\nenforce = true\n{HUB}[locations.b]\npath = "/srv/b"\n')
    rewrite(etc.switch(on=False).edits)
    assert etc.report_only() == ["hub", "b"]
    rewrite(etc.switch("b").edits)
    assert etc.report_only() == ["hub"]


@pytest.mark.parametrize(
    ("variable", "value", "on"),
    [
        ("CACHEWARDEN_DAEMON__ENFORCE", "false", True),
        ("CACHEWARDEN_LOCATIONS__HUB__ENFORCE", "false", True),
        ("CACHEWARDEN_LOCATIONS__HUB__ENFORCE", "true", False),
    ],
)
def test_what_a_variable_says_no_file_can_change(etc, variable, value, on):
    etc.put("config.toml", f"{HUB}enforce = {'false' if on else 'true'}\n")
    said = etc.refused("hub", on=on, **{variable: value})
    assert said.startswith(f"{variable}={value}: ")
    assert "is set in the environment" in said


def test_a_location_that_only_variables_make_is_in_no_file(etc):
    said = etc.refused("hub", on=False, CACHEWARDEN_LOCATIONS__HUB__PATH="/srv/hub")
    assert "CACHEWARDEN_LOCATIONS__HUB__PATH=/srv/hub: locations.hub.path: is set in the environment" in said


def test_a_broken_file_is_named_as_ever_and_nothing_is_changed(etc):
    etc.put("config.toml", BOTH)
    etc.put("config.d/x.toml", "[daemon]\nintervall = 5\n")
    assert "config.d/x.toml:2: daemon.intervall = 5: there is no such key" in etc.refused("hub")


def test_an_unknown_name_is_answered_with_a_guess(etc):
    etc.put("config.toml", BOTH)
    with pytest.raises(UsageError, match=r"no location is called 'hup' .*did you mean hub\?"):
        etc.switch("b", "hup")
    etc.put("config.toml", "")
    with pytest.raises(UsageError, match="no location is configured"):
        etc.switch()


def test_a_pipe_is_read_once_and_not_edited(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with (
        subprocess.Popen(
            ["sh", "-c", f"printf '[locations.hub]\\npath = \"/x/y\"\\nenforce = false\\n' > {path}"]
        ),
        pytest.raises(ConfigurationError, match="is no regular file"),
    ):
        switch(["hub"], True, [os.fsencode(path)], environ={"HOME": "/root"})


@pytest.fixture
def edit(etc):
    """Turning hub on in config.toml."""
    path = etc.put("config.toml", BOTH)
    path.chmod(0o640)
    return Edit(os.fsencode(path), BOTH.encode(), b"new\n")


def names(etc: Switched) -> list[str]:
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
