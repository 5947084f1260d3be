"""The queries of a catalogue: its own file in the forms that people have,
or skills' triggers.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.errors import CasesError, InputError
from pytest_upskill.features.queries.catalogue import (
    Catalogue,
    Route,
    load_routes,
    routes_of_skills,
)
from pytest_upskill.skills.skill import load_skill
from support.kit import write_skill

Expected = tuple[tuple[str, ...], tuple[str, ...]]


def write_triggers(folder: Path, **queries: bool) -> None:
    written = [
        {"query": text, "should_trigger": opens} for text, opens in queries.items()
    ]
    (folder / "evals").mkdir(exist_ok=True)
    (folder / "evals/triggers.json").write_text(json.dumps(written), encoding="utf-8")


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    for name in ("docx", "pdf"):
        write_skill(tmp_path / name, [])
    write_skill(tmp_path / "deploy", [], frontmatter="disable-model-invocation: true\n")
    return found(tmp_path)


def found(folder: Path) -> Catalogue:
    return Catalogue.of(load_skill(file) for file in folder.glob("*/SKILL.md"))


def read(folder: Path, written: Any, catalogue: Catalogue) -> dict[str, Expected]:
    file = folder / "routes.json"
    file.write_text(json.dumps(written, indent=1), encoding="utf-8")
    return by_query(load_routes(file, catalogue).routes)


def by_query(routes: tuple[Route, ...]) -> dict[str, Expected]:
    return {route.case.input: (route.expected, route.unwanted) for route in routes}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"query": "q", "expected_skill": "pdf"}, (("pdf",), ())),
        ({"prompt": "q", "expected_skill": ["docx", "pdf"]}, (("docx", "pdf"), ())),
        ({"input": "q", "expected_skill": None}, ((), ())),
        ({"query": "q", "expected_skill": "None"}, ((), ())),
        ({"query": "q", "expected_skills": []}, ((), ())),
        ({"query": "q", "expected_skill": "skills/pdf/SKILL.md"}, (("pdf",), ())),
        ({"query": "q", "expected_skill": "office:pdf"}, (("pdf",), ())),
    ],
)  # fmt: skip
def test_an_entry_may_have_any_of_the_known_forms(
    tmp_path: Path, catalogue: Catalogue, entry: dict[str, Any], expected: Expected
) -> None:
    for written in ([entry], {"routes": [entry]}, {"cases": [entry], "version": 1}):
        assert read(tmp_path, written, catalogue) == {"q": expected}


def test_json_lines_are_read_and_each_case_is_a_trigger_with_its_line(
    tmp_path: Path, catalogue: Catalogue
) -> None:
    file = tmp_path / "routes.jsonl"
    lines = (
        '{"query": "Merge", "expected_skill": "pdf"}',
        "",
        '{"query": "Hi", "expected_skill": null}',
    )
    file.write_text("\n".join(lines), encoding="utf-8")
    merge, hi = load_routes(file, catalogue).routes
    assert (merge.case.id, merge.case.kind.noun, merge.case.should_open) == (
        "merge",
        "query",
        True,
    )
    assert (hi.case.should_open, hi.place.endswith("routes.jsonl:3")) == (False, True)
    file.write_text('{"query": "Merge"\n', encoding="utf-8")
    with pytest.raises(CasesError, match=r"routes.jsonl:1:\d+: invalid JSON"):
        load_routes(file, catalogue)


def problem_of(folder: Path, written: Any, catalogue: Catalogue) -> str:
    with pytest.raises(CasesError) as error:
        read(folder, written, catalogue)
    return str(error.value)


def test_all_mistakes_are_one_error_with_lines(
    tmp_path: Path, catalogue: Catalogue
) -> None:
    entries = [
        {"query": "a", "expected_skill": "pfd"},
        {"query": "b", "expected_skil": "pdf"},
        {"expected_skill": 3},
    ]
    problem = problem_of(tmp_path, entries, catalogue)
    assert (
        'routes.json:2: expected_skill: no skill "pfd" here (did you mean "pdf"?)'
        in problem
    )
    assert (
        'routes.json:6: expected_skill: missing (did you mean "expected_skil"?)'
        in problem
    )
    assert "routes.json:10: query: missing" in problem
    assert "routes.json:10: expected_skill: must be the name" in problem


@pytest.mark.parametrize("written", [[], {}, {"skills": []}, "text"])
def test_a_file_without_queries_says_how_to_write_some(
    tmp_path: Path, catalogue: Catalogue, written: Any
) -> None:
    assert '"expected_skill": "pdf"' in problem_of(tmp_path, written, catalogue)


def test_a_query_counts_once_and_may_not_expect_two_things(
    tmp_path: Path, catalogue: Catalogue
) -> None:
    twice = [
        {"query": text, "expected_skill": "pdf"} for text in ("Merge it", "merge  it")
    ]
    assert read(tmp_path, twice, catalogue) == {"Merge it": (("pdf",), ())}
    twice[1]["expected_skill"] = "docx"
    assert "expects something else" in problem_of(tmp_path, twice, catalogue)


def test_skills_that_only_users_call_are_left_out_with_their_queries(
    tmp_path: Path, catalogue: Catalogue
) -> None:
    assert (catalogue.names, catalogue.explicit) == (("docx", "pdf"), ("deploy",))
    file = tmp_path / "routes.json"
    entries = [{"query": name, "expected_skill": name} for name in ("pdf", "deploy")]
    file.write_text(json.dumps(entries), encoding="utf-8")
    loaded = load_routes(file, catalogue)
    assert by_query(loaded.routes) == {"pdf": (("pdf",), ())}
    (note,) = loaded.notes
    assert "1 query" in note
    assert "deploy" in note


def test_triggers_of_skills_are_put_together(
    tmp_path: Path, catalogue: Catalogue
) -> None:
    write_triggers(
        tmp_path / "docx", Report=True, Merge=False, Weather=False, Letter=True
    )
    write_triggers(tmp_path / "pdf", Report=True, Merge=True, Weather=False, Sort=False)
    write_triggers(tmp_path / "deploy", Ship=True)
    loaded = routes_of_skills(catalogue)
    assert by_query(loaded.routes) == {
        "Report": (("docx", "pdf"), ()),
        "Merge": (("pdf",), ("docx",)),
        "Weather": ((), ("docx", "pdf")),
        "Letter": (("docx",), ()),
        "Sort": ((), ("pdf",)),
    }
    assert loaded.source == "triggers and cases of 2 skills"


def test_cases_that_say_which_skill_they_need_are_routes_too(
    tmp_path: Path, catalogue: Catalogue
) -> None:
    cases: list[dict[str, Any]] = [
        {
            "input": "Fill in",
            "expected": {"contains": "x", "with_skill": {"skill_activated": True}},
        },
        {"input": "Joke", "expected": [{"with_skill": [{"skill_activated": False}]}]},
        {
            "input": "Letter",
            "expected": {"with_skill": {"skill_opened": ["docx", "gone"]}},
        },
        {"input": "Table", "expected": {"with_skill": {"skill_not_opened": "docx"}}},
        {"input": "Other", "expected": {"contains": "x"}},
    ]
    write_skill(tmp_path / "pdf", cases)
    assert by_query(routes_of_skills(catalogue).routes) == {
        "Fill in": (("pdf",), ()),
        "Joke": ((), ("pdf",)),
        "Letter": (("docx",), ()),
        "Table": ((), ("docx",)),
    }


def test_an_eval_that_names_another_skill_is_a_route_to_that_one(
    tmp_path: Path, catalogue: Catalogue
) -> None:
    evals = [
        {"prompt": name, "expected_output": "x", "expected_skill": skill}
        for name, skill in {
            "Merge": "pdf",
            "Letter": "docx",
            "Joke": None,
            "Song": "gone",
        }.items()
    ]
    folder = tmp_path / "pdf"
    (folder / "skill_meta.json").unlink()
    (folder / "evals").mkdir()
    written = {"skill_name": "pdf", "evals": evals}
    (folder / "evals/evals.json").write_text(json.dumps(written), encoding="utf-8")
    assert by_query(routes_of_skills(catalogue).routes) == {
        "Merge": (("pdf",), ()),
        "Letter": (("docx",), ()),
        "Joke": ((), ("pdf",)),
        "Song": ((), ("pdf",)),
    }


def test_a_broken_trigger_is_an_error(tmp_path: Path, catalogue: Catalogue) -> None:
    (tmp_path / "pdf/evals").mkdir()
    (tmp_path / "pdf/evals/triggers.json").write_text(
        '[{"query": "x"}]', encoding="utf-8"
    )
    with pytest.raises(CasesError, match=r"triggers.json:1"):
        routes_of_skills(catalogue)


def test_two_skills_of_one_name_or_none_that_can_be_opened_are_an_error(
    tmp_path: Path,
) -> None:
    for folder in ("a", "b"):
        write_skill(tmp_path / folder / "pdf", [])
    with pytest.raises(InputError, match=r"same name \(pdf\)"):
        Catalogue.of(load_skill(file) for file in tmp_path.glob("*/pdf/SKILL.md"))
    write_skill(tmp_path / "deploy", [], frontmatter="disable-model-invocation: true\n")
    with pytest.raises(InputError, match="deploy: no model can open"):
        found(tmp_path)
