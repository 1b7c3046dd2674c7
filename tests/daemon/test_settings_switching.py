"""Which key of which file counts for `enforce`."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.daemon.etc import Etc

from cachewarden.errors import ConfigurationError, UsageError
from cachewarden.settings import Switch, load, rewrite, switch

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
