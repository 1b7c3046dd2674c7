"""The clock is an argument: who reads one by himself is on this list, with the reason."""

import ast
from pathlib import Path

import cachewarden
import cachewarden_policies

READS = {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "clock_gettime"}
READS |= {"clock_gettime_ns", "now", "utcnow", "today", "localtime", "gmtime"}

ALLOWED = {
    "clock.py": "it is the clock",
    "notify.py": "the service manager wants CLOCK_MONOTONIC, and compares it with its own",
    "openers/reader.py": "how long a thread sleeps",
    "enforce/carry_out.py": "bounds a wait for a filesystem, and decides nothing",
    "evict/tools/child.py": "bounds the wait for another program",
    "ledger/files.py": "bounds a wait for a lock",
    "cli/face.py": "the edge: what people are shown is relative to now",
    "cli/progress.py": "the edge: progress is shown after a while",
}


def readers(root):
    """Files below `root` in which something of `time` or `datetime` that reads a clock is called."""
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            called = node.func if isinstance(node, ast.Call) else None
            if (
                isinstance(called, ast.Attribute)
                and called.attr in READS
                and isinstance(called.value, ast.Name)
                and called.value.id in {"time", "datetime", "date"}
            ):
                yield str(path.relative_to(root))


def test_only_these_files_of_the_daemon_read_a_clock():
    root = Path(cachewarden.__file__).parent
    assert set(readers(root)) <= ALLOWED.keys()


def test_no_policy_reads_a_clock():
    assert set(readers(Path(cachewarden_policies.__file__).parent)) == set()
