"""The metrics page, read back by Prometheus' own parser and checker."""

import math
import re
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest
from tests.daemon.measured import SERVICE, filled_metrics, full_location, names, samples, value

from cachewarden.metrics import (
    CONTENT_TYPE,
    FilesystemFigures,
    LocationFigures,
    Metrics,
    Snapshot,
    UserFigures,
)
from cachewarden.paths import unshow
from cachewarden_policies.reasons import EvictReason, Outcome

GOLDEN = Path(__file__).parent.parent / "data" / "metrics_page.txt"


def test_the_whole_page_is_as_it_was_agreed():
    page = re.sub(r'python_version="[^"]*"', 'python_version="X"', filled_metrics().render().decode())
    assert page == GOLDEN.read_text()


def test_the_page_passes_prometheus_own_check():
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed; CI installs it with the package prometheus")
    page = filled_metrics().render()
    checked = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_every_family_has_help_and_stands_on_the_page_once():
    text = filled_metrics().render().decode()
    types = re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)
    helps = re.findall(r"^# HELP (\S+) \S", text, re.MULTILINE)
    assert sorted(types) == sorted(set(types)) == sorted(helps)
    assert "_created" not in text


def test_what_is_not_set_is_absent_and_not_zero():
    page = filled_metrics().render()
    about_bare = {name for name, labels in samples(page) if ("location", "bare") in labels}
    assert about_bare == {
        "cachewarden_location_available",
        "cachewarden_location_enforcing",
        "cachewarden_location_watch_mode",
        "cachewarden_planned_bytes_total",
        "cachewarden_freed_bytes_total",
        "cachewarden_refetched_bytes_total",
        "cachewarden_rollbacks_total",
    }
    assert not any(("filesystem", "/srv") in labels for _, labels in samples(page))
    assert value(page, "location_trash_bytes", location="accelerate", path="/home/a/.accelerate") == 0


def test_no_locations_is_a_valid_page():
    page = Metrics(lambda: Snapshot(SERVICE)).render()
    assert value(page, "config_last_reload_successful") == 1
    assert not any("location" in name for name in names(page))


def test_exactly_one_member_of_each_enum_holds():
    page = samples(filled_metrics().render())
    for metric, label, holding in (
        ("outcome", "outcome", "short"),
        ("watch_mode", "mode", "inotify"),
        ("recency_source", "source", "relatime"),
    ):
        members = {
            dict(labels)[label]: held
            for (name, labels), held in page.items()
            if name == f"cachewarden_location_{metric}" and ("location", "accelerate") in labels
        }
        assert members.pop(holding) == 1
        assert set(members.values()) == {0}


def test_the_page_is_utf_8_text_that_a_parser_takes():
    assert CONTENT_TYPE.startswith("text/plain; version=0.0.4")
    assert all(not math.isnan(value) for value in samples(filled_metrics().render()).values())


ODD = [
    b"models--\xff\xfe",
    b"a\nERROR quota daemon disabled",
    b'q"uo\\te',
    "e\u0301".encode(),
    "\u00e9".encode(),
    b" lead",
    b"-rf",
    b"x" * 255,
    "\u202egnp".encode(),
    b"\x00\x1b[2J",
    "\u2028".encode(),
]


def test_odd_names_neither_break_the_page_nor_run_into_each_other():
    locations = tuple(LocationFigures("odd", name, available=True, bytes=i) for i, name in enumerate(ODD))
    metrics = Metrics(lambda: Snapshot(SERVICE, locations, (FilesystemFigures(b"/mnt/\xff\n", 1),)))
    for name in ODD:
        metrics.count_eviction("odd", name, EvictReason.IDLE, 1, 1)
    for _ in range(2):
        page = metrics.render()
        found = {
            unshow(dict(labels)["path"]): number
            for (name, labels), number in samples(page).items()
            if name == "cachewarden_location_bytes"
        }
        assert found == {name: float(i) for i, name in enumerate(ODD)}
        assert not [line for line in page.decode().splitlines() if line.startswith("ERROR")]


@pytest.mark.parametrize("user", ["o'brien", 'a"b', "a\nb", chr(0xDCFF), chr(0xD800), ""])
def test_odd_names_of_users_and_locations_do_not_break_the_page(user):
    figures = LocationFigures(user, b"/x", available=True, users=(UserFigures(user, 7),))
    page = Metrics(lambda: Snapshot(SERVICE, (figures,))).render()
    assert [v for (name, _), v in samples(page).items() if name == "cachewarden_location_user_bytes"] == [7]


def test_counters_grow_and_are_split_by_reason():
    page = filled_metrics().render()
    where = {"location": "accelerate", "path": "/home/a/.accelerate"}
    assert value(page, "evictions_total", **where, reason="over_size") == 2
    assert value(page, "evicted_bytes_total", **where, reason="over_size") == 16384
    assert value(page, "evictions_total", **where, reason="idle") == 1
    assert value(page, "freed_bytes_total", **where) == 12288
    assert value(page, "planned_bytes_total", **where) == 9000
    assert value(page, "errors_total", **where, errno="EACCES") == 1
    assert value(page, "passes_total", **where, outcome="short") == 1
    assert value(page, "pass_duration_seconds_count") == 1
    assert value(page, "pass_duration_seconds_bucket", le="0.3") == 1
    assert value(page, "pass_duration_seconds_bucket", le="0.1") == 0


def test_an_errno_without_a_name_is_a_number():
    metrics = Metrics(lambda: Snapshot(SERVICE, (full_location(),)))
    metrics.count_error("accelerate", b"/home/a/.accelerate", 9999)
    assert b'errno="9999"' in metrics.render()


def test_all_series_of_a_dropped_location_vanish_even_when_its_last_pass_still_counts():
    locations = [full_location(), full_location("gone", b"/gone")]
    metrics = Metrics(lambda: Snapshot(SERVICE, tuple(locations)))
    metrics.count_eviction("gone", b"/gone", EvictReason.IDLE, 1, 1)
    assert b'location="gone"' in metrics.render()
    locations.pop()
    metrics.retain([("accelerate", b"/home/a/.accelerate")])
    metrics.count_pass("gone", b"/gone", Outcome.TRIMMED, 1.0)
    assert b'location="gone"' not in metrics.render()


def test_a_forgotten_location_begins_again_at_zero():
    metrics = Metrics(lambda: Snapshot(SERVICE, (full_location(),)))
    metrics.count_rollback("accelerate", b"/home/a/.accelerate")
    metrics.retain([])
    page = metrics.render()
    assert value(page, "rollbacks_total", location="accelerate", path="/home/a/.accelerate") == 0


def test_nothing_is_lost_when_many_threads_count():
    metrics = Metrics(lambda: Snapshot(SERVICE, (full_location(),)))
    where = ("accelerate", b"/home/a/.accelerate")

    def count():
        for _ in range(500):
            metrics.count_eviction(*where, EvictReason.IDLE, 2, 1)
            metrics.count_late()

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    metrics.render()
    for thread in threads:
        thread.join()
    labels = {"location": "accelerate", "path": "/home/a/.accelerate"}
    assert value(metrics.render(), "evicted_bytes_total", **labels, reason="idle") == 8000
    assert value(metrics.render(), "passes_late_total") == 4000


def test_two_services_in_one_process_do_not_share_counters():
    first, second = (Metrics(lambda: Snapshot(SERVICE)) for _ in range(2))
    first.count_late()
    assert value(second.render(), "passes_late_total") == 0


def test_a_thousand_locations_render_at_once():
    locations = tuple(full_location("accelerate", b"/home/u%d/.accelerate" % i) for i in range(1000))
    metrics = Metrics(lambda: Snapshot(SERVICE, locations))
    for each in locations:
        metrics.count_pass(each.location, each.path, Outcome.TRIMMED, 0.1)
        metrics.count_eviction(each.location, each.path, EvictReason.OVER_SIZE, 1, 1)
    fastest = math.inf
    for _ in range(5):
        start = time.thread_time()  # of this thread: other tests run beside this one
        page = metrics.render()
        fastest = min(fastest, time.thread_time() - start)
    assert page.count(b"\ncachewarden_location_bytes{") == 1000
    assert fastest < 0.15, f"{fastest * 1000:.0f} ms"
