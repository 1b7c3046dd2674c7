"""`evict PATH`, `apply FILE`: what they say when they do not do what was asked for."""

import json
import os
import subprocess

import pytest
from tests.system.killing import filesystem, put


@pytest.mark.parametrize(("rule", "reason"), [("pin", "pinned"), ("protect", "protected by the layout")])
def test_an_entry_that_stays_though_somebody_named_it_is_said_to_stay_and_why(warden, root, rule, reason):
    put(f"{root}/a", 5000)
    put(f"{root}/other", 5000)  # stays for the same reason, and nobody asked about it
    if rule == "pin":
        warden("pin", f"{root}/a")
        warden("pin", f"{root}/other")
    else:
        warden.policy |= {"protect": ["a", "other"]}
    warden.write()
    done = warden("evict", f"{root}/a")
    assert done.status == 1
    assert f"It stays: a: {reason}" in done.out
    assert "other" not in done.out
    assert "limit" not in done.out
    assert os.path.exists(f"{root}/a")


def test_an_entry_that_went_is_not_said_to_have_been_over_a_limit(warden, root):
    put(f"{root}/a", 5000)
    done = warden("evict", f"{root}/a")
    assert done.status == 0
    assert "Evicted, as you asked" in done.out
    assert "limit" not in done.out


@pytest.mark.parametrize(
    ("commits", "sentence"),
    [("a", "is no entry itself; the one that lies in it is "), ("ab", "no single entry, but 2 of them: ")],
)
def test_a_directory_above_entries_is_told_from_them(warden, root, commits, sentence):
    repository = f"{root}/hub/models--acme--m"
    for letter in commits:
        put(f"{repository}/blobs/{letter * 64}", 5000)
        os.makedirs(f"{repository}/snapshots/{letter * 40}")
        os.symlink(f"../../blobs/{letter * 64}", f"{repository}/snapshots/{letter * 40}/f")
        put(f"{repository}/refs/{letter}", 0, letter.encode() * 40)
    warden.locations["cache"]["layout"] = "auto"
    warden.write()
    done = warden("evict", f"{root}/hub")
    assert done.status == 2
    assert sentence in done.err
    (name, *_) = sorted(warden.entries())
    assert name in done.err


@pytest.mark.parametrize(
    ("value", "shown"), [("1e999", "inf"), ("true", "True"), ("1.5", "1.5"), ('"7"', "'7'"), ("null", "None")]
)
def test_a_plan_whose_numbers_are_none_is_damaged_and_says_which(warden, root, value, shown):
    put(f"{root}/a", 5000)
    warden.policy |= {"evict_all": True}
    plan = warden.plan().json
    plan["locations"][0]["would_evict"][0]["dev"] = "VALUE"
    file = os.path.join(warden.base, "plan.json")
    with open(file, "w", encoding="utf-8") as out:
        out.write(json.dumps(plan).replace('"VALUE"', value))
    done = warden("apply", file)
    assert done.status == 2
    assert f"dev is no whole number: {shown}" in done.err
    assert os.path.exists(f"{root}/a")


@pytest.mark.root
def test_a_failure_is_in_the_history_with_its_reason_and_its_size_and_was_not_spared(
    needs_root, warden, tmp_path
):
    with filesystem("ext4", str(tmp_path)) as mount:
        root = f"{mount}/cache"
        warden.location("cache", root)
        warden.policy |= {"max_size": "4KiB", "target_size": "100%"}
        put(f"{root}/b/f", 8192)
        subprocess.run(["chattr", "+i", f"{root}/b"], check=True)
        try:
            done = warden.once().only
        finally:
            subprocess.run(["chattr", "-i", f"{root}/b"], check=True)
        assert [each["entry"] for each in done["failed"]] == ["b"]
        assert done["spared"] == []
        (row,) = json.loads(warden("history", "--json").out)
        assert (row["entry"], row["outcome"], row["reason"]) == ("b", "failed", "over_size")
        assert row["bytes"] >= 8192
        assert row["freed_bytes"] == 0
        assert row["last_use"] is not None
