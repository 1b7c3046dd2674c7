"""What a running service tells commands about itself."""

import os
import signal
import subprocess

from cachewarden.ledger import (
    ServiceState,
    read_service_state,
    remove_service_state,
    signal_service,
    write_service_state,
)

NOW = 1_700_000_000 * 10**9


def test_a_running_service_is_found_with_what_it_said(tmp_path):
    run = os.fsencode(tmp_path / "run")
    write_service_state(run, ServiceState(os.getpid(), NOW, "ok", NOW + 1, {"hub:/data": "inotify"}))
    state = read_service_state(run)
    assert (state.pid, state.since_ns, state.reload) == (os.getpid(), NOW, "ok")
    assert (state.next_pass_ns, state.watch_modes) == (NOW + 1, {"hub:/data": "inotify"})
    remove_service_state(run)
    remove_service_state(run)
    assert read_service_state(run) is None


def test_a_service_that_was_killed_is_not_running(tmp_path):
    child = subprocess.Popen(["sleep", "60"])
    try:
        write_service_state(os.fsencode(tmp_path), ServiceState(child.pid, NOW))
        assert read_service_state(os.fsencode(tmp_path)) is not None
    finally:
        child.kill()
        child.wait()
    assert read_service_state(os.fsencode(tmp_path)) is None


def test_another_process_with_the_same_pid_is_not_the_service(tmp_path):
    run = os.fsencode(tmp_path)
    write_service_state(run, ServiceState(os.getpid(), NOW))
    path = tmp_path / "service.json"
    ticks = read_service_state(run).started_ticks
    path.write_text(path.read_text().replace(str(ticks), str(ticks - 1)))
    assert read_service_state(run) is None


def test_a_file_that_says_nothing_sensible_is_no_service(tmp_path):
    for content in (b"", b"[]", b"\xff", b'{"pid": "x"}', b'{"pid": 1}', b'{"since_ns": 1, "pid": "../1"}'):
        (tmp_path / "service.json").write_bytes(content)
        assert read_service_state(os.fsencode(tmp_path)) is None


def test_a_signal_reaches_the_running_service_and_nobody_else(tmp_path):
    run = os.fsencode(tmp_path)
    assert signal_service(run, signal.SIGTERM) is None
    child = subprocess.Popen(["sleep", "60"])
    try:
        write_service_state(run, ServiceState(child.pid, NOW))
        path = tmp_path / "service.json"
        written = path.read_text()
        ticks = read_service_state(run).started_ticks
        path.write_text(written.replace(str(ticks), str(ticks - 1)))  # of one that had this pid before
        assert signal_service(run, signal.SIGTERM) is None
        assert child.poll() is None
        path.write_text(written)
        assert signal_service(run, signal.SIGTERM).pid == child.pid
        assert child.wait(20) == -signal.SIGTERM
    finally:
        child.kill()
        child.wait()
    assert signal_service(run, signal.SIGTERM) is None
