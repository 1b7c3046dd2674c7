"""Checks inside the booted machine of what surrounds the service: its unit, its users, its installation."""

import os
import sys
import time

from tests.system.booted import (
    CACHE,
    CONFIG,
    CONFIGURATION,
    MAKE,
    MIB,
    UNIT,
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


def nothing_is_evicted_when_the_unit_blinds_it() -> None:
    os.makedirs("/home/cache", exist_ok=True)
    write(CONFIG, CONFIGURATION + '[locations.homes]\npath = "/home/cache"\npolicy = "small"\n')
    for line, why in (
        ("TemporaryFileSystem=/home", "/home/cache is hidden from the service"),
        ("InaccessiblePaths=/home/cache", "/home/cache is hidden from the service"),
        ("PrivateTmp=yes", ""),  # no location lies there: it hides nothing of ours
        ("CapabilityBoundingSet=~CAP_LEASE", "the service lacks CAP_LEASE"),
        ("PrivateUsers=yes", "the service"),
    ):
        drop_in(line)
        start()
        make("a", size=3 * MIB, days=3)
        make("b", size=3 * MIB, days=1)
        if why:
            until(lambda: "nothing is evicted" in show("StatusText")["StatusText"])
            assert why in show("StatusText")["StatusText"], show("StatusText")
            assert f"Nothing is evicted: {why}" in run("cachewarden", "status").stdout
            time.sleep(3)
            assert entries() == {"a", "b"}, line
        else:
            until(lambda: "a" not in entries())
        run("systemctl", "stop", UNIT)
        for name in entries():
            run("rm", "-r", f"{CACHE}/{name}")


def a_location_that_the_unit_makes_read_only_loses_nothing_and_says_so_once() -> None:
    write(CONFIG, CONFIGURATION.replace('interval = "1h"', 'interval = "1s"'))
    drop_in(f"ReadOnlyPaths={CACHE}")
    for name in ("a", "b"):
        make(name, size=3 * MIB)
    before = len(log())
    start()
    until(lambda: "pass ended" in log()[before:])
    time.sleep(5)  # several passes
    said = log()[before:]
    assert said.count("errno=EROFS") == 2, said
    assert said.count("pass ended") == 1, said
    assert entries() == {"a", "b"}


def a_user_runs_it_without_root() -> None:
    home = "/home/person"
    as_user = person("person", home)
    own = CONFIGURATION.replace("/srv/cache", "~/.accelerate")
    write(f"{home}/.config/cachewarden/config.toml", own)
    os.makedirs(f"{home}/.accelerate")
    # Not on the overlay: whether a file there is in use, an ordinary user cannot find out.
    run("mount", "-t", "tmpfs", "-o", "size=64M,mode=755", "none", f"{home}/.accelerate")
    run("chown", "-R", "person", home)
    run(*as_user, "systemctl", "--user", "start", UNIT)
    for number in range(3):
        run(
            *as_user,
            "python3",
            "-c",
            MAKE,
            f"{home}/.accelerate/e{number}",
            "1",
            str(2 * MIB),
            str(9 - number),
        )
    until(lambda: "e0" not in os.listdir(f"{home}/.accelerate"))
    assert users_pid(as_user) > 0
    run(*as_user, "systemctl", "--user", "stop", UNIT)


def installing_it_again_restarts_it_also_for_users() -> None:
    as_user = person("other", "/home/other")
    write("/home/other/.config/cachewarden/config.toml", "[daemon]\n")
    run("chown", "-R", "other", "/home/other")
    run(*as_user, "systemctl", "--user", "start", UNIT)
    start()
    run("systemctl", "disable", UNIT)
    before, users = pid(), users_pid(as_user)
    # No network: what builds is in the environment already.
    run(
        "env",
        "PIP_NO_BUILD_ISOLATION=0",
        "PIP_NO_INDEX=1",
        "make",
        "-C",
        "/src",
        "install",
        f"PYTHON={os.path.realpath(sys.executable)}",
    )
    assert pid() not in (0, before)
    assert users_pid(as_user) != users
    found = show("ActiveState", "UnitFileState")
    assert found == {"ActiveState": "active", "UnitFileState": "disabled"}, "it stays as it was"
    run(*as_user, "systemctl", "--user", "stop", UNIT)


def it_is_hardened() -> None:
    said = run("systemd-analyze", "security", "--no-pager", UNIT, check=False).stdout
    score = float(said.rsplit("Overall exposure level for", 1)[1].split(":")[1].split()[0])
    assert score < 5.0, said


CHECKS = (
    nothing_is_evicted_when_the_unit_blinds_it,
    a_location_that_the_unit_makes_read_only_loses_nothing_and_says_so_once,
    a_user_runs_it_without_root,
    installing_it_again_restarts_it_also_for_users,
    it_is_hardened,
)
