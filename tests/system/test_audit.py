"""The audit file of a service and of commands: rotated by a real logrotate, on a disk that is full."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.system.test_service import make, until

SHIPPED = Path(__file__).parents[2] / "systemd/logrotate.conf"
NAMED = "/var/log/cachewarden-audit.jsonl"
EVERYTHING = {"evict_all": True, "min_idle": "0s", "max_share": "100%"}


def records(*files):
    """All records in these files, in order."""
    return [json.loads(line) for file in files for line in Path(file).read_text().splitlines()]


def evicted(*files):
    """The entries that these files say were evicted, in order."""
    return [each["entry"] for each in records(*files) if each["event"] == "evicted"]


@pytest.fixture
def rotate(tmp_path):
    """Rotate now, as the shipped snippet says, with more lines in it or other ones."""
    if shutil.which("logrotate") is None:
        pytest.skip("logrotate is not installed")
    places = [SHIPPED, Path("/nowhere")]

    def rotate(file, **other):
        text = places[0].read_text().replace(NAMED, str(file))
        for old, new in other.items():
            assert old in text
            text = text.replace(f"    {old}\n", f"    {new}\n")
        config = tmp_path / "logrotate.conf"
        config.write_text(text)
        config.chmod(0o644)
        done = subprocess.run(
            ["logrotate", "--force", "--state", tmp_path / "state", config],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")

    return rotate


@pytest.mark.parametrize("way", ["nocreate", "create", "copytruncate"])
def test_a_rotation_loses_no_line_and_nobody_has_to_be_told(needs_root, warden, root, tmp_path, rotate, way):
    file = tmp_path / "audit.jsonl"
    warden.policy |= EVERYTHING
    warden.daemon |= {"audit_file": str(file), "settle": "100ms"}
    with warden.service() as service:
        for number in range(3):
            make(root, f"e{number}")
            until(lambda: os.listdir(root) == [])
            until(lambda number=number: service.log.count("event=evicted") == number + 1)
            if number == 1:
                rotate(file, nocreate=way)
    (old,) = tmp_path.glob("audit.jsonl-*")
    assert evicted(old) == ["e0", "e1"]
    assert evicted(file) == ["e2"]
    assert file.stat().st_mode & 0o007 == 0


def test_what_commands_evict_beside_the_service_is_recorded_with_who_did_it(warden, root, tmp_path):
    file = tmp_path / "audit.jsonl"
    warden.daemon["audit_file"] = str(file)
    for name in ("asked", "rest"):
        make(root, name)
    warden.write()
    assert warden("evict", os.path.join(root, "asked")).status == 0
    warden.policy |= EVERYTHING
    assert warden.once().status == 0
    found = [(each["event"], each["entry"], each["by"], each["uid"]) for each in records(file)]
    me = os.getuid()
    assert found == [
        ("evicted", "asked", "cachewarden evict", me),
        ("evicted", "rest", "cachewarden once", me),
    ]
    assert {"time", "location", "path", "bytes", "freed_bytes", "reason", "last_use"} <= records(file)[
        0
    ].keys()


def test_a_full_disk_under_the_audit_file_stops_no_eviction_and_is_said_once(
    needs_root, warden, root, tmp_path
):
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], check=True)
    try:
        filler = disk / "filler"
        with pytest.raises(OSError, match="No space"):
            filler.write_bytes(b"x" * (1 << 17))
        warden.policy |= EVERYTHING
        warden.daemon |= {"audit_file": str(disk / "audit.jsonl"), "settle": "100ms"}
        with warden.service() as service:
            for number in range(3):
                make(root, f"e{number}")
                until(lambda: os.listdir(root) == [])
                until(lambda number=number: service.log.count("event=evicted") == number + 1)
            assert service.log.count("the audit file cannot be written, skipping") == 1
            filler.unlink()
            make(root, "after")
            until(lambda: "the audit file is written again" in service.log)
            found = records(disk / "audit.jsonl")
            assert [each["event"] for each in found] == ["lost", "evicted"]
            assert (found[0]["records"], found[1]["entry"]) == (3, "after")
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)
