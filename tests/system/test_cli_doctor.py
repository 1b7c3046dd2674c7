"""`cachewarden doctor`: what people and programs get to see, and that caches are left alone."""

import os
import shutil
import subprocess

import pytest
from tests.system.command import PROGRAM
from tests.system.trees import age, contents, fill

GRADES = {"good", "weaker", "note"}


def test_the_page_and_the_document_say_the_same_and_the_status_follows(warden, root, tmp_path):
    fill(f"{root}/e/f")
    age(root, 9)
    warden.location("late", str(tmp_path / "late"))
    before = os.stat(root).st_mtime_ns, contents(root)
    age(f"{root}/e", 9)
    accessed = os.stat(f"{root}/e/f").st_atime_ns
    page = warden("doctor")
    run = warden("doctor", "--json")
    assert os.stat(f"{root}/e/f").st_atime_ns == accessed
    assert (os.stat(root).st_mtime_ns, contents(root)) == before
    found = run.json
    [filesystem] = found["filesystems"]
    findings = [*found["machine"], *filesystem["findings"]]
    assert {each["grade"] for each in findings} <= GRADES
    assert page.status == run.status == (0 if found["guaranteed"] else 1)
    for each in findings:
        if each["check"] in ("room", "processes"):  # what others do meanwhile
            continue
        assert each["means"] in page.out
        assert each["advice"] in page.out
        assert each["grade"] != "weaker" or not found["guaranteed"]
    assert filesystem["locations"] == [{"name": "cache", "path": root}]
    assert [each["name"] for each in found["missing"]] == ["late"]
    assert f"late: {tmp_path}/late is not there yet" in page.out
    assert page.err == run.err == ""


def test_a_running_service_is_found_and_is_not_disturbed(warden, root):
    warden.policy |= {"max_size": "10MiB"}
    with warden.service() as service:
        found = {each["check"]: each for each in warden("doctor", "--json").json["machine"]}
        assert found["service"]["grade"] == "good"
        assert str(service.child.pid) in found["service"]["means"]
        assert found["ledger"]["grade"] == "good"
        assert service.passes() >= 0


@pytest.mark.root
def test_an_ordinary_user_gets_an_honest_answer(needs_root, tmp_path):
    """Much is weaker, and nothing breaks."""
    home = f"/var/tmp/doctor-{os.getpid()}"
    os.makedirs(f"{home}/.config/cachewarden")
    os.makedirs(f"{home}/cache/e")
    with open(f"{home}/.config/cachewarden/config.toml", "w", encoding="utf-8") as file:
        file.write(f'[policies.p]\nmax_size = "1GiB"\n[locations.c]\npath = "{home}/cache"\npolicy = "p"\n')
    subprocess.run(["chown", "-R", "65534:65534", home], check=True)
    try:
        environ = {"HOME": home, "XDG_RUNTIME_DIR": home, "PATH": os.environ["PATH"]}
        as_user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", PROGRAM]
        run = subprocess.run(
            [*as_user, "--user", "doctor"], check=False, env=environ, cwd="/", capture_output=True, text=True
        )
        assert run.returncode == 1, run.stderr
        assert "caches that you own" in run.stdout
        lines = {line.split()[0]: line.split()[1] for line in run.stdout.splitlines() if line[:2] == "  "}
        assert (lines["lease"], lines["mapping"]) == ("good", "good")
        assert (lines["opens"], lines["processes"]) == ("weaker", "weaker")
        assert os.listdir(f"{home}/cache") == ["e"]
    finally:
        shutil.rmtree(home)
