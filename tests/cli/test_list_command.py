"""pytest-upskill list: what there is to know of skills without asking a model."""

import json
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cli import main
from pytest_upskill.cli.project import ini_paths
from pytest_upskill.features.accepted.results import Accepted, write_results
from pytest_upskill.features.queries import QUERY
from pytest_upskill.results.history import keep
from pytest_upskill.skills.skill import load_skill
from pytest_upskill.trials.plan import Count
from support.kit import BODY, case, write_script, write_skill
from support.made import STARTED, made_run


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()  # the root of the project
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")


def listed(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert main(["list", *words]) == status
    return capsys.readouterr().out


def listed_data(
    capsys: pytest.CaptureFixture[str], *words: str, status: int = 0
) -> Any:
    return json.loads(listed(capsys, *words, "--json", status=status))["skills"]


def write_full_skill(folder: Path) -> Path:
    """A skill with files, two cases and an accepted result."""
    written = [case("Open?", "gate up", id="a"), case("Shut?\nHow?", "down", id="b")]
    write_skill(
        folder,
        written,
        body=(
            f"{BODY} See references/deep/more.md, schemas/gate.json, "
            "LICENSE.txt and assets/logo.png."
        ),
    )
    for name, data in {
        "references/deep/more.md": b"x" * 400,
        "scripts/run.py": b"print(1)\n",
        "schemas/gate.json": b"{}",
        "LICENSE.txt": b"All of it.",
        "assets/logo.png": b"\x89PNG\0\xff",
        "empty.txt": b"",
        "__pycache__/run.pyc": b"\0",
        "evals/evals.json": b"{}",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    digest = load_skill(folder / "SKILL.md").digest[:12]
    half = Accepted(
        Count(1, 2),
        "2026-11-02",
        baseline=Count(0, 2),
        case="a",
        skill_digest=digest,
        setup="",
    )
    whole = replace(half, was=Count(2, 2), baseline=Count(1, 2))
    older = replace(whole, date="2026-10-01", skill_digest="000000000000")
    no_baseline = replace(older, baseline=None)
    models = {"haiku": {"1": half, "2": whole}, "opus": {"1": no_baseline}}
    write_results(folder, models)
    return folder


def test_what_is_said_of_a_skill(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_full_skill(tmp_path / "skills/gate")
    write_skill(tmp_path / "top")
    (tmp_path / "top/skill_meta.json").unlink()
    assert (
        listed(capsys, ".") == "skills/gate  5 + 31 + 100 tokens, 2 cases\n"
        "  About a gate.\n"
        "  SKILL.md: 31 tokens\n"
        "  references/deep/more.md: 100 tokens\n"
        "  schemas/gate.json: 2 bytes\n"
        "  assets/logo.png: 6 bytes\n"
        "  LICENSE.txt: 10 bytes\n"
        "  empty.txt: 0 bytes\n"
        "  scripts/run.py: 9 bytes\n"
        "  accepted haiku 75%, 25% without (2026-11-02)\n"
        "  accepted opus 100% (2026-10-01, edited since)\n"
        "\n"
        "top  4 + 10 + 0 tokens, no cases\n"
        "  About a gate.\n"
        "  SKILL.md: 10 tokens\n"
        "\n"
        "2 skills, about 9 + 41 + 100 tokens, 2 cases\n"
        "Tokens, estimated: always in context (name and description)\n"
        "+ when the skill is used (SKILL.md) + on demand (text files\n"
        "that it refers to).\n"
    )


def test_a_long_description_is_two_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_skill(tmp_path / "gate") / "SKILL.md"
    file.write_text(
        file.read_text().replace("About a gate.", "All about\x1b a gate. " * 30)
    )
    lines = listed(capsys, ".").splitlines()
    assert len(lines[1]) <= len(lines[2]) <= 60
    assert lines[2].endswith(" …")
    assert lines[3] == "  SKILL.md: 10 tokens"
    assert "\x1b" not in "".join(lines)


def test_verbose_shows_the_start_of_the_skill_and_some_cases(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = "\n".join(f"- line {number} \x1b[31m{'x' * 90}" for number in range(20))
    cases = [case(f"Question {n}?", "x", id=f"case-{n}") for n in range(7)]
    write_skill(tmp_path / "gate", cases, body=body)
    for number in range(15):
        (tmp_path / f"gate/more-{number:02}.md").write_text("four")
    short = listed(capsys, "gate")
    assert "line 0" not in short
    assert "  and 4 more files\n" in short
    shown = listed(capsys, "gate", "-v")
    assert "more-14.md" in shown
    assert "  - line 11 \\x1b[31mxxx" in shown
    assert "line 12" not in shown
    assert "  case-4: Question 4?\n  and 2 more cases\n" in shown
    assert "case-5" not in shown
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 60


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({}, "expected: missing"),
        ({"expected": {"max_words": "few"}}, "expected.max_words: "),
        ({"expected": {"registered_in_conftest": 1}}, ""),
        ({"expected": {"python": "checks.py:good"}}, "'checks.py' not found"),
    ],
)
def test_cases_that_can_not_run_are_an_error(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    wrong: dict[str, Any],
    error: str,
) -> None:
    write_skill(tmp_path / "gate", [{"input": "Open?", **wrong}])
    (skill,) = listed_data(capsys, "gate", status=1 if error else 0)
    assert len(skill["errors"]) == bool(error)
    assert all(error in found["problem"] for found in skill["errors"])


def test_a_broken_skill_is_reported_and_the_rest_is_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_skill(tmp_path / "good")
    write_skill(tmp_path / "twice", body="")
    (write_skill(tmp_path / "no-json") / "skill_meta.json").write_text("{")
    (write_skill(tmp_path / "odd") / "skill_results.json").write_text('{"schema": 9}')
    shown = listed(capsys, ".", status=1)
    assert "good  5 + 10 + 0 tokens, 1 case\n  About a gate.\n  SKILL.md" in shown
    assert "error: no-json/skill_meta.json:1:2: invalid JSON" in shown
    assert "error: odd/skill_results.json:" in shown
    assert "twice\n  error: twice/SKILL.md: no text after the frontmatter\n" in shown
    assert "\n4 skills, about 15 + 30 + 0 tokens, 2 cases, 3 broken\n" in shown
    data = {skill["name"]: skill for skill in listed_data(capsys, ".", status=1)}
    assert {name for name, skill in data.items() if skill["errors"]} == {
        "twice",
        "no-json",
        "odd",
    }
    assert data["twice"]["description"] is None
    assert data["odd"]["cases"] == [
        {"id": "open-gate", "input": "How do I open the gate?"}
    ]


def test_json_has_all_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_full_skill(tmp_path / "skills/gate")
    (skill,) = listed_data(capsys, "skills")
    assert (skill["name"], skill["path"]) == ("gate", "skills/gate")
    assert skill["description"] == "About a gate."
    assert skill["cases_file"] == "skills/gate/skill_meta.json"
    parts = [skill[f"tokens_{part}"] for part in ("always", "used", "on_demand")]
    assert parts == [5, 31, 100]
    page, schema, logo = skill["files"][1:4]
    assert page == {
        "path": "references/deep/more.md",
        "tokens": 100,
        "bytes": 400,
        "on_demand": True,
    }
    assert (schema["tokens"], schema["on_demand"]) == (1, False)
    assert logo == {
        "path": "assets/logo.png",
        "tokens": None,
        "bytes": 6,
        "on_demand": False,
    }
    assert [case["id"] for case in skill["cases"]] == ["a", "b"]
    assert skill["results"][0] == {
        "model": "haiku",
        "rate": 0.75,
        "baseline_rate": 0.25,
        "date": "2026-11-02",
        "edited_since": False,
        "kind": "accepted",
        "cases": 2,
        "of": 0,
        "score": "pass",
        "checks": None,
        "baseline_checks": None,
    }


def test_nested_skills_are_listed_by_their_names_and_copies_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_skill(tmp_path / "repo", body="The outer one.")
    inner = write_skill(tmp_path / "repo/skills/inner")
    (inner / "SKILL.md").write_text(
        "---\nname: Other\ndescription: D.\n---\nThe inner one."
    )
    shutil.copytree(inner, tmp_path / "repo/.claude/skills/inner")
    shown = listed(capsys, "repo")
    assert [line for line in shown.splitlines() if "tokens, " in line][:2] == [
        "repo  5 + 4 + 0 tokens, 1 case",
        "repo/skills/inner (Other)  2 + 4 + 0 tokens, 1 case",
    ]
    assert shown.endswith(
        "left out (a copy of another skill here):\nrepo/.claude/skills/inner\n"
    )
    data = json.loads(listed(capsys, "repo", "--json"))
    assert [skill["name"] for skill in data["skills"]] == ["repo", "Other"]
    assert data["left_out"] == [
        {"path": "repo/.claude/skills/inner", "reason": "a copy of another skill here"}
    ]


def test_the_last_three_models_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(tmp_path / "gate")
    for number in range(5):
        run = made_run(
            models=(f"scripted:a-very-long-name-of-a-model-{number}.json",),
            cases=5,
            started=STARTED + timedelta(minutes=number),
        )
        some = replace(run, tests=run.tests[:2], records=run.records[:4])
        keep(some if number == 4 else run, tmp_path / ".upskill/runs", 10**9)
    monkeypatch.setenv("COLUMNS", "80")
    lines = listed(capsys, ".").splitlines()
    results = [line for line in lines if "last run" in line]
    assert [line.split()[2][-6:] for line in results] == ["4.json", "3.json", "2.json"]
    assert " 100%, 50% without (2 of 5 cases" in " ".join(" ".join(lines).split())
    assert "of 5 cases" not in results[1]
    assert "  and 2 more models" in lines
    assert max(map(len, lines)) <= 80
    assert listed(capsys, ".", "-v").count("last run") == 5
    (skill,) = listed_data(capsys, ".")
    assert [(found["cases"], found["of"]) for found in skill["results"][:2]] == [
        (2, 5),
        (5, 5),
    ]


def test_a_run_of_triggers_alone_does_not_hide_the_last_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_skill(tmp_path / "gate")
    (folder / "skill_meta.json").unlink()
    (folder / "evals").mkdir()
    queries = [{"query": "Open it?", "should_trigger": True}]
    (folder / "evals/triggers.json").write_text(json.dumps(queries))
    run, later = made_run(arms=("skill",)), STARTED + timedelta(minutes=1)
    keep(run, tmp_path / ".upskill/runs", 10**9)
    triggers = tuple(replace(test, kind=QUERY) for test in run.tests)
    keep(replace(run, tests=triggers, started=later), tmp_path / ".upskill/runs", 10**9)
    assert len([*(tmp_path / ".upskill/runs").glob("*.json*")]) == 2
    shown = listed(capsys, ".")
    assert shown.count("last run haiku 83%") == 1
    assert "tokens, no cases, 1 query\n" in shown


def test_skills_of_the_same_name_have_their_own_results(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    write_skill(pytester.path / "a/gate")
    write_skill(pytester.path / "b/gate", body="Nothing about it.")
    model = write_script(pytester.path / "a.json")
    run = pytester.runpytest_inprocess("--skill", ".", "--model", model)
    run.assert_outcomes(passed=1, failed=1)
    capsys.readouterr()
    found = listed_data(capsys, ".")
    assert [[result["rate"] for result in skill["results"]] for skill in found] == [
        [1],
        [0],
    ]


def test_accepted_results_are_listed(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    write_skill(pytester.path / "skills/gate")
    model = write_script(pytester.path / "a.json")
    args = ["--skill", "skills", "--model", model, "--skill-accept"]
    pytester.runpytest_inprocess(*args).assert_outcomes(passed=1)
    capsys.readouterr()
    (skill,) = listed_data(capsys, str(pytester.path / "skills"))
    (result,) = skill["results"]
    assert (result["model"], result["rate"], result["baseline_rate"]) == (model, 1, 0)
    assert not result["edited_since"]


def test_a_single_skill_can_be_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_skill(tmp_path / "skills/gate")
    line = "skills/gate  5 + 10 + 0 tokens, 1 case\n"
    assert listed(capsys, "skills/gate").startswith(line)
    assert listed(capsys, "skills/gate/SKILL.md").startswith(line)
    monkeypatch.chdir(tmp_path / "skills/gate")
    assert listed(capsys, ".").startswith(". (gate)  5")


def test_the_default_folder_is_that_of_the_ini_file_then_upskill_then_the_current_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("here", "theirs/gate", "ours/gate"):
        write_skill(tmp_path / name, body=f"The text of {name}.")

    def paths() -> list[str]:
        return [skill["path"] for skill in listed_data(capsys)]

    assert paths() == ["here", "ours/gate", "theirs/gate"]
    (tmp_path / "upskill.config.yaml").write_text("skills_dir: theirs")
    assert paths() == ["theirs/gate"]
    (tmp_path / "pytest.ini").write_text("[pytest]\nskill_paths = ours here\n")
    assert paths() == ["ours/gate", "here"]
    assert [skill["path"] for skill in listed_data(capsys, "theirs")] == ["theirs/gate"]


@pytest.mark.parametrize(
    ("words", "config", "told"),
    [
        (["nowhere"], "", "nowhere: no such file or folder"),
        (["empty"], "", "empty: no SKILL.md in this folder or below"),
        (
            [],
            "skills_dir: gone",
            "upskill.config.yaml: skills_dir: gone: no such folder",
        ),
        ([], "skills_dir: 3", "upskill.config.yaml: skills_dir: must be the path"),
    ],
)
def test_bad_input_is_status_2(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    config: str,
    told: str,
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "upskill.config.yaml").write_text(config)
    assert main(["list", *words]) == 2
    assert f"pytest-upskill: {told}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("pytest.toml", '[pytest]\nskill_paths = ["a", "b"]', ["a", "b"]),
        ("pytest.ini", "[pytest]\nskill_paths =\n  a\n  b", ["a", "b"]),
        ("pyproject.toml", '[tool.pytest.ini_options]\nskill_paths = ["a"]', ["a"]),
        ("pyproject.toml", '[tool.pytest]\nskill_paths = ["a"]', ["a"]),
        ("tox.ini", "[pytest]\nskill_paths = a", ["a"]),
        ("setup.cfg", "[tool:pytest]\nskill_paths = a", ["a"]),
        ("setup.cfg", "[pytest]\nskill_paths = a", ["above"]),
        ("pyproject.toml", "[project]\nname = 'x'", ["above"]),
        ("pytest.ini", "", []),
        ("tox.ini", "not an ini file", ["above"]),
        ("pyproject.toml", "= broken", ["above"]),
        ("pytest.toml", "[pytest]\nskill_paths = 3", []),
    ],
)
def test_the_ini_file_is_the_one_that_pytest_would_read(
    tmp_path: Path, name: str, text: str, found: list[str]
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nskill_paths = above")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / name).write_text(text)
    base = tmp_path if found == ["above"] else folder
    assert ini_paths(folder, "skill_paths") == [base / path for path in found]
