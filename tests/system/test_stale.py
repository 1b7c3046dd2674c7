"""What a version that is gone left behind goes first, whatever the usage, and the reason says so."""

import os

import pytest
from tests.daemon.layout_fixtures import flashinfer
from tests.system.trees import age


@pytest.fixture
def old_and_new(root):
    """Operators of two versions of flashinfer, the older of which nobody uses, and older cubins."""
    flashinfer.build(os.fsencode(root))
    age(root, 2)
    age(f"{root}/0.2.14", 60)
    age(f"{root}/cubins", 90)
    return root


def _by_version(entries):
    return {name.partition("/")[0] for name in entries}


def test_it_goes_though_nothing_has_to(warden, old_and_new):
    """A policy that limits anything is enough."""
    warden.policy |= {"max_size": "1GiB"}
    done = warden.once()
    assert done.status == 0
    assert _by_version(done.evicted) == {"0.2.14"}
    assert {each["reason"] for each in done.only["evicted"]} == {"stale"}
    assert os.path.exists(f"{old_and_new}/0.3.0/90a/cached_ops/decode/decode.so")


def test_it_goes_before_what_nobody_used_for_long(warden, old_and_new):
    """Where a brake cuts, what can be used stays the longest."""
    warden.policy |= {"max_idle": "30d", "max_share": "1%"}
    done = warden.once()
    assert _by_version(done.evicted) == {"0.2.14"}
    assert {each["reason"] for each in done.only["evicted"]} == {"stale"}
    assert done.json["outcome"] == "waiting_for_confirmation"


def test_a_policy_without_limits_leaves_it(warden, old_and_new):
    assert warden.once().evicted == []
    assert any(each["stale"] for each in warden.entries().values())
