"""The command pytest-upskill lint: paths, output, exit status; the hook of
pre-commit.
"""

import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from pytest_upskill.cli import main
from pytest_upskill.lint import question_rules
from pytest_upskill.stats import cases_to_find
from support.kit import case, write_skill

ROOT = Path(__file__).parents[2]


Lint = Callable[..., tuple[int, str]]


@pytest.fixture
def lint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Lint:
    """Run the command; for a lift of 100 points, a single case is enough."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        question_rules,
        "cases_to_find",
        lambda lift, runs=1: 1 if lift == 1 else cases_to_find(lift, runs),
    )

    def run(*arguments: str, lift: str = "100") -> tuple[int, str]:
        status = main(["lint", "--lift", lift, *arguments])
        return status, capsys.readouterr().out

    return run


def test_a_good_skill_gets_only_a_summary(tmp_path: Path, lint: Lint) -> None:
    write_skill(tmp_path / "skills/gate")
    assert lint("skills") == (0, "1 skill: 0 errors, 0 warnings\n")


def test_a_skill_can_be_named(tmp_path: Path, lint: Lint) -> None:
    write_skill(tmp_path / "skills/gate", body="See [x](no.md).")
    write_skill(tmp_path / "skills/door")
    status, shown = lint("gate")
    assert status == 1
    assert shown == lint("skills/gate")[1]


def test_an_error_has_a_line_number_and_exits_with_1(
    tmp_path: Path, lint: Lint
) -> None:
    write_skill(tmp_path / "gate", body="See [x](no.md).")
    status, shown = lint("gate")
    assert status == 1
    line, summary = shown.splitlines()
    assert re.fullmatch(
        r"gate/SKILL\.md:6: error: 'no\.md' not found in .* \(reference-broken\)", line
    )
    assert summary == "1 skill: 1 error, 0 warnings"


@pytest.mark.parametrize(
    "paths",
    [["."], [".claude/skills"], [".claude/skills", "skills"], ["one", "skills/gate"]],
)
def test_a_linked_folder_is_reported_once_under_its_real_path(
    tmp_path: Path, lint: Lint, paths: list[str]
) -> None:
    write_skill(tmp_path / "skills/gate", body="See [x](no.md).")
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/skills").symlink_to("../skills")
    (tmp_path / "one").symlink_to("skills/gate")
    _, shown = lint(*paths)
    assert shown.startswith("skills/gate/SKILL.md:6: error: ")
    assert shown.endswith("\n1 skill: 1 error, 0 warnings\n")


def test_a_warning_exits_with_1_only_if_strict(tmp_path: Path, lint: Lint) -> None:
    write_skill(tmp_path / "gate", [case("Is it gate up?", "gate up", id="up")])
    status, shown = lint("gate")
    assert status == 0
    assert shown.startswith("gate/skill_meta.json:1: warning: up: ")
    assert lint("gate", "--strict") == (1, shown)


def test_a_good_skill_passes_with_strict(tmp_path: Path, lint: Lint) -> None:
    write_skill(tmp_path / "gate")
    assert lint("--strict")[0] == 0


def test_json_is_a_list_of_findings(tmp_path: Path, lint: Lint) -> None:
    write_skill(tmp_path / "gate", [case("Is it gate up?", "gate up", id="up")])
    status, shown = lint("--json")
    assert status == 0
    (finding,) = json.loads(shown)
    assert list(finding) == ["file", "line", "level", "code", "message", "hint"]
    assert finding["file"] == "gate/skill_meta.json"
    assert finding["code"] == "leak"
    write_skill(tmp_path / "gate")
    assert lint("--json") == (0, "[]\n")


def test_a_skill_is_linted_once_however_it_is_named(tmp_path: Path, lint: Lint) -> None:
    write_skill(tmp_path / "a/gate")
    evals = write_skill(tmp_path / "a/door") / "evals"
    (evals.parent / "skill_meta.json").unlink()
    evals.mkdir()
    text = {"evals": [{"id": 1, "prompt": "Which?", "expected_output": "up"}]}
    (evals / "evals.json").write_text(json.dumps(text))
    paths = [
        "a/gate/skill_meta.json",
        "a/gate/SKILL.md",
        "a/door/evals/evals.json",
        "a",
    ]
    status, shown = lint(*paths, "--judge", "haiku")
    assert (status, shown) == (0, "2 skills: 0 errors, 0 warnings\n")


def test_skills_that_were_left_out_are_told(tmp_path: Path, lint: Lint) -> None:
    write_skill(tmp_path / "gate")
    shutil.copytree(tmp_path / "gate", tmp_path / ".claude/skills/gate")
    status, shown = lint()
    assert shown.splitlines()[-2:] == [
        "left out (a copy of another skill here): .claude/skills/gate",
        "1 skill: 0 errors, 0 warnings",
    ]
    assert lint("--strict", "--lift", "100")[0] == status == 0


def test_a_file_of_cases_is_found_from_inside_its_folder(
    tmp_path: Path, lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(tmp_path / "gate", body="[x](no.md)")
    monkeypatch.chdir(tmp_path / "gate")
    for path in ("skill_meta.json", "SKILL.md", "."):
        assert lint(path)[1].startswith("SKILL.md:6: error")


@pytest.mark.parametrize(
    "path", ["nowhere", "README.md", "empty", "empty/skill_meta.json"]
)
def test_a_path_without_a_skill_is_a_usage_error(
    tmp_path: Path, lint: Lint, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "README.md").touch()
    (tmp_path / "empty").mkdir()
    if path.endswith(".json"):
        (tmp_path / path).touch()
    assert main(["lint", path]) == 2
    assert capsys.readouterr().err.startswith(f"pytest-upskill: {path}: ")
    assert lint is not None


@pytest.mark.parametrize("lift", ["0", "200", "-1", "nan", "much"])
def test_a_bad_lift_is_a_usage_error(lint: Lint, lift: str) -> None:
    with pytest.raises(SystemExit) as caught:
        lint(lift=lift)
    assert caught.value.code == 2


def test_the_lift_option_decides_how_many_cases_are_too_few(
    tmp_path: Path, lint: Lint
) -> None:
    write_skill(tmp_path / "gate")
    assert "(few-cases)" in lint(lift="0.9")[1]
    assert "(few-cases)" not in lint(lift="100")[1]


@pytest.mark.parametrize(
    ("name", "text", "is_set"),
    [
        ("pyproject.toml", '[tool.pytest.ini_options]\nskill_judge = "haiku"\n', True),
        ("pytest.ini", "[pytest]\nskill_judge = haiku\n", True),
        ("tox.ini", "[pytest]\naddopts = -q --skill-judge haiku\n", True),
        (
            "pyproject.toml",
            '[tool.pytest.ini_options]\n# skill_judge = "haiku"\n',
            False,
        ),
        ("pytest.ini", "[pytest]\nskill_judge =\n", False),
        ("other.toml", 'skill_judge = "haiku"\n', False),
    ],
)
def test_a_judge_of_the_ini_file_counts(
    tmp_path: Path, lint: Lint, name: str, text: str, is_set: bool
) -> None:
    write_skill(
        tmp_path / "gate", [{"input": "Who?", "expected": {"judge": "It is polite."}}]
    )
    (tmp_path / name).write_text(text)
    hint = (
        "Name a judge: skill_judge in pytest's ini file, or --judge MODEL. (no-judge)"
    )
    assert (hint in lint()[1]) is not is_set
    assert "(no-judge)" not in lint("--judge", "haiku")[1]


def test_text_of_a_file_can_not_harm_the_terminal(tmp_path: Path, lint: Lint) -> None:
    evil = "gate\x1b[2J\nup\u202e"
    write_skill(
        tmp_path / "gate", [case(f"Is it {evil}?", evil)], body="[x](a\x1b[2Jb.md)"
    )
    shown = lint("gate")[1]
    assert len(shown.splitlines()) == 3
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\\x1b" in shown
    assert "\x1b" not in lint("gate", "--json")[1]


def test_the_bundled_skills_only_have_few_cases(
    lint: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert lint("skills") == (0, "4 skills: 0 errors, 0 warnings\n")


def test_the_pre_commit_hook_works_with_the_files_it_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert (hook["id"], hook["language"]) == ("pytest-upskill-lint", "python")
    # Or each of its processes would tell the same of a skill
    assert hook["require_serial"]
    write_skill(tmp_path / "skills/gate")
    write_skill(tmp_path / "door", body="[x](no.md)")
    (tmp_path / "door/old_skill_meta.json").touch()
    names = [
        path.relative_to(tmp_path).as_posix() for path in sorted(tmp_path.rglob("*.*"))
    ]
    given = [name for name in names if re.search(hook["files"], name)]
    files = ("SKILL.md", "skill_meta.json")
    assert given == [
        f"{skill}/{name}" for skill in ("door", "skills/gate") for name in files
    ]
    assert re.search(hook["files"], "skills/gate/evals/evals.json")
    assert not re.search(hook["files"], "evals.json")
    program, *arguments = shlex.split(hook["entry"])
    assert program == "pytest-upskill"
    monkeypatch.chdir(tmp_path)
    assert main([*arguments, *given]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("door/SKILL.md:6: error: ")
    assert len(lines) == len(set(lines))
    assert lines[-1].startswith("2 skills: 1 error, ")


def test_json_is_the_same_as_format_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_skill(tmp_path / "gate")
    main(["lint", str(tmp_path), "--json"])
    wanted = capsys.readouterr().out
    main(["lint", str(tmp_path), "--json"])
    assert capsys.readouterr().out == wanted
    assert "few-cases" in wanted
