"""What the series are called, and how many there can be."""

import errno
import re

from prometheus_client.parser import text_string_to_metric_families
from tests.daemon.measured import SERVICE, filled_metrics, full_location, names, samples

from cachewarden.metrics import LocationFigures, Metrics, Snapshot
from cachewarden_policies.reasons import EvictReason, KeepReason, Outcome

# What measures something without a unit counts things, and is called by their plural; flags and states of
# a thing are called by what is true when they are 1.
_UNITS = ("bytes", "seconds")
_THINGS = {"files", "entries", "evictions", "passes", "spared", "rollbacks", "errors", "late", "overflows"}
_STATES = {"available", "complete", "usable", "enforcing", "successful", "info", "outcome", "mode", "source"}
# Units that are no base units, abbreviations of them, and words that say what the type says.
_NO_WORDS = {
    *("ms", "msec", "millis", "us", "ns", "sec", "secs", "minutes", "hours", "hour", "days", "day"),
    *("b", "kb", "kib", "mb", "mib", "gb", "gib", "tb", "tib", "octets", "bits", "percent", "pct"),
    *("count", "counter", "gauge", "histogram", "summary", "metric", "number", "num"),
}


def test_names_follow_the_naming_guide():
    for name, kind in names(filled_metrics().render()).items():
        assert re.fullmatch(r"cachewarden(_[a-z]+)+", name), name
        words = name.split("_")
        assert words.count("total") == (kind == "counter"), name
        assert ("total" not in words) or words[-1] == "total", name
        last = words[-2] if kind == "counter" else words[-1]
        assert last in {*_UNITS, *_THINGS, *_STATES}, name
        assert sum(words.count(unit) for unit in _UNITS) == (last in _UNITS), f"{name}: the unit is not last"
        assert not _NO_WORDS & set(words), name
        if {"timestamp", "duration", "size", "since"} & set(words):
            assert last in _UNITS, name
        if "timestamp" in words:
            assert words[-2:] == ["timestamp", "seconds"], name
        assert (kind == "histogram") == ("duration" in words), name


def test_no_name_repeats_a_label_unless_it_is_what_the_metric_is_about():
    """`evictions_by_reason` would say twice what the label `reason` says."""
    # Whose figures they are, and not how they are broken down.
    subjects = {"location", "filesystem", "user"}
    # A state is a set of series of which one is 1. Its label is called as the state is.
    states = {"cachewarden_location_outcome", "cachewarden_location_watch_mode"}
    states |= {"cachewarden_location_recency_source"}
    for family in text_string_to_metric_families(filled_metrics().render().decode()):
        labels = {label for sample in family.samples for label in sample.labels}
        assert not labels & set(family.name.split("_")) - subjects or family.name in states, family.name


def everything_that_can_happen(metrics: Metrics, where: tuple[str, bytes], times: int) -> None:
    for number in range(times):
        for reason in EvictReason:
            metrics.count_eviction(*where, reason, number, number)
        for kept in KeepReason:
            metrics.count_spared(*where, kept)
        for outcome in Outcome:
            metrics.count_pass(*where, outcome, 0.1 * number)
        for error in errno.errorcode:
            metrics.count_error(*where, error)
        metrics.count_plan(*where, number)
        metrics.count_refetched(*where, number)
        metrics.count_rollback(*where)


def test_series_grow_with_locations_and_with_nothing_that_happens_in_them():
    """What happens to thousands of entries makes larger numbers. What is bounded is bounded by enums."""

    def series(locations: int, times: int) -> int:
        figures = tuple(full_location("homes", b"/home/u%d" % i) for i in range(locations))
        metrics = Metrics(lambda: Snapshot(SERVICE, figures))
        for each in figures:
            everything_that_can_happen(metrics, (each.location, each.path), times)
        return len(samples(metrics.render()))

    once = series(1, 1)
    assert series(1, 300) == once
    of_service = 2 * once - series(2, 1)
    of_location = once - of_service
    assert series(50, 1) == of_service + 50 * of_location
    assert of_location < 60 + 4 * (len(EvictReason) + len(KeepReason) + len(Outcome)) + len(errno.errorcode)


def test_matches_of_a_glob_that_come_and_go_leave_nothing_behind():
    """Ten thousand homes, ten at a time: no line on the page, and no count in memory, is of a former one."""
    here: list[LocationFigures] = []
    metrics = Metrics(lambda: Snapshot(SERVICE, tuple(here)))
    sizes = set()
    for round_ in range(1000):
        here[:] = [full_location("homes", b"/home/u%04d-%d" % (round_, i)) for i in range(10)]
        metrics.retain([(each.location, each.path) for each in here])
        for each in here:
            metrics.count_eviction(each.location, each.path, EvictReason.IDLE, 1, 1)
        if round_ % 100 == 0:
            sizes.add(len(samples(metrics.render())))
    assert len(sizes) == 1
    assert len(set(re.findall(rb'path="([^"]*)"', metrics.render()))) == 10
