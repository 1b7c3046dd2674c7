"""Who stands where, and who has a file open: real processes of every awkward kind."""

import os
import subprocess
import sys
import time

import pytest
from tests.daemon.evicting import process

from cachewarden.holders import Machine, snapshot, who
from cachewarden.kernel import kcmp
from cachewarden.kernel.peek import Peeker


def inode(path):
    found = os.stat(path)
    return found.st_dev, found.st_ino


@pytest.mark.parametrize(
    ("code", "kind"),
    [("fd = os.open(args[0], os.O_RDONLY)", "directory"), ("os.chdir(args[0])", "cwd")],
)
def test_who_stands_in_a_directory_is_found_with_his_pid(tmp_path, code, kind):
    with process(code, tmp_path) as holder:
        found = snapshot().standing_in({inode(tmp_path)})
    assert [(each.kind, each.pid) for each in found] == [(kind, holder.pid)]


@pytest.mark.root
def test_a_root_directory_of_its_own_is_found(tmp_path, needs_root):
    with process("os.chroot(args[0])", tmp_path) as holder:
        found = snapshot().standing_in({inode(tmp_path)})
    assert ("root", holder.pid) in [(each.kind, each.pid) for each in found]


def test_a_directory_that_was_moved_and_one_that_was_removed_are_still_the_same(tmp_path):
    (tmp_path / "d").mkdir()
    wanted = inode(tmp_path / "d")
    with process("os.chdir(args[0])", tmp_path / "d"):
        (tmp_path / "d").rename(tmp_path / "moved")
        assert snapshot().standing_in({wanted})
        (tmp_path / "moved").rmdir()
        assert snapshot().standing_in({wanted})
    assert not snapshot().standing_in({wanted})


def test_our_own_descriptors_do_not_count(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY)
    assert not snapshot().standing_in({inode(tmp_path)})
    os.close(fd)


def test_an_exited_process_that_nobody_waited_for_is_no_trouble(tmp_path):
    child = os.fork()
    if child == 0:
        os._exit(0)
    time.sleep(0.05)
    snapshot()
    who({inode(tmp_path)})
    os.waitpid(child, 0)


def test_hundreds_of_threads_cost_one_look_at_their_descriptors(tmp_path):
    """With 300 threads and 300 descriptors a look at each table of each thread would take 90,000 stats."""
    code = """
import threading
held = [os.open(args[0], os.O_RDONLY) for _ in range(300)]
for _ in range(300): threading.Thread(target=threading.Event().wait, daemon=True).start()
"""
    if not kcmp.works():
        pytest.skip("this kernel has no kcmp: every thread has to be looked at")
    before = time.perf_counter()
    snapshot()
    alone = time.perf_counter() - before
    with process(code, tmp_path) as holder:
        before = time.perf_counter()
        found = snapshot().standing_in({inode(tmp_path)})
        taken = time.perf_counter() - before
    assert [each.pid for each in found] == [holder.pid]
    assert taken - alone < 0.3


@pytest.mark.root
def test_a_process_that_cannot_be_read_is_remembered_and_stops_nothing(tmp_path, needs_root):
    """Seen as an ordinary user, the processes of others cannot be read."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(2001, 2001, 2001)
            os.setresuid(2001, 2001, 2001)
            found = snapshot()
            os.write(write, b"%d %d" % (found.complete, os.getppid() in found.unreadable))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with open(read, "rb") as said:
        assert said.read() == b"0 1"


@pytest.mark.root
def test_a_dead_network_mount_of_somebody_else_does_not_stop_the_look(tmp_path, needs_root):
    """stat(2) of a descriptor on a FUSE mount whose program never answers does not come back."""
    (tmp_path / "hang").mkdir()
    program = f"""
import ctypes
assert ctypes.CDLL(None).unshare(0x20000) == 0
ctypes.CDLL(None).mount(b'none', b'/', None, 0x44000, None)
fuse = os.open('/dev/fuse', os.O_RDWR)
options = b'fd=%d,rootmode=40000,user_id=0,group_id=0' % fuse
assert ctypes.CDLL(None).mount(b'hang', b'{tmp_path}/hang', b'fuse', 0, options) == 0
fd = os.open('{tmp_path}/hang', os.O_PATH)
"""
    probe = "import os,sys; os.stat(sys.argv[1])"
    with process(program) as holder:
        link = next(
            f"/proc/{holder.pid}/fd/{fd}"
            for fd in os.listdir(f"/proc/{holder.pid}/fd")
            if os.readlink(f"/proc/{holder.pid}/fd/{fd}").endswith("/hang")
        )
        with subprocess.Popen([sys.executable, "-c", probe, link]) as stuck:
            with pytest.raises(subprocess.TimeoutExpired):
                stuck.wait(1)
            before = time.perf_counter()
            assert snapshot().places
            assert time.perf_counter() - before < 5
            holder.kill()
            holder.wait()  # with its program gone, the mount answers with an error
            stuck.wait()


def test_people_get_to_know_who_has_a_file_open_or_mapped(tmp_path):
    (tmp_path / "f").write_bytes(b"x" * 4096)
    wanted = inode(tmp_path / "f")
    mapped = """
import ctypes
call = ctypes.CDLL(None).mmap; call.restype = ctypes.c_void_p
call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
fd = os.open(args[0], os.O_RDONLY); call(None, 4096, 1, 2, fd, 0); os.close(fd)
"""
    with (
        process("fd = os.open(args[0], os.O_RDONLY)", tmp_path / "f") as one,
        process(mapped, tmp_path / "f") as other,
    ):
        found = who({wanted, (0, 0)})
        assert sorted((each.kind, each.pid) for each in found[wanted]) == [
            ("mapped", other.pid),
            ("open", one.pid),
        ]
        assert all(each.name.startswith("python") and each.user for each in found[wanted])
    assert (0, 0) not in found
    assert who({wanted}) == {}


def test_a_holder_that_is_gone_keeps_his_number(tmp_path):
    with process("os.chdir(args[0])", tmp_path) as holder:
        standing = Machine().look().standing_in({inode(tmp_path)})
        assert Machine().name(standing)[0].name.startswith("python")
    [named] = Machine().name(standing)
    assert (named.pid, named.name) == (holder.pid, "")


def test_the_machine_says_whether_it_saw_everything():
    machine = Machine()
    view = machine.look()
    assert machine.complete is view.complete


def test_a_peek_tells_what_stat_tells(tmp_path):
    (tmp_path / "f").write_bytes(b"")
    (tmp_path / "d").mkdir()
    os.symlink("f", tmp_path / "l")
    fd = os.open(tmp_path, os.O_RDONLY)
    peek = Peeker()
    for name in (b"f", b"d", b"l"):
        found = os.stat(name, dir_fd=fd)
        assert peek(name, fd) == (found.st_mode & 0o170000, found.st_dev, found.st_ino)
    with pytest.raises(FileNotFoundError):
        peek(b"none", fd)
    os.close(fd)


def test_tasks_that_share_their_descriptors_are_told_from_those_that_do_not():
    if not kcmp.works():
        pytest.skip("this kernel has no kcmp")
    assert kcmp.same(os.getpid(), os.getpid(), kcmp.FILES)
    assert not kcmp.same(os.getpid(), os.getppid(), kcmp.FILES)
    assert not kcmp.same(os.getpid(), 2**22 + 1, kcmp.FS)
