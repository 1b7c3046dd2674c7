"""A service in which much is wrong says so, and then nothing more in the passes that find it so again."""

import os
import subprocess
import sys

from tests.system.test_service import make, until

HOLD = """
import sys, time
files = [open(name) for name in sys.argv[1:]]
print("held", flush=True)
time.sleep(120)
"""


def test_what_stays_wrong_is_not_a_line_in_every_pass(needs_root, warden, root, tmp_path):
    link = tmp_path / "link"
    link.mkdir()
    os.chown(link, 65534, 65534)
    (link / "to").symlink_to(root)
    for name in ("one", "other"):
        make(root, name, mib=2)
    for name in ("hub", "disk"):
        (tmp_path / name).mkdir()
    (tmp_path / "hub" / "stranger").write_bytes(b"x" * 8192)
    warden.policy |= {"max_size": "1MiB"}
    warden.daemon |= {"interval": "1s", "audit_file": str(tmp_path)}
    warden.location("absent", str(tmp_path / "absent"))
    warden.location("unmounted", str(tmp_path / "disk"), must_be_mount=True)
    warden.location("strangers", str(tmp_path / "hub"), layout="hub")
    warden.location("refused", str(link / "to"))
    held = [os.path.join(root, name, "f") for name in ("one", "other")]
    holder = subprocess.Popen([sys.executable, "-c", HOLD, *held], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        with warden.service() as service:
            until(lambda: service.passes() >= 9, seconds=60)
            begin, passes = service.log, service.passes()
            assert begin.count("outcome=short") == 1, begin
            assert begin.count("event=spared") == 2, begin
            assert begin.count("event=refused") == 1, begin
            assert begin.count("unavailable") == 1, begin
            assert "location=absent" not in begin, begin
            until(lambda: service.passes() >= passes + 15, seconds=60)
            assert service.log == begin
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()


def test_a_mount_that_goes_and_comes_back_is_one_line_each(needs_root, warden, root, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    warden.daemon |= {"interval": "1s"}
    warden.location("unmounted", str(disk), must_be_mount=True)
    with warden.service() as service:
        until(lambda: "unavailable: nothing is mounted there" in service.log)
        subprocess.run(["mount", "-t", "tmpfs", "none", disk], check=True)
        try:
            until(lambda: "mounted again" in service.log, seconds=30)
            passes = service.passes()
            until(lambda: service.passes() >= passes + 4)
        finally:
            subprocess.run(["umount", "--lazy", disk], check=True)
        until(lambda: service.log.count("unavailable: nothing is mounted there") == 2, seconds=30)
        assert service.log.count("mounted again") == 1
