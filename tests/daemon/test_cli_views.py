"""What commands say of a plan, a pass, a location and an entry."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from tests.daemon.cli_samples import (
    FAILED,
    GIB,
    NOW,
    PIN,
    SPEC,
    evicted,
    eviction,
    explanation,
    location,
    plan,
    row,
    state,
    status,
)

from cachewarden.cli.blocks import Block
from cachewarden.cli.screen import plain
from cachewarden.cli.views.entries import list_blocks
from cachewarden.cli.views.explaining import explain_blocks, gone_blocks
from cachewarden.cli.views.passes import pass_blocks
from cachewarden.cli.views.plans import plan_blocks
from cachewarden.cli.views.records import history_blocks, pins_blocks, trash_blocks
from cachewarden.cli.views.status import status_blocks
from cachewarden.enforce.view import history_json
from cachewarden.evict import TrashItem
from cachewarden.report import PassReport, SparedEntry
from cachewarden.service.keeping import TrashRow
from cachewarden.service.status import LocationStatus, Status
from cachewarden_policies.policy import DAY, HOUR
from cachewarden_policies.reasons import KeepReason, Outcome


def said(blocks: Iterable[Block]) -> str:
    """As a pipe gets it."""
    return "\n".join(text for block in blocks for text in plain(block))


def test_a_plan_says_what_would_go_in_order_and_why():
    """Rank, entry, size, last use and its source, reason; then the totals."""
    two = location(evicted=(evicted(b"older", 40), evicted(b"newer", 3, GIB)), bytes_after=199 * GIB)
    text = said(plan_blocks(plan(two), NOW))
    assert "212 GiB of 200 GiB (106 %), target 180 GiB" in text
    assert "    1  older  12 GiB     12 GiB  40 d ago  atime     the location is over max_size\n" in text
    assert "    2  newer   1 GiB      1 GiB   3 d ago  atime     the location is over max_size\n" in text
    assert "2 entries would go from 1 location: 13 GiB, of which the disk gets 13 GiB back." in text


def test_a_plan_says_what_stays_grouped_by_the_reason_with_examples():
    """The largest first, who holds it by name, and how many more there are."""
    many = [SparedEntry(b"m%d" % number, number, KeepReason.MIN_IDLE) for number in range(6)]
    text = said(plan_blocks(plan(location(spared=(*location().spared, *many))), NOW))
    assert "models--acme--served (python3 (pid 812, anna) has it mapped into its memory)" in text
    assert "m5, m4, m3 and 3 more" in text


def test_a_plan_that_falls_short_says_by_how_much_and_because_of_what():
    """The largest obstacle first."""
    short = location(
        outcome=Outcome.SHORT,
        shortfall_bytes=12 * GIB,
        blocked={KeepReason.PROTECTED: 2 * GIB, KeepReason.IN_USE: 10 * GIB},
    )
    assert "Would still be 12 GiB over: 10 GiB in use, 2 GiB protected" in said(plan_blocks(plan(short), NOW))


def test_a_plan_cut_by_max_share_says_how_to_go_on():
    """By its command, with the location's name."""
    text = said(plan_blocks(plan(location(outcome=Outcome.WAITING)), NOW))
    assert "`cachewarden confirm models`" in text


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"outcome": Outcome.WITHIN_LIMITS}, "Nothing would go: everything is within its limits."),
        ({"outcome": Outcome.SHORT}, "Nothing would go: over a limit, and nothing more may go."),
        ({"outcome": Outcome.WITHIN_LIMITS, "spared": ()}, "Nothing would go: there are no entries."),
    ],
)
def test_a_plan_under_which_nothing_goes_says_so_and_why(changes, sentence):
    """In a sentence of its own, and again at the end."""
    text = said(plan_blocks(plan(location(evicted=(), **changes)), NOW))
    assert sentence in text
    assert text.endswith("Nothing would go.")


def test_a_location_that_could_not_be_looked_at_has_a_reason_and_no_figures():
    """In a plan and after a pass."""
    gone = location(
        outcome=Outcome.UNAVAILABLE,
        evicted=(),
        spared=(),
        bytes_before=0,
        bytes_after=0,
        limit_bytes=None,
        warnings=("/srv/hub: does not answer",),
    )
    for blocks in (plan_blocks(plan(gone), NOW), pass_blocks(PassReport((gone,)), NOW, told=False)):
        text = said(blocks)
        assert "  /srv/hub: does not answer" in text
        assert "no limit" not in text
        assert "0 B" not in text


def test_foreign_bytes_and_warnings_are_said():
    """What is not part of the cache is counted, and nobody wonders where the bytes are."""
    text = said(plan_blocks(plan(location(foreign_bytes=3 * GIB, warnings=("a lower bound",))), NOW))
    assert "3 GiB in it are not part of the cache" in text
    assert "Warning: a lower bound" in text


def test_a_pass_says_what_went_what_was_spared_and_what_failed():
    """Names of entries, of reasons, of errors."""
    text = said(pass_blocks(PassReport((location(failed=(FAILED,)),)), NOW, told=False))
    assert "212 GiB before, 200 GiB of 200 GiB now" in text
    assert "models--acme--old  12 GiB  12 GiB  40 d ago  the location is over max_size" in text
    assert "Spared 2 entries" in text
    assert "Failed: models--acme--stuck (EPERM at models--acme--stuck/blobs)" in text
    assert "Evicted 1 entry, 12 GiB freed." in text


def test_what_was_told_as_it_happened_is_not_told_twice():
    """On a terminal, evictions are shown one by one."""
    text = said(pass_blocks(PassReport((location(failed=(FAILED,)),)), NOW, told=True))
    assert "models--acme--old" not in text
    assert "models--acme--stuck" not in text
    assert "Evicted 1 entry, 12 GiB freed." in text


def test_status_has_one_row_for_each_location():
    """Name, path, usage, limit, share, entries, state, last and next pass."""
    text = said(status_blocks(status(), NOW))
    assert "The service is running (pid 812, started 3 d ago)." in text
    assert "models    /srv/hub  142 GiB  200 GiB  71 %       45  within limits  3 min ago   in 2 min" in text


def test_status_says_when_the_last_reload_failed_and_not_when_it_went_well():
    running = status().service
    for reload, ends in (("ok", "ago)."), ("failed: c.toml:3: no", "the last reload failed: c.toml:3: no")):
        text = said(status_blocks(replace(status(), service=replace(running, reload=reload)), NOW))
        assert text.splitlines()[0].endswith(ends)


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        (
            {"waiting_since_ns": NOW - HOUR, "waiting_entries": 7, "waiting_bytes": 9 * GIB},
            "waits for confirmation that 7 entries, 9 GiB may go, since 1 h ago: cachewarden confirm models",
        ),
        ({"confirmed_until_ns": NOW + HOUR}, "(in 1 h): max_share does not apply"),
        (
            {"outcome": Outcome.SHORT, "detail": "12 GiB over"},
            "over a limit, and nothing more may go: 12 GiB over",
        ),
        ({"usage_complete": False}, "parts of it cannot be read: its usage is a lower bound"),
        ({"over_limit_since_ns": NOW - 2 * HOUR}, "over its limit since 2 h ago"),
    ],
)
def test_status_says_what_somebody_should_know(changes, note):
    """Below the table, with name and path."""
    text = said(status_blocks(status(**changes), NOW))
    assert any(each.startswith("models (/srv/hub): ") and note in each for each in text.splitlines())


def test_status_tells_missing_from_unavailable():
    """A cache that its user deleted is no failure; a filesystem that does not answer is one."""
    missing = LocationStatus(SPEC, state(bytes=None, outcome=None), missing=True)
    dead = LocationStatus(
        SPEC, state(outcome=Outcome.UNAVAILABLE, detail="timed out", available=False), missing=False
    )
    assert "it is not there; it is taken up when it appears" in said(
        status_blocks(Status(None, [missing]), NOW)
    )
    assert "unavailable: timed out" in said(status_blocks(Status(None, [dead]), NOW))


def test_status_without_a_service_says_that_nothing_goes_by_itself():
    """And a pause, and report only, say so too."""
    paused = LocationStatus(replace(SPEC, enforce=False), state(), missing=False, paused_until_ns=NOW + HOUR)
    text = said(status_blocks(Status(None, [paused], ["models: /x is refused"], ["old key"]), NOW))
    assert "The service is not running" in text
    assert "(in 1 h): nothing goes" in text
    assert "report only" in text
    assert "Refused: models: /x is refused" in text
    assert "Warning: old key" in text


def test_the_list_begins_with_what_goes_first():
    """Then what stays, the least recently used first."""
    rows = [
        row(entry=b"young", rank=None, reason=KeepReason.WITHIN_LIMITS, last_use_ns=NOW - DAY),
        row(entry=b"second", rank=1),
        row(entry=b"old", rank=None, reason=KeepReason.WITHIN_LIMITS, last_use_ns=NOW - 9 * DAY),
        row(entry=b"first"),
    ]
    text = said(list_blocks(rows, NOW))
    places = [text.index(f"  {name} ") for name in ("first", "second", "old", "young")]
    assert places == sorted(places)
    assert "4 entries, 48 GiB" in text


def test_the_list_tells_until_when_an_entry_is_pinned_and_why():
    """Also where something else holds it first."""
    pinned = said(list_blocks([row(pin=PIN, rank=None, reason=KeepReason.PINNED)], NOW))
    assert "(in 3 d): paper deadline" in pinned
    both = said(list_blocks([row(pin=PIN, rank=None, reason=KeepReason.IN_USE)], NOW))
    assert "stands in it; pinned until" in both


def test_an_explanation_tells_the_story_of_an_entry():
    """What, since when, who, which limits, and what became of it before."""
    text = said(explain_blocks(explanation(), [eviction()], NOW))
    for sentence in (
        "it would go now: the location is over max_size; it is the first to go",
        "a repo of layout hub: 12 GiB in 34 files, owned by 4000000000",
        "frees 12 GiB; when somebody wants it again, it would be downloaded again",
        "read 40 d ago (2023-10-05",
        ", by its access time; first seen 90 d ago",
        "python3 (pid 812, anna) has it mapped into its memory",
        "not pinned",
        "max_size 200 GiB, used 212 GiB",
        "evicted 2 h ago",
    ):
        assert sentence in text, sentence


def test_an_explanation_tells_what_shared_data_means_for_the_gain():
    """Bytes that others keep are not promised."""
    text = said(explain_blocks(explanation(disk_gain_bytes=0, gain_bytes=GIB), [], NOW))
    assert "takes 1 GiB off the location and gives the disk 0 B back, because others share its data" in text


def test_an_explanation_of_what_went_tells_when_and_why():
    """From history alone."""
    text = said(
        gone_blocks(b"/srv/hub/models--acme--old", [eviction(), eviction(time_ns=NOW - 9 * DAY)], NOW)
    )
    assert "it is not there any more" in text
    assert "evicted 2 h ago" in text
    assert "the location is over max_size; 12 GiB, 11 GiB freed" in text
    assert "evicted 9 d ago" in text


def test_history_pins_and_trash_are_tables_or_say_that_they_are_empty():
    """Names are escaped wherever they come from."""
    assert said(history_blocks([], 5)) == "Nothing has been evicted yet."
    assert said(pins_blocks([], NOW)) == "Nothing is pinned."
    assert said(trash_blocks([])) == "The trash is empty."
    text = said(history_blocks([eviction(entry=b"a\nb\xff")] * 3, 2))
    assert text.count("a\\nb\\xff") == 2
    assert "history --json" in text
    assert "/srv/hub/models--acme--old" in said(pins_blocks([PIN], NOW))
    item = TrashItem(b"/srv/.cachewarden-trash/m-1", None, "stray", GIB, 3)
    assert "(unknown)   stray  1 GiB      3" in said(trash_blocks([TrashRow(SPEC, item)]))


def test_history_names_the_users_where_there_are_several():
    """By number where one has no name; of what older versions wrote, nobody knows whose it was."""
    one, two = eviction(owner=4_000_000_001), eviction(owner=4_000_000_002)
    for rows in ([one, one], [eviction(), one], [eviction()]):
        assert "USER" not in said(history_blocks(rows, 5))
    text = said(history_blocks([one, eviction(), two], 5)).splitlines()
    start = text[0].index("USER")
    assert [row[start:].split()[0] for row in text[1:4]] == ["4000000001", "-", "4000000002"]
    assert "USER" not in said(history_blocks([one, two], 1))  # the one that is shown
    assert [each["user"] for each in history_json([one, eviction()])] == ["4000000001", None]
