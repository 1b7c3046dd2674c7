"""Every sample configuration loads, and every broken one fails with the message that it states."""

import os
import re
from pathlib import Path

import pytest

from cachewarden.errors import ConfigurationError
from cachewarden.settings import Settings, load, schema, show

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "tests" / "data" / "config"
EXAMPLE = ROOT / "systemd" / "config.example.toml"
INVALID = sorted((SAMPLES / "invalid").glob("*.toml"))
VALID = [*sorted((SAMPLES / "valid").glob("*.toml")), EXAMPLE]


def read(*files: Path, **environ: str) -> Settings:
    return load([os.fsencode(file) for file in files], environ={"HOME": "/root", **environ})


@pytest.mark.parametrize("sample", VALID, ids=lambda path: path.stem)
def test_a_valid_sample_loads_without_a_warning(sample: Path) -> None:
    assert read(sample).warnings == ()


@pytest.mark.parametrize("sample", VALID, ids=lambda path: path.stem)
def test_what_is_shown_of_a_sample_loads_as_the_same_configuration(sample: Path, tmp_path: Path) -> None:
    first = read(sample)
    again_file = tmp_path / "again.toml"
    again_file.write_text(show(first))
    again = read(again_file)
    assert again.daemon == first.daemon
    assert again.locations == first.locations
    assert again.pools == first.pools
    assert again.policies == first.policies


@pytest.mark.parametrize("sample", INVALID, ids=lambda path: path.stem)
def test_an_invalid_sample_fails_with_file_line_key_value_and_sentence(sample: Path) -> None:
    expected = sample.read_text().split("\n", 1)[0].removeprefix("# expect: ")
    with pytest.raises(ConfigurationError) as failure:
        read(sample)
    assert len(failure.value.problems) == 1
    assert failure.value.problems[0].startswith(f"{sample}:{expected}")
    assert failure.value.exit_status == 2


def test_the_example_has_no_location() -> None:
    """Once installed, it must not delete anything by itself."""
    assert read(EXAMPLE).locations == ()


def test_what_the_example_suggests_loads_and_reports_only(tmp_path: Path) -> None:
    uncommented = tmp_path / "config.toml"
    head, suggested = EXAMPLE.read_text().split("# What is kept inside its limits.", 1)
    uncommented.write_text(
        head + re.sub(r"^# ?(?=[\[\w]+(\.\w+\]| = ))", "", "# " + suggested, flags=re.MULTILINE)
    )
    found = read(uncommented)
    assert [(location.name, location.template.enforce) for location in found.locations] == [
        ("accelerate", False),
        ("huggingface", False),
    ]
    assert [pool.name for pool in found.pools] == ["homes"]


def test_the_sample_with_every_key_has_every_key() -> None:
    text = (SAMPLES / "valid" / "every-key.toml").read_text()
    keys = {key for table in schema()["$defs"].values() for key in table.get("properties", {})}
    assert {key for key in keys if not re.search(rf"^{key} =", text, re.MULTILINE)} == set()
