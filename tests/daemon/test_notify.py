"""sd_notify against real datagram sockets."""

import ast
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from cachewarden.notify import Notifier


@pytest.fixture
def manager(tmp_path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(5)
        yield listening


def lines(manager: socket.socket) -> list[str]:
    return manager.recv(4096).decode().split("\n")


def test_without_a_manager_nothing_is_sent_and_nothing_fails():
    notifier = Notifier({"WATCHDOG_USEC": "2000000"})
    assert not notifier.active
    assert notifier.watchdog_interval_ns is None
    assert not notifier.ready()
    assert not notifier.watchdog()


def test_a_life_from_start_to_stop(manager):
    notifier = Notifier({"NOTIFY_SOCKET": manager.getsockname()})
    assert notifier.ready("watching 2 locations")
    assert lines(manager) == ["READY=1", "STATUS=watching 2 locations"]
    notifier.watchdog()
    assert lines(manager) == ["WATCHDOG=1"]
    notifier.status("measuring")
    assert lines(manager) == ["STATUS=measuring"]
    notifier.stopping()
    assert lines(manager) == ["STOPPING=1"]


def test_a_reload_carries_the_monotonic_time_in_microseconds(manager):
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    Notifier({"NOTIFY_SOCKET": manager.getsockname()}).reloading()
    after = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    state, stamp = lines(manager)
    assert state == "RELOADING=1"
    assert before <= int(stamp.removeprefix("MONOTONIC_USEC=")) <= after


def test_an_abstract_socket_is_reached():
    name = f"cachewarden-test-{os.getpid()}-{time.monotonic_ns()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + name)
        manager.settimeout(5)
        assert Notifier({"NOTIFY_SOCKET": "@" + name}).ready()
        assert lines(manager) == ["READY=1"]


def test_a_status_cannot_smuggle_in_another_state(manager):
    notifier = Notifier({"NOTIFY_SOCKET": manager.getsockname()})
    notifier.status("evicting a\nSTOPPING=1\x1b[2J")
    assert lines(manager) == ["STATUS=evicting a STOPPING=1 [2J"]


def test_a_status_with_undecodable_parts_is_sent(manager):
    Notifier({"NOTIFY_SOCKET": manager.getsockname()}).status("a\udcff")
    assert lines(manager)[0].startswith("STATUS=a")


def test_a_manager_that_is_gone_is_no_error(tmp_path):
    assert not Notifier({"NOTIFY_SOCKET": str(tmp_path / "gone")}).ready()


def test_a_manager_whose_queue_is_full_does_not_hold_us(manager):
    notifier = Notifier({"NOTIFY_SOCKET": manager.getsockname()})
    start = time.monotonic()
    while notifier.watchdog():
        assert time.monotonic() - start < 10
    assert time.monotonic() - start < 10
    assert lines(manager) == ["WATCHDOG=1"]


@pytest.mark.parametrize("address", ["", "relative/path", "vsock:2:1234", "@"])
def test_an_address_of_another_family_is_left_alone(address):
    assert not Notifier({"NOTIFY_SOCKET": address}).active


@pytest.mark.parametrize(
    ("limit", "pid", "interval_ns"),
    [
        ("2000000", None, 1_000_000_000),
        ("2000000", "ours", 1_000_000_000),
        ("2000000", "1", None),
        ("0", None, None),
        ("soon", None, None),
        ("", None, None),
    ],
)
def test_the_watchdog_interval_is_half_of_the_limit_and_only_ours(limit, pid, interval_ns):
    environ = {"NOTIFY_SOCKET": "/run/nowhere", "WATCHDOG_USEC": limit}
    if pid is not None:
        environ["WATCHDOG_PID"] = str(os.getpid()) if pid == "ours" else pid
    assert Notifier(environ).watchdog_interval_ns == interval_ns


def test_a_descriptor_in_the_managers_store_is_the_same_open_file(manager):
    ours, other = os.pipe()
    notifier = Notifier({"NOTIFY_SOCKET": manager.getsockname()})
    assert notifier.keep("fanotify-8.1", ours)
    message, fds, _, _ = socket.recv_fds(manager, 4096, 4)
    assert message.decode().split("\n") == ["FDSTORE=1", "FDNAME=fanotify-8.1", "FDPOLL=0"]
    try:
        os.write(other, b"through")
        assert os.read(fds[0], 16) == b"through"
    finally:
        for fd in (ours, other, *fds):
            os.close(fd)
    assert notifier.forget("fanotify-8.1")
    assert lines(manager) == ["FDSTOREREMOVE=1", "FDNAME=fanotify-8.1"]


_CHILD = """
import ast
import os
from cachewarden.notify import Notifier
os.environ["LISTEN_PID"] = str(os.getpid() + int(os.environ.pop("OFF")))
found = Notifier(os.environ).inherited()
print({name: (os.read(fd, 16), os.get_inheritable(fd)) for name, fd in found.items()})
"""


@pytest.mark.parametrize(("off", "expected"), [("0", {"opens": (b"waiting", False)}), ("1", {})])
def test_what_the_manager_kept_comes_back_by_name_unless_it_is_meant_for_another_process(off, expected):
    here, there = os.pipe()
    os.write(there, b"waiting")
    environ = {**os.environ, "LISTEN_FDS": "1", "LISTEN_FDNAMES": "opens", "OFF": off}
    try:
        child = subprocess.run(
            [sys.executable, "-c", f"import os; os.dup2({here}, 3)\n{_CHILD}"],
            env=environ,
            pass_fds=(here,),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    finally:
        os.close(here)
        os.close(there)
    assert ast.literal_eval(child.stdout) == expected
