"""What `explain` says of an entry's last use: when, by whom, how that is known, and how sure it is."""

import os
import pwd

import pytest
from tests.daemon.cli_samples import NOW, explanation

from cachewarden.cli.screen import plain
from cachewarden.cli.views.explaining import explain_blocks
from cachewarden.ledger import Opener, Record
from cachewarden_policies.policy import DAY, HOUR
from cachewarden_policies.reasons import LastUseSource

USED = NOW - 3 * HOUR
ROOT = pwd.getpwuid(0).pw_name


def record(opener=None, seen_by="fanotify", *, appeared=False):
    """What the ledger has of an entry that was opened three hours ago."""
    return Record(NOW - 2 * DAY, appeared, 1, USED, LastUseSource.OPENS, opener, seen_by)


def story(source, known=None):
    """The two rows of the explanation, as one line each."""
    found = explanation(known, last_use_ns=USED, last_use_source=source, first_seen_ns=NOW - 2 * DAY)
    text = " ".join(
        "\n".join(line for block in explain_blocks(found, [], NOW) for line in plain(block)).split()
    )
    use, _, rest = text.partition("Last use ")[2].partition(" How sure ")
    return use, rest.partition(" In use ")[0]


@pytest.mark.parametrize(
    ("opener", "who"),
    [
        (Opener(4711, b"python3", 0), f"python3 (pid 4711, {ROOT})"),
        (Opener(4711, b"python3", 4_000_000_000), "python3 (pid 4711, 4000000000)"),
        (Opener(4711, b"a\nb\xff", 0), f"a\\nb\\xff (pid 4711, {ROOT})"),
        (Opener(4711, b"", None), "a process that had ended (pid 4711)"),
        (Opener(0, b"", None), "a process of another pid namespace"),
    ],
    ids=["a user", "a number", "a strange name", "ended", "unknown"],
)
def test_an_open_is_told_with_who_it_was(opener, who):
    """As far as that is known."""
    use, sure = story(LastUseSource.OPENS, record(opener))
    assert use.startswith(f"opened by {who} 3 h ago (")
    assert use.endswith("), seen by fanotify; first seen 2 d ago")
    assert sure == "every open is seen while the service runs"


def test_an_open_that_an_older_version_recorded_has_nobody():
    """Its row tells no more than that."""
    use, _ = story(LastUseSource.OPENS, record(None, None))
    assert use.startswith("opened 3 h ago (")


def test_a_sample_is_no_open():
    """It says that it may have missed later ones."""
    use, sure = story(LastUseSource.OPENS, record(Opener(7, b"cat", 0), "proc"))
    assert use.startswith(f"in use by cat (pid 7, {ROOT}) 3 h ago (")
    assert "seen in a sample of /proc" in use
    assert "between two samples is missed" in sure


@pytest.mark.parametrize(
    ("source", "begins", "has", "sure"),
    [
        (LastUseSource.ATIME, "read 3 h ago (", "), by its access time;", "a backup or an indexer reads too"),
        (LastUseSource.RELATIME, "read 3 h ago (", "by its access time (relatime: to the day)", "for a day"),
        (LastUseSource.STAMPS, "not seen in use; its newest file changed 3 h ago (", "", "reads do not show"),
        (LastUseSource.FIRST_SEEN, "not seen in use; first seen 3 h ago (", "", "at any time since"),
    ],
)
def test_what_is_no_open_says_what_it_is(source, begins, has, sure):
    """And names nobody, whoever opened it before."""
    use, how_sure = story(source, record(Opener(4711, b"python3", 0)))
    assert use.startswith(begins)
    assert has in use
    assert "python3" not in use
    assert sure in how_sure


def test_what_came_while_its_location_was_known_appeared():
    """Its first sight is its birthday."""
    use, _ = story(LastUseSource.FIRST_SEEN, record(appeared=True))
    assert use.startswith("not seen in use; appeared 3 h ago (")
    assert story(LastUseSource.ATIME, record(appeared=True))[0].endswith("; appeared 2 d ago")


def test_programs_are_told_the_same():
    """The JSON keys, with and without an open."""
    told = explanation(
        record(Opener(4711, b"python3", os.getuid())), last_use_source=LastUseSource.OPENS
    ).to_json()
    assert told["last_opener"] == {
        "pid": 4711,
        "name": "python3",
        "user": pwd.getpwuid(os.getuid()).pw_name,
    }
    assert (told["last_use_seen_by"], told["last_use_confidence"]) == ("fanotify", "exact")
    told = explanation(record(Opener(0, b"", None)), last_use_source=LastUseSource.OPENS).to_json()
    assert told["last_opener"] == {"pid": None, "name": "", "user": ""}
    told = explanation(record(Opener(4711, b"python3", 0)), last_use_source=LastUseSource.STAMPS).to_json()
    assert told["last_opener"] is None
    assert (told["last_use_seen_by"], told["last_use_confidence"]) == (None, "written")
