"""The presets that are shipped: they load, they say something sensible, and can be overridden."""

import os
from pathlib import Path

import pytest

from cachewarden.settings import load
from cachewarden.settings.sources import preset_names
from cachewarden_policies.policy import DAY, MINUTE

NAMES = ["preset:ci-runner", "preset:inference-server", "preset:shared-cluster", "preset:workstation"]


def test_these_presets_are_shipped() -> None:
    assert preset_names() == NAMES


@pytest.mark.parametrize("preset", NAMES)
def test_a_preset_protects_free_space_and_what_is_in_daily_use(preset: str, tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(f'[locations.l]\npath = "/srv/l"\npolicy = "{preset}"')
    policy = load([os.fsencode(file)], environ={"HOME": "/root"}).locations[0].template.policy
    assert policy.name == preset
    assert policy.max_age is None
    assert not policy.evict_all
    assert policy.floor.min_free is not None
    assert policy.min_idle >= 15 * MINUTE
    assert policy.max_idle is None or policy.max_idle >= 7 * DAY


@pytest.mark.parametrize("preset", NAMES)
@pytest.mark.parametrize(
    "line",
    [
        'min_free = "1%"',
        'min_free = "60%"',
        'min_free = "none"',
        'max_idle = "2d"',
        "max_entries = 5",
        'max_size = "1MiB"',
    ],
)
def test_each_key_of_a_preset_can_be_overridden_alone(preset: str, line: str, tmp_path: Path) -> None:
    """No preset sets a key that contradicts a sensible value of another one."""
    file = tmp_path / "x.toml"
    file.write_text(f'[policies.p]\nextends = "{preset}"\n{line}')
    assert load([os.fsencode(file)], environ={"HOME": "/root"}).policies["p"]
