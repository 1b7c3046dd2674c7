"""The clock is an argument: who reads the time of day by himself is on this list, with the reason.

How long a thread sleeps, and when a wait is given up, is no matter of the clock that passes run by: for that
alone `time.monotonic` may be read anywhere in the daemon.
"""

import ast
from pathlib import Path

import cachewarden
import cachewarden_policies

WAITS = {"monotonic"}
READS = {"time", "time_ns", "monotonic_ns", "perf_counter", "perf_counter_ns", "clock_gettime"}
READS |= {"clock_gettime_ns", "now", "utcnow", "today", "localtime", "gmtime"}

ALLOWED = {
    "clock.py": "it is the clock",
    "notify.py": "the service manager wants CLOCK_MONOTONIC, and compares it with its own",
    "cli/face.py": "the edge: what people are shown is relative to now",
    "cli/progress.py": "the edge: progress is shown relative to now",
}


def readers(root, calls):
    """Files below `root` in which one of `calls` of `time` or `datetime` is called."""
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            called = node.func if isinstance(node, ast.Call) else None
            if (
                isinstance(called, ast.Attribute)
                and called.attr in calls
                and isinstance(called.value, ast.Name)
                and called.value.id in {"time", "datetime", "date"}
            ):
                yield str(path.relative_to(root))


def test_only_these_files_of_the_daemon_read_the_time():
    root = Path(cachewarden.__file__).parent
    assert set(readers(root, READS)) <= ALLOWED.keys()


def test_no_policy_reads_a_clock():
    assert set(readers(Path(cachewarden_policies.__file__).parent, READS | WAITS)) == set()
