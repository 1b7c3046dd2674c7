"""Runs inside the booted machine: checks of the installed service, and their results in /report.json.

The report has for each check what went wrong, or "".
"""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

from tests.system.booted import (
    CACHE,
    CONFIG,
    CONFIGURATION,
    HANG,
    MIB,
    STALL,
    UNIT,
    carry_out,
    clean,
    drop_in,
    entries,
    log,
    make,
    pid,
    run,
    show,
    start,
    until,
    write,
)
from tests.system.booted_unit import CHECKS as OF_THE_UNIT


def it_is_ready_when_the_configuration_is_valid() -> None:
    start()
    found = show("ActiveState", "SubState", "StatusText", "NRestarts")
    assert found["ActiveState"] == "active", found
    assert "1 location" in found["StatusText"], found


def a_wrong_configuration_is_refused_and_not_tried_again() -> None:
    write(CONFIG, CONFIGURATION.replace("4MiB", "4Mib"))
    assert run("systemctl", "start", UNIT, check=False).returncode != 0
    time.sleep(6)  # RestartSec is 5
    found = show("ActiveState", "NRestarts", "Result")
    assert found["ActiveState"] == "failed", found
    assert found["NRestarts"] == "0", found
    assert "config.toml:6" in log(), log()


def it_evicts_what_nobody_uses_and_spares_what_is_in_use() -> None:
    start()
    for number in range(3):
        make(f"idle{number}", days=9 - number)
    make("used", days=20)
    with open(f"{CACHE}/used/0", "rb"):
        make("more", size=2 * MIB, days=1)
        until(lambda: "idle0" not in entries() and "idle1" not in entries())
        time.sleep(1)
        assert "used" in entries()
    found = json.loads(run("cachewarden", "status", "--json").stdout)["locations"][0]
    assert found["recency_source"] == "opens", found
    assert found["inuse_complete"] is True, found


def what_it_says_is_in_the_journal_with_its_fields() -> None:
    start()
    make("a", size=3 * MIB, days=3)
    make("b", size=3 * MIB, days=1)
    until(lambda: "a" not in entries())
    until(lambda: "evicted" in log())
    lines = run("journalctl", "-u", UNIT, "-o", "json", "--no-pager").stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    (row,) = [row for row in rows if row.get("CACHEWARDEN_EVENT") == "evicted"][-1:]
    assert (row["CACHEWARDEN_LOCATION"], row["CACHEWARDEN_ENTRY"]) == ("cache", "a"), row
    assert (row["PRIORITY"], row["SYSLOG_IDENTIFIER"]) == ("6", "cachewarden"), row
    assert row["MESSAGE"].startswith("evicted location=cache"), row


def no_name_of_a_file_makes_lines_or_fields_in_the_journal() -> None:
    start()
    name = "a\nPRIORITY=0\nMESSAGE=forged\x1b[2J\u2028\u202e\udcff"
    make(name, size=3 * MIB, days=3)
    make("b", size=3 * MIB, days=1)
    until(lambda: entries() == {"b"})
    until(lambda: "evicted" in log())
    lines = run("journalctl", "-u", UNIT, "-o", "json", "--no-pager").stdout.splitlines()
    (row,) = [row for row in map(json.loads, lines) if row.get("CACHEWARDEN_EVENT") == "evicted"][-1:]
    assert row["PRIORITY"] == "6", row
    assert row["CACHEWARDEN_ENTRY"] == r"a\nPRIORITY=0\nMESSAGE=forged\x1b[2J\xe2\x80\xa8\xe2\x80\xae\xff", (
        row
    )
    assert row["CACHEWARDEN_ENTRY"] in row["MESSAGE"].replace(r"\\", "\\"), row
    assert row["MESSAGE"].isprintable()
    assert not any(json.loads(line).get("MESSAGE") == "forged" for line in lines)


def a_good_reload_is_taken_up_and_a_broken_one_is_not() -> None:
    start()
    before = pid()
    make("a", size=3 * MIB)
    write(CONFIG, CONFIGURATION.replace("4MiB", "4Mib"))
    run("systemctl", "reload", UNIT)
    until(lambda: "the old one stays in force" in log())
    until(lambda: "the one before is in force" in show("StatusText")["StatusText"])
    told = run("cachewarden", "status", check=False)
    assert told.returncode == 2, told
    assert told.stderr.endswith("the service runs on under the configuration that it read before\n"), told
    make("b", size=3 * MIB, days=1)
    until(lambda: "a" not in entries())  # by the old limit of 4 MiB
    write(CONFIG, CONFIGURATION.replace("4MiB", "40MiB").replace("3MiB", "30MiB"))
    run("systemctl", "reload", UNIT)
    until(lambda: "configuration read again" in log())
    until(lambda: show("StatusText")["StatusText"] == "1 location")
    make("c", size=9 * MIB)
    time.sleep(2)
    assert {"b", "c"} <= entries(), entries()
    assert pid() == before
    assert show("NRestarts")["NRestarts"] == "0"


def a_crash_in_the_middle_is_made_good_by_the_restart() -> None:
    drop_in("RestartSec=1")
    for number in range(6):
        make(f"e{number}", files=400, size=10_000)
    start()
    until(lambda: len(entries()) < 6, 60)
    os.kill(pid(), signal.SIGKILL)
    until(lambda: int(show("NRestarts")["NRestarts"]) == 1 and show("SubState")["SubState"] == "running")
    until(lambda: len(entries()) <= 1, 60)
    for name in entries():
        assert len(os.listdir(f"{CACHE}/{name}")) == 400, name
    assert run("cachewarden", "trash", "list").stdout.count(CACHE) == 0


def it_leaves_within_ten_seconds_in_the_middle_of_an_eviction() -> None:
    for number in range(8):
        make(f"e{number}", files=400, size=10_000)
    start()
    until(lambda: len(entries()) < 8, 60)
    began = time.monotonic()
    run("systemctl", "stop", UNIT)
    assert time.monotonic() - began < 10
    assert show("Result")["Result"] == "success"
    for name in entries():
        assert len(os.listdir(f"{CACHE}/{name}")) == 400, name


def it_is_ready_and_feeds_the_watchdog_while_the_first_scan_of_a_filesystem_hangs() -> None:
    hung = "/srv/hung"
    os.makedirs(hung, exist_ok=True)
    with subprocess.Popen([sys.executable, "-c", HANG, hung], stdout=subprocess.PIPE, text=True) as fuse:
        try:
            assert fuse.stdout is not None
            assert fuse.stdout.readline() == "mounted\n"
            write(CONFIG, CONFIGURATION + f'[locations.hung]\npath = "{hung}"\npolicy = "small"\n')
            drop_in("WatchdogSec=4", "TimeoutStartSec=30")
            start()
            for name in ("a", "b"):
                make(name, size=3 * MIB)
            until(lambda: len(entries()) < 2)
            time.sleep(10)  # more than twice the watchdog's time
            found = show("ActiveState", "NRestarts")
            assert found == {"ActiveState": "active", "NRestarts": "0"}, found
            began = time.monotonic()
            run("systemctl", "stop", UNIT)
            assert time.monotonic() - began < 20
        finally:
            fuse.kill()
            run("umount", "--lazy", hung, check=False)


def it_is_ready_and_feeds_the_watchdog_while_the_first_scan_takes_longer_than_the_start_may() -> None:
    for name in ("one", "other"):
        make(name, files=120, size=10)
    make("old", size=5 * MIB)
    # Each look at a file of the two takes 80 ms: 20 s for all, in a kernel that is not slow elsewhere.
    slow = f"/usr/bin/strace -D -f --seccomp-bpf -qqq -o /dev/null -P {CACHE}/one -P {CACHE}/other"
    command = f"{slow} -e inject=statx:delay_enter=80000 /usr/local/bin/cachewarden run"
    drop_in("WatchdogSec=4", "TimeoutStartSec=15", "SystemCallFilter=", "ExecStart=", f"ExecStart={command}")
    start()
    began = time.monotonic()
    assert "old" in entries()
    until(lambda: "old" not in entries(), 90)
    assert time.monotonic() - began > 15, "the scan was not slow, so that this shows nothing"
    assert show("ActiveState", "NRestarts") == {"ActiveState": "active", "NRestarts": "0"}


def a_main_loop_that_stalls_is_restarted_though_all_other_threads_run() -> None:
    drop_in("WatchdogSec=8", "RestartSec=1", "TimeoutAbortSec=2")
    start()
    before = pid()
    with subprocess.Popen(
        [sys.executable, "-c", STALL, str(before)], stdout=subprocess.PIPE, text=True
    ) as tracer:
        try:
            assert tracer.stdout is not None
            assert tracer.stdout.readline() == "stalled\n"
            with urllib.request.urlopen("http://127.0.0.1:9843/metrics", timeout=3) as page:
                assert b"cachewarden_build_info" in page.read()  # the HTTP side turns, and must not ping
            assert pid() == before
            until(lambda: int(show("NRestarts")["NRestarts"]) == 1 and pid() not in (0, before), 40)
            assert "Watchdog timeout" in run("journalctl", "-u", UNIT, "--no-pager").stdout
        finally:
            tracer.kill()
    until(lambda: show("ActiveState")["ActiveState"] == "active")


def a_service_that_is_stopped_whole_is_restarted() -> None:
    drop_in("WatchdogSec=4", "RestartSec=1", "TimeoutAbortSec=2")
    start()
    before = pid()
    os.kill(before, signal.SIGSTOP)
    until(lambda: int(show("NRestarts")["NRestarts"]) == 1 and pid() not in (0, before), 40)


def what_was_opened_while_it_was_away_is_known_after_a_restart() -> None:
    """The kernel's queue waits in the service manager's descriptor store."""
    write(CONFIG, CONFIGURATION.replace('max_size = "4MiB"\ntarget_size = "3MiB"', 'max_idle = "1d"'))
    make("served", days=9)
    make("idle", days=9)
    write(CONFIG, CONFIGURATION.replace("4MiB", "1GiB"))
    start()
    until(lambda: json.loads(run("cachewarden", "status", "--json").stdout)["locations"][0]["last_pass"])
    time.sleep(3)  # the queues are handed to the manager in the main loop's next turn
    drop_in("RestartSec=3", "ExecStartPre=/bin/sleep 3")
    code = "import sys, time; open(sys.argv[1]).close(); print('read', flush=True); time.sleep(600)"
    os.kill(pid(), signal.SIGKILL)
    with subprocess.Popen(
        [sys.executable, "-c", code, f"{CACHE}/served/0"], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "read\n"  # and closed, while nobody of ours runs
            write(CONFIG, CONFIGURATION.replace('max_size = "4MiB"\ntarget_size = "3MiB"', 'max_idle = "1d"'))
            until(lambda: "idle" not in entries(), 60)
            assert "served" in entries()
        finally:
            server.kill()


CHECKS = (
    it_is_ready_when_the_configuration_is_valid,
    a_wrong_configuration_is_refused_and_not_tried_again,
    it_evicts_what_nobody_uses_and_spares_what_is_in_use,
    what_it_says_is_in_the_journal_with_its_fields,
    no_name_of_a_file_makes_lines_or_fields_in_the_journal,
    a_good_reload_is_taken_up_and_a_broken_one_is_not,
    a_crash_in_the_middle_is_made_good_by_the_restart,
    it_leaves_within_ten_seconds_in_the_middle_of_an_eviction,
    it_is_ready_and_feeds_the_watchdog_while_the_first_scan_of_a_filesystem_hangs,
    it_is_ready_and_feeds_the_watchdog_while_the_first_scan_takes_longer_than_the_start_may,
    a_main_loop_that_stalls_is_restarted_though_all_other_threads_run,
    a_service_that_is_stopped_whole_is_restarted,
    what_was_opened_while_it_was_away_is_known_after_a_restart,
    *OF_THE_UNIT,
)


def main() -> None:
    wanted = sys.argv[1:]  # some of them by name, for whoever mends one
    carry_out([check for check in CHECKS if not wanted or check.__name__ in wanted], before=clean)


if __name__ == "__main__":
    main()
