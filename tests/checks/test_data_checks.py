"""Checks of data in an answer."""

from typing import Any

import pytest

from pytest_upskill.errors import CheckError
from support.checking import graded, passes, reason, refused

ITEMS = (
    '{"items": [{"name": "a", "n": 1}, {"name": "b", "n": 2.0}], "odd key": null, "ok":'
    " true}"
)


def fenced(text: str, language: str = "") -> str:
    return f"Here it is:\n\n```{language}\n{text}\n```\nThat is all."


@pytest.mark.parametrize(
    "answer",
    [
        ITEMS,
        f"\n {ITEMS} \n",
        fenced(ITEMS, "json"),
        fenced(ITEMS, "JSON"),
        fenced(ITEMS),
        fenced(ITEMS, 'json title="a.json"'),
        fenced(ITEMS, "{.json}"),
        f"~~~~json\n{ITEMS}\n~~~~",
        f"1. So:\n   ```json\n   {ITEMS}\n   ```",
        f"```python\nprint()\n```\n```json\n{ITEMS}\n```",
        f"```json\nbroken\n```\n```json\n{ITEMS}\n```",
        f"```json\n{ITEMS}",
        f"```json\r\n{ITEMS}\r\n```\r\n",
        '"text"',
    ],
)
def test_json_is_found(answer: str) -> None:
    assert passes(answer, json=True)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("Hello.", "invalid JSON: expecting value (line 1, column 1)"),
        (
            fenced("{'a': 1}", "json"),
            "invalid JSON: expecting property name enclosed in",
        ),
        (fenced(ITEMS, "python"), "invalid JSON"),
        (f"Here: {ITEMS}", "invalid JSON"),
        ("NaN", "invalid JSON: NaN is not a JSON value"),
        ("[" * 100_000, "the JSON is nested too deep"),
        ("1" * 5_000, "invalid JSON: Exceeds the limit"),
        ("x" * 200_001, "too long to parse: 200,001 characters (limit 200,000)"),
    ],
)
def test_invalid_json_is_reported(answer: str, message: str) -> None:
    assert not passes(answer, json=True)
    assert reason(answer, json=True).startswith(message)


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("$.items[0].name", {"equals": "a"}),
        ("$.items[1].n", {"equals": 2}),
        ("$.items[0].n", {"equals": 1.0}),
        ("$.items[-1]", {"equals": {"n": 2, "name": "b"}}),
        ("$.items[*].name", {"equals": "b"}),
        ("$.items.*.name", {"equals": "b"}),
        ('$["odd key"]', {"equals": None}),
        ("$['odd key']", {}),
        ("$.ok", {"equals": True}),
        ("$", {}),
    ],
)
def test_path_finds_a_value(path: str, more: dict[str, Any]) -> None:
    assert passes(fenced(ITEMS, "json"), json_path={"path": path, **more})


@pytest.mark.parametrize(
    ("path", "more", "message"),
    [
        ("$.items[0].n", {"equals": 2}, "$.items[0].n is 1, not 2"),
        ("$.items[0].n", {"equals": True}, "$.items[0].n is 1, not true"),
        ("$.ok", {"equals": 1}, "$.ok is true, not 1"),
        ("$.items[0].n", {"equals": "1"}, '$.items[0].n is 1, not "1"'),
        ("$.items[2]", {}, "the JSON has nothing at $.items[2]"),
        ("$.items[-3]", {}, "the JSON has nothing at $.items[-3]"),
        ("$.items.name", {}, "the JSON has nothing at $.items.name"),
        ("$.ok[*]", {}, "the JSON has nothing at $.ok[*]"),
        ("$.ok.x[0]", {}, "the JSON has nothing at $.ok.x[0]"),
        ("$.items", {"equals": [1]}, "$.items is ["),
    ],
)
def test_path_with_another_value_or_none_fails(
    path: str, more: dict[str, Any], message: str
) -> None:
    expected = {"json_path": {"path": path, **more}}
    assert not passes(ITEMS, **expected)
    assert reason(ITEMS, **expected).startswith(message)


def test_each_path_is_a_check() -> None:
    paths = ["$.ok", {"path": "$.items[0].n", "equals": 1}, "$.none"]
    assert [grade.passed for grade in graded({"json_path": paths}, ITEMS)] == [
        True,
        True,
        False,
    ]


SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["items"],
    "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/item"}}},
    "$defs": {
        "item": {"properties": {"name": {"pattern": "^[a-z]$"}}, "uniqueItems": True}
    },
}


def test_json_is_validated_against_a_schema() -> None:
    assert passes(fenced(ITEMS, "json"), json_schema=SCHEMA)
    wrong = ITEMS.replace('"b"', '"B2"')
    assert not passes(wrong, json_schema=SCHEMA)
    message = "JSON at $.items[1].name: 'B2' does not match '^[a-z]$'"
    assert reason(wrong, json_schema=SCHEMA) == message
    assert "'items' is a required property" in reason("{}", json_schema=SCHEMA)


@pytest.mark.parametrize("dialect", ["2020-12/schema", "2019-09/schema"])
def test_schema_may_name_its_dialect(dialect: str) -> None:
    schema = {"$schema": f"https://json-schema.org/draft/{dialect}", **SCHEMA}
    assert passes(ITEMS, json_schema=schema)
    assert not passes("{}", json_schema=schema)


@pytest.mark.parametrize(
    ("items", "unique"),
    [("[1, true, 1.5, [1]]", True), ("[1, 2, 1.0]", False), ("[[1], [1]]", False)],
)
def test_unique_items_are_compared_as_json(items: str, unique: bool) -> None:
    assert passes(items, json_schema={"uniqueItems": True}) is unique


def test_many_unique_items_do_not_hang() -> None:
    items = ", ".join(f'{{"a": {number}}}' for number in range(15_000))
    assert passes(f"[{items}]", json_schema={"uniqueItems": True})


LAUGHS = {
    f"d{number}": {"allOf": [{"$ref": f"#/$defs/d{number + 1}"}] * 2}
    for number in range(60)
}


@pytest.mark.usefixtures("short_timeouts")
@pytest.mark.parametrize(
    ("schema", "answer"),
    [
        ({"items": {"pattern": "(a+)+$"}}, '["' + "a" * 5_000 + 'b"]'),
        ({"$ref": "#/$defs/d0", "$defs": {**LAUGHS, "d60": {}}}, "1"),
    ],
)
def test_slow_schema_is_an_error(schema: dict[str, Any], answer: str) -> None:
    for expected in ({"json_schema": schema}, {"not": {"json_schema": schema}}):
        with pytest.raises(
            CheckError, match=r"0\.2 s in all, and json_schema .* was not done"
        ):
            graded(expected, answer)


def test_schema_that_refers_to_itself_fails() -> None:
    assert reason("1", json_schema={"$ref": "#"}) == "the data is nested too deeply"


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"json": False}, "json: must be true; for the opposite"),
        ({"json": "yes"}, "json: must be true or false"),
        ({"json_schema": []}, "json_schema: must be an object"),
        (
            {"json_schema": {"properties": {"a": {"type": "strnig"}}}},
            "json_schema: invalid schema at $.properties.a.type: 'strnig' is not valid",
        ),
        ({"json_schema": {"pattern": "("}}, "json_schema: invalid schema at $.pattern"),
        ({"json_schema": {"pattern": "((a{999}){999}){999}"}}, "are too large"),
        (
            {"json_schema": {"$ref": "#/$defs/x"}},
            "$ref '#/$defs/x' points to nothing in it",
        ),
        (
            {"json_schema": {"not": {"$ref": "https://example.com/x"}}},
            "$ref 'https://exam",
        ),
        ({"json_schema": {"$schema": 1}}, "json_schema: invalid schema"),
        (
            {"json_schema": {"not": {"$schema": "x"}}},
            "$schema is only allowed at the top",
        ),
        (
            {"json_schema": {"patternProperties": {}}},
            "patternProperties is not supported",
        ),
        (
            {
                "json_schema": {
                    "$ref": "#/odd/0",
                    "odd": [{"patternProperties": {"(a+)+$": False}}],
                }
            },
            "patternProperties is not supported",
        ),
        (
            {"json_schema": {"$ref": "#/odd/0", "odd": [{"pattern": "(a{999}){999}"}]}},
            "repeat counts such as {999} are too large",
        ),
        ({"json_path": "a.b"}, "json_path: must start with $"),
        ({"json_path": "$.a[b]"}, "json_path: invalid path at position 3, '[b]'"),
        ({"json_path": "$..a"}, "invalid path at position 1"),
        ({"json_path": {"pth": "$"}}, "json_path.path: missing"),
        (
            {"json_path": {"path": "$", "equal": 1}},
            'equal: unknown key (did you mean "equals"?)',
        ),
        ({"json_path": []}, "json_path: must not be empty"),
        ({"json_path": 1}, "json_path: must be an object"),
        ({"number": "42"}, "number: must be an object"),
        ({"number": True}, "number: must be an object"),
        ({"number": float("inf")}, "number: must be a finite number"),
        ({"number": 10**400}, "number: "),
        (
            {"number": {"value": 1, "tolerance": -1}},
            "number.tolerance: must be 0 or more",
        ),
        ({"number": {"value": 1, "tolerence": 1}}, 'did you mean "tolerance"?'),
        ({"csv_columns": []}, "csv_columns: must not be empty"),
    ],
)
def test_invalid_argument_is_reported_with_its_path(
    expected: dict[str, Any], message: str
) -> None:
    assert message in refused(expected)


@pytest.mark.parametrize(
    "answer",
    [
        "a: 1",
        "- a\n- b",
        "a: 1\n---\nb: 2\n",
        fenced("a: &x {b: 1}\nc: *x\nd:\n  <<: *x", "yml"),
        "# said\na: 2001-99-99",
    ],
)
def test_yaml_is_found(answer: str) -> None:
    assert passes(answer, yaml=True)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("Just a sentence.", "a single value"),
        ("# a title", "no YAML mapping or list"),
        ("a: [1", "invalid YAML: did not find expected"),
        ("a: \x00", "invalid YAML"),
        ("a: \ud800", "invalid YAML"),
        ("[" * 100_000, "the YAML is nested too deep"),
        ("- " * 1_000, "the YAML is nested too deep"),
    ],
)
def test_invalid_yaml_is_reported(answer: str, message: str) -> None:
    assert not passes(answer, yaml=True)
    assert reason(answer, yaml=True).startswith(message)


@pytest.mark.parametrize("answer", ["a = 1", fenced('[a]\nb = "c"', "toml"), "[a]"])
def test_toml_is_found(answer: str) -> None:
    assert passes(answer, toml=True)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("Just a sentence.", "invalid TOML"),
        ("# a title", "no TOML key"),
        ("a = " + "[" * 100_000, "the TOML is nested too deep"),
        ("a" + ".a" * 90_000 + " = 1", "a TOML key has too many parts"),
        ("x = {" + '"a" . ' * 10_000 + "b = 1}", "a TOML key has too many parts"),
        ("a = " + "1" * 5_000, "invalid TOML"),
    ],
)
def test_invalid_toml_is_reported(answer: str, message: str) -> None:
    assert not passes(answer, toml=True)
    assert reason(answer, toml=True).startswith(message)


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("It is 42.", 42),
        ("42kg", 42),
        ("costs $42!", 42),
        ("-$1,234.50", -1234.5),
        ("about 1,234,567 people", 1234567),
        ("1'234'567", 1234567),
        ("1_000", 1000),
        ("1\u202f000 €", 1000),
        ("x = -5", -5),
        ("\u22125 °C", -5),
        ("from 3-5", 5),
        ("(.5)", 0.5),
        ("2.5e-3 m", 0.0025),
        ("5eV", 5),
        ("1, 2, 3", 2),
        ("[1,2,3]", 2),
        ("100%", 100),
        ("0.1", 0.30000000000000004 - 0.2),
        ("٤٢", 42),
    ],
)
def test_number_is_found(answer: str, value: float) -> None:
    assert passes(answer, number=value)


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("Python 3.11.2", 3.11),
        ("Python 3.11.2", 11),
        ("v42", 42),
        ("H100", 100),
        ("127.0.0.1", 127),
        ("421", 42),
        ("0.42", 42),
        ("1,234", 234),
        ("x_42", 42),
        ("42", 42.001),
        ("forty-two", 42),
    ],
)
def test_other_numbers_do_not_match(answer: str, value: float) -> None:
    assert not passes(answer, number=value)


def test_number_may_be_off_by_its_tolerance() -> None:
    wanted = {"value": 10, "tolerance": 0.5}
    assert passes("9.5", number=wanted)
    assert not passes("9.4 or 11", number=wanted)
    message = "nearest number is 9.4 (expected 10 ± 0.5)"
    assert reason("9.4 or 11", number=wanted) == message
    assert reason("none", number=1) == "no number in the answer (expected 1)"
    message = "nearest number is 1234568 (expected 1234567)"
    assert reason("1,234,568", number=1234567) == message


@pytest.mark.parametrize(
    "answer",
    [
        "Name, Age\nAnn,4",
        fenced('id,name,age\n1,"A, B",4\n', "csv"),
        fenced("age,name"),
    ],
)
def test_columns_are_found(answer: str) -> None:
    assert passes(answer, csv_columns=["name", "age"])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("name,years\nA,1", 'no column "age", only "name", "years"'),
        ("name,age\nA", "CSV row 2 has 1 cells, the header 2"),
        ("```csv\n\n```\nDone.", "no CSV"),
        ('name,"age', "invalid CSV: unexpected end of data"),
        ("name,age\n" + "x" * 150_000, "invalid CSV: field larger than field limit"),
    ],
)
def test_missing_column_is_reported(answer: str, message: str) -> None:
    assert not passes(answer, csv_columns=["name", "age"])
    assert reason(answer, csv_columns=["name", "age"]).startswith(message)


def test_columns_can_be_case_sensitive() -> None:
    assert not passes("Name\nA", csv_columns="name", case_sensitive=True)


def test_a_schema_has_a_size() -> None:
    large = {"json_schema": {"allOf": [{"type": "object"}] * 3_000}}
    assert "a schema of more than 5,000 values is too large" in refused(large)


def test_many_columns_of_a_wide_table_are_looked_up_at_once() -> None:
    """Looking each one up in the header took 16 s."""
    wide = ",".join(f"c{number}" for number in range(20_000))
    assert passes(wide, csv_columns=[f"c{number}" for number in range(15_000, 20_000)])
    assert 'no column "x", only "c0", "c1"' in reason(wide, csv_columns=["x"])
