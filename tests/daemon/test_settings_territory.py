"""What the configured paths mean on a real disk: matches, links, refusals, and what is missing."""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from cachewarden.settings import (
    Settings,
    assemble,
    find_location,
    home_directories,
    load,
    territory,
    watch_roots,
)
from cachewarden.spec import Territory


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory whose path has no link in it, not even one that the system put there."""
    return tmp_path.resolve()


def configure(root: Path, text: str, **environ: str) -> Settings:
    file = root / "config.toml"
    file.write_text(text.replace("ROOT", str(root)))
    return load([os.fsencode(file)], environ={"HOME": "/root", **environ})


def location(name: str, *paths: str, more: str = "") -> str:
    return f"[locations.{name}]\npath = {list(paths)}\n{more}\n"


def paths(found: Territory) -> list[tuple[str, bytes]]:
    return [(spec.name, spec.path) for spec in found.locations]


def refusals(found: Territory) -> list[tuple[str, bytes, str]]:
    return [(each.name, each.path, each.reason) for each in found.refused]


def make(root: Path, names: Iterable[str]) -> None:
    for name in names:
        (root / name).mkdir(parents=True)


def b(path: Path) -> bytes:
    return os.fsencode(path)


def test_each_match_of_a_glob_is_a_location_of_its_own(root: Path) -> None:
    make(root, ["h/alice/.acc", "h/bob/.acc", "h/carol", "h/.hidden/.acc"])
    (root / "h/notes").write_text("a file beside the directories")
    found = territory(configure(root, location("acc", "ROOT/h/*/.acc", more="max_size = '1GiB'")))
    assert paths(found) == [("acc", b(root / "h/alice/.acc")), ("acc", b(root / "h/bob/.acc"))]
    assert [spec.policy.limits.max_size for spec in found.locations] == [1024**3] * 2
    assert found.refused == ()
    assert found.missing == ()


def test_a_new_match_becomes_a_location_without_a_new_configuration(root: Path) -> None:
    make(root, ["h/alice/.acc", "h/bob"])
    settings = configure(root, location("acc", "ROOT/h/*/.acc"))
    before = territory(settings)
    make(root, ["h/bob/.acc", "h/carol/.acc"])
    after = territory(settings, before)
    assert [spec.path for spec in after.locations] == [
        b(root / f"h/{who}/.acc") for who in ("alice", "bob", "carol")
    ]


def test_a_new_match_appears_in_a_directory_that_is_watched(root: Path) -> None:
    make(root, ["h/alice/.acc", "h/bob", "d"])
    text = location("acc", "ROOT/h/*/.acc") + location("lit", "ROOT/d/x/y", "ROOT/d2")
    assert watch_roots(configure(root, text)) == {
        b(root / "h"),
        b(root / "h/alice"),
        b(root / "h/bob"),
        b(root / "d"),
        b(root),
    }


def test_names_that_are_no_utf8_and_odd_names_are_matched(root: Path) -> None:
    odd = [
        b"\xff\xfe",
        b"a\nERROR x",
        b'q"u\\te',
        "e\u0301".encode(),
        "\u00e9".encode(),
        b" lead",
        b"-rf",
        b"*",
    ]
    for name in odd:
        os.makedirs(os.path.join(b(root), b"h", name, b"c"))
    found = territory(configure(root, location("all", "ROOT/h/*/c")))
    assert {spec.path for spec in found.locations} == {
        os.path.join(b(root), b"h", name, b"c") for name in odd
    }
    assert len({spec.key for spec in found.locations}) == len(odd)


def test_a_question_mark_and_brackets_stand_for_one_character_each(root: Path) -> None:
    make(root, ["h/\u00e9", "h/x1", "h/x2", "h/x3", "h/xyz"])
    found = territory(configure(root, location("l", "ROOT/h/?", "ROOT/h/x[12]")))
    assert [os.path.basename(spec.path) for spec in found.locations] == [b"x1", b"x2", "\u00e9".encode()]


def test_a_path_of_undecodable_bytes_can_be_configured_by_its_escapes(root: Path) -> None:
    os.mkdir(os.path.join(b(root), b"c\xff"))
    found = territory(configure(root, f"[locations.l]\npath = '{root}/c\\xff'"))
    assert [spec.path for spec in found.locations] == [os.path.join(b(root), b"c\xff")]


def test_a_glob_is_not_looked_for_again_in_the_names_it_found(root: Path) -> None:
    """A directory called `*` is that directory, and not a pattern for its neighbours."""
    make(root, ["h/*/c", "h/other/c/deep"])
    found = territory(configure(root, location("l", "ROOT/h/[*]/c")))
    assert [spec.path for spec in found.locations] == [b(root / "h/*/c")]


def test_our_own_trash_is_no_match(root: Path) -> None:
    make(root, ["h/.cachewarden-trash", "h/.other"])
    found = territory(configure(root, location("l", "ROOT/h/.*")))
    assert [spec.path for spec in found.locations] == [b(root / "h/.other")]


def test_a_missing_path_is_not_an_error_and_is_taken_up_when_it_appears(root: Path) -> None:
    settings = configure(root, location("l", "ROOT/a/b", more="keep_newest = 3"))
    found = territory(settings)
    assert paths(found) == []
    assert [(spec.path, spec.policy.keep_newest) for spec in found.missing] == [(b(root / "a/b"), 3)]
    make(root, ["a/b"])
    assert paths(territory(settings, found)) == [("l", b(root / "a/b"))]


def test_a_file_is_refused(root: Path) -> None:
    (root / "a").write_text("")
    found = territory(configure(root, location("l", "ROOT/a") + location("g", "ROOT/?")))
    assert refusals(found) == [(name, b(root / "a"), "is not a directory") for name in ("l", "g")]


def test_a_fifo_is_refused_without_being_opened(root: Path) -> None:
    os.mkfifo(root / "a")
    assert refusals(territory(configure(root, location("l", "ROOT/a")))) == [
        ("l", b(root / "a"), "is not a directory")
    ]


def test_a_link_is_refused_unless_it_leads_to_where_it_may(root: Path) -> None:
    make(root, ["data/big", "elsewhere"])
    (root / "yes").symlink_to("data/big")
    (root / "no").symlink_to(root / "elsewhere")
    (root / "gone").symlink_to(root / "nothing")
    more = f"follow_into = ['{root}/data/*']"
    found = territory(configure(root, location("l", "ROOT/yes", "ROOT/no", "ROOT/gone", more=more)))
    assert paths(found) == [("l", b(root / "data/big"))]
    assert refusals(found) == [
        ("l", b(root / "no"), f"is a link to {root}/elsewhere, which follow_into does not allow"),
        ("l", b(root / "gone"), "is a link that leads nowhere: No such file or directory"),
    ]


@pytest.mark.root
def test_a_users_link_to_somebody_elses_files_is_refused(root: Path, needs_root: None) -> None:
    make(root, ["data/hers", "data/his"])
    os.chown(root / "data/hers", 4001, 4001)
    os.chown(root / "data/his", 4002, 4002)
    for name in ("hers", "his"):
        (root / name).symlink_to(root / "data" / name)
        os.lchown(root / name, 4001, 4001)
    more = f"follow_into = ['{root}/data/*']"
    found = territory(configure(root, location("l", "ROOT/h*s", more=more)))
    assert paths(found) == [("l", b(root / "data/hers"))]
    assert refusals(found) == [
        ("l", b(root / "his"), f"is a link of user 4001 to {root}/data/his of user 4002")
    ]


def test_a_link_on_the_way_that_the_administrator_made_is_followed(root: Path) -> None:
    """As where /home is a link to a larger disk; what is in force is the path without links."""
    make(root, ["disk/home/alice/.acc", "disk/x"])
    (root / "home").symlink_to("disk/x/../home")
    found = territory(configure(root, location("l", "ROOT/home/*/.acc")))
    assert paths(found) == [("l", b(root / "disk/home/alice/.acc"))]


@pytest.mark.root
def test_a_link_on_the_way_that_a_user_could_have_made_is_not_followed(root: Path, needs_root: None) -> None:
    make(root, ["home/alice", "home/bob/cache/hub"])
    (root / "home/alice/cache").symlink_to(root / "home/bob/cache")
    os.chown(root / "home/alice", 4001, 4001)
    settings = configure(root, location("l", "ROOT/home/*/cache/hub"))
    found = territory(settings)  # the link is root's, but in a directory where alice may put any link
    assert paths(found) == [("l", b(root / "home/bob/cache/hub"))]
    assert refusals(found) == [
        (
            "l",
            b(root / "home/alice/cache/hub"),
            f"is a link to {root}/home/bob/cache, which follow_into does not allow",
        )
    ]
    os.lchown(root / "home/alice/cache", 4001, 4001)
    assert refusals(territory(settings))[0][2] == f"is a link of user 4001 to {root}/home/bob/cache of user 0"


def test_a_circle_of_links_ends(root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    found = territory(configure(root, location("l", "ROOT/a/x")))
    assert refusals(found) == [("l", b(root / "a/x"), "is behind too many links")]


def test_a_deep_path_is_no_problem(root: Path) -> None:
    deep = "/".join(["d" * 40] * 90)
    here = os.open(root, os.O_RDONLY)
    for part in deep.split("/"):
        os.mkdir(part, dir_fd=here)
        below = os.open(part, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    found = territory(configure(root, location("l", f"ROOT/{deep}")))
    assert paths(found) == [("l", b(root) + b"/" + deep.encode())]


def test_a_glob_does_not_take_homes_or_what_holds_them(root: Path) -> None:
    make(root, ["h/alice", "h/bob", "g/deep/alice"])
    settings = configure(
        root, location("l", "ROOT/h/*") + location("m", "ROOT/*/deep"), HOME=f"{root}/h/alice"
    )
    found = territory(settings)
    assert paths(found) == [("l", b(root / "h/bob")), ("m", b(root / "g/deep"))]
    assert refusals(found) == [("l", b(root / "h/alice"), "is a home directory itself")]
    settings = configure(root, location("m", "ROOT/*/deep"), HOME=f"{root}/g/deep/alice")
    assert refusals(territory(settings)) == [
        ("m", b(root / "g/deep"), f"contains the home directory {root}/g/deep/alice")
    ]


def test_a_home_behind_a_link_is_still_a_home(root: Path) -> None:
    make(root, ["disk/alice", "disk/bob"])
    (root / "home").symlink_to("disk")
    settings = configure(root, location("l", "ROOT/[d]isk/*"), HOME=f"{root}/home/alice")
    found = territory(settings)
    assert paths(found) == [("l", b(root / "disk/bob"))]
    assert refusals(found) == [("l", b(root / "disk/alice"), "is a home directory itself")]


def test_a_glob_does_not_take_system_directories(root: Path) -> None:
    found = territory(configure(root, location("l", "/va[r]", "/et[c]/s*", "/pro[c]/sys")))
    assert paths(found) == []
    reasons = {
        each.reason for each in found.refused if os.path.isdir(each.path) and not os.path.islink(each.path)
    }
    assert reasons <= {"is a system directory", "lies in a system directory"}
    assert b"/var" in {each.path for each in found.refused}


def test_a_link_does_not_lead_into_the_system(root: Path) -> None:
    (root / "l").symlink_to("/etc")
    found = territory(configure(root, location("l", "ROOT/l", more="follow_into = ['/*']")))
    assert refusals(found) == [("l", b(root / "l"), "is a system directory")]


def test_an_overlap_at_run_time_refuses_the_new_match_only(root: Path) -> None:
    make(root, ["x/cache", "z"])
    text = location("early", "ROOT/[az]") + location("late", "ROOT/?/cache")
    settings = configure(root, text)
    before = territory(settings)
    assert refusals(before) == []
    assert paths(before) == [("early", b(root / "z")), ("late", b(root / "x/cache"))]
    make(root, ["z/cache", "a/cache"])
    after = territory(settings, before)
    assert paths(after) == [
        ("early", b(root / "a")),
        ("early", b(root / "z")),
        ("late", b(root / "x/cache")),
    ]
    assert refusals(after) == [
        ("late", b(root / "a/cache"), f"lies inside {root}/a of location early"),
        ("late", b(root / "z/cache"), f"lies inside {root}/z of location early"),
    ]


def test_what_was_in_force_stays_though_the_new_match_is_configured_before_it(root: Path) -> None:
    make(root, ["q/cache/x"])
    settings = configure(root, location("outer", "ROOT/[pq]/cache") + location("inner", "ROOT/[pq]/cache/x"))
    make(root, ["p/cache/x"])
    everything = territory(settings)
    inner = Territory(locations=tuple(spec for spec in everything.locations if spec.name == "none"))
    assert [name for name, _ in paths(territory(settings, inner))] == ["outer", "outer"]
    only_inner = territory(configure(root, location("inner", "ROOT/[q]/cache/x")))
    assert paths(territory(settings, only_inner)) == [
        ("outer", b(root / "p/cache")),
        ("inner", b(root / "q/cache/x")),
    ]


def test_a_literal_path_goes_before_a_glob_that_also_matches_it(root: Path) -> None:
    make(root, ["h/alice/c", "h/bob/c"])
    found = territory(configure(root, location("all", "ROOT/h/*/c") + location("alice", "ROOT/h/alice/c")))
    assert paths(found) == [("all", b(root / "h/bob/c")), ("alice", b(root / "h/alice/c"))]
    assert refusals(found) == [
        ("all", b(root / "h/alice/c"), f"is the same as {root}/h/alice/c of location alice")
    ]


def test_two_patterns_of_one_location_may_match_the_same(root: Path) -> None:
    make(root, ["a1", "a2"])
    found = territory(configure(root, location("l", "ROOT/a*", "ROOT/a1")))
    assert paths(found) == [("l", b(root / "a1")), ("l", b(root / "a2"))]
    assert found.refused == ()


def test_the_services_own_directories_are_in_no_location(root: Path) -> None:
    make(root, ["x/state"])
    text = f"[daemon]\nstate_dir = '{root}/x/state'\n" + location("l", "ROOT/[x]")
    assert refusals(territory(configure(root, text))) == [
        ("l", b(root / "x"), f"contains the service's own directory {root}/x/state")
    ]


@pytest.mark.root
def test_a_directory_that_is_mounted_twice_is_one_location(root: Path, needs_root: None) -> None:
    make(root, ["a", "b"])
    settings = configure(root, location("l", "ROOT/[ab]"))
    subprocess.run(["mount", "--bind", root / "a", root / "b"], check=True)
    try:
        found = territory(settings)
    finally:
        subprocess.run(["umount", root / "b"], check=True)
    assert paths(found) == [("l", b(root / "a"))]
    assert refusals(found) == [
        ("l", b(root / "b"), f"is the same directory as {root}/a of location l, mounted twice")
    ]


@pytest.mark.root
def test_must_be_mount_makes_an_empty_mount_point_a_missing_path(root: Path, needs_root: None) -> None:
    """Otherwise a late mount would let the rules loose on what lies below it."""
    make(root, ["m"])
    settings = configure(root, location("l", "ROOT/m", more="must_be_mount = true"))
    assert [spec.path for spec in territory(settings).missing] == [b(root / "m")]
    subprocess.run(["mount", "-t", "tmpfs", "none", root / "m"], check=True)
    try:
        assert paths(territory(settings)) == [("l", b(root / "m"))]
    finally:
        subprocess.run(["umount", root / "m"], check=True)


@pytest.mark.root
def test_what_cannot_be_listed_is_refused_and_not_silently_empty(needs_root: None) -> None:
    """Acts as another user, because root can list everything; hence the directory of its own."""
    with tempfile.TemporaryDirectory(prefix="cachewarden-test-") as directory:
        root = Path(directory).resolve()
        root.chmod(0o755)
        make(root, ["h/alice/.acc"])
        settings = configure(root, location("acc", "ROOT/h/*/.acc") + location("l", "ROOT/h/alice/.acc/x"))
        (root / "h").chmod(0o711)
        (root / "h/alice").chmod(0o700)
        os.seteuid(65534)
        try:
            found = territory(settings)
        finally:
            os.seteuid(0)
        assert refusals(found) == [
            ("acc", b(root / "h/*/.acc"), "cannot be looked at: Permission denied"),
            ("l", b(root / "h/alice/.acc/x"), "cannot be looked at: Permission denied"),
        ]


def test_a_location_whose_filesystem_does_not_answer_keeps_what_it_had(root: Path) -> None:
    make(root, ["a/c", "b/c"])
    settings = configure(root, location("a", "ROOT/a/*") + location("b", "ROOT/b/*", "ROOT/late"))
    before = territory(settings)
    homes = home_directories(settings.home)
    answers = {"a": find_location(settings.locations[0], homes)}
    assert assemble(settings, answers, before) == before
    assert paths(assemble(settings, answers, None)) == [("a", b(root / "a/c"))]


def test_the_same_disk_gives_the_same_territory(root: Path) -> None:
    make(root, [f"h/{name}/c" for name in "zyxabc"])
    settings = configure(root, location("one", "ROOT/h/[a-y]/c") + location("two", "ROOT/h/*/c"))
    first = territory(settings)
    assert territory(settings) == first
    assert territory(settings, first) == first


def test_pools_are_handed_through(root: Path) -> None:
    text = location("l", "ROOT/x") + "[pools.p]\nlocations = ['l']\nmax_size = '1TiB'"
    (pool,) = territory(configure(root, text)).pools
    assert (pool.name, pool.locations, pool.limits.max_size) == ("p", ("l",), 1024**4)


def test_thousands_of_homes_are_found_in_little_time(root: Path) -> None:
    make(root, [f"h/{number}/c" for number in range(2000)])
    settings = configure(root, location("l", "ROOT/h/*/c") + location("m", "ROOT/h/*/d"))
    start = time.process_time()
    assert len(territory(settings).locations) == 2000
    assert time.process_time() - start < 5
