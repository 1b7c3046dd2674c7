"""The reference for administrators says what the code does."""

import os
import re
import tomllib
from pathlib import Path

import cachewarden_policies
from cachewarden.settings import load, schema
from cachewarden.settings.model import Document
from cachewarden.settings.sources import preset_names
from cachewarden_policies.policy import DAY

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "configuration.md"
PRESETS = Path(cachewarden_policies.__path__[0]) / "presets"


def section(title: str) -> str:
    text = REFERENCE.read_text()
    assert f"\n## {title}\n" in text
    return text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_every_key_is_described_in_its_section() -> None:
    titles = {"daemon": "[daemon]", "cluster": "[cluster]"} | {
        name: f"[{name}.NAME]" for name in ("policies", "locations", "pools")
    }
    assert set(titles) == set(Document.model_fields)
    tables = schema()["$defs"]
    rules = set(tables["PolicyKeys"]["properties"]) - {"extends"}
    for table, name in [
        ("DaemonKeys", "daemon"),
        ("ClusterKeys", "cluster"),
        ("PolicyKeys", "policies"),
        ("LocationKeys", "locations"),
        ("PoolKeys", "pools"),
    ]:
        keys = set(tables[table]["properties"]) - (rules if name == "locations" else set())
        described = {
            key
            for row in re.findall(r"^\| (`[^|]+) \|", section(titles[name]), re.MULTILINE)
            for key in re.findall(r"`([a-z_]+)`", row)
        }
        assert described == keys


def test_every_default_is_the_one_that_is_described() -> None:
    tables = schema()["$defs"]
    for table, title in [
        ("DaemonKeys", "[daemon]"),
        ("PolicyKeys", "[policies.NAME]"),
        ("LocationKeys", "[locations.NAME]"),
        ("ClusterKeys", "[cluster]"),
    ]:
        rows = re.findall(r"^\| `([a-z_]+)` \| ([^|]+) \|", section(title), re.MULTILINE)
        for key, described in rows:
            default = tables[table]["properties"][key].get("default", "required")
            if key == "target_free":
                assert default == "none"
            elif default in ("none", "required"):
                assert described == {"none": "not set", "required": "required"}[default]
            elif isinstance(default, list):
                assert described.strip("`[]") == " ".join(default)
            else:
                assert described == f"`{str(default).lower() if isinstance(default, bool) else default}`"


def test_every_preset_is_described_with_what_it_sets() -> None:
    for name in preset_names():
        (row,) = re.findall(rf"^\| `{name}` \| [^|]+ \| ([^|]+) \|", section("[policies.NAME]"), re.MULTILINE)
        keys = tomllib.loads((PRESETS / f"{name.removeprefix('preset:')}.toml").read_text())
        assert row == ", ".join(f"`{key}` {value}" for key, value in keys.items())


def test_the_worked_example_loads_with_its_drop_in(tmp_path: Path) -> None:
    files = []
    for index, text in enumerate(re.findall(r"```toml\n(.*?)```", section("Example"), re.DOTALL)):
        file = tmp_path / f"{index}.toml"
        file.write_text(text)
        files.append(os.fsencode(file))
    before = load(files[:1], environ={"HOME": "/root"})
    after = load(files, environ={"HOME": "/root"})
    assert [each.name for each in after.locations] == ["huggingface", "accelerate", "scratch"]
    assert before.policies["models"].max_idle == 90 * DAY
    assert after.policies["models"].max_idle is None
    assert after.policies["models"].limits.max_size == 150 * 1024**3


def test_the_schema_has_a_type_or_choice_for_every_key() -> None:
    """An editor that reads it can complete and check each of them."""
    for table in schema()["$defs"].values():
        for key, shape in table.get("properties", {}).items():
            assert {"type", "anyOf", "enum", "const", "$ref", "allOf"} & set(shape), key
            assert shape["description"], key
