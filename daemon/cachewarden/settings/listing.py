"""The effective configuration for people: every value in force, and who set it."""

import json
from typing import Any

from cachewarden.settings.layers import Layer, dotted, toml_text
from cachewarden.settings.locate import Path
from cachewarden.settings.model import Document, Keys, LimitKeys, LocationKeys, RuleKeys
from cachewarden.settings.resolve import RULES, Effective, Resolver
from cachewarden.settings.values import Line, Section, Settings

# A default that means something only beside another key: shown when that one is set.
_BESIDE = {f"target_{subject}": f"max_{subject}" for subject in ("size", "files", "entries")}


def listing(document: Document, merged: Layer) -> tuple[Section, ...]:
    """All tables in force, inherited values included. Presets are listed where they are used."""
    resolver = Resolver(document, merged)
    sections = [_section(("daemon",), document.daemon, merged)]
    sections += [
        _rules(("policies", name), resolver.policy(name))
        for name in document.policies
        if not name.startswith("preset:")
    ]
    sections += [
        _section(("locations", name), keys, merged, rules_if_set=True)
        for name, keys in document.locations.items()
    ]
    sections += [_section(("pools", name), keys, merged) for name, keys in document.pools.items()]
    sections.append(_section(("cluster",), document.cluster, merged))
    return tuple(sections)


def show(settings: Settings) -> str:
    """The effective configuration as TOML, which can be loaded again; each line says where it is from."""
    blocks = []
    for section in settings.listing:
        lines = [f"[{section.title}]"]
        width = min(48, max((len(line.key) + len(line.text) + 3 for line in section.lines), default=0))
        lines += [f"{f'{line.key} = {line.text}':<{width}}  # {line.origin}" for line in section.lines]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def schema() -> dict[str, Any]:
    """JSON Schema of the configuration. TOML has no null: `"none"` takes its place."""
    found = Document.model_json_schema()
    text = json.dumps(found).replace('{"type": "null"}', '{"const": "none"}')
    plain: dict[str, Any] = json.loads(text.replace('"default": null', '"default": "none"'))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | plain | {"title": "cachewarden"}


def _section(table: Path, keys: Keys, merged: Layer, *, rules_if_set: bool = False) -> Section:
    lines = []
    for name, info in type(keys).model_fields.items():
        path = (*table, name)
        if name in keys.model_fields_set:
            lines.append(Line(name, toml_text(merged.value(path)), str(merged.origin(path))))
        elif not (rules_if_set and name in RULES) and _worth_showing(name, keys):
            lines.append(Line(name, _default(info.default), "default"))
    return Section(dotted(table), tuple(lines))


def _rules(table: Path, effective: Effective) -> Section:
    lines = []
    for rule, info in RuleKeys.model_fields.items():
        if rule in effective:
            lines.append(Line(rule, effective[rule].text, str(effective[rule].origin)))
        elif _BESIDE.get(rule, rule) in effective or (rule not in _BESIDE and info.default is not None):
            lines.append(Line(rule, _default(info.default), "default"))
    return Section(dotted(table), tuple(lines))


def _worth_showing(name: str, keys: Keys) -> bool:
    if isinstance(keys, LimitKeys) and not isinstance(keys, LocationKeys) and name in _BESIDE:
        return _BESIDE[name] in keys.model_fields_set
    return type(keys).model_fields[name].default is not None


def _default(value: Any) -> str:
    return toml_text("none" if value is None else value)
