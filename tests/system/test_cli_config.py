"""What people type into the configuration, and what a running service makes of a changed one."""

import json
import os

import pytest
from tests.system.command import Service
from tests.system.trees import age, fill, wait_until

GOOD_SIZES = {
    "10GB": 10_000_000_000,
    "10GiB": 10_737_418_240,
    "10G": 10_737_418_240,
    "10 GiB": 10_737_418_240,
    "1.5TiB": 1_649_267_441_664,
    "1073741824": 1_073_741_824,
}
BAD_SIZES = ["-1", "10X", "", "nan", "10GBB", "1e3", "09", "\u0663GB", "-5GiB", "inf", "0x10"]
BAD_TIMES = ["-1d", "10X", "", "nan", "10", "1e3s", "09d", "\u0663d", "d", "1d-2h"]


def _entry(root: str) -> None:
    fill(f"{root}/e/f")
    age(f"{root}/e", 400)


def _lines(file: str) -> list[str]:
    with open(file, encoding="utf-8") as lines:
        return lines.readlines()


def test_a_size_means_what_its_unit_says(warden, tmp_path):
    """Decimal and binary units are told apart; a bare number is bytes."""
    warden.locations.clear()
    for number, text in enumerate(GOOD_SIZES):
        _entry(f"{tmp_path}/root{number}")
        warden.location(f"cache{number}", f"{tmp_path}/root{number}", max_size=text)
    planned = warden.plan()
    assert planned.status == 0, planned.err
    limits = {each["name"]: each["limit_bytes"] for each in planned.json["locations"]}
    assert limits == {f"cache{number}": size for number, size in enumerate(GOOD_SIZES.values())}


@pytest.mark.parametrize(("key", "values"), [("max_size", BAD_SIZES), ("max_idle", BAD_TIMES)])
def test_values_that_nobody_can_mean_stop_everything_before_anything_is_looked_at(warden, root, key, values):
    """Exit status 2, each with its file, line, key and value, and the 400 days old entry stays."""
    _entry(root)
    warden.policy |= {"evict_all": True}
    warden.write()
    first = len(_lines(warden.file)) + 1
    with open(warden.file, "a", encoding="utf-8") as file:
        file.writelines(
            f"[policies.bad{number}]\n{key} = {json.dumps(text)}\n" for number, text in enumerate(values)
        )
    done = warden("once")
    assert done.status == 2
    told = done.err.splitlines()
    for number, text in enumerate(values):
        start = f"{warden.file}:{first + 2 * number + 1}: policies.bad{number}.{key} = {json.dumps(text)}: "
        assert any(start in line for line in told), start
    assert os.listdir(root) == ["e"]
    assert not os.path.exists(warden.state_dir), "a ledger was opened under a wrong configuration"
    assert warden("config", "check").status == 2


@pytest.mark.parametrize("nothing", [0, "0", "0GiB"])
def test_a_limit_of_nothing_is_refused_with_the_name_of_what_is_meant(warden, root, nothing):
    """`max_size = 0` may be a typing error; `evict_all` is the way to say it."""
    _entry(root)
    warden.policy |= {"max_size": nothing}
    done = warden.once()
    assert done.status == 2
    assert "evict_all" in done.err
    assert os.listdir(root) == ["e"]


@pytest.mark.parametrize("extra", ["mx_size = 1\n", 'max_size = "2GiB"\nmax_size = "1GiB"\n'])
def test_unknown_and_repeated_keys_are_errors(warden, root, extra):
    """Neither is ever ignored: a misspelt limit is no limit."""
    _entry(root)
    warden.write()
    with open(warden.file, encoding="utf-8") as file:
        text = file.read()
    with open(warden.file, "w", encoding="utf-8") as file:
        file.write(text.replace("[policies.plain]\n", "[policies.plain]\n" + extra))
    done = warden("once")
    assert done.status == 2
    assert f"{warden.file}:" in done.err
    assert "size" in done.err
    assert os.listdir(root) == ["e"]


def test_the_environment_is_checked_like_a_file(warden, root):
    """An unknown variable of ours is a misspelt one."""
    _entry(root)
    done = warden("config", "check", environ={"CACHEWARDEN_DEMON__INTERVAL": "5m"})
    assert done.status == 2
    assert "CACHEWARDEN_DEMON__INTERVAL" in done.err


@pytest.mark.parametrize("path", ["/", "/etc", "/home", "~", "relative/path"])
def test_places_that_no_cache_can_be_are_refused(warden, path):
    """A location that is a home or the system is a mistake, whatever its policy."""
    warden.location("cache", os.path.expanduser(path))
    done = warden.once()
    assert done.status == 2
    assert "path" in done.err


def test_two_locations_may_not_overlap(warden, root):
    """Whose limit would count for what is in both?"""
    os.mkdir(f"{root}/inner")
    warden.location("inner", f"{root}/inner")
    done = warden.once()
    assert done.status == 2
    assert "inner" in done.err
    assert "cache" in done.err


def test_no_location_at_all_is_a_valid_configuration(warden):
    """Idle, and fine."""
    warden.locations.clear()
    done = warden.once()
    assert done.status == 0
    assert done.json["locations"] == []


def _count(root: str) -> int:
    return sum(name.startswith("e") for name in os.listdir(root))


def _outcome(service: Service) -> str | None:
    """How the only location's last pass ended."""
    series = [each for each, value in service.metrics().items() if value == 1 and "outcome=" in each]
    mine = [each for each in series if each.startswith("cachewarden_location_outcome{")]
    return mine[0].partition('outcome="')[2].partition('"')[0] if mine else None


def test_a_service_survives_a_broken_file_and_does_not_act_on_a_typing_error(warden, root):
    """50 entries, limit 50 MiB: broken, repaired, then 5 for 50, which only part of may be carried out."""
    for number in range(50):
        fill(f"{root}/e{number:02}/f")
        age(f"{root}/e{number:02}", 60 - number)
    warden.policy |= {"max_size": "50MiB", "target_size": "100%", "max_share": "30%"}
    warden.daemon["interval"] = "1s"
    reloaded = "cachewarden_config_last_reload_successful"
    with warden.service() as service:
        wait_until(lambda: service.passes() >= 1)
        first_seen = warden.entries()["e07"]["first_seen"]
        passes = service.passes()

        with open(warden.file, "a", encoding="utf-8") as file:
            file.write("this is not TOML\n")
        service.reload()
        wait_until(lambda: service.metrics()[reloaded] == 0)
        assert service.child.poll() is None
        assert service.metrics()["cachewarden_location_limit_bytes"] == 50 * 2**20
        assert f"{warden.file}:" in service.log

        warden.write()
        service.reload()
        wait_until(lambda: service.metrics()[reloaded] == 1)
        assert service.passes() >= passes, "counters did not survive the reload"
        assert warden.entries()["e07"]["first_seen"] == first_seen
        assert _count(root) == 50

        warden.policy["max_size"] = "5MiB"
        warden.write()
        service.reload()
        wait_until(lambda: _outcome(service) == "waiting_for_confirmation")
        passes = service.passes()
        wait_until(lambda: service.passes() >= passes + 3)
        assert _count(root) == 35, "exactly the share of 30 % may go unconfirmed"
        assert min(os.listdir(root)) == "e15"
        assert service.log.count("confirm") < 10, "the warning repeats with every pass"

        confirmed = warden("confirm", "cache")
        assert confirmed.status == 0, confirmed.err
        wait_until(lambda: _count(root) == 5)
        assert service.child.poll() is None
        assert service.stop() == 0
