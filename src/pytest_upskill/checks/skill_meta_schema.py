"""The JSON schema of skill_meta.json for editors, made from the forms that validate the file."""

import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue

from ..skills.case_forms import MetaForm
from .check import Kind
from .descriptions import ABOUT
from .parse import KINDS, GroupForm

_MODE: Final[JsonSchemaMode] = "validation"
_EXPECTED: Final = {"$ref": "#/$defs/Expected"}
_GROUPS: Final = {"type": "array", "items": _EXPECTED, "minItems": 1}
# What may be written instead of an object, for short.
_SHORT: Final[Mapping[str, dict[str, Any]]] = {
    "code": {"type": "string", "minLength": 1},
    "json_path": {"type": "string"},
    "number": {"type": "number"},
}
_NEEDS_EXPECTED: Final = {"anyOf": [{"required": ["expected"]}, {"required": ["validator"]}]}


class _Generator(GenerateJsonSchema):
    """Leaves out titles, which only repeat the keys; a value without a schema may be anything."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> JsonSchemaValue:  # noqa: ARG002
        return {}


def schema_text() -> str:
    return json.dumps(schema_of_cases(), indent=2, ensure_ascii=False) + "\n"


def schema_of_cases(kinds: Mapping[str, Kind] = KINDS) -> dict[str, Any]:
    forms: dict[str, TypeAdapter[Any]] = {
        "file": TypeAdapter(MetaForm),
        "group": TypeAdapter(GroupForm),
        **{f"check {name}": kind.argument for name, kind in kinds.items()},
    }
    made, shared = TypeAdapter.json_schemas(
        [(name, _MODE, form) for name, form in forms.items()], schema_generator=_Generator
    )
    parts = shared["$defs"]
    file, group = parts.pop("MetaForm"), parts.pop("GroupForm")

    def check(name: str, it: str = "the answer") -> dict[str, Any]:
        about = ABOUT[name].schema(it) if name in ABOUT else {}
        return {**_or_nothing(made[f"check {name}", _MODE], _SHORT.get(name)), **about}

    for form, it in (("FileForm", "the file"), ("CommandForm", "its output")):
        own = parts[form]["properties"]
        own |= {name: check(name, it) for name in kinds if name in own}
    of_code = parts["CodeForm"]["properties"]
    of_code |= {name: check(name) for name in ("defines", "imports", "calls")}
    parts["Expected"] = {
        "type": ["object", "array"],
        "description": "Checks, all of which must pass. A project may register more kinds than "
        "this schema knows.",
        "items": _EXPECTED,
        "properties": {
            **{name: check(name) for name in kinds},
            "python": {"type": ["string", "null"], **ABOUT["python"].schema()},
            **group["properties"],
            "all_of": {**_GROUPS, **ABOUT["all_of"].schema()},
            "any_of": {**_GROUPS, **ABOUT["any_of"].schema()},
            "not": {**_EXPECTED, **ABOUT["not"].schema()},
        },
    }
    parts["CaseForm"]["properties"]["expected"] |= _EXPECTED
    parts["CaseForm"]["required"] = ["input"]  # expected too, unless the defaults have it
    of_defaults = parts["DefaultsForm"]["properties"]["expected"]
    of_defaults |= {"anyOf": [_EXPECTED, {"type": "null"}]}

    def said(key: str, condition: dict[str, Any]) -> dict[str, Any]:
        """A condition on a key of the file, with the description of the key."""
        return {key: {"description": file["properties"][key]["description"], **condition}}

    in_defaults = {"required": ["defaults"], "properties": said("defaults", _NEEDS_EXPECTED)}
    in_each = {"items": _NEEDS_EXPECTED}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **file,
        "title": "skill_meta.json",
        "type": ["object", "array"],
        "items": {"$ref": "#/$defs/CaseForm", **_NEEDS_EXPECTED},
        "if": in_defaults,
        "else": {"properties": {**said("cases", in_each), **said("tests", in_each)}},
        "$defs": dict(sorted(parts.items())),
    }


def _or_nothing(argument: dict[str, Any], short: dict[str, Any] | None) -> dict[str, Any]:
    """A check's value: null is none, and one item stands for a list of it."""
    single = [short] if short else []
    if items := argument.get("items"):
        argument = {**argument, "items": {"anyOf": [short, items]}} if short else argument
        single.append(items)
    return {"anyOf": [*single, argument, {"type": "null"}]}
