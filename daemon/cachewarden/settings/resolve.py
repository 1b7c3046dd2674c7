"""Inheritance: which value of each rule is in force in a policy and in a location, and who set it."""

from dataclasses import dataclass
from typing import Any

from cachewarden.settings.layers import Layer, Origin, toml_text
from cachewarden.settings.locate import Path
from cachewarden.settings.model import Document, RuleKeys

RULES = tuple(RuleKeys.model_fields)


@dataclass(frozen=True, slots=True)
class Setting:
    """A value in force: as converted, as TOML, and the key (`path`) and place that set it."""

    value: Any
    text: str
    path: Path
    origin: Origin


Effective = dict[str, Setting]


class Resolver:
    """Follows `extends` and `policy` through a document; remembers what was wrong in `problems`."""

    def __init__(self, document: Document, merged: Layer) -> None:
        self.document = document
        self.merged = merged
        self.problems: list[str] = []
        self._policies: dict[str, Effective] = {}
        self._circles: set[frozenset[str]] = set()

    def policy(self, name: str) -> Effective:
        """The rules of a policy that is there, with all that it inherits; defaults are left out."""
        if name not in self._policies:
            self._policies[name] = self._resolve(name, ())
        return self._policies[name]

    def location(self, name: str) -> Effective:
        """The rules of a location: those of its policy, overridden by its own."""
        model = self.document.locations[name]
        base: Effective = {}
        if model.policy is not None:
            path = ("locations", name, "policy")
            if model.policy in self.document.policies:
                base = self.policy(model.policy)
            else:
                self.problems.append(self.merged.problem(path, "there is no such policy"))
        return base | self._own(("locations", name), model)

    def _resolve(self, name: str, below: tuple[str, ...]) -> Effective:
        model = self.document.policies[name]
        own = self._own(("policies", name), model)
        if model.extends is None:
            return own
        path = ("policies", name, "extends")
        if model.extends in (*below, name):
            circle = (*below, name)[(*below, name).index(model.extends) :]
            if frozenset(circle) not in self._circles:  # once, and not again from each of its members
                self._circles.add(frozenset(circle))
                chain = " -> ".join((*circle, model.extends))
                self.problems.append(self.merged.problem(path, f"extends itself: {chain}"))
            return own
        if model.extends not in self.document.policies:
            self.problems.append(self.merged.problem(path, "there is no such policy"))
            return own
        return self._resolve(model.extends, (*below, name)) | own

    def _own(self, table: Path, model: RuleKeys) -> Effective:
        return {
            rule: setting_of(self.merged, (*table, rule), getattr(model, rule))
            for rule in RULES
            if rule in model.model_fields_set
        }


def setting_of(merged: Layer, path: Path, value: Any) -> Setting:
    """A value that was set, with its text and its origin."""
    return Setting(value, toml_text(merged.value(path)), path, merged.origin(path))


def value_of(effective: Effective, rule: str) -> Any:
    """The value in force: what was set, or the default."""
    return effective[rule].value if rule in effective else getattr(DEFAULTS, rule)


DEFAULTS = RuleKeys()
