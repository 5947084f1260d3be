"""JSON schemas in cases: checked at collection; none fetches anything or hangs."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from .._util.texts import one_line
from .matching import compile_pattern, search
from .time_budget import seconds_left

_MOST_VALUES: Final = 5_000
Keyword = Callable[[Any, Any, Any, Any], Any]


@dataclass(frozen=True)
class Schema:
    """A valid schema, and the class of its dialect."""

    written: dict[str, Any]
    dialect: Any


def compile_schema(written: dict[str, Any]) -> Schema:
    """ValueError says where the schema is invalid."""
    from jsonschema import Draft202012Validator, SchemaError, validators

    _require_small(written)
    try:
        dialect = validators.validator_for(written, default=Draft202012Validator)
        dialect.check_schema(written)
        # With $schema, jsonschema would continue with its own class
        # instead of the one of _timed.
        plain = {key: value for key, value in written.items() if key != "$schema"}
        _require_usable(plain, dialect)
        return Schema(plain, dialect)
    except SchemaError as error:
        path = error.json_path
        raise ValueError(
            f"invalid schema at {path}: {one_line(error.message, 100)}"
        ) from None
    except ValueError:
        raise
    except Exception as error:  # an invalid schema can break these libraries anywhere
        problem = f"{type(error).__name__}: {error}"
        raise ValueError(f"invalid schema: {one_line(problem, 100)}") from None


def _require_small(written: Any) -> None:
    """Checking a schema takes a quarter of a millisecond for each of its values."""
    values, number = [written], 0
    while values:
        value = values.pop()
        inside = value.values() if isinstance(value, dict) else value
        values += inside if isinstance(value, dict | list) else ()
        number += 1
        if number > _MOST_VALUES:
            raise ValueError(
                f"a schema of more than {_MOST_VALUES:,} values is too large"
            )


def _require_usable(written: dict[str, Any], dialect: Any) -> None:
    for part in _parts(written, dialect):
        if part is not written and "$schema" in part:
            raise ValueError("invalid schema: $schema is only allowed at the top")
        if "patternProperties" in part:
            raise ValueError("patternProperties is not supported; try propertyNames")
        if isinstance(part.get("pattern"), str):
            compile_pattern(part["pattern"])


def _parts(written: dict[str, Any], dialect: Any) -> Iterator[dict[str, Any]]:
    """All schemas inside of a schema, also those below unknown
    keys that are referred to.
    """
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012, specification_with

    name = dialect.META_SCHEMA.get("$schema", "")
    specification: Any = specification_with(name, default=DRAFT202012)
    resource = specification.create_resource(written)
    todo, seen = [(resource, Registry().resolver_with_root(resource))], set[int]()
    while todo:
        part, resolver = todo.pop()
        if not isinstance(part.contents, dict) or id(part.contents) in seen:
            continue
        seen.add(id(part.contents))
        yield part.contents
        todo += [
            (inner, resolver.in_subresource(inner)) for inner in part.subresources()
        ]
        for key in ("$ref", "$dynamicRef"):
            if isinstance(part.contents.get(key), str):
                target = _target(part.contents[key], resolver)
                todo.append(
                    (specification.create_resource(target.contents), target.resolver)
                )


def _target(reference: str, resolver: Any) -> Any:
    from referencing.exceptions import Unresolvable

    try:
        return resolver.lookup(reference)
    except Unresolvable:
        short_name = one_line(reference, 60)
        raise ValueError(
            f"invalid schema: $ref {short_name!r} points to nothing in it"
        ) from None


def schema_violation(data: Any, schema: Schema) -> str | None:
    """The first violation; LimitReachedError if finding it takes too long."""
    from jsonschema import validators
    from referencing import Registry

    our_keywords: dict[str, Keyword] = {
        "pattern": _pattern,
        "uniqueItems": _unique_items,
    }
    keywords = {**schema.dialect.VALIDATORS, **our_keywords}
    timed = {name: _timed(keyword) for name, keyword in keywords.items()}
    # With its own registry it fetches nothing from the network.
    extend: Any = validators.extend
    checker = extend(schema.dialect, timed)(schema.written, registry=Registry())
    error = next(checker.iter_errors(data), None)
    return error and f"JSON at {error.json_path}: {one_line(error.message, 150)}"


def _timed(keyword: Keyword) -> Keyword:
    def timed(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        seconds_left()
        return keyword(validator, value, instance, schema)

    return timed


def _pattern(_: Any, written: str, instance: Any, __: Any) -> Iterator[Any]:
    """Like jsonschema's own, but with limits."""
    from jsonschema import ValidationError

    if not isinstance(instance, str):
        return
    if search(written, instance, case_sensitive=True) is None:
        yield ValidationError(f"{instance!r} does not match {written!r}")


def _unique_items(_: Any, required: bool, instance: Any, __: Any) -> Iterator[Any]:
    """Like jsonschema's own, but not quadratic."""
    from jsonschema import ValidationError

    if required and isinstance(instance, list):
        distinct = {json.dumps(_canonical(item), sort_keys=True) for item in instance}
        if len(distinct) < len(instance):
            yield ValidationError(
                f"{one_line(repr(instance), 100)} has a duplicate item"
            )


def _canonical(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _canonical(inner) for key, inner in value.items()}
    return [_canonical(inner) for inner in value] if isinstance(value, list) else value
