"""Runs inside the booted machine, without network: the Debian package comes, works and goes.

    python3 -m tests.system.deb_checks PACKAGE

Each check goes on where the one before it ended. /report.json has for each what went wrong, or "".
"""

import json
import os
import sys
from pathlib import Path

from tests.system.booted import (
    CACHE,
    CONFIG,
    CONFIGURATION,
    UNIT,
    carry_out,
    clean,
    drop_in,
    entries,
    log,
    make,
    person,
    pid,
    run,
    show,
    start,
    until,
    users_pid,
    write,
)

PACKAGE = sys.argv[1] if len(sys.argv) > 1 else ""
PYTHON = "/usr/lib/cachewarden/bin/python3"
PLANT = """
import os, sys
from cachewarden.evict.naming import PieceName, location_id
cache, entry, state = (os.fsencode(each) for each in sys.argv[1:])
os.makedirs(cache + b"/.cachewarden-trash", mode=0o700, exist_ok=True)
name = PieceName(state, location_id(cache), entry.hex().encode(), 0, entry).encode()
os.rename(cache + b"/" + entry, cache + b"/.cachewarden-trash/" + name)
"""
# Where packages put and leave things. Not all of /var/lib: other services of the machine write there, too.
PLACES = ("/etc", "/usr", "/opt", "/root", "/var/lib/systemd/deb-systemd-helper-enabled")

OLDER = "/older.deb"
GONE = "/usr/lib/cachewarden/of-an-older-version"

before: set[str] = set()
as_user: list[str] = []


def files() -> set[str]:
    """Every path that a package could have left."""
    found = {os.path.join("/var/lib", name) for name in os.listdir("/var/lib")}
    for place in PLACES:
        for at, directories, names in os.walk(place):
            found.update(os.path.join(at, each) for each in (*directories, *names))
    return found


def nothing_is_left() -> None:
    left = files() - before
    assert not left, sorted(left)[:20]


def is_in(active: str, enabled: str) -> None:
    """Assert the states of the service."""
    found = show("ActiveState", "UnitFileState")
    assert found == {"ActiveState": active, "UnitFileState": enabled}, f"{found}\n{log()[-3000:]}"


def install(package: str = PACKAGE) -> None:
    """As apt does: nobody to ask."""
    run("dpkg", "--force-confdef", "--force-confold", "-i", package)


def version() -> str:
    return run("dpkg-query", "-W", "-f", "${Version}", "cachewarden").stdout


def older() -> str:
    """The package as an earlier version: another configuration, and a file that is no more."""
    if not os.path.exists(OLDER):
        run("dpkg-deb", "-R", PACKAGE, "/older")
        control = Path("/older/DEBIAN/control")
        text = control.read_text(encoding="utf-8")
        (line,) = [each for each in text.splitlines() if each.startswith("Version: ")]
        control.write_text(text.replace(line, f"{line}~older"), encoding="utf-8")
        with open(f"/older{CONFIG}", "a", encoding="utf-8") as file:
            file.write("# Once there was this line.\n")
        write(f"/older{GONE}", "")
        run("dpkg-deb", "-Zgzip", "-z1", "-b", "/older", OLDER)
        run("rm", "-r", "/older")
    return OLDER


def a_wrong_configuration_that_was_there_before_stays_and_nothing_is_started() -> None:
    as_user.extend(person("person", "/home/person"))
    before.update(files())
    wrong = CONFIGURATION.replace("4MiB", "4Mib")
    write(CONFIG, wrong)
    install()
    is_in("inactive", "disabled")
    assert Path(CONFIG).read_text(encoding="utf-8") == wrong
    write(CONFIG, CONFIGURATION)  # mended, and enabled as the package said
    run("systemctl", "enable", "--now", UNIT)
    is_in("active", "enabled")
    run("dpkg", "--purge", "cachewarden")
    nothing_is_left()


def an_upgrade_renews_a_configuration_that_nobody_edited() -> None:
    install(older())
    assert "Once" in Path(CONFIG).read_text(encoding="utf-8")
    install()
    example = Path("/usr/share/doc/cachewarden/examples/config.toml").read_text(encoding="utf-8")
    assert Path(CONFIG).read_text(encoding="utf-8") == example
    run("dpkg", "--purge", "cachewarden")
    nothing_is_left()


def it_installs_without_network_and_starts() -> None:
    install(older())
    is_in("active", "enabled")
    assert run("cachewarden", "--version").stdout.strip()
    assert json.loads(run("cachewarden", "status", "--json").stdout)["locations"] == []
    assert run("systemctl", "--global", "is-enabled", UNIT, check=False).stdout.strip() == "disabled"


def what_goes_beside_the_command_is_found() -> None:
    for page in ("cachewarden", "cachewarden.toml"):
        assert run("man", "-w", page).stdout.startswith("/usr/share/man/"), page
    said = run(
        "bash",
        "-c",
        "source /usr/share/bash-completion/completions/cachewarden; COMP_WORDS=(cachewarden tra); "
        "COMP_CWORD=1; _cachewarden_completion cachewarden; echo ${COMPREPLY[*]}",
    ).stdout
    assert said == "trash\n", said
    zsh = Path("/usr/share/zsh/vendor-completions/_cachewarden").read_text(encoding="utf-8")
    assert zsh.startswith("#compdef cachewarden\n"), zsh
    share = Path("/usr/share/cachewarden")
    assert json.loads((share / "config.schema.json").read_text(encoding="utf-8"))["properties"]
    assert {each.name for each in (share / "dashboards").iterdir()} >= {"fleet.json", "location.json"}
    assert "alert:" in (share / "prometheus/alerts.yml").read_text(encoding="utf-8")


def it_evicts_and_its_helpers_find_the_code() -> None:
    write(CONFIG, CONFIGURATION)
    run("systemctl", "reload", UNIT)
    make("old", size=3 << 20, days=9)
    make("new", size=3 << 20, days=1)
    until(lambda: entries() == {"new"}, 60)
    said = run("cachewarden", "doctor", check=False).stdout
    assert "in a mount namespace of its own are seen" in " ".join(said.split()), said


def a_user_starts_one_too() -> None:
    write("/home/person/.config/cachewarden/config.toml", "[daemon]\n")
    run("chown", "-R", "person", "/home/person")
    run(*as_user, "systemctl", "--user", "start", UNIT)
    assert users_pid(as_user) > 0


def an_upgrade_restarts_it_also_for_users_and_keeps_edits_and_what_the_kernel_kept() -> None:
    first, kept = pid(), int(show("NFileDescriptorStore")["NFileDescriptorStore"])
    users, was = users_pid(as_user), version()
    assert kept > 0
    assert os.path.exists(GONE)
    install()
    assert version() == was.removesuffix("~older") != was
    assert not os.path.exists(GONE)
    is_in("active", "enabled")
    assert pid() != first
    assert users_pid(as_user) != users
    assert int(show("NFileDescriptorStore")["NFileDescriptorStore"]) == kept
    # What the store gave back is announced, sd_listen_fds(3); a stop would have emptied it.
    assert f"LISTEN_FDS={kept}\0".encode() in Path(f"/proc/{pid()}/environ").read_bytes()
    assert Path(CONFIG).read_text(encoding="utf-8") == CONFIGURATION


def nothing_is_evicted_where_the_unit_hides_home_directories() -> None:
    os.makedirs("/home/cache")
    beside = '[locations.homes]\npath = "/home/cache"\npolicy = "small"\n'
    for line in ("ProtectHome=yes", "ProtectHome=tmpfs"):
        clean(CONFIGURATION + beside)
        drop_in(line)
        start()
        make("a", size=3 << 20, days=3)
        make("b", size=3 << 20, days=1)
        why = "/home/cache is hidden from the service"
        until(lambda: "nothing is evicted" in show("StatusText")["StatusText"])
        assert why in show("StatusText")["StatusText"], show("StatusText")
        assert f"Nothing is evicted: {why}" in run("cachewarden", "status").stdout
        until(lambda: "not_enforced" in log())  # a pass saw that both are over the limit
        assert entries() == {"a", "b"}, line
    clean(CONFIGURATION)
    os.rmdir("/home/cache")
    start()
    make("new", size=3 << 20, days=1)


def an_upgrade_leaves_stopped_what_was_stopped_and_disabled_what_was_disabled() -> None:
    run("systemctl", "disable", "--now", UNIT)
    install()
    is_in("inactive", "disabled")
    run("systemctl", "enable", "--now", UNIT)


def removing_it_puts_back_what_is_whole_and_empties_the_rest_of_the_trash() -> None:
    run("systemctl", "stop", UNIT)
    make("whole", days=0)
    make("torn", days=0)
    for entry, state in (("whole", "m"), ("torn", "p")):
        run(PYTHON, "-I", "-c", PLANT, CACHE, entry, state)
    assert entries() == {"new"}
    assert users_pid(as_user) > 0
    run("dpkg", "--remove", "cachewarden")
    # His manager forgets a unit some time after it ended, and looks for its file then.
    ask = (*as_user, "systemctl", "--user", "show", UNIT, "-pMainPID", "-pLoadState")
    until(lambda: run(*ask).stdout.split() == ["MainPID=0", "LoadState=not-found"])
    assert entries() == {"new", "whole"}, os.listdir(CACHE)
    assert not os.path.exists(f"{CACHE}/.cachewarden-trash")
    assert os.path.exists(CONFIG)
    assert os.path.exists("/var/lib/cachewarden/ledger.sqlite"), os.listdir("/var/lib/cachewarden")
    assert not os.path.exists("/usr/lib/cachewarden")
    assert show("LoadState")["LoadState"] == "not-found"


def purging_it_leaves_nothing_but_the_caches() -> None:
    run("dpkg", "--purge", "cachewarden")
    nothing_is_left()
    assert not os.path.exists("/run/cachewarden")
    assert entries() == {"new", "whole"}


CHECKS = (
    a_wrong_configuration_that_was_there_before_stays_and_nothing_is_started,
    an_upgrade_renews_a_configuration_that_nobody_edited,
    it_installs_without_network_and_starts,
    what_goes_beside_the_command_is_found,
    it_evicts_and_its_helpers_find_the_code,
    a_user_starts_one_too,
    an_upgrade_restarts_it_also_for_users_and_keeps_edits_and_what_the_kernel_kept,
    nothing_is_evicted_where_the_unit_hides_home_directories,
    an_upgrade_leaves_stopped_what_was_stopped_and_disabled_what_was_disabled,
    removing_it_puts_back_what_is_whole_and_empties_the_rest_of_the_trash,
    purging_it_leaves_nothing_but_the_caches,
)


def main() -> None:
    carry_out(CHECKS)


if __name__ == "__main__":
    main()
