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
    entries,
    log,
    make,
    pid,
    run,
    show,
    until,
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

before: set[str] = set()


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


def install() -> None:
    """As apt does: nobody to ask."""
    run("dpkg", "--force-confold", "-i", PACKAGE)


def a_wrong_configuration_that_was_there_before_stays_and_nothing_is_started() -> None:
    before.update(files())
    wrong = CONFIGURATION.replace("4MiB", "4Mib")
    write(CONFIG, wrong)
    install()
    is_in("inactive", "disabled")
    assert Path(CONFIG).read_text(encoding="utf-8") == wrong
    run("dpkg", "--purge", "cachewarden")
    nothing_is_left()


def it_installs_without_network_and_starts() -> None:
    install()
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


def an_upgrade_restarts_it_and_keeps_what_the_kernel_kept() -> None:
    first, kept = pid(), int(show("NFileDescriptorStore")["NFileDescriptorStore"])
    assert kept > 0
    install()
    is_in("active", "enabled")
    assert pid() != first
    assert int(show("NFileDescriptorStore")["NFileDescriptorStore"]) == kept
    # What the store gave back is announced, sd_listen_fds(3); a stop would have emptied it.
    assert f"LISTEN_FDS={kept}\0".encode() in Path(f"/proc/{pid()}/environ").read_bytes()
    assert Path(CONFIG).read_text(encoding="utf-8") == CONFIGURATION


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
    run("dpkg", "--remove", "cachewarden")
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
    it_installs_without_network_and_starts,
    what_goes_beside_the_command_is_found,
    it_evicts_and_its_helpers_find_the_code,
    an_upgrade_restarts_it_and_keeps_what_the_kernel_kept,
    an_upgrade_leaves_stopped_what_was_stopped_and_disabled_what_was_disabled,
    removing_it_puts_back_what_is_whole_and_empties_the_rest_of_the_trash,
    purging_it_leaves_nothing_but_the_caches,
)


def main() -> None:
    carry_out(CHECKS)


if __name__ == "__main__":
    main()
