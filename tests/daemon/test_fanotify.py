"""The bindings of fanotify and file handles: what the kernel says, and what we make of it."""

import errno
import fcntl
import os
import struct
import subprocess
import sys

import pytest

from cachewarden.kernel import fanotify
from cachewarden.kernel.fanotify import Group, Kind, Scope
from cachewarden.kernel.handles import Handles, open_handle


def record(kind, handle=b"", name=b""):
    """One information record, as the kernel pads it."""
    body = b"\0" * 8 + handle + (name + b"\0" if name else b"")
    body += b"\0" * (-(4 + len(body)) % 4)
    return struct.pack("=BBH", kind, 0, 4 + len(body)) + body


def event(mask, pid, *records, version=3):
    """One event with its records."""
    body = b"".join(records)
    return struct.pack("=IBBHQii", 24 + len(body), version, 0, 24, mask, -1, pid) + body


HANDLE = struct.pack("=Ii", 6, 1) + b"abcdef"


class TestParsing:
    """Batches of events are taken apart by the lengths that they carry."""

    def test_an_event_with_a_directory(self):
        assert list(fanotify.parse(event(0x20, 17, record(3, HANDLE)))) == [
            (0x20, 17, HANDLE, b"", fanotify.NO_PIDFD)
        ]

    def test_an_event_with_a_name_and_a_pidfd(self):
        pidfd = struct.pack("=BBHi", 4, 0, 8, 99)
        (found,) = fanotify.parse(event(0x20, 17, record(2, HANDLE, b"na\xff\nme"), pidfd))
        assert found == (0x20, 17, HANDLE, b"na\xff\nme", 99)

    def test_events_follow_each_other_and_unknown_records_are_passed_over(self):
        unknown = struct.pack("=BBHi", 77, 0, 8, 0)
        batch = event(0x4000, 0) + event(0x20, 1, unknown, record(3, HANDLE)) + event(0x20, 2)
        assert [(each.pid, each.handle) for each in fanotify.parse(batch)] == [
            (0, b""),
            (1, HANDLE),
            (2, b""),
        ]

    def test_nothing_is_nothing(self):
        assert list(fanotify.parse(b"")) == []

    def test_another_version_of_the_structure_is_refused(self):
        with pytest.raises(ValueError, match="version 4"):
            list(fanotify.parse(event(0x20, 17, version=4)))


class TestHandles:
    """A directory keeps its handle for as long as it lives, whatever its path."""

    def test_a_handle_survives_renaming_and_not_removal(self, tmp_path):
        handles, fd = Handles(), os.open(tmp_path, os.O_RDONLY)
        try:
            (tmp_path / "a").mkdir()
            first = handles.of(b"a", fd)
            os.rename(tmp_path / "a", tmp_path / "b")
            assert handles.of(b"b", fd) == first
            (tmp_path / "b").rmdir()
            (tmp_path / "b").mkdir()
            assert handles.of(b"b", fd) != first
            inside = os.open(tmp_path / "b", os.O_RDONLY)
            assert handles.of(b"", inside) == handles.of(b"b", fd)
            os.close(inside)
        finally:
            os.close(fd)

    def test_a_link_has_a_handle_of_its_own(self, tmp_path):
        (tmp_path / "a").mkdir()
        (tmp_path / "link").symlink_to("a")
        fd = os.open(tmp_path, os.O_RDONLY)
        try:
            assert Handles().of(b"link", fd) != Handles().of(b"a", fd)
            with pytest.raises(FileNotFoundError):
                Handles().of(b"missing", fd)
        finally:
            os.close(fd)

    @pytest.mark.root
    @pytest.mark.usefixtures("needs_root")
    def test_a_handle_leads_back_until_the_directory_is_gone(self, tmp_path):
        (tmp_path / "a").mkdir()
        fd = os.open(tmp_path, os.O_RDONLY)
        try:
            handle = Handles().of(b"a", fd)
            back = open_handle(fd, handle)
            assert os.readlink(f"/proc/self/fd/{back}") == str(tmp_path / "a")
            os.close(back)
            (tmp_path / "a").rmdir()
            with pytest.raises(OSError, match=r"[Ss]tale"):
                open_handle(fd, handle)
        finally:
            os.close(fd)


@pytest.mark.root
@pytest.mark.usefixtures("needs_root")
class TestGroups:
    """Real groups on a real filesystem."""

    def seen(self, group, tmp_path, program=("cat",)):
        """What a program that opens a file makes the group report of its directory."""
        (tmp_path / "d").mkdir(exist_ok=True)
        (tmp_path / "d/file").write_bytes(b"")
        while group.read():
            pass
        with subprocess.Popen([*program, tmp_path / "d/file"]) as running:
            pass
        handle = Handles().of(bytes(tmp_path / "d"), -100)
        events = list(fanotify.parse(group.read()))
        for each in events:
            if each.pidfd >= 0:
                os.close(each.pidfd)
        return [each for each in events if (each.handle, each.pid) == (handle, running.pid)]

    def marked(self, tmp_path, kind=None):
        group = Group(kind or Kind())
        fd = os.open(tmp_path, os.O_RDONLY)
        group.mark(Scope.FILESYSTEM, fanotify.OPEN, fd)
        os.close(fd)
        return group

    def test_an_open_is_reported_with_directory_and_process_and_without_a_name(self, tmp_path):
        with self.marked(tmp_path) as group:
            (found,) = self.seen(group, tmp_path)
        assert (found.mask, found.name) == (fanotify.OPEN, b"")

    def test_names_and_pidfds_are_reported_where_they_are_asked_for(self, tmp_path):
        with self.marked(tmp_path, Kind(names=True, pidfds=True)) as group:
            (found,) = self.seen(group, tmp_path)
        assert found.name == b"file"
        assert found.pidfd == fanotify.NO_PIDFD  # it has ended by now

    def test_nothing_waiting_is_no_error_and_nothing_to_wait_for(self, tmp_path):
        with Group(Kind()) as group:
            assert group.read() == b""

    def test_ignored_directories_are_silent_until_they_are_heeded(self, tmp_path):
        with self.marked(tmp_path) as group:
            assert self.seen(group, tmp_path)
            group.ignore(bytes(tmp_path / "d"))
            assert not self.seen(group, tmp_path)
            group.heed_all()
            assert self.seen(group, tmp_path)

    def test_reading_while_a_file_is_leased_does_not_wait(self, tmp_path):
        with self.marked(tmp_path) as group:
            assert self.seen(group, tmp_path)
            subprocess.run(["cat", tmp_path / "d/file"], check=True)
            fd = os.open(tmp_path / "d/file", os.O_RDONLY)
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            assert list(fanotify.parse(group.read()))
            assert fcntl.fcntl(fd, fcntl.F_GETLEASE) == fcntl.F_WRLCK
            os.close(fd)

    def test_a_group_is_recognised_by_its_kind(self):
        with Group(Kind(names=True)) as group:
            assert fanotify.is_group_of(group.fd, Kind(names=True))
            assert not fanotify.is_group_of(group.fd, Kind())
        assert not fanotify.is_group_of(0, Kind())
        assert not fanotify.is_group_of(-1, Kind())

    def test_errors_of_the_kernel_come_with_their_number(self, tmp_path):
        with Group(Kind()) as group, pytest.raises(OSError, match="No such file") as caught:
            group.ignore(bytes(tmp_path / "missing"))
        assert caught.value.errno == errno.ENOENT

    def test_what_this_kernel_has_is_found_out(self):
        found = fanotify.detect()
        assert found.usable
        assert len(found.missing) == (not found.pidfds) + (not found.ignore)

    def test_without_the_capability_that_is_said(self):
        code = "from cachewarden.kernel import fanotify; f = fanotify.detect(); print(f.usable, *f.missing)"
        said = subprocess.run(
            ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        assert said == "False opens are not seen (CAP_SYS_ADMIN is missing): samples of /proc\n"
