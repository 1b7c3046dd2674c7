"""Reading docs/reference/openapi.json, and comparing answers with it: as much of JSON Schema as it uses."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

FILE = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "reference", "openapi.json")
_TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
}
_KNOWN = {
    *("$ref", "type", "properties", "required", "additionalProperties", "items", "enum", "const", "pattern"),
    *("minimum", "maximum", "minLength", "maxLength", "description", "default"),
}


@dataclass
class Operation:
    """One method of one path. `fields` are its query or its body: schemas by name."""

    path: str
    method: str
    responses: dict[str, dict]
    fields: dict[str, dict] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    has_body: bool = False


class Api:
    """The whole file."""

    def __init__(self) -> None:
        with open(FILE, encoding="utf-8") as file:
            self.document = json.load(file)

    def operations(self) -> Iterator[Operation]:
        """All that can be asked."""
        for path, methods in self.document["paths"].items():
            for method, found in methods.items():
                responses = {
                    status: each["content"]["application/json"]["schema"]
                    for status, each in found["responses"].items()
                }
                made = Operation(path, method.upper(), responses)
                if "requestBody" in found:
                    schema = found["requestBody"]["content"]["application/json"]["schema"]
                    assert schema["additionalProperties"] is False
                    made.fields, made.required = schema["properties"], frozenset(schema["required"])
                    made.has_body = True
                for each in found.get("parameters", ()):
                    assert each["in"] == "query"
                    made.fields[each["name"]] = each["schema"]
                    made.required |= {each["name"]} if each["required"] else set()
                yield made

    def problems(self, schema: dict, value: object, where: str = "") -> Iterator[str]:
        """What of a value is not as its schema has it."""
        if "$ref" in schema:
            schema = self.document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        assert set(schema) <= _KNOWN, set(schema) - _KNOWN
        if "const" in schema and value != schema["const"]:
            yield f"{where}: {value!r} is not {schema['const']!r}"
        if "enum" in schema and value not in schema["enum"]:
            yield f"{where}: {value!r} is none of {schema['enum']}"
        if "type" in schema and not any(_is(value, name) for name in _listed(schema["type"])):
            yield f"{where}: {value!r} is no {schema['type']}"
            return
        if isinstance(value, dict):
            yield from self._object(schema, value, where)
        elif isinstance(value, list):
            for index, each in enumerate(value):
                yield from self.problems(schema["items"], each, f"{where}[{index}]")
        elif isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
            yield f"{where}: {value!r} does not match {schema['pattern']}"
        elif isinstance(value, int) and value < schema.get("minimum", value):
            yield f"{where}: {value} is too small"

    def _object(self, schema: dict, value: dict, where: str) -> Iterator[str]:
        known = schema.get("properties", {})
        yield from (f"{where}: {name} is missing" for name in schema.get("required", ()) if name not in value)
        for name, each in value.items():
            more = schema.get("additionalProperties", True)
            if name in known:
                yield from self.problems(known[name], each, f"{where}.{name}")
            elif more is False:
                yield f"{where}: {name} is not described"
            elif isinstance(more, dict):
                yield from self.problems(more, each, f"{where}.{name}")


def _listed(types: str | list[str]) -> list[str]:
    return [types] if isinstance(types, str) else types


def _is(value: object, name: str) -> bool:
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, _TYPES[name])
