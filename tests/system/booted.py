"""Looking at the installed service from inside the booted machine. Only the standard library."""

import json
import os
import pwd
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence

MIB = 1 << 20
UNIT = "cachewarden.service"
CONFIG = "/etc/cachewarden/config.toml"
DROP_IN = f"/run/systemd/system/{UNIT}.d/test.conf"
CACHE = "/srv/cache"

CONFIGURATION = """
[daemon]
interval = "1h"
settle = "200ms"
[policies.small]
max_size = "4MiB"
target_size = "3MiB"
min_idle = "0s"
max_share = "100%"
[locations.cache]
path = "/srv/cache"
policy = "small"
ignore_ctime = true
"""

MAKE = """
import os, sys, time
path, files, size, days = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
os.makedirs(path)
for number in range(files):
    with open(f"{path}/{number}", "wb") as file:
        file.write(os.urandom(size))
old = time.time() - days * 86400
for number in range(files):
    os.utime(f"{path}/{number}", (old, old))
os.utime(path, (old, old))
"""

# Stops one thread of a process and no other; the watchdog's signal ends it all the same (ptrace(2)).
STALL = """
import ctypes, os, sys
SEIZE, INTERRUPT, WALL = 0x4206, 0x4207, 0x40000000
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
thread = int(sys.argv[1])
for request in (SEIZE, INTERRUPT):
    assert libc.ptrace(request, thread, None, None) == 0, os.strerror(ctypes.get_errno())
os.waitpid(thread, WALL)
print("stalled", flush=True)
os.waitpid(thread, WALL)  # it dies for its parent only when it did for us
"""

HANG = """
import ctypes, os, sys, time
fd = os.open("/dev/fuse", os.O_RDWR)
options = b"fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % fd
libc = ctypes.CDLL(None, use_errno=True)
assert libc.mount(b"hang", os.fsencode(sys.argv[1]), b"fuse.hang", 0, options) == 0
print("mounted", flush=True)
time.sleep(600)
"""


def run(*command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert not check or done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def make(name: str, files: int = 1, size: int = MIB, days: float = 9, where: str = CACHE) -> None:
    """An entry, by a process that ends: who makes one holds it while he lives."""
    run(sys.executable, "-c", MAKE, f"{where}/{name}", str(files), str(size), str(days))


def until(what: Callable[[], object], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"it did not happen within {seconds} s"
        time.sleep(0.1)


def show(*names: str) -> dict[str, str]:
    lines = run("systemctl", "show", UNIT, *(f"-p{name}" for name in names)).stdout.splitlines()
    return dict(line.split("=", 1) for line in lines)


def pid() -> int:
    return int(show("MainPID")["MainPID"])


def entries() -> set[str]:
    return {name for name in os.listdir(CACHE) if not name.startswith(".")}


def log() -> str:
    return run("journalctl", "-u", UNIT, "-o", "cat", "--no-pager").stdout


def write(path: str, content: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(content)


def drop_in(*lines: str) -> None:
    """Change the unit until `clean` is called."""
    write(DROP_IN, "\n".join(["[Service]", *lines, ""]))
    run("systemctl", "daemon-reload")


def person(name: str, home: str) -> list[str]:
    """Make a user whose service manager runs; how a command is begun as that user."""
    run("useradd", "--create-home", "--home-dir", home, name)
    uid = pwd.getpwnam(name).pw_uid
    run("loginctl", "enable-linger", name)
    run("systemctl", "start", f"user@{uid}.service")
    return ["runuser", "-u", name, "--", "env", f"XDG_RUNTIME_DIR=/run/user/{uid}", f"HOME={home}"]


def users_pid(as_user: list[str]) -> int:
    """The main process of a user's service, which has to be running."""
    lines = run(*as_user, "systemctl", "--user", "show", UNIT, "-pActiveState", "-pMainPID").stdout.split()
    found = dict(line.split("=", 1) for line in lines)
    assert found["ActiveState"] == "active", found
    return int(found["MainPID"])


def carry_out(checks: Sequence[Callable[[], None]], before: Callable[[], None] = lambda: None) -> None:
    """Carry out the checks and report after each: what went wrong, or "". `before` comes before each one."""
    os.makedirs(CACHE, exist_ok=True)
    # fanotify tells of no file handles on an overlay, which everything else here lies on.
    run("mount", "-t", "tmpfs", "-o", "size=512M,mode=755", "none", CACHE)
    report = {}
    for check in checks:
        try:
            before()
            check()
            report[check.__name__] = ""
        except Exception:  # noqa: BLE001 - whatever it is, it belongs into the report
            report[check.__name__] = f"{traceback.format_exc()}\n{log()[-6000:]}"
        write("/report.json.new", json.dumps(report))
        os.rename("/report.json.new", "/report.json")


def clean(config: str = CONFIGURATION) -> None:
    """The state in which each check begins: as installed, stopped, without any memory, an empty cache."""
    run("systemctl", "stop", UNIT, check=False)
    run("rm", "-rf", "/var/lib/cachewarden")
    if os.path.exists(DROP_IN):
        os.unlink(DROP_IN)
        run("systemctl", "daemon-reload")
    run("systemctl", "reset-failed", UNIT, check=False)
    for name in os.listdir(CACHE):
        run("rm", "-rf", f"{CACHE}/{name}")
    write(CONFIG, config)


def start() -> None:
    run("systemctl", "start", UNIT)
