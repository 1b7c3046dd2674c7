"""`delegate = true` with the tools themselves: run as the user whose cache it is, which still works then.

The user exists in the mount namespace of each command alone, with a home in a temporary directory.
"""

import os
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

import pytest
from tests.system.client_packages import installed
from tests.system.command import PROGRAM, Warden, environment

MIB = 1 << 20
UID = 54_321

pytestmark = pytest.mark.usefixtures("needs_root")


@pytest.fixture
def place(needs_root):
    """A directory on a way that everybody may go; that of pytest is closed again whenever one starts."""
    with tempfile.TemporaryDirectory(prefix="cachewarden-user-") as path:
        os.chmod(path, 0o755)
        yield Path(path)


class User:
    """Somebody with a home, tools of his own in it, and a cache."""

    def __init__(self, base: Path, tool: str) -> None:
        self.base = base
        self.home = base / "home"
        self.cache = self.home / ".cache" / tool
        self.cache.mkdir(parents=True)
        self.bin = self.home / ".local/bin"
        self.bin.mkdir(parents=True)
        self.passwd = base / "passwd"
        line = f"cwuser:x:{UID}:{UID}::{self.home}:/bin/sh\n"
        self.passwd.write_text(Path("/etc/passwd").read_text() + line)

    def own(self) -> None:
        """Everything in the home is his."""
        for here, below, names in os.walk(self.home):
            for path in (here, *(os.path.join(here, name) for name in (*below, *names))):
                os.chown(path, UID, UID, follow_symlinks=False)

    def strangers(self) -> list[str]:
        """What in his home is not his."""
        found = []
        for here, below, names in os.walk(self.home):
            paths = (os.path.join(here, name) for name in (*below, *names))
            found += [path for path in paths if os.lstat(path).st_uid != UID]
        return found

    def run(self, *command: str, **variables: str) -> str:
        """A command of his, with a clean environment."""
        done = subprocess.run(
            command,
            env={"HOME": str(self.home), "PATH": f"{self.bin}:/usr/bin:/bin", **variables},
            cwd=self.home,
            user=UID,
            group=UID,
            extra_groups=[],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def once(self, warden: Warden) -> str:
        """One pass as root, on a machine that has this user; what it said beside the report."""
        warden.write()
        inside = 'mount --bind "$0" /etc/passwd && exec "$@"'
        command = (PROGRAM, "--config", warden.file, "once", "--json")
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", inside, str(self.passwd), *command],
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        assert done.returncode == 0, done.stderr
        return done.stderr


def over_its_limit(place: Path, user: User, **keys: object) -> Warden:
    """A configuration under which his cache may have 4 MiB."""
    warden = Warden(str(place / "warden"), {"max_size": "4MiB", "target_size": "3MiB"})
    warden.location("cache", str(user.cache), delegate=True, **keys)
    return warden


def size(path: Path) -> int:
    """Allocated bytes."""
    return sum(each.lstat().st_blocks * 512 for each in path.rglob("*") if each.is_file())


def wheel(folder: Path) -> None:
    """A package, as small as they come."""
    folder.mkdir()
    with zipfile.ZipFile(folder / "demo-1.0-py3-none-any.whl", "w") as made:
        made.writestr("demo.py", "ANSWER = 42\n")
        made.writestr("demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
        made.writestr(
            "demo-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        made.writestr(
            "demo-1.0.dist-info/RECORD",
            "demo.py,,\ndemo-1.0.dist-info/METADATA,,\ndemo-1.0.dist-info/WHEEL,,\ndemo-1.0.dist-info/RECORD,,\n",
        )


def test_uv_prunes_what_it_knows_to_be_unused_and_goes_on_working(place):
    """A bucket of an older version goes; what was installed from the cache is there and can be again."""
    user = User(place, "uv")
    shutil.copy(os.path.join(installed("tools"), "bin/uv"), user.bin / "uv")
    wheel(user.home / "wheels")
    user.own()
    install = (str(user.bin / "uv"), "pip", "install", "--quiet", "--no-index", "--find-links", "wheels")
    install += ("--python", "/usr/bin/python3", "--link-mode", "symlink", "demo", "--target")
    user.run(*install, "first", UV_CACHE_DIR=str(user.cache))
    old = user.cache / "wheels-v0"
    old.mkdir()
    (old / "big").write_bytes(b"x" * 8 * MIB)
    user.own()
    said = user.once(over_its_limit(place, user))
    assert not old.exists(), said
    assert "cache prune as cwuser: exit status 0" in said
    assert user.strangers() == []
    assert user.run("/usr/bin/python3", "-c", "import demo; print(demo.ANSWER)", PYTHONPATH="first") == "42\n"
    user.run(*install, "second", UV_CACHE_DIR=str(user.cache), UV_OFFLINE="1")
    assert (user.home / "second/demo.py").exists()


def test_uv_that_is_at_work_is_not_disturbed(place):
    """Its lock is held by another command of his: the pass ends, and nothing is lost."""
    user = User(place, "uv")
    (user.cache / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55")
    (user.cache / "archive-v0/abc").mkdir(parents=True)
    (user.cache / "archive-v0/abc/m.py").write_bytes(b"x" * 8 * MIB)
    script = user.bin / "uv"
    script.write_text('#!/bin/sh\nexec flock -n "$UV_CACHE_DIR/.lock" rm -r "$UV_CACHE_DIR/archive-v0"\n')
    script.chmod(0o755)
    user.own()
    with open(user.cache / ".lock", "w") as lock:
        os.chown(lock.fileno(), UID, UID)
        subprocess.run(["flock", str(lock.fileno())], pass_fds=(lock.fileno(),), check=True)
        warden = over_its_limit(place, user)
        with pytest.raises(AssertionError):  # it stays over its limit, and says so
            user.once(warden)
    assert (user.cache / "archive-v0/abc/m.py").exists()


def test_pip_purges_its_cache(place):
    """The newest pip, which is a module in his home."""
    user = User(place, "pip")
    shutil.copytree(os.path.join(installed("tools"), "pip"), user.home / "lib/pip")
    script = user.bin / "pip"
    script.write_text(f'#!/bin/sh\nPYTHONPATH={user.home}/lib exec /usr/bin/python3 -m pip "$@"\n')
    script.chmod(0o755)
    for name in (
        "http-v2/a/b/c/d/e/abcde",
        "http-v2/a/b/c/d/e/abcde.body",
        "wheels/00/11/22/x/demo-1.0-py3-none-any.whl",
    ):
        (user.cache / name).parent.mkdir(parents=True, exist_ok=True)
        (user.cache / name).write_bytes(b"x" * 3 * MIB)
    user.own()
    said = user.once(over_its_limit(place, user))
    assert "cache purge as cwuser: exit status 0" in said, said
    assert size(user.cache) < MIB
    assert user.strangers() == []


def test_ccache_comes_down_to_the_target_in_its_own_order(place):
    """As small as the configuration says, and no smaller."""
    if shutil.which("ccache", path="/usr/local/bin:/usr/bin") is None:
        pytest.skip("ccache is not installed (CI installs it)")
    user = User(place, "ccache")
    for number in range(16):
        here = user.cache / f"{number:x}" / "0"
        here.mkdir(parents=True)
        (here / f"{number:030d}R").write_bytes(b"x" * MIB)
        (here / "stats").write_text("")
    user.own()
    said = user.once(over_its_limit(place, user))
    assert "--cleanup as cwuser: exit status 0" in said
    assert 0 < size(user.cache) <= 3 * MIB + 65_536
    assert user.strangers() == []


def test_without_delegate_no_tool_runs(place):
    """The cache is measured, and reported as what cannot be brought below its limit."""
    user = User(place, "pip")
    (user.bin / "pip").write_text(f"#!/bin/sh\ntouch {user.home}/ran\n")
    (user.bin / "pip").chmod(0o755)
    (user.cache / "http-v2").mkdir()
    (user.cache / "http-v2/big").write_bytes(b"x" * 8 * MIB)
    user.own()
    warden = Warden(str(place / "warden"), {"max_size": "4MiB"})
    warden.location("cache", str(user.cache))
    found = warden.once()
    assert found.status == 1
    assert found.only["layout"] == "pip"
    assert found.only["foreign_bytes"] == found.only["bytes_after"] > 4 * MIB
    assert not (user.home / "ran").exists()
