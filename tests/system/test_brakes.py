"""`pause` and `resume` of a location whose path is a glob."""

import os
from pathlib import Path


def over_its_limit(home: Path) -> str:
    """A cache below a home, with one entry of 2 MiB; its path."""
    path = home / "cache" / "e"
    path.mkdir(parents=True)
    (path / "f").write_bytes(os.urandom(2 << 20))
    return str(path)


def test_a_pause_holds_for_what_a_glob_matches_later_and_needs_no_match_now(warden, tmp_path):
    warden.policy |= {"max_size": "1MiB", "target_size": "100%"}
    warden.location("cache", str(tmp_path / "homes/*/cache"))
    warden.write()
    assert warden("pause", "cache").status == 0
    entry = over_its_limit(tmp_path / "homes" / "anna")
    assert warden.once().kept == {"e": "not_enforced"}
    assert os.path.isdir(entry)
    assert warden("resume", "cache").status == 0
    assert warden.once().evicted == ["e"]


def test_a_pause_of_a_name_that_is_not_configured_is_refused(warden):
    for command in ("pause", "resume"):
        run = warden(command, "cahce")
        assert run.status == 2
        assert "did you mean cache?" in run.err
