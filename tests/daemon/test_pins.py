"""Pins: what they cover, how long they hold, and that none is lost."""

import os
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewarden.errors import PinsUnreadableError
from cachewarden.ledger import Pin, PinStore, covers
from cachewarden_policies.policy import HOUR, SECOND

NOW = 1_700_000_000 * SECOND
MODEL = Pin(b"/data/hub/models--\xff\n", NOW, NOW + HOUR, "thesis", 1000)
OTHER = Pin(b"/data/hub/other", NOW)


@pytest.fixture
def state_dir(tmp_path):
    return os.fsencode(tmp_path / "state")


@pytest.fixture
def store(state_dir):
    return PinStore(state_dir)


def overwrite(state_dir, name, content=b"{ half a fi"):
    with open(os.path.join(state_dir, name), "wb") as file:
        file.write(content)


def test_without_a_file_nothing_is_pinned(store):
    assert store.load(NOW).all == ()


def test_a_pin_is_found_again_as_it_was_set(store, state_dir):
    store.add(MODEL, NOW)
    store.add(OTHER, NOW)
    assert PinStore(state_dir).load(NOW).all == (MODEL, OTHER)
    assert store.load(NOW).notices == ()


@given(path=st.binary(min_size=1).map(lambda name: b"/" + name))
def test_any_path_that_bytes_can_spell_can_be_pinned(tmp_path_factory, path):
    store = PinStore(os.fsencode(tmp_path_factory.mktemp("state")))
    store.add(Pin(path, NOW), NOW)
    assert store.load(NOW).all == (Pin(path, NOW),)


def test_a_second_pin_of_a_user_on_a_path_replaces_the_first(store):
    store.add(MODEL, NOW)
    longer = Pin(MODEL.path, NOW, None, "for good", MODEL.uid)
    store.add(longer, NOW)
    assert store.load(NOW).all == (longer,)


def test_a_pin_ends_at_its_end(store):
    store.add(MODEL, NOW)
    store.add(OTHER, NOW)
    pins = store.load(NOW)
    assert pins.active(NOW + HOUR - 1) == [MODEL, OTHER]
    assert pins.active(NOW + HOUR) == [OTHER]


def test_a_pin_is_taken_back_by_its_path_alone(store):
    store.add(MODEL, NOW)
    store.add(OTHER, NOW)
    assert not store.remove(b"/data/hub", NOW)
    assert store.remove(OTHER.path, NOW)
    assert not store.remove(OTHER.path, NOW)
    assert store.load(NOW).all == (MODEL,)


@pytest.mark.parametrize(
    ("pinned", "path", "covered"),
    [
        (b"/c/model", b"/c/model", True),
        (b"/c/model/sub/weights.bin", b"/c/model", True),
        (b"/c", b"/c/model", True),
        (b"/", b"/c/model", True),
        (b"/c/model", b"/c/model-2", False),
        (b"/c/model-2", b"/c/model", False),
        (b"/c/other/model", b"/c/model", False),
    ],
)
def test_a_pin_covers_what_it_names_what_lies_below_and_the_entry_around_it(pinned, path, covered):
    assert covers(Pin(pinned, NOW), path) is covered


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"{ half a fi",
        b"[]",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"pins": []}',
        b'{"version": 1, "pins": [1]}',
        b'{"version": 1, "pins": [{"path": "relative"}]}',
        b'{"version": 1, "pins": [{"path": "/a", "created_ns": "x", "until_ns": 1, "reason": "", "uid": 0}]}',
    ],
)
def test_a_damaged_file_is_set_aside_and_its_copy_counts(store, state_dir, junk):
    store.add(MODEL, NOW)
    overwrite(state_dir, b"pins.json", junk)
    pins = store.load(NOW)
    assert pins.all == (MODEL,)
    assert "damaged" in pins.notices[0]
    with open(os.path.join(state_dir, b"pins.json.damaged-20231114T221320Z"), "rb") as kept:
        assert kept.read() == junk
    store.add(OTHER, NOW)
    assert (store.load(NOW).all, store.load(NOW).notices) == ((MODEL, OTHER), ())


def test_a_file_that_is_gone_loses_no_pin(store, state_dir):
    store.add(MODEL, NOW)
    os.unlink(os.path.join(state_dir, b"pins.json"))
    pins = store.load(NOW)
    assert pins.all == (MODEL,)
    assert pins.notices != ()


@pytest.mark.parametrize("copy", ["damaged", "missing", "a directory"])
def test_when_nobody_knows_what_is_pinned_everything_is(store, state_dir, copy):
    store.add(MODEL, NOW)
    overwrite(state_dir, b"pins.json")
    os.unlink(os.path.join(state_dir, b"pins.json.copy"))
    if copy == "damaged":
        overwrite(state_dir, b"pins.json.copy")
    elif copy == "a directory":
        os.mkdir(os.path.join(state_dir, b"pins.json.copy"))
    for _ in range(2):
        with pytest.raises(PinsUnreadableError, match="everything counts as pinned"):
            store.load(NOW)
    with pytest.raises(PinsUnreadableError):
        store.add(OTHER, NOW)


def test_pins_of_a_newer_version_are_left_alone_and_not_guessed(store, state_dir):
    store.add(MODEL, NOW)
    newer = b'{"version": 2, "pins": {"/a": "forever"}}'
    newer_list = b'{"version": 2, "pins": []}'
    for content in (newer, newer_list):
        overwrite(state_dir, b"pins.json", content)
        with pytest.raises(PinsUnreadableError, match="newer"):
            store.load(NOW)
        with open(os.path.join(state_dir, b"pins.json"), "rb") as file:
            assert file.read() == content


def test_only_the_owner_may_look_at_the_pins(store, state_dir):
    store.add(MODEL, NOW)
    assert {os.stat(os.path.join(state_dir, name)).st_mode & 0o777 for name in os.listdir(state_dir)} == {
        0o600
    }


SETTER = """
import sys
from cachewarden.ledger import Pin, PinStore
store = PinStore(sys.argv[1].encode())
for number in range(int(sys.argv[3])):
    store.add(Pin(b"/%s/%d" % (sys.argv[2].encode(), number), 1), 2)
    print(number, flush=True)
"""


def setter(state_dir, name, count):
    return subprocess.Popen(
        [sys.executable, "-c", SETTER, state_dir, name, str(count)], stdout=subprocess.PIPE
    )


def test_kill_9_while_pins_are_written_leaves_the_old_or_the_new_ones(store, state_dir):
    for turn in range(6):
        child = setter(state_dir, f"turn{turn}", 100_000)
        child.stdout.readline()
        time.sleep(0.013 * turn)
        child.send_signal(signal.SIGKILL)
        told = 1 + child.stdout.read().count(b"\n")
        child.wait()
        child.stdout.close()
        pins = store.load(NOW)
        ours = [pin.path for pin in pins.all if pin.path.startswith(b"/turn%d/" % turn)]
        assert pins.notices == ()
        assert len(ours) in (told, told + 1), "a pin that was reported as set is not there"


def test_two_processes_that_pin_at_once_lose_no_pin(store, state_dir):
    children = [setter(state_dir, name, 25) for name in ("one", "two")]
    for child in children:
        child.communicate()
        assert child.returncode == 0
    assert len(store.load(NOW).all) == 50


def test_on_a_full_disk_the_old_pins_stay_and_the_failure_is_not_hidden(store, state_dir):
    """A limit on the size of files makes writing fail as a full disk does."""
    store.add(MODEL, NOW)
    script = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
    script += "resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10));" + SETTER
    child = subprocess.run(
        [sys.executable, "-c", script, state_dir, "new", "1"], capture_output=True, check=False
    )
    assert child.returncode != 0
    assert b"OSError" in child.stderr
    assert store.load(NOW).all == (MODEL,)
    assert store.load(NOW).notices == ()


def test_pins_of_two_users_on_one_path_hold_beside_each_other_and_each_takes_back_his_own(store):
    theirs = Pin(MODEL.path, NOW, None, "for us", MODEL.uid + 1)
    store.add(MODEL, NOW)
    store.add(theirs, NOW)
    assert set(store.load(NOW).all) == {MODEL, theirs}
    assert not store.remove(MODEL.path, NOW, uid=MODEL.uid + 2)
    assert store.remove(MODEL.path, NOW, uid=MODEL.uid)
    assert store.load(NOW).all == (theirs,)


def test_a_path_is_free_of_pins_when_they_are_taken_back_whoever_set_them(store):
    store.add(MODEL, NOW)
    store.add(Pin(MODEL.path, NOW, None, "", MODEL.uid + 1), NOW)
    assert store.remove(MODEL.path, NOW)
    assert store.load(NOW).all == ()
