"""Mount tables: their text, whose they are, and what containers keep busy."""

import os
import subprocess
import sys
import time

import pytest

from cachewarden import mountinfo
from cachewarden.kernel.statx import mount_id, mount_id_from_fdinfo

LINE = (
    rb"66 43 0:39 /a\040b /mnt/tab\011new\012line\134back rw,nosuid,relatime shared:7 master:1 - "
    rb"ext4 /dev/disk\040one rw,errors=continue"
)


def table(*lines: bytes):
    return mountinfo.parse(b"\n".join(lines) + b"\n")


def overlay(options: bytes) -> mountinfo.Mount:
    return table(b"70 1 0:40 / /merged rw,relatime - overlay overlay rw," + options)[0]


def test_a_line_is_taken_apart_and_unescaped():
    (mount,) = table(LINE)
    assert (mount.id, mount.parent, mount.major_minor) == (66, 43, b"0:39")
    assert (mount.root, mount.point) == (b"/a b", b"/mnt/tab\tnew\nline\\back")
    assert (mount.fstype, mount.source) == (b"ext4", b"/dev/disk one")
    assert mount.options == (b"rw", b"nosuid", b"relatime")
    assert mount.super_options == (b"rw", b"errors=continue")


@pytest.mark.parametrize(
    "line", [b"66 43 0:39 / /mnt rw - ext4", b"66 43 0:39 / /mnt rw ext4 x rw", b"x 43 0:39 / / rw - a b c"]
)
def test_what_is_no_mountinfo_is_an_error(line):
    with pytest.raises(ValueError, match=r"mountinfo|invalid literal"):
        table(line)


@pytest.mark.parametrize(
    ("options", "layers"),
    [
        (b"lowerdir=/a:/b,upperdir=/u,workdir=/w", (b"/a", b"/b", b"/u", b"/w")),
        (rb"lowerdir=/a\134\054b\134:c\040d\134\134e:/l2", (rb"/a,b:c d\e", b"/l2")),
        (b"lowerdir=/a::/data", (b"/a", b"/data")),
        (rb"lowerdir+=/x:y,datadir+=/z", (b"/x:y", b"/z")),
        (b"index=off", ()),
    ],
)
def test_the_layers_of_an_overlay_are_found_whatever_their_names(options, layers):
    assert overlay(options).layers == layers


def test_only_an_overlay_has_layers():
    assert table(b"1 0 8:1 / / rw - ext4 x rw,lowerdir=/a")[0].layers == ()


@pytest.mark.parametrize(
    ("options", "fstype", "mode"),
    [
        (b"rw,relatime", b"ext4", "relatime"),
        (b"rw", b"xfs", "strictatime"),
        (b"rw,noatime", b"ext4", "noatime"),
        (b"ro,relatime", b"ext4", "noatime"),
        (b"rw,relatime", b"nfs4", "noatime"),
        (b"rw", b"fuse.sshfs", "noatime"),
    ],
)
def test_access_times_count_as_far_as_the_mount_keeps_them(options, fstype, mode):
    assert mountinfo.atime_mode(table(b"1 0 8:1 / / " + options + b" - " + fstype + b" x rw")[0]) == mode


def test_a_read_only_filesystem_updates_no_access_times():
    assert mountinfo.atime_mode(table(b"1 0 8:1 / / rw - ext4 x ro")[0]) == "noatime"


@pytest.mark.parametrize(
    "fstype", [b"nfs", b"nfs4", b"cifs", b"fuse", b"fuse.glusterfs", b"lustre", b"newfs"]
)
def test_network_and_unknown_filesystems_may_have_other_users(fstype):
    assert mountinfo.is_network_or_unknown(fstype)


@pytest.mark.parametrize("fstype", [b"ext4", b"xfs", b"btrfs", b"tmpfs", b"overlay"])
def test_local_filesystems_have_one_kernel(fstype):
    assert not mountinfo.is_network_or_unknown(fstype)


def test_the_mount_of_a_path_and_of_a_descriptor_are_the_same(tmp_path):
    fd = os.open(tmp_path, os.O_PATH)
    try:
        by_descriptor = mountinfo.mount_of(fd)
        assert by_descriptor == mountinfo.mount_of(os.fsencode(tmp_path))
        assert by_descriptor.id == mount_id(fd) == mount_id_from_fdinfo(fd)
    finally:
        os.close(fd)


def test_a_closed_descriptor_has_no_mount():
    with pytest.raises(OSError, match="Bad file descriptor"):
        mount_id(999_999)


def test_places_are_told_by_filesystem_and_path_within_it():
    found = mountinfo.places(
        table(
            b"1 0 8:1 / / rw - ext4 x rw",
            b"2 1 8:2 / /home rw - xfs y rw",
            b"3 2 8:1 /srv/a /home/u/a rw - ext4 x rw",
            b"4 1 0:40 / /merged rw - overlay o rw,lowerdir=/home/u/low:/etc:relative",
        )
    )
    assert found == {
        (b"8:1", b"/"),
        (b"8:2", b"/"),
        (b"8:1", b"/home"),
        (b"8:1", b"/srv/a"),
        (b"8:2", b"/u/a"),
        (b"0:40", b"/"),
        (b"8:1", b"/merged"),
        (b"8:2", b"/u/low"),
        (b"8:1", b"/etc"),
    }


HOLD = "import sys, time; print('ready', flush=True); time.sleep(60)"


@pytest.fixture
def container():
    """Start processes in mount namespaces of their own, after a shell command in each; end them after."""
    started = []

    def start(command):
        script = f'{command} && exec "$0" -c "{HOLD}"'
        holder = subprocess.Popen(
            ["unshare", "-m", "--propagation", "private", "bash", "-c", script, sys.executable],
            stdout=subprocess.PIPE,
        )
        started.append(holder)
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"ready\n"
        return holder

    yield start
    for holder in started:
        holder.kill()
        holder.wait()
        holder.stdout.close()


def busy(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        return mountinfo.busy_below(fd, mountinfo.foreign_mounts())
    finally:
        os.close(fd)


@pytest.mark.root
def test_what_a_container_mounts_is_busy_by_its_path_here(tmp_path, needs_root, container):
    for name in ("root/bound/sub", "root/lower", "root/point/m", "root/idle", "up", "work", "merged"):
        (tmp_path / name).mkdir(parents=True)
    assert busy(tmp_path / "root") == frozenset()
    container(f"mount --bind {tmp_path}/root/bound/sub /mnt")
    container(
        f"mount -t overlay overlay {tmp_path}/merged "
        f"-o lowerdir={tmp_path}/root/lower,upperdir={tmp_path}/up,workdir={tmp_path}/work"
    )
    container(f"mount -t tmpfs tmpfs {tmp_path}/root/point/m")
    assert busy(tmp_path / "root") == {b"bound/sub", b"lower", b"point/m"}


@pytest.mark.root
def test_a_container_that_has_the_whole_location_keeps_no_entry_of_it_busy(tmp_path, needs_root, container):
    (tmp_path / "root/e").mkdir(parents=True)
    container(f"mount --bind {tmp_path}/root /mnt")
    assert busy(tmp_path / "root") == frozenset()
    assert busy(tmp_path) == {b"root"}


@pytest.mark.root
def test_a_namespace_that_only_one_thread_is_in_is_seen(tmp_path, needs_root):
    (tmp_path / "root/e").mkdir(parents=True)
    script = """
import ctypes, subprocess, sys, threading, time
def inside():
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.unshare(0x200 | 0x20000) == 0  # CLONE_FS, CLONE_NEWNS
    assert libc.mount(None, b"/", None, 0x44000, None) == 0  # MS_REC | MS_PRIVATE
    assert libc.mount(sys.argv[1].encode(), b"/mnt", None, 0x1000, None) == 0  # MS_BIND
    print("ready", flush=True)
    time.sleep(60)
threading.Thread(target=inside, daemon=True).start()
time.sleep(60)
"""
    holder = subprocess.Popen(
        [sys.executable, "-c", script, tmp_path / "root/e"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "ready\n"
        assert busy(tmp_path / "root") == {b"e"}
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()


def test_a_removed_directory_has_no_place(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY)
    tmp_path.rmdir()
    with pytest.raises(LookupError, match="removed"):
        mountinfo.place_of(fd)
    os.close(fd)


def test_looking_at_all_namespaces_takes_no_time_worth_mentioning():
    start = time.monotonic()
    found = mountinfo.foreign_mounts()
    assert time.monotonic() - start < 2
    assert all(mount.id for each in found.tables for mount in each)
