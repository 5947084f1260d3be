"""Evals of Vally become cases of ours."""

from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.skills.suites.reading import read_suite, read_suites
from pytest_upskill.skills.suites.suite import Suite
from pytest_upskill.skills.suites.yaml_files import pattern_of, repeated

SPEC = """\
name: port
defaults: {runs: 3, timeout: 2m, model: gpt-5}
scoring: {threshold: 0.8, weights: {output-matches: 2}}
environment:
  files: [{src: fixtures/ships.csv, dest: data/ships.csv}]
stimuli:
  - name: "Late ship: where?"
    prompt: Where does she moor?
    tags: {tier: smoke, area: [berths, night]}
    environment: {commands: [git init -q, make]}
    constraints: {max_turns: 9, max_tokens: 5000}
    graders:
      - {type: output-matches, config: {pattern: "(?i)berth L1$"}}
      - {type: completed}
  - name: "Late ship: where?"
    turns: ["Where?", "Yes."]
    config: {runs: 0}
    graders: [{type: completed}, {type: pairwise}]
"""


def suite_of(folder: Path, text: str) -> Suite:
    (folder / "fixtures").mkdir(exist_ok=True)
    (folder / "fixtures/ships.csv").write_text("a,b\n")
    (folder / "eval.yaml").write_text(text)
    suite = read_suite(folder / "eval.yaml", folder)
    assert suite
    return suite


def test_a_stimulus_is_a_case(tmp_path: Path) -> None:
    (of_file,) = suite_of(tmp_path, SPEC).files
    first, second = of_file.written
    assert first == {
        "id": "late-ship-where",
        "input": "Where does she moor?",
        "expected": {"regex": r"(?i)berth L1\Z", "case_sensitive": True, "weight": 2},
        "tags": ["tier-smoke", "area-berths", "area-night"],
        "runs": 3,
        "max_turns": 9,
        "timeout": 120.0,
        "context": {"files": {"data/ships.csv": {"file": "fixtures/ships.csv"}}},
        "setup": "git init -q && make",
    }
    assert (second["id"], second["input"], second["replies"]) == (
        "late-ship-where-2",
        "Where?",
        ["Yes."],
    )
    assert (second["expected"], second["skip"]) == ({"min_words": 1}, "runs: 0")
    assert of_file.warnings == (
        (
            1,
            (
                "what has no equal here is left out: config.model,"
                " constraints.max_tokens, graders of type pairwise, scoring.threshold;"
                " later turns are replies, given if the agent ends with a question"
            ),
        ),
    )
    assert read_suites(tmp_path).path == tmp_path / "eval.yaml"


@pytest.mark.parametrize(
    ("grader", "checks"),
    [
        (
            "output-contains, config: {substring: L1}",
            {"contains": "L1", "case_sensitive": True},
        ),
        (
            "output-not-matches, config: {pattern: x}",
            {"not_regex": "x", "case_sensitive": True},
        ),
        ("file-exists, config: {path: '**/a.md'}", {"files": {"**/a.md": "exists"}}),
        ("file-not-exists, config: {path: a.md}", {"files": {"a.md": "absent"}}),
        (
            "file-matches, config: {path: a.md, pattern: x}",
            {"files": {"a.md": {"regex": "x"}}, "case_sensitive": True},
        ),
        (
            "skill-invocation, config: {required: [berths], disallowed: [tides]}",
            {"with_skill": {"skill_opened": ["berths"], "skill_not_opened": ["tides"]}},
        ),
        (
            "tool-calls, config: {required: [{name: '^(bash|pwsh)$', command: az up}]}",
            {"commands_run": "az up", "case_sensitive": True},
        ),
        ("tool-calls, config: {disallowed: [bash]}", {"tools_not_used": ["bash"]}),
        (
            "tool-calls, config: {required: [{name: '^(create|write)$'}]}",
            {"any_of": [{"tools_used": "create"}, {"tools_used": "write"}]},
        ),
        (
            "tool-calls, config: {required: [{name: view, args: {path: 'a\\.md'}}]}",
            {
                "transcript": {
                    "regex": (
                        r'(?i)"name":"(?:view)","input":\{'
                        r'(?=[^\n]*"path":"?[^"\n]*(?:a\.md))'
                    )
                },
                "case_sensitive": True,
            },
        ),
        ("prompt, config: {prompt: Pass if L1.}", {"judge": ["Pass if L1."]}),
        (
            (
                "run-command, config: {command: node, args: [a b.js], stdout_contains:"
                " x, timeout: 1m}"
            ),
            {"command": {"run": "node 'a b.js'", "contains": "x", "timeout": 60.0}},
        ),
    ],
)
def test_each_grader_is_a_group_of_checks(
    tmp_path: Path, grader: str, checks: Any
) -> None:
    text = f"stimuli:\n  - prompt: q\n    graders:\n      - {{type: {grader}}}\n"
    (of_file,) = suite_of(tmp_path, text).files
    assert of_file.written[0]["expected"] == checks
    assert not of_file.broken


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stimuli: []\n", "eval.yaml:1: stimuli: must be a list"),
        ("a: 1\nstimuli: [3]\n", "eval.yaml:2: stimuli: stimuli[0]: must be a mapping"),
        ("stimuli: [{graders: []}]\n", "no prompt"),
        ("stimuli: [{prompt: q, graders: [{type: output-contain}]}]\n", "did you mean"),
        ("stimuli: [{prompt: q, graders: [{type: file-exists}]}]\n", "path is missing"),
        (
            "stimuli: [{prompt: q, environment: {files: [{src: a.md}]}}]\n",
            "no such file: a.md",
        ),
        ("stimuli: [{prompt: q, config: {timeout: soon}}]\n", "needs a unit"),
        ("stimuli: [\n", "invalid YAML"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_line(
    tmp_path: Path, text: str, message: str
) -> None:
    error = suite_of(tmp_path, text).error
    assert error
    assert message in str(error)


def test_an_eval_yaml_of_another_tool_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "eval.yaml"
    file.write_text("tasks: [a.yaml]\n")
    assert read_suites(tmp_path, file).has_cases  # a mistake to report
    suites = read_suites(tmp_path)
    assert suites.path is None
    assert [unread.reason for unread in suites.unread] == ["no known form"]


@pytest.mark.parametrize(
    ("written", "flags", "ours"),
    [
        ("a$", "", r"a\Z"),
        ("a$", "gm", "(?m)a$"),
        (r"\$[$]\/", "s", r"(?s)\$[$]\/"),
        ("[^]x[]", "", r"[\s\S]x(?!)"),
        (r"(?<q>['\"])\k<q>\u{1F6A2}\0", "u", r"(?<q>['\"])(?P=q)\U0001F6A2\x00"),
    ],
)
def test_patterns_of_javascript(written: str, flags: str, ours: str) -> None:
    assert pattern_of(written, flags) == ours


def test_a_pattern_that_has_to_match_several_times() -> None:
    assert repeated("(?m)^a", 2) == r"(?m)(?:(?:^a)[\s\S]*?){2}"


@pytest.mark.parametrize(
    "lines",
    [
        "environment: {files: 5}",
        "environment: {commands: make}",
        f"environment: {{files: [{{src: {'a' * 5000}}}]}}",
        "environment: {files: [{src: .}]}",
        "environment: {files: [eval.yaml]}",
        "graders: [{type: prompt}]",
    ],
)
def test_a_bad_stimulus_is_one_message(tmp_path: Path, lines: str) -> None:
    suite = suite_of(tmp_path, f"stimuli:\n  - prompt: x\n    {lines}\n")
    assert "eval.yaml:1: stimuli: stimuli[0]: " in str(suite.error)


def test_keys_may_be_numbers(tmp_path: Path) -> None:
    text = "stimuli:\n  - {prompt: x, 1: 2, speed: 3, environment: {1: 2, image: x}}\n"
    (of_file,) = suite_of(tmp_path, text).files
    assert "environment.1, environment.image, speed" in of_file.warnings[0][1]
