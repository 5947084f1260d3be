"""The JSON schema for editors agrees with the code."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import pytest_upskill
from pytest_upskill.checks import load_checked_cases
from pytest_upskill.checks.group import COMBINING
from pytest_upskill.checks.kinds import KINDS
from pytest_upskill.checks.skill_meta_schema import ABOUT, schema_of_cases
from pytest_upskill.cli import main
from pytest_upskill.errors import CasesError
from support.kit import case

ROOT = Path(__file__).parents[2]
SHIPPED = Path(pytest_upskill.__file__).with_name("skill_meta.schema.json")
VALIDATOR = Draft202012Validator(json.loads(SHIPPED.read_text(encoding="utf-8")))
GOOD = case("q", "x")


def problems(data: Any) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(data)]


def test_shipped_schema_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    printed = capsys.readouterr().out
    assert printed == SHIPPED.read_text(encoding="utf-8"), (
        "CONTRIBUTING.md says how to renew it"
    )
    Draft202012Validator.check_schema(json.loads(printed))


@pytest.mark.parametrize("file", sorted(ROOT.glob("skills/*/skill_meta.json")), ids=str)
def test_bundled_skills_match_the_schema(file: Path) -> None:
    assert problems(json.loads(file.read_text(encoding="utf-8"))) == []


WHOLE = {
    "id": 1,
    "input": [{"role": "user", "content": "q"}],
    "invoke": "/gate now",
    "system": "Be terse.",
    "context": {"files": {"a": "text", "b": {"file": "b.txt"}}},
    "expected": {"contains": "one", "not_contains": ["a", "b"], "case_sensitive": True},
    "tags": ["slow"],
    "group": "cards",
    "skip": False,
    "xfail": "hard",
    "runs": 3,
    "threshold": 0.5,
    "models": "claude-*",
    "validator": None,
    "workspace": "w",
    "setup": "make",
    "mcp": ["tracker"],
    "mocks": "evals/one/mocks",
    "commands": "evals/late",
    "scaffold": "evals/late/setup.sh",
    "max_turns": 5,
    "timeout": 60,
    "sandbox": {"python": ["pypdf==5.*"], "paths": ["/opt/tool"], "network": False},
    "skills": "environment/skills",
    "reference": {"run": "solution/solve.sh"},
    "user": {"facts": ["It is red."], "max_turns": 3},
    "replies": None,
}


@pytest.mark.parametrize(
    "data",
    [
        [GOOD],
        {"cases": [GOOD, WHOLE]},
        {"$schema": "x.json", "metadata": {"a": 1}, "tests": [GOOD], "cases": None},
        {"defaults": {"expected": {"contains": "x"}}, "cases": [{"input": "q"}]},
        {"defaults": {"tags": ["a"], "expected": None}, "cases": [GOOD]},
        {"cases": [{"input": "q", "expected": {"check_of_a_project": 1}}]},
        {
            "cases": [
                {"input": "q", "expected": {"contains": None, "not_contains": "x"}}
            ]
        },
        {"cases": [{**GOOD, "context": {"files": ["a.txt"]}}]},
        {"cases": [{"invoke": "/gate now", "expected": {"contains": "x"}}]},
    ],
)
def test_correct_cases_are_valid(data: Any) -> None:
    assert problems(data) == []


@pytest.mark.parametrize(
    "data",
    [
        1,
        {"case": [GOOD]},
        {"cases": {}},
        ["q"],
        [{"input": "q"}],
        {"cases": [{"input": "q"}]},
        {"defaults": {"tags": []}, "tests": [{"input": "q"}]},
        {"defaults": {"input": "q"}, "cases": [GOOD]},
        *(
            {"cases": [GOOD | change]}
            for change in list[dict[str, Any]](
                [
                    {"inptu": "q"},
                    {"input": ""},
                    {"input": [{"role": "system", "content": "q"}]},
                    {"input": [{"role": "user"}]},
                    {"expected": "x"},
                    {"expected": {"contains": 1}},
                    {"expected": {"contains": [""]}},
                    {"expected": {"contains": "x", "case_sensitive": "yes"}},
                    {"context": {"files": "a"}},
                    {"context": {"files": {"a": 1}}},
                    {"context": {"files": {"a": {"fle": "a"}}}},
                    {"context": {"file": {}}},
                    {"tags": "a"},
                    {"skip": 1},
                    {"runs": 0},
                    {"runs": 1001},
                    {"runs": 1.5},
                    {"threshold": 0},
                    {"threshold": 2},
                    {"models": 1},
                    {"validator": 1},
                    {"workspace": ["w"]},
                    {"setup": ""},
                    {"sandbox": {"pyhton": []}},
                    {"sandbox": {"python": "pypdf"}},
                    {"sandbox": {"network": "yes"}},
                    {"expected": {"any_of": {"contains": "x"}}},
                    {"expected": [{"not": {"contains": 1}}]},
                ]
            )
        ),
    ],
)
def test_mistakes_are_invalid(tmp_path: Path, data: Any) -> None:
    assert problems(data)
    file = tmp_path / "skill_meta.json"
    file.write_text(json.dumps(data))
    with pytest.raises(CasesError):
        load_checked_cases(file).require_all()


def test_schema_has_every_check_and_key() -> None:
    schema = schema_of_cases()
    assert {"contains", "not_contains"} <= set(
        schema["$defs"]["Expected"]["properties"]
    )
    keys = schema["$defs"]["CaseForm"]["properties"]
    assert {*WHOLE, "output_file", "validator_config"} == set(keys)
    assert "sandbox" in schema["properties"]


def properties(
    schema: Any, path: str = ""
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The place, the name and the schema of each property, at any depth."""
    inside = schema.items() if isinstance(schema, dict) else ()
    for name, own in (
        schema.get("properties", {}).items() if isinstance(schema, dict) else ()
    ):
        yield f"{path}/{name}", name, own
    for key, value in inside if isinstance(schema, dict) else enumerate(schema):
        if isinstance(value, dict | list) and key not in (
            "examples",
            "default",
            "required",
        ):
            yield from properties(value, f"{path}/{key}")


def test_an_editor_can_tell_what_every_property_means() -> None:
    schema = schema_of_cases()
    found = list(properties(schema))
    assert len(found) > 150
    for place, name, own in found:
        text = own.get("description", "")
        assert text.split("Example:")[0].strip().endswith((".", ".'", "…", "]", "}")), (
            place
        )
        # Not just the name again.
        words = set(re.findall(r"[a-z]+", text.lower())) - set(
            name.strip("$").split("_")
        )
        assert len(words) >= 3, place
        assert len(text) < 330, place
    for place, own in schema["$defs"].items():
        assert own["description"], place
        texts = [one["description"] for one in own.get("properties", {}).values()]
        assert len(set(texts)) == len(texts), place


def test_every_kind_of_check_is_described_and_nothing_else() -> None:
    assert set(ABOUT) == {*KINDS, "python", *COMBINING}
    texts = [about.text for about in ABOUT.values()]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("name", ABOUT)
def test_the_example_of_a_check_is_a_good_one(name: str, tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text("def is_haiku(context): return True\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test.sh").touch()
    data = [{"input": "q", "expected": {name: ABOUT[name].example}}]
    assert problems(data) == []
    file = tmp_path / "skill_meta.json"
    file.write_text(json.dumps(data))
    load_checked_cases(file, allow_code=True).require_all()


def test_examples_of_the_docs_match_the_schema() -> None:
    page = (ROOT / "docs/checks.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `\w+`.*? \| `(\{.*?\})` \| ", page, re.M)
    assert len(rows) > 40
    for row in rows:
        assert problems([{"input": "q", "expected": json.loads(row)}]) == [], row
    short = {"number": 42, "code": "python", "json_path": "$.a"}
    several = {"json_path": ["$.a", {"path": "$.b", "equals": None}]}
    inside = {"files": {"a.json": {"number": 3, "json_path": ["$.a"]}}}
    assert problems([{"input": "q", "expected": [short, several, inside]}]) == []


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 1, 0.5, "x", " ", [], ["x"], {}]
)
SOME = {  # mostly good, so that files are often read
    key: (
        st.sampled_from([value] * 9 + [None]).flatmap(
            lambda v: st.just(v) if v else ODD
        )
    )
    for key, value in WHOLE.items()
    if key != "input"
}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cases=st.lists(
        st.fixed_dictionaries({"input": st.just("q") | ODD}, optional=SOME), max_size=2
    ),
    defaults=st.none() | st.fixed_dictionaries({}, optional=SOME),
    bare=st.booleans(),
)
def test_whatever_can_be_loaded_is_valid(
    tmp_path: Path, cases: list[Any], defaults: Any, bare: bool
) -> None:
    (tmp_path / "b.txt").write_text("b")
    (tmp_path / "x").write_text("x")
    (tmp_path / "w").mkdir(exist_ok=True)
    data = cases if bare else {"cases": cases, "defaults": defaults}
    file = tmp_path / "skill_meta.json"
    file.write_text(json.dumps(data))
    try:
        load_checked_cases(file).require_all()
    except CasesError:
        return
    assert problems(data) == []
