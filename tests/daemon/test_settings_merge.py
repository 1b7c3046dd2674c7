"""Files, drop-ins, environment and inheritance: which value is in force, and who is said to have set it."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.daemon.etc import Etc

from cachewarden.errors import ConfigurationError
from cachewarden.settings import Settings, load, show
from cachewarden.settings.model import DaemonKeys, LocationKeys, PolicyKeys, PoolKeys
from cachewarden.settings.renamed import RENAMED
from cachewarden_policies.policy import DAY, HOUR, MINUTE, Policy

GIB = 1024**3
Q = "CACHEWARDEN_POLICIES__Q__MAX_BYTES"
KEEP_NEWEST = "CACHEWARDEN_LOCATIONS__A__EVICT_CHECKPOINTS__KEEP_NEWEST"


class Merged(Etc):
    """A configuration that is read."""

    def load(self, *files: Path, **options: Any) -> Settings:
        environ = {"HOME": "/root", **options.pop("environ", {})}
        return load(
            [os.fsencode(file) for file in files] if files else None,
            environ=environ,
            directory=os.fsencode(self.root),
            **options,
        )

    def problems(self, *files: Path, **options: Any) -> list[str]:
        with pytest.raises(ConfigurationError) as failure:
            self.load(*files, **options)
        return failure.value.problems


@pytest.fixture
def etc(tmp_path: Path) -> Merged:
    return Merged(tmp_path / "etc")


def test_no_file_at_all_is_a_valid_configuration(tmp_path: Path) -> None:
    nothing = load(environ={"HOME": "/root"}, directory=os.fsencode(tmp_path / "none"))
    assert nothing.locations == ()
    assert nothing.daemon.state_dir == b"/var/lib/cachewarden"
    assert nothing.daemon.http == ("127.0.0.1", 9843)
    assert nothing.daemon.interval == 5 * MINUTE


def test_drop_ins_are_merged_key_by_key_in_the_bytewise_order_of_names(etc: Merged) -> None:
    etc.put("config.toml", '[daemon]\ninterval = "1m"\nsettle = "2s"\nignore_processes = ["a", "b"]')
    etc.put("config.d/9.toml", '[daemon]\ninterval = "9m"')
    etc.put("config.d/10.toml", '[daemon]\ninterval = "10m"\nignore_processes = ["c"]')
    etc.put("config.d/Z.toml", "[daemon]\nenforce = false")
    etc.put("config.d/.#9.toml", "not read")
    etc.put("config.d/notes.txt", "not read")
    settings = etc.load()
    assert settings.daemon.interval == 9 * MINUTE
    assert settings.daemon.settle == 2 * 10**9
    assert settings.daemon.ignore_processes == ("c",)
    assert not settings.daemon.enforce
    assert [os.path.basename(source) for source in settings.sources] == [
        "config.toml",
        "10.toml",
        "9.toml",
        "Z.toml",
    ]


def test_given_files_replace_the_default_ones(etc: Merged, tmp_path: Path) -> None:
    etc.put("config.toml", '[daemon]\ninterval = "1m"')
    one = etc.put("one", '[daemon]\nsettle = "2s"\nenforce = false')
    two = etc.put("two", "[daemon]\nenforce = true")
    settings = etc.load(one, two)
    assert (settings.daemon.interval, settings.daemon.settle, settings.daemon.enforce) == (
        5 * MINUTE,
        2 * 10**9,
        True,
    )


def test_a_given_file_has_to_be_there_and_readable(etc: Merged, tmp_path: Path) -> None:
    assert etc.problems(tmp_path / "absent", tmp_path) == [
        f"{tmp_path}/absent: cannot be read: No such file or directory",
        f"{tmp_path}: cannot be read: Is a directory",
    ]


def test_a_file_that_is_not_utf8_is_an_error_with_its_line(etc: Merged) -> None:
    broken = etc.root / "broken"
    broken.write_bytes(b'[daemon]\nstate_dir = "/\xff"\n')
    assert etc.problems(broken) == [f"{broken}:2: byte 0xff is not UTF-8"]


def test_all_broken_files_are_reported_at_once(etc: Merged) -> None:
    one, two = etc.put("one", "[daemon\n"), etc.put("two", "x = \n")
    assert [problem.split(": ")[0] for problem in etc.problems(one, two)] == [f"{one}:1", f"{two}:1"]


def test_several_problems_of_several_files_are_reported_at_once(etc: Merged) -> None:
    etc.put("config.toml", '[daemon]\ninterval = "x"\nfoo = 1\n[policies.p]\nmax_size = "1X"')
    etc.put("config.d/a.toml", '[locations.l]\npath = "/srv/x"\nlayuot = "plain"')
    problems = etc.problems(environ={"CACHEWARDEN_DAEMON__SETTLE": "soon", "CACHEWARDEN_HOME": "/x"})
    assert sorted(problem.removeprefix(f"{etc.root}/").split(": ")[0] for problem in problems) == [
        "CACHEWARDEN_DAEMON__SETTLE=soon",
        "CACHEWARDEN_HOME=/x",
        "config.d/a.toml:3",
        "config.toml:2",
        "config.toml:3",
        "config.toml:5",
    ]


def test_none_unsets_what_an_earlier_file_has_set(etc: Merged) -> None:
    etc.put(
        "config.toml",
        '[daemon]\ninterval = "1m"\nschedule = "0 3 * * *"\naudit_file = "/x"\n'
        '[locations.a]\npath = "/srv/a"\nmax_idle = "9d"\n[locations.b]\npath = "/srv/b"',
    )
    etc.put(
        "config.d/a.toml",
        '[daemon]\ninterval = "none"\nschedule = "none"\naudit_file = "none"\nhttp = "none"\n'
        '[locations]\nb = "none"\na.max_idle = "none"',
    )
    settings = etc.load()
    assert (settings.daemon.interval, settings.daemon.schedule) == (5 * MINUTE, None)
    assert (settings.daemon.audit_file, settings.daemon.http) == (None, None)
    assert [location.name for location in settings.locations] == ["a"]
    assert settings.locations[0].template.policy.max_idle is None


def test_a_table_can_be_set_again_after_it_was_unset(etc: Merged) -> None:
    etc.put("config.toml", '[policies.p]\nmax_size = "1GiB"\nkeep_newest = 4')
    etc.put("config.d/a.toml", '[policies]\np = "none"')
    etc.put("config.d/b.toml", "[policies.p]\nmax_files = 5")
    assert etc.load().policies["p"].limits.max_size is None
    assert etc.load().policies["p"].limits.max_files == 5
    assert etc.load().policies["p"].keep_newest == 0


def test_none_unsets_what_a_policy_inherits(etc: Merged) -> None:
    etc.put(
        "config.toml",
        '[policies.a]\nmax_idle = "9d"\nmin_idle = "5h"\npartial_max_idle = "2d"\nkeep_newest = 4\n'
        '[policies.b]\nextends = "a"\nmax_idle = "none"\nmin_idle = "none"\npartial_max_idle = "none"\n'
        '[policies.c]\nextends = "b"',
    )
    policy = etc.load().policies["c"]
    assert policy.max_idle is None
    assert policy.partial_max_idle is None
    assert policy.min_idle == Policy().min_idle == HOUR
    assert policy.keep_newest == 4


def test_a_location_overrides_its_policy_which_overrides_its_preset(etc: Merged) -> None:
    etc.put(
        "config.toml",
        '[policies.p]\nextends = "preset:workstation"\nmax_idle = "9d"\nmin_idle = "2h"\n'
        '[locations.l]\npath = "/srv/l"\npolicy = "p"\nmin_idle = "3h"',
    )
    policy = etc.load().locations[0].template.policy
    assert policy.name == "p"
    assert policy.max_idle == 9 * DAY
    assert policy.min_idle == 3 * HOUR
    assert policy.floor.min_free is not None


def test_a_policy_without_keys_has_the_defaults_of_the_policies_package(etc: Merged) -> None:
    """The reference, the schema and the planner must not disagree about a default."""
    etc.put("config.toml", '[policies.default]\n[locations.l]\npath = "/srv/l"')
    settings = etc.load()
    assert settings.policies["default"] == Policy()
    assert settings.locations[0].template.policy == Policy(name="l")


def test_the_environment_wins_over_the_files(etc: Merged) -> None:
    etc.put(
        "config.toml",
        '[daemon]\ninterval = "1m"\nenforce = true\n[policies.My-Policy]\nmax_size = "1GiB"\n'
        '[locations.l]\npath = "/srv/l"\npolicy = "My-Policy"',
    )
    settings = etc.load(
        environ={
            "CACHEWARDEN_DAEMON__INTERVAL": "2m",
            "CACHEWARDEN_DAEMON__ENFORCE": "false",
            "CACHEWARDEN_DAEMON__IGNORE_PROCESSES": '["x", "y"]',
            "CACHEWARDEN_POLICIES__MY_POLICY__MAX_SIZE": "2GiB",
            "CACHEWARDEN_POLICIES__MY_POLICY__KEEP_NEWEST": "3",
            "CACHEWARDEN_LOCATIONS__NEW__PATH": "/srv/new",
            "CACHEWARDEN_LOCATIONS__NEW__EVICT_CHECKPOINTS__KEEP_NEWEST": "2",
            "UNRELATED": "x",
            "CACHEWARDENESQUE": "x",
        }
    )
    assert settings.daemon.interval == 2 * MINUTE
    assert not settings.daemon.enforce
    assert settings.daemon.ignore_processes == ("x", "y")
    assert settings.policies["My-Policy"].limits.max_size == 2 * GIB
    assert settings.policies["My-Policy"].keep_newest == 3
    assert [location.name for location in settings.locations] == ["l", "new"]
    assert settings.locations[1].template.evict_checkpoints == 2
    assert "# environment variable CACHEWARDEN_DAEMON__INTERVAL" in show(settings)


@pytest.mark.parametrize(
    ("variable", "value", "problem"),
    [
        ("CACHEWARDEN_CONFIG", "/x", "no such variable; variables are called CACHEWARDEN_SECTION__KEY"),
        ("CACHEWARDEN_", "", "no such variable"),
        ("CACHEWARDEN_DAEMON", "x", "no such variable"),
        ("CACHEWARDEN_DAEMON__", "x", "no such variable"),
        (
            "CACHEWARDEN_POLICIES__P",
            "x",
            "no such variable; variables are called CACHEWARDEN_SECTION__NAME__KEY",
        ),
        ("CACHEWARDEN_DAEMON__FOO", "1", "daemon.foo: there is no such key"),
        ("CACHEWARDEN_FOO__BAR", "1", "foo: there is no such section"),
        ("CACHEWARDEN_DAEMON__INTERVAL", "-5m", "daemon.interval: not a duration"),
        ("CACHEWARDEN_DAEMON__INTERVAL", "", "daemon.interval: is empty"),
        ("CACHEWARDEN_DAEMON__IGNORE_PROCESSES", "[x", "not a TOML list or table"),
        ("CACHEWARDEN_DAEMON__IGNORE_PROCESSES", "x", "daemon.ignore_processes: must be a list"),
        ("CACHEWARDEN_POLICIES__P_Q__MAX_SIZE", "1GiB", "fits several names: p-q, p.q"),
    ],
)
def test_an_error_in_the_environment_names_the_variable(
    etc: Merged, variable: str, value: str, problem: str
) -> None:
    etc.put("config.toml", '[policies."p-q"]\n[policies."p.q"]')
    problems = etc.problems(environ={variable: value})
    assert len(problems) == 1
    assert problems[0].startswith(f"{variable}={value}: {problem}")


def test_two_variables_that_contradict_each_other_in_shape_are_an_error(etc: Merged) -> None:
    problems = etc.problems(
        environ={
            "CACHEWARDEN_LOCATIONS__A__EVICT_CHECKPOINTS": "never",
            KEEP_NEWEST: "2",
            "CACHEWARDEN_LOCATIONS__A__PATH": "/srv/a",
        }
    )
    assert problems == [
        f"{KEEP_NEWEST}=2: another variable sets the table around it already",
    ]


def test_values_cannot_forge_a_line_of_the_message(etc: Merged) -> None:
    problems = etc.problems(
        environ={"CACHEWARDEN_DAEMON__INTERVAL": "1\x1b[2J\u202e", "CACHEWARDEN_X": "a\nb"}
    )
    assert all(problem.isprintable() for problem in problems)


def test_user_mode_keeps_everything_in_the_users_own_directories(tmp_path: Path) -> None:
    home = tmp_path / "home"
    config = home / ".config" / "cachewarden"
    config.mkdir(parents=True)
    (config / "config.toml").write_text('[locations.l]\npath = "~/.accelerate"')
    settings = load(environ={"HOME": str(home), "XDG_RUNTIME_DIR": "/run/user/7"}, user=True)
    assert settings.daemon.user_mode
    assert settings.daemon.http is None
    assert settings.daemon.state_dir == os.fsencode(home / ".local/state/cachewarden")
    assert settings.daemon.runtime_dir == b"/run/user/7/cachewarden"
    assert settings.locations[0].patterns == (os.fsencode(home / ".accelerate"),)
    assert "# default of --user" in show(settings)


def test_user_mode_follows_the_xdg_directories_and_does_without_a_session(tmp_path: Path) -> None:
    config = tmp_path / "c" / "cachewarden"
    config.mkdir(parents=True)
    (config / "config.toml").write_text('[daemon]\nhttp = "127.0.0.1:0"')
    environ = {"HOME": "/home/x", "XDG_CONFIG_HOME": str(tmp_path / "c"), "XDG_STATE_HOME": "/s"}
    settings = load(environ=environ, user=True)
    assert settings.daemon.http == ("127.0.0.1", 0)
    assert settings.daemon.state_dir == b"/s/cachewarden"
    assert settings.daemon.runtime_dir == b"/s/cachewarden/run"


def test_a_users_home_itself_is_no_location_of_his(etc: Merged, tmp_path: Path) -> None:
    file = etc.put("x", f'[locations.l]\npath = "{tmp_path}"')
    assert etc.problems(file, environ={"HOME": str(tmp_path)}, user=True) == [
        f'{file}:2: locations.l.path = "{tmp_path}": is a home directory itself'
    ]


def test_daemon_enforce_false_holds_for_every_location(etc: Merged) -> None:
    etc.put("config.toml", '[daemon]\nenforce = false\n[locations.l]\npath = "/srv/l"\nenforce = true')
    assert not etc.load().locations[0].template.enforce


def test_a_renamed_key_works_with_a_warning_that_has_its_line(etc: Merged) -> None:
    renames = {("policies", "*", "max_bytes"): "max_size", ("daemon", "period"): "interval"}
    etc.put("config.toml", '[daemon]\nperiod = "2m"\n[policies.p]\nmax_bytes = "1GiB"')
    settings = etc.load(renames=renames, environ={Q: "2GiB"})
    assert settings.daemon.interval == 2 * MINUTE
    assert settings.policies["p"].limits.max_size == GIB
    assert settings.policies["q"].limits.max_size == 2 * GIB
    old = "the old name will go"
    assert settings.warnings == (
        f'{etc.root}/config.toml:2: daemon.period = "2m": is called daemon.interval now; {old}',
        f'{etc.root}/config.toml:4: policies.p.max_bytes = "1GiB": is called policies.p.max_size now; {old}',
        f"{Q}=2GiB: policies.q.max_bytes: is called policies.q.max_size now; {old}",
    )


def test_a_renamed_key_beside_its_new_name_is_an_error(etc: Merged) -> None:
    file = etc.put("config.toml", '[daemon]\nperiod = "2m"\ninterval = "3m"')
    problems = etc.problems(renames={("daemon", "period"): "interval"})
    assert f'{file}:2: daemon.period = "2m": is set beside daemon.interval, its new name' in problems


def test_renamed_keys_do_not_shadow_keys_that_are_there() -> None:
    now = {name for each in (DaemonKeys, LocationKeys, PolicyKeys, PoolKeys) for name in each.model_fields}
    assert all(new in now and old[-1] not in now for old, new in RENAMED.items())


def test_show_names_the_origin_of_every_value(etc: Merged) -> None:
    etc.put("config.toml", '[policies.p]\nextends = "preset:workstation"\nmax_size = "1GiB"')
    etc.put("config.d/a.toml", '[policies.p]\nmax_idle = "9d"')
    shown = {
        line.partition(" = ")[0]: line.rpartition("  # ")[2]
        for line in show(etc.load()).splitlines()
        if "#" in line
    }
    assert shown["max_size"] == f"{etc.root}/config.toml:3"
    assert shown["max_idle"] == f"{etc.root}/config.d/a.toml:2"
    assert shown["min_free"] == "preset:workstation"
    assert shown["interval"] == "default"


def test_loading_twice_gives_equal_settings(etc: Merged) -> None:
    """A reload compares: nothing in the settings may depend on when or how often they were read."""
    etc.put("config.toml", '[policies.p]\nmax_size = "1GiB"\n[locations.l]\npath = "/srv/*"\npolicy = "p"')
    assert etc.load() == etc.load()
