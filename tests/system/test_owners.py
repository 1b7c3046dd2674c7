"""Root's commands over a user's cache: nothing of root's stays in it, and nothing in it changes hands."""

import os
import stat
import subprocess
from pathlib import Path

import pytest
from tests.system.caches import checkpoint, configuration, offload_folder
from tests.system.command import PROGRAM, environment
from tests.system.trees import age, fill, mounted

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("needs_root")]

USER = 4001
COMMIT = "c" * 40


def _hub(path):
    for name in ("old", "new"):
        repo = f"{path}/models--o--{name}"
        fill(f"{repo}/blobs/w", 1)
        os.makedirs(f"{repo}/snapshots/{COMMIT}")
        os.symlink("../../blobs/w", f"{repo}/snapshots/{COMMIT}/w")
        fill(f"{path}/.locks/models--o--{name}/w.lock", 0)


def _folder(path):
    for name in ("old", "new"):
        offload_folder(f"{path}/offload/{name}", 1)
    checkpoint(f"{path}/checkpoints/checkpoint_0", 1)
    configuration(path)


def _owned(top: str) -> dict[str, tuple[int, int, int]]:
    """Owner, group and mode of a directory and of everything in it."""
    found = {}
    for directory, names, files in os.walk(top):
        for name in (".", *names, *files):
            status = os.lstat(os.path.join(directory, name))
            path = os.path.normpath(os.path.join(os.path.relpath(directory, top), name))
            found[path] = status.st_uid, status.st_gid, status.st_mode
    return found


def _give(top: str) -> None:
    for path in _owned(top):
        os.lchown(os.path.join(top, path), USER, USER)
        if os.path.isdir(os.path.join(top, path)):
            os.chmod(os.path.join(top, path), 0o750 | stat.S_ISGID)


@pytest.mark.parametrize("make", [_hub, _folder], ids=["hub", "folder"])
@pytest.mark.parametrize("ground", ["", "home", "home/.cache/x"], ids=["machine's", "home", "cache itself"])
def test_a_user_s_cache_stays_the_user_s(warden, tmp_path: Path, ground, make):
    """Whether the mount's top, where the trash is best, is root's, the home, or the cache."""
    disk = tmp_path / "disk"
    home, cache = disk / "home", disk / "home" / ".cache" / "x"
    (disk / ground).mkdir(parents=True)
    with mounted(["-t", "tmpfs", "tmpfs"], str(disk / ground)):
        make(str(cache))
        age(cache, 90)
        for entry in ("models--o--new", "offload/new"):
            age(cache / entry, 3) if (cache / entry).exists() else None
        _give(str(home))
        before = _owned(str(home))
        warden.location("cache", str(cache), layout="auto")
        warden.policy |= {"max_idle": "30d"}
        environ = {"HOME": str(home), "HF_HUB_CACHE": str(cache)}
        warden.write()
        # It looks at what live processes use; those that run beside us are not to be disturbed.
        alone = ("unshare", "--fork", "--pid", "--mount-proc")
        command = [*alone, PROGRAM, "--config", warden.file, "discover"]
        found = subprocess.run(command, env=environment() | environ, stdout=subprocess.PIPE, check=True)
        assert os.fsencode(cache) in found.stdout
        assert _owned(str(home)) == before
        for arguments in (["plan"], ["plan", "--probe"], ["doctor"]):
            assert warden(*arguments, environ=environ).status in {0, 1}, arguments
            assert _owned(str(home)) == before, arguments
        done = warden.once()
        after = _owned(str(home))
    assert len(done.evicted) == 1
    assert set(after) < set(before)
    assert {path: before[path] for path in after} == after
    assert {uid for uid, _, _ in after.values()} == {USER}


def test_the_owner_is_shown_by_name_and_by_number(warden, root):
    """The number where no account has it."""
    for name, uid in (("a", 0), ("b", 4_000_001)):
        fill(f"{root}/{name}/f", 1)
        os.chown(f"{root}/{name}", uid, uid)
    entries = warden.entries()
    assert (entries["a"]["owner"], entries["a"]["user"]) == (0, "root")
    assert (entries["b"]["owner"], entries["b"]["user"]) == (4_000_001, "4000001")
    assert warden("explain", f"{root}/b", "--json").json["user"] == "4000001"
    assert "owned by 4000001" in warden("explain", f"{root}/b").out
    (row,) = [text for text in warden("list").out.splitlines() if text.startswith("    a ") or " a  " in text]
    assert "  root  " in row
