"""JSON schemas of a skill's author: found broken at collection; none fetches anything or hangs."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

from .._util.texts import one_line
from . import patterns

_SECONDS: Final = 1.0
Keyword = Callable[[Any, Any, Any, Any], Any]


@dataclass(frozen=True)
class Schema:
    """A schema that is right: the class of its dialect, and its patterns compiled."""

    written: dict[str, Any]
    dialect: Any
    patterns: dict[str, Any]


def compiled(written: dict[str, Any]) -> Schema:
    """ValueError that says where in the schema it is broken."""
    from jsonschema import Draft202012Validator, SchemaError, validators

    try:
        dialect = validators.validator_for(written, default=Draft202012Validator)
        dialect.check_schema(written)
        # Without it jsonschema would go on with a class of its own, and not with that of _timed.
        plain = {key: value for key, value in written.items() if key != "$schema"}
        return Schema(plain, dialect, dict(_compiled_patterns(plain, dialect)))
    except SchemaError as error:
        where = error.json_path
        raise ValueError(f"a broken schema at {where}: {one_line(error.message, 100)}") from None
    except ValueError:
        raise
    except Exception as error:  # what is no schema at all can break these libraries anywhere
        what = f"{type(error).__name__}: {error}"
        raise ValueError(f"a broken schema: {one_line(what, 100)}") from None


def _compiled_patterns(written: dict[str, Any], dialect: Any) -> Iterator[tuple[str, Any]]:
    for part, resolver in _parts(written, dialect):
        if part is not written and "$schema" in part:
            raise ValueError("a broken schema: $schema stands inside of it, not at its top")
        if "patternProperties" in part:
            raise ValueError("patternProperties is not supported; propertyNames may do")
        for key in ("$ref", "$dynamicRef"):
            if isinstance(part.get(key), str):
                _require_there(part[key], resolver)
        if isinstance(part.get("pattern"), str):
            yield part["pattern"], patterns.compiled(part["pattern"])[True]


def _parts(written: dict[str, Any], dialect: Any) -> Iterator[tuple[dict[str, Any], Any]]:
    """All schemas inside of a schema, each with what its references are looked up by."""
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012, specification_with

    name = dialect.META_SCHEMA.get("$schema", "")
    resource: Any = specification_with(name, default=DRAFT202012).create_resource(written)
    todo = [(resource, Registry().resolver_with_root(resource))]
    while todo:
        part, resolver = todo.pop()
        if isinstance(part.contents, dict):
            yield part.contents, resolver
        todo += [(inner, resolver.in_subresource(inner)) for inner in part.subresources()]


def _require_there(reference: str, resolver: Any) -> None:
    from referencing.exceptions import Unresolvable

    try:
        resolver.lookup(reference)
    except Unresolvable:
        shown = one_line(reference, 60)
        raise ValueError(f"a broken schema: nothing in it is at $ref {shown!r}") from None


def problem_of(data: Any, schema: Schema) -> str | None:
    """The first thing that is wrong; TimeoutError if that takes too long to find out."""
    from jsonschema import validators
    from referencing import Registry

    end = monotonic() + _SECONDS
    own: dict[str, Keyword] = {"pattern": _pattern_by(schema), "uniqueItems": _unique_items}
    keywords = {**schema.dialect.VALIDATORS, **own}
    timed = {name: _timed(keyword, end) for name, keyword in keywords.items()}
    # With a registry of its own it fetches nothing from the network.
    extend: Any = validators.extend
    checker = extend(schema.dialect, timed)(schema.written, registry=Registry())
    error = next(checker.iter_errors(data), None)
    return error and f"{error.json_path} of the answer's JSON: {one_line(error.message, 150)}"


def _timed(keyword: Keyword, end: float) -> Keyword:
    def timed(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        if monotonic() > end:
            raise TimeoutError
        return keyword(validator, value, instance, schema)

    return timed


def _pattern_by(schema: Schema) -> Keyword:
    """As jsonschema has it, but with a limit of time."""
    from jsonschema import ValidationError

    def pattern(_: Any, written: str, instance: Any, __: Any) -> Iterator[ValidationError]:
        if isinstance(instance, str) and not patterns.search(schema.patterns[written], instance):
            yield ValidationError(f"{instance!r} does not fit {written!r}")

    return pattern


def _unique_items(_: Any, wanted: bool, instance: Any, __: Any) -> Iterator[Any]:
    """As jsonschema has it, but not by the square of the items."""
    from jsonschema import ValidationError

    if wanted and isinstance(instance, list):
        seen = {json.dumps(_canonical(item), sort_keys=True) for item in instance}
        if len(seen) < len(instance):
            yield ValidationError(f"{one_line(repr(instance), 100)} has an item twice")


def _canonical(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _canonical(inner) for key, inner in value.items()}
    return [_canonical(inner) for inner in value] if isinstance(value, list) else value
