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
            assert "location=refused" in begin, begin
            until(lambda: service.passes() >= passes + 15, seconds=60)
            assert service.log == begin
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
