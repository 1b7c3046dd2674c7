"""What was opened while a pass measures counts in it: uses make young, and indexers do not."""

import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace

import pytest
from tests.daemon.passes import DAY, Field, limit, policy

from cachewarden.enforce.enforcer import Enforcer
from cachewarden.openers import Openers, Setting
from cachewarden_policies.reasons import LastUseSource

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("needs_root")]

_MAKE = """
import os, sys, time
for name, days in zip(sys.argv[2::2], map(int, sys.argv[3::2])):
    os.makedirs(f"{sys.argv[1]}/{name}")
    with open(f"{sys.argv[1]}/{name}/f", "wb") as file:
        file.write(os.urandom(1 << 20))
    os.utime(f"{sys.argv[1]}/{name}/f", (time.time() - days * 86400,) * 2)
"""


@contextmanager
def fielded(tmp_path, mode):
    """Three entries, and a feed that reads what the kernel tells only when it is asked."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", mode, "tmpfs", tmp_path], check=True)
    try:
        made = Field(tmp_path)
        opens = Openers(made.clock, made.ledger.openers, Setting(ignore=("updatedb",)))
        means = replace(made.enforcer.surveyor.means, opens=opens, opens_since_start=lambda _: True)
        made.enforcer = Enforcer(means)
        subprocess.run([sys.executable, "-c", _MAKE, made.root, "a", "30", "b", "20", "c", "10"], check=True)
        assert made.run(policy()).evicted == ()
        yield made
        opens.stop()
        made.ledger.close()
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)


@contextmanager
def reading(field, program, *names):
    """A program of this name that has read these entries and still runs."""
    path = field.base / program
    path.symlink_to("/bin/bash")
    code = 'for f; do read x < "$f"; done 2> /dev/null; echo; read x; :'
    command = [path, "-c", code, "bash", *(field.root / name / "f" for name in names)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        running.stdout.readline()
        yield


def test_an_indexer_that_nobody_has_heard_of_when_the_pass_begins_leaves_the_order_as_it_was(tmp_path):
    with fielded(tmp_path, "strictatime") as field, reading(field, "updatedb", "c", "b", "a"):
        assert os.stat(field.root / "a/f").st_atime_ns > field.clock.wall_ns() - DAY
        (gone,) = field.run(policy(limits=limit(2))).evicted
        assert (gone.entry, gone.last_use_source) == (b"a", LastUseSource.ATIME)
        assert 29 * DAY < field.clock.wall_ns() - gone.last_use_ns < 31 * DAY


def test_a_use_that_nobody_has_heard_of_when_the_pass_begins_counts_in_it(tmp_path):
    with fielded(tmp_path, "noatime") as field:
        with reading(field, "somebody", "a"):
            pass
        (gone,) = field.run(policy(limits=limit(2))).evicted
        assert (gone.entry, gone.last_use_source) == (b"b", LastUseSource.STAMPS)
        assert field.ledger.record(field.spec(policy()).key, b"a").last_use_source is LastUseSource.OPENS
