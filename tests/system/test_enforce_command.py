"""`cachewarden enforce`: what only reported so far begins to act, by one key in one file."""

import os
import pty
import re
import socket
import subprocess
from pathlib import Path

import pytest
from tests.system.command import PROGRAM, Run, Warden, environment, free_port, running
from tests.system.report_only import left, over_its_limit, text
from tests.system.trees import age, fill, wait_until
from tests.system.users import User, ground

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"


@pytest.fixture
def warden(warden, root) -> Warden:
    """Report only, over its limit."""
    return over_its_limit(warden, root)


def asked(warden: Warden, answer: str, *arguments: str) -> Run:
    """The command at a terminal at which somebody answers."""
    main, side = pty.openpty()
    try:
        with subprocess.Popen(
            [PROGRAM, "--config", warden.file, *arguments],
            stdin=side,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        ) as child:
            os.write(main, answer.encode())
            out, err = child.communicate(timeout=60)
        return Run(child.returncode, out, err)
    finally:
        os.close(main)
        os.close(side)


def test_a_plan_of_what_only_reports_says_what_would_go_if_it_did_not(warden):
    """And that nothing goes; a location that is enforced has nothing to say of that."""
    foreseen = warden("plan", "--json").only
    assert (foreseen["would_evict"], foreseen["blocked_bytes"]) == ([], {"not_enforced": 2 * 2**20})
    then = foreseen["would_evict_if_enforced"]
    assert [each["entry"] for each in then] == ["e0", "e1"]
    told = warden("plan").out
    assert "If it were enforced, would go: 2 entries, 2 MiB" in told
    assert told.rstrip().endswith("Nothing would go.")
    warden.location("cache", warden.locations["cache"]["path"])
    enforced = warden.plan().only
    assert enforced["would_evict"] == then
    assert enforced["would_evict_if_enforced"] is None


def test_what_would_go_is_shown_and_after_a_yes_the_next_pass_takes_it(warden, root):
    before = text(warden)
    assert warden("once", "--json").kept == {"e0": "not_enforced", "e1": "not_enforced"}
    run = asked(warden, "y\n", "enforce", "cache")
    assert run.status == 0, run.err
    assert "Would go: 2 entries, 2 MiB off the location" in run.out
    assert re.search(r"1 +e0 +1 MiB .* the location is over max_size", run.out)
    assert "Would stay: 4 entries, 4 MiB in sum" in run.out
    line = before.splitlines().index("enforce = false") + 1
    assert f"changed {warden.file}:{line}: locations.cache.enforce = true (was false)" in run.out
    assert "No service is running" in run.out
    assert "Turn on cache? [y/N]" in run.err
    assert text(warden) == before.replace("enforce = false", "enforce = true")
    assert left(root) == [f"e{number}" for number in range(6)]
    assert warden("once", "--json").evicted == ["e0", "e1"]


@pytest.mark.parametrize("answer", ["n\n", "\n", "\x04"])
def test_any_other_answer_changes_nothing(warden, answer):
    before = text(warden)
    run = asked(warden, answer, "enforce", "cache")
    assert run.status == 1
    assert "Would go" in run.out
    assert text(warden) == before


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_where_nobody_can_be_asked_a_yes_is_needed(warden, more):
    before = text(warden)
    run = warden("enforce", "cache", *more)
    assert run.status == 2
    assert "nothing was changed" in run.err
    assert "--yes" in run.err
    assert text(warden) == before


def test_only_the_first_entries_are_named_and_all_are_counted(warden, root):
    for number in range(20):
        fill(f"{root}/o{number:02}/f", 0.1)
        age(f"{root}/o{number:02}", 90 - number)
    run = warden("enforce", "cache", "--yes")
    assert re.search(r"Would go: \d+ entries", run.out)
    assert re.search(r"\n    5 +o04 ", run.out)
    assert "o05" not in run.out.partition("Would stay")[0]
    assert re.search(r"\n    and \d+ entries more\n", run.out)


def test_a_running_service_takes_it_up_evicts_and_goes_back_to_reporting(warden, root):
    with warden.service() as service:
        wait_until(lambda: service.passes() >= 1)
        assert len(left(root)) == 6
        run = warden("enforce", "cache", "--yes")
        assert run.status == 0, run.err
        assert f"The service (pid {service.child.pid}) has read it: cache: enforced from now on." in run.out
        wait_until(lambda: left(root) == ["e2", "e3", "e4", "e5"])
        run = warden("enforce", "--off", "--all")
        assert run.status == 0, run.err
        assert "cache: report only from now on." in run.out
        assert warden("status", "--json").only["enforcing"] is False
        assert warden("enforce", "--off", "cache").out == "cache: report only already; nothing was changed\n"


def test_what_holds_back_all_is_named_with_its_line_and_a_way_out(warden, root, tmp_path):
    warden.daemon["enforce"] = False
    warden.location("more", str(tmp_path / "more"))
    warden.write()
    before = text(warden)
    run = warden("enforce", "cache", "--yes")
    assert run.status == 2
    line = before.splitlines().index("enforce = false") + 1
    assert f"{warden.file}:{line}: daemon.enforce = false: holds back every location" in run.err
    assert "would also turn on: more" in run.err
    assert text(warden) == before
    assert warden("enforce", "--all", "--yes").status == 0
    assert "false" not in text(warden)
    assert warden("once", "--location", "cache", "--json").evicted == ["e0", "e1"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("enforce",), "name the locations, or say --all"),
        (("enforce", "cache", "--all"), "not both"),
        (("enforce", "cahce", "--yes"), "did you mean cache?"),
    ],
)
def test_what_cannot_be_meant_is_said(warden, arguments, said):
    run = warden(*arguments)
    assert (run.status, run.out) == (2, "")
    assert said in run.err


def test_pauses_and_max_share_are_named_beforehand(warden):
    warden.policy["max_share"] = "20%"
    warden.write()
    assert warden("pause", "cache").status == 0
    run = warden("enforce", "cache", "--yes")
    assert "Held back: cache is paused" in run.out
    assert "cachewarden resume" in run.out
    assert warden("resume").status == 0
    assert warden("enforce", "--off", "cache").status == 0
    run = warden("enforce", "cache", "--yes")
    assert "More would have to go than max_share allows in one pass" in run.out
    assert "cachewarden confirm cache" in run.out
    assert warden("once", "--json").evicted == ["e0"]


def test_a_service_that_cannot_take_it_up_is_a_status_of_1(warden):
    with warden.service() as service, socket.socket() as taken:
        wait_until(lambda: service.passes() >= 1)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        warden.daemon["http"] = f"127.0.0.1:{taken.getsockname()[1]}"
        warden.write()
        run = warden("enforce", "cache", "--yes", "--json")
        assert run.status == 1
        assert run.json["service"]["reload"].startswith("failed: ")
        assert run.json["service"]["in_force"] is False
        run = warden("enforce", "--off", "cache")
        assert run.status == 1
        assert "could not take it up: failed: " in run.out


def test_a_service_that_reads_something_else_is_found_out(warden, root):
    port = free_port()
    warden.daemon["http"] = f"127.0.0.1:{port}"
    warden.write()
    command = ["env", "CACHEWARDEN_LOCATIONS__CACHE__ENFORCE=false", PROGRAM, "--config", warden.file]
    with running(command, port, f"{warden.base}/log") as service:
        wait_until(lambda: service.passes() >= 1)
        run = warden("enforce", "cache", "--yes")
    assert run.status == 1
    assert "does not see it so for cache: it reads other files, or has other variables" in run.out
    assert len(left(root)) == 6


def test_a_service_that_has_no_such_location_is_found_out(warden):
    """What `discover` proposed is turned on in a file that the service does not read."""
    proposed = Path(f"{warden.file}.proposed")
    proposed.write_text(text(warden).replace("[locations.cache]", "[locations.found]"))
    with warden.service():
        for more in ("--yes", "--off"):
            done = subprocess.run(
                [PROGRAM, "--config", proposed, "enforce", "found", more],
                capture_output=True,
                text=True,
                env=environment(),
                check=False,
            )
            assert done.returncode == 1
            assert "does not see it so for found: it reads other files" in done.stdout


def test_a_service_that_may_not_be_told_is_found_out(needs_root):
    """Somebody else's, under the same runtime directory."""
    with ground() as base:
        user = User(50001)
        warden = over_its_limit(Warden(f"{base}/warden"), f"{base}/root")
        warden.location("cache", f"{base}/root")
        with warden.service() as service:
            os.chown(warden.base, user.uid, user.uid)
            os.chown(warden.file, user.uid, user.uid)
            done = user.command("--config", warden.file, "enforce", "--off", "cache")
        assert done.returncode == 1
        assert (
            f"The service (pid {service.child.pid}) could not take it up: failed: it cannot be told"
            in done.stdout
        )
        assert "enforce = false" in text(warden)


def test_programs_get_one_document_whose_fields_are_documented(warden, root):
    run = warden("enforce", "cache", "--yes", "--json")
    assert run.status == 0, run.err
    found = run.json
    assert (found["version"], found["enforce"], found["locations"]) == (1, True, ["cache"])
    (change,) = found["changes"]
    assert (change["key"], change["before"], change["value"]) == ("locations.cache.enforce", "false", True)
    (planned,) = found["plan"]["locations"]
    assert [each["entry"] for each in planned["would_evict"]] == ["e0", "e1"]
    assert (found["service"], found["held_back"]) == (None, [])
    section = PAGE.read_text().partition("\n## enforce\n")[2].partition("\n## ")[0]
    warden.location("cache", root, enforce=True)
    with warden.service():
        served = warden("enforce", "--off", "cache", "--json").json["service"]
    assert served["in_force"] is True
    for field in (*found, *change, *served):
        assert f"`{field}`" in section or f'"{field}"' in section, field


def test_what_only_reports_says_how_it_is_turned_on(warden):
    for command in ("status", "plan"):
        said = warden(command).out
        assert "nothing goes while enforce = false stands there" in said
        assert "`cachewarden enforce cache` turns it on" in said
    assert warden("enforce", "cache", "--yes").status == 0
    for command in ("status", "plan"):
        assert "enforce" not in warden(command).out


def test_the_names_of_locations_are_completed(warden):
    script = {"COMP_WORDS": f"cachewarden --config {warden.file} enforce ca", "COMP_CWORD": "4"}
    run = warden(environ={**script, "_CACHEWARDEN_COMPLETE": "complete_bash"})
    assert run.out.split() == ["cache"]
