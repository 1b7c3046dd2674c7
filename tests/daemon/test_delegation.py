"""Caches that only their tool may prune: it runs as their owner, bounded, and only over the limit."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.daemon.delegating import me, script
from tests.daemon.passes import MIB

from cachewarden.evict.tools import Account, RefusedError, ToolsCache, account_of, prune
from cachewarden.evict.tools.account import SYSTEM, find_executable, owner_of
from cachewarden.evict.tools.child import run
from cachewarden.evict.tools.commands import command_for

NOBODY = pwd.getpwnam("nobody")
STOPPER = 54_987  # somebody without processes of his own


@pytest.fixture
def place():
    """A directory on a way that everybody may go; that of pytest is closed again whenever one starts."""
    with tempfile.TemporaryDirectory(prefix="cachewarden-user-") as path:
        os.chmod(path, 0o755)
        yield Path(path)


class TestTheAccount:
    """Whose cache it is decides as whom the tool runs."""

    def test_the_owner_of_root_and_children_is_found_with_his_groups(self, tmp_path):
        (tmp_path / "a").mkdir()
        fd = os.open(tmp_path, os.O_RDONLY)
        try:
            found = owner_of(fd, os.fsencode(tmp_path))
        finally:
            os.close(fd)
        mine = account_of(found)
        assert (mine.uid, mine.home) == (os.geteuid(), pwd.getpwuid(os.geteuid()).pw_dir)
        assert mine.gid in mine.groups

    def test_parts_of_two_owners_are_refused(self, needs_root, tmp_path):
        (tmp_path / "a").mkdir()
        os.chown(tmp_path / "a", NOBODY.pw_uid, -1)
        fd = os.open(tmp_path, os.O_RDONLY)
        with pytest.raises(RefusedError, match="different users"):
            owner_of(fd, os.fsencode(tmp_path))
        os.close(fd)

    @pytest.mark.parametrize("name", ["", "a", "a/b/c"])
    def test_what_others_can_write_to_is_never_pruned_as_root(self, needs_root, tmp_path, name):
        (tmp_path / "a/b/c").mkdir(parents=True)
        (tmp_path / name).chmod(0o777)
        fd = os.open(tmp_path, os.O_RDONLY)
        with pytest.raises(RefusedError, match="others can write"):
            owner_of(fd, os.fsencode(tmp_path))
        os.close(fd)

    def test_a_directory_of_somebody_else_far_down_is_never_pruned_as_root(self, needs_root, tmp_path):
        (tmp_path / "a/b/c").mkdir(parents=True)
        os.chown(tmp_path / "a/b/c", NOBODY.pw_uid, -1)
        fd = os.open(tmp_path, os.O_RDONLY)
        with pytest.raises(RefusedError, match="others can write"):
            owner_of(fd, os.fsencode(tmp_path))
        os.close(fd)

    def test_a_uid_without_an_account_is_refused(self):
        with pytest.raises(RefusedError, match="no account"):
            account_of(54_321)


class TestTheExecutable:
    """Only what root or the owner put there."""

    def test_his_own_comes_before_the_systems(self, tmp_path):
        mine = script(tmp_path / ".local/bin/ccache", "exit 0")
        assert find_executable(("ccache",), me(tmp_path)) == str(mine)

    @pytest.mark.parametrize(("mode", "uid"), [(0o777, None), (0o644, None), (0o755, 12_345)])
    def test_what_anybody_else_could_have_put_there_is_passed_over(self, needs_root, tmp_path, mode, uid):
        script(tmp_path / ".local/bin/unknown-tool", "exit 0", mode, uid)
        with pytest.raises(RefusedError, match="no unknown-tool"):
            find_executable(("unknown-tool",), me(tmp_path, uid=NOBODY.pw_uid))

    def test_a_group_of_his_own_may_write_but_not_to_what_root_runs(self, needs_root, tmp_path):
        script(tmp_path / ".local/bin/unknown-tool", "exit 0", 0o775)
        assert find_executable(("unknown-tool",), me(tmp_path, uid=NOBODY.pw_uid))
        with pytest.raises(RefusedError):
            find_executable(("unknown-tool",), me(tmp_path, uid=0))

    @pytest.mark.parametrize("where", [".local/bin", "elsewhere"])
    def test_where_anybody_can_put_something_else_nothing_is_run(self, tmp_path, where):
        """Directly, or behind a link."""
        tool = script(tmp_path / where / "unknown-tool", "exit 0")
        if where == "elsewhere":
            (tmp_path / ".local/bin").mkdir(parents=True)
            (tmp_path / ".local/bin/unknown-tool").symlink_to(tool)
        assert find_executable(("unknown-tool",), me(tmp_path))
        (tmp_path / where).chmod(0o777)
        with pytest.raises(RefusedError):
            find_executable(("unknown-tool",), me(tmp_path))

    def test_a_directory_further_up_that_anybody_can_write_to_is_no_better(self, tmp_path):
        """Whoever can rename `.local` has put another one there by the time that it runs."""
        script(tmp_path / "home/.local/bin/unknown-tool", "exit 0")
        (tmp_path / "home").chmod(0o777)
        with pytest.raises(RefusedError):
            find_executable(("unknown-tool",), me(tmp_path / "home"))

    def test_a_directory_or_a_link_to_nothing_is_none(self, tmp_path):
        (tmp_path / ".local/bin/unknown-tool").mkdir(parents=True)
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin/unknown-tool").symlink_to("/nowhere")
        with pytest.raises(RefusedError):
            find_executable(("unknown-tool",), me(tmp_path))


class TestTheChild:
    """What a tool gets to see, and how long it may take."""

    def test_it_runs_as_the_owner_with_his_groups_and_a_clean_environment(self, needs_root, place):
        tool = script(place / "tool", "id -u; id -g; id -G; pwd; env; cat /proc/self/status; umask; cat")
        os.environ["SECRET"] = "of the service"
        try:
            owner = Account(NOBODY.pw_uid, NOBODY.pw_gid, "nobody", "/nonexistent", (NOBODY.pw_gid, 50_001))
            ran = run([str(tool)], {"CACHE": "here"}, owner, 30, lambda: False)
        finally:
            del os.environ["SECRET"]
        lines = ran.output.decode().splitlines()
        assert lines[:3] == [str(NOBODY.pw_uid), str(NOBODY.pw_gid), f"{NOBODY.pw_gid} 50001"]
        assert lines[3] == "/"
        assert "CACHE=here" in lines
        assert "HOME=/nonexistent" in lines
        assert not any(line.startswith("SECRET") for line in lines)
        status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        assert set(status["Uid"].split()) == {str(NOBODY.pw_uid)}
        assert set(status["Gid"].split()) == {str(NOBODY.pw_gid)}
        assert {status["CapPrm"], status["CapEff"], status["CapAmb"]} == {"0" * 16}
        assert status["NoNewPrivs"] == "1"
        assert not int(status["SigIgn"], 16) & (1 << signal.SIGPIPE - 1)
        assert int(status["SigBlk"], 16) == 0
        assert ran.status == 0

    def test_what_cannot_be_executed_is_said(self, tmp_path):
        tool = tmp_path / "tool"
        tool.write_bytes(b"\0neither a program nor a script")
        tool.chmod(0o755)
        if os.geteuid() != 0:
            with pytest.raises(OSError, match="Exec format"):
                run([str(tool)], {}, me(tmp_path), 30, lambda: False)
            return
        ran = run([str(tool)], {}, me(tmp_path), 30, lambda: False)
        assert ran.status == 126
        assert "tool was not run: Exec format error" in ran.sentence

    def test_an_interpreter_that_nobody_lets_go_of_delays_nothing_beyond_the_limit(self, needs_root, place):
        """Its owner holds a lease on it, for 45 s; on a filesystem of his it may be for ever."""
        interpreter = place / "sh"
        shutil.copy("/bin/sh", interpreter)
        os.chown(interpreter, NOBODY.pw_uid, -1)
        tool = place / "tool"
        tool.write_text(f"#!{interpreter}\n")
        tool.chmod(0o755)
        code = (
            "import fcntl, os, signal, sys\n"
            f"os.setuid({NOBODY.pw_uid})\n"
            "signal.signal(signal.SIGIO, signal.SIG_IGN)\n"
            "file = open(sys.argv[1])\n"
            "fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n"
            "print('held', flush=True)\n"
            "sys.stdin.read()"
        )
        owner = Account(NOBODY.pw_uid, NOBODY.pw_gid, "nobody", "/nonexistent", ())
        with subprocess.Popen(
            [sys.executable, "-c", code, str(interpreter)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as holder:
            assert holder.stdout.readline() == b"held\n"
            ran = run([str(tool)], {}, owner, 1.0, lambda: False)
            holder.communicate()
        assert ran.ended == "ended after 1 s"
        assert ran.seconds < 30

    def test_one_who_stops_all_his_other_processes_stops_nobody_else(self, needs_root, place):
        """Those that would end the tool among them, where the service may not do that itself."""
        tool = script(place / "tool", "trap '' TERM; while :; do kill -s STOP -- -1; done")
        code = (
            "import sys\n"
            "from cachewarden.evict.tools import Account\n"
            "from cachewarden.evict.tools.child import run\n"
            f"him = Account({STOPPER}, {STOPPER}, 'him', '/nonexistent', ())\n"
            "print(run([sys.argv[1]], {}, him, 1.0, lambda: False).ended)"
        )
        command = ["setpriv", "--bounding-set=-kill", sys.executable, "-c", code, str(tool)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=90)
        finally:
            for pid in processes_of(STOPPER):
                os.kill(pid, signal.SIGKILL)
        assert done.stdout == "ended after 1 s\n"

    def test_it_cannot_take_all_the_processes_that_the_service_may_have(self, needs_root, place):
        """What it starts counts as the service's, and would stay if it left the session."""
        tool = script(
            place / "tool", f"for number in $(seq {300 + 4 * os.cpu_count()}); do sleep 60 & done\necho all"
        )
        owner = Account(STOPPER + 1, STOPPER + 1, "him", "/nonexistent", ())
        ran = run([str(tool)], {}, owner, 50, lambda: False)
        assert b"fork" in ran.output
        assert b"all" not in ran.output.split()
        assert all(ended(pid) for pid in processes_of(STOPPER + 1))

    def test_what_it_leaves_behind_at_its_end_is_ended(self, tmp_path):
        pids = tmp_path / "pids"
        tool = script(tmp_path / "tool", f"sleep 300 & echo $! > {pids}")
        assert run([str(tool)], {}, me(tmp_path), 60, lambda: False).ended is None
        assert ended(int(pids.read_text()))

    def test_it_is_ended_when_somebody_interrupts_the_wait(self, tmp_path):
        pids = tmp_path / "pids"
        tool = script(tmp_path / "tool", f"echo $$ > {pids}; sleep 300; sleep 300")

        def interrupt() -> bool:
            if pids.exists() and pids.read_text():
                raise KeyboardInterrupt
            return False

        with pytest.raises(KeyboardInterrupt):
            run([str(tool)], {}, me(tmp_path), 60, interrupt)
        assert ended(int(pids.read_text()))

    def test_it_is_ended_with_all_its_children_when_it_takes_too_long(self, tmp_path):
        pids = tmp_path / "pids"
        tool = script(
            tmp_path / "tool", f"trap '' TERM; sleep 300 & echo $$ $! > {pids}; wait; wait; sleep 300"
        )
        ran = run([str(tool)], {}, me(tmp_path), 1.0, lambda: False)
        assert ran.ended == "ended after 1 s"
        assert ran.seconds < 60
        for pid in pids.read_text().split():
            assert ended(int(pid))

    def test_what_it_started_does_not_outlive_it_when_it_alone_heeds_the_signal(self, tmp_path):
        pids = tmp_path / "pids"
        stubborn = script(tmp_path / "stubborn", "trap '' TERM; sleep 300; sleep 300")
        tool = script(tmp_path / "tool", f"{stubborn} & echo $! > {pids}; wait")
        assert run([str(tool)], {}, me(tmp_path), 1.0, lambda: False).ended
        assert ended(int(pids.read_text()))

    def test_it_is_ended_by_a_service_that_may_not_kill_others(self, needs_root, place):
        """The unit has no CAP_KILL; the child is somebody else's process."""
        tool = script(place / "tool", f"trap '' TERM; echo $$ > {place}/pid; sleep 300; sleep 300")
        place.chmod(0o777)
        code = (
            "import sys\n"
            "from cachewarden.evict.tools import Account\n"
            "from cachewarden.evict.tools.child import run\n"
            f"nobody = Account({NOBODY.pw_uid}, {NOBODY.pw_gid}, 'nobody', '/nonexistent', ())\n"
            "print(run([sys.argv[1]], {}, nobody, 1.0, lambda: False).ended)"
        )
        command = ["setpriv", "--bounding-set=-kill", sys.executable, "-c", code, str(tool)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        assert done.stdout == "ended after 1 s\n"
        assert ended(int((place / "pid").read_text()))

    def test_it_is_ended_when_the_service_stops(self, tmp_path):
        tool = script(tmp_path / "tool", "sleep 300")
        asked = iter([False, True])
        ran = run([str(tool)], {}, me(tmp_path), 300, lambda: next(asked, True))
        assert "service stops" in ran.sentence
        assert ran.status != 0

    def test_of_much_output_the_end_is_kept_and_shown_without_control_characters(self, tmp_path):
        tool = script(tmp_path / "tool", "seq 1 200000; printf 'last \\033[31mline\\377\\n'; exit 3")
        ran = run([str(tool)], {}, me(tmp_path), 60, lambda: False)
        assert len(ran.output) <= 1 << 16
        assert ran.output.endswith(b"line\xff\n")
        assert "199999 / 200000 / last \\x1b[31mline\\xff" in ran.sentence
        assert "exit status 3" in ran.sentence

    def test_one_that_closes_its_output_is_waited_for(self, tmp_path):
        tool = script(tmp_path / "tool", f"exec >&- 2>&-; sleep 1; touch {tmp_path}/done")
        assert run([str(tool)], {}, me(tmp_path), 60, lambda: False).status == 0
        assert (tmp_path / "done").exists()


def ended(pid: int) -> bool:
    """Whether a process is gone before long: a signal takes its time on a busy machine."""
    until = time.monotonic() + 20
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.05)
    return not alive(pid)


def processes_of(uid: int) -> list[int]:
    """The processes of a user."""
    found = []
    for each in Path("/proc").iterdir():
        with suppress(OSError):
            if each.name.isdigit() and each.stat().st_uid == uid:
                found.append(int(each.name))
    return found


def alive(pid: int) -> bool:
    """Whether a process runs, and is not merely unburied."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_each_tool_is_told_which_cache_and_ccache_how_far():
    """The variables that the tools read."""
    assert command_for("uv", "/c", 5).environment == {"UV_CACHE_DIR": "/c"}
    assert command_for("pip", "/c", 5).environment["PIP_CACHE_DIR"] == "/c"
    assert command_for("conda", "/c", 5).environment == {"CONDA_PKGS_DIRS": "/c"}
    assert command_for("ccache", "/c", 5 * MIB).environment["CCACHE_MAXSIZE"] == "5120Ki"
    assert command_for("ccache", "/c", 0).environment["CCACHE_MAXSIZE"] == "1Ki"  # 0 means no limit there
    assert command_for("bazel", "/c", 5) is None


def test_a_cache_without_a_command_is_refused(tmp_path):
    """Bazel's collector is a part of Bazel."""
    fd = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(RefusedError, match="bazel has no command"):
        prune(ToolsCache(fd, os.fsencode(tmp_path), "bazel"), lambda: False)
    os.close(fd)


def real_user_cache(base: Path) -> tuple[Path, int]:
    """A directory for a cache that `nobody` (or whoever runs this) owns."""
    root = base / "cache"
    root.mkdir()
    return root, NOBODY.pw_uid if os.geteuid() == 0 else os.geteuid()


def give(root: Path, uid: int) -> None:
    """Make everything below belong to a user."""
    for here, below, names in os.walk(root):
        for each in (here, *(os.path.join(here, name) for name in (*below, *names))):
            os.chown(each, uid, -1, follow_symlinks=False)


def test_the_real_pip_purges_a_cache_as_its_owner(place):
    """Not as root, and nothing but the cache that was named."""
    if shutil.which("pip3", path=":".join(SYSTEM)) is None:
        pytest.skip("the system has no pip")
    root, uid = real_user_cache(place)
    for name in ("http-v2/a/b/c/d/e/abcde", "http-v2/a/b/c/d/e/abcde.body", "http/a/b/c/d/e/abcde"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x" * 4096)
    give(root, uid)
    fd = os.open(root, os.O_RDONLY)
    ran = prune(ToolsCache(fd, os.fsencode(root), "pip"), lambda: False)
    os.close(fd)
    assert ran.status == 0, ran.sentence
    left = {each for each in ("http", "http-v2") if list((root / each).rglob("abcde*"))}
    assert left < {"http", "http-v2"}, ran.sentence  # each version knows one of them
    assert ran.user == pwd.getpwuid(uid).pw_name
    assert all(each.stat().st_uid == uid for each in root.rglob("*"))


def test_the_real_ccache_cleans_up_to_the_target(place):
    """In its own order, with its sums right afterwards."""
    if shutil.which("ccache", path=":".join(SYSTEM)) is None:
        pytest.skip("the system has no ccache")
    root, uid = real_user_cache(place)
    for number in range(64):
        here = root / f"{number % 16:x}" / f"{number // 16:x}"
        here.mkdir(parents=True, exist_ok=True)
        (here / f"{number:030d}R").write_bytes(b"x" * MIB)
        (here / "stats").write_text("")
        os.utime(here / f"{number:030d}R", (time.time() - 1000 + number,) * 2)
    give(root, uid)
    fd = os.open(root, os.O_RDONLY)
    ran = prune(ToolsCache(fd, os.fsencode(root), "ccache", 32 * MIB), lambda: False)
    os.close(fd)
    assert ran.status == 0, ran.sentence
    left = sum(each.stat().st_size for each in root.rglob("*R"))
    assert left <= 33 * MIB
    assert left > 0
