"""Lines of JSON paths."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill._util.json_forms import Location, line_of, lines_inside

TEXT = """
{
  "cases": [
    {"input": "a", "expected": {
        "contains"
          :
          ["x",
           "y"]
    }},
    {"input": "}]{[\\"cases\\": ", "e\\u0078pected": null}
  ], "defaults": {}
}
"""


@pytest.mark.parametrize(
    ("location", "line"),
    [
        ((), 2),
        (("cases",), 3),
        (("cases", 0), 4),
        (("cases", 0, "expected"), 4),
        (("cases", 0, "expected", "contains"), 5),
        (("cases", 0, "expected", "contains", 0), 7),
        (("cases", 0, "expected", "contains", 1), 8),
        (("cases", 1), 10),
        (("cases", 1, "expected"), 10),
        (("defaults",), 11),
    ],
)
def test_line_is_where_the_key_or_value_starts(location: Location, line: int) -> None:
    assert line_of(TEXT, location) == line


@pytest.mark.parametrize(
    ("location", "line"),
    [
        (("tests",), 2),
        (("cases", 0, "id"), 4),
        (("cases", 0, "expected", "contains", 2), 5),
        (("cases", 0, "expected", "contains", "1"), 5),
        (("cases", "input"), 3),
        (("cases", 1, "input", "str"), 10),
        (("defaults", "tags", 0), 11),
    ],
)
def test_missing_path_has_the_line_of_its_parent(location: Location, line: int) -> None:
    assert line_of(TEXT, location) == line


@pytest.mark.parametrize(
    "location", [(), ("cases",), ("cases", 0, "expected", "contains")]
)
def test_lines_inside_agree_with_line_of(location: Location) -> None:
    value = json.loads(TEXT)
    for part in location:
        value = value[part]
    parts = value if isinstance(value, dict) else range(len(value))
    assert lines_inside(TEXT, location) == [
        line_of(TEXT, (*location, part)) for part in parts
    ]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=15,
)


def places(value: Any, at: Location = ()) -> Iterator[Location]:
    yield at
    parts = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for part, inner in parts:
        yield from places(inner, (*at, part))


def replaced(value: Any, at: Location, new: str) -> Any:
    if not at:
        return new
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[at[0]] = replaced(copy[at[0]], at[1:], new)
    return copy


@given(
    VALUES,
    st.data(),
    st.sampled_from([None, 0, 1, 4, "\t"]),
    st.booleans(),
    st.booleans(),
)
def test_line_is_where_json_dumps_writes_the_value(
    value: Any,
    data: st.DataObject,
    indent: int | str | None,
    ascii_only: bool,
    tight: bool,
) -> None:
    location = data.draw(st.sampled_from(list(places(value))))

    def written(what: Any) -> str:
        separators = (",", ":") if tight else None
        return json.dumps(
            what, indent=indent, ensure_ascii=ascii_only, separators=separators
        )

    # Replace the value by a marker: the line of the marker is the expected line.
    mark = "<the mark of this test>"
    before = written(replaced(value, location, mark)).partition(mark)[0]
    assert line_of(written(value), location) == before.count("\n") + 1
