"""Evals of plugins become cases of ours."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.errors import CasesError
from pytest_upskill.skills.suites.plugin_evals import (
    case_folders,
    case_of_folder,
    plugin_suite,
)
from pytest_upskill.skills.suites.reading import read_suites
from pytest_upskill.skills.suites.suite import Suite
from pytest_upskill.skills.suites.yaml_files import LeftOut
from support.folders import new_folder

SKILLS = ("berths", "tides")


def write(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder


def plugin(folder: Path, files: dict[str, str]) -> Suite:
    """A plugin of two skills with these files in evals/."""
    skills = {
        f"skills/{name}/SKILL.md": f"---\nname: {name}\n---\nx" for name in SKILLS
    }
    write(folder, {**skills, **{f"evals/{path}": text for path, text in files.items()}})
    suite = plugin_suite(folder / "evals", folder)
    assert suite
    return suite


def expected(tmp_path: Path, *graders: str, left_out: LeftOut | None = None) -> Any:
    """What a case with these graders expects."""
    files = {f"graders/g{number}.md": text for number, text in enumerate(graders)}
    case = write(tmp_path / "case", {"prompt.md": "Where does she moor?", **files})
    return case_of_folder(case, tmp_path, SKILLS, left_out or LeftOut())["expected"]


@pytest.mark.parametrize(
    ("grader", "checks"),
    [
        ("type: regex\npattern: 'L[12]'\nflags: i", {"regex": "L[12]"}),
        ("type: regex\npattern: 42\nflags: i", {"regex": "42"}),
        ("type: regex\npattern: L1$", {"regex": r"L1\Z", "case_sensitive": True}),
        (
            "type: regex\npattern: ^L1$\nflags: m\nmatch: not_contains\ntarget: trace",
            {"transcript": {"not_regex": "(?m)^L1$"}, "case_sensitive": True},
        ),
        (
            (
                "type: regex\ntarget: {source: file, path: out/a.md}\npattern:"
                " x\nmatch: 'count:3'"
            ),
            {
                "files": {"out/a.md": {"regex": r"(?:(?:x)[\s\S]*?){3}"}},
                "case_sensitive": True,
            },
        ),
        (
            "type: regex\ntarget: files\npattern: x\nflags: i",
            {"files_made": {"regex": "x"}},
        ),
        (
            "type: regex\ntarget: mock_calls\npattern: x\nflags: i",
            {"mcp_calls": {"regex": "x"}},
        ),
        ("type: tool_used\ntool: Bash", {"tools_used": {"tool": "Bash"}}),
        (
            "type: tool_used\ntool: Bash\ninput_match: git push\nmin: 0\nmax: 0",
            {
                "tools_used": {
                    "tool": "Bash",
                    "input_match": "git push",
                    "min": 0,
                    "max": 0,
                }
            },
        ),
        (
            "type: tool_order\nbefore: Read\nafter: {tool: Write, input_match: lib/}",
            {
                "tool_order": [
                    {"tool": "Read"},
                    {"tool": "Write", "input_match": "lib/"},
                ]
            },
        ),
        ("type: file_exists\npath: ./a.md", {"files": {"a.md": "exists"}}),
        ("type: file_exists\npath: a.md\nexists: false", {"files": {"a.md": "absent"}}),
        (
            "type: file_exists\npath: src/{a,b}.ts",
            {"any_of": [{"files": {f"src/{name}.ts": "exists"}} for name in "ab"]},
        ),
        (
            "type: llm\ncriteria: It says L1.",
            {"judge": ["It says L1."], "judge_votes": 3},
        ),
        (
            "type: llm\nfocus: {source: file, path: a.md}\nweight: 2\ncriteria: Yes.",
            {"judge": ["Yes."], "judge_votes": 3, "judge_files": ["a.md"], "weight": 2},
        ),
        (
            "type: tool_used\ntool: Bash\narm: with-only",
            {"with_skill": {"tools_used": {"tool": "Bash"}}},
        ),
        (
            "type: regex\npattern: x\nflags: i\nweight: 0",
            {"regex": "x", "required": False},
        ),
        ("type: tool_used\ntool: Skill", {"with_skill": {"skill_activated": True}}),
        (
            "type: tool_used\ntool: Skill\nmax: 0\narm: both",
            {"with_skill": {"skill_activated": False}},
        ),
        (
            (
                "type: tool_used\ntool: Skill\ninput_match:"
                ' \'"skill"\\s*:\\s*"(?:[\\w-]+:)?berths"\''
            ),
            {"with_skill": {"skill_opened": ["berths"]}},
        ),
        (
            "type: tool_used\ntool: Skill\ninput_match: 'port:tides'\nmin: 0\nmax: 0",
            {"with_skill": {"skill_not_opened": ["tides"]}},
        ),
    ],
)
def test_each_grader_is_a_group_of_checks(
    tmp_path: Path, grader: str, checks: Any
) -> None:
    assert expected(tmp_path, f"---\n{grader}\n---\n") == checks


def test_text_below_the_frontmatter_is_a_pattern_or_a_rubric(tmp_path: Path) -> None:
    graders = [
        "---\ntype: regex\nflags: i\n---\nL1|L2\n",
        "---\ntype: llm\n---\n\nPASS if L1.\n",
    ]
    judged = {"judge": ["PASS if L1."], "judge_votes": 3}
    assert expected(tmp_path, *graders) == [{"regex": "L1|L2"}, judged]


def test_whether_a_skill_is_opened_is_shown_beside_what_counts(tmp_path: Path) -> None:
    opens = "---\ntype: tool_used\ntool: Skill\n---\n"
    says = "---\ntype: regex\npattern: L1\nflags: i\n---\n"
    assert expected(tmp_path, opens, says) == [
        {"regex": "L1"},
        {"with_skill": {"skill_activated": True, "required": False}},
    ]


def test_mocks_of_a_case_replace_those_of_the_suite(tmp_path: Path) -> None:
    case = {
        "prompt.md": "Where?",
        "graders/a.md": "---\ntype: regex\npattern: L1\n---\n",
    }
    files = {f"{name}/{path}": text for name in "ab" for path, text in case.items()}
    mocks = {"mocks/port/get.md": "suite", "b/mocks/port/get.md": "case"}
    by_id = {case.id: case for case in plugin(tmp_path, {**files, **mocks}).cases}
    texts = [
        json.loads(by_id[name].parts[0].mocked[0].content)["mocks"]["get"]
        for name in "ab"
    ]
    assert [text["answers"][0]["text"] for text in texts] == ["suite", "case"]


def test_what_has_no_equal_is_one_warning(tmp_path: Path) -> None:
    head = "---\nallowed_tools: [Read]\nmodel: opus\ndescription: x\n---\nWhere?"
    graders = {
        "graders/a.md": "Must say L1.",
        "graders/b.md": "---\ntype: baseline\nbaseline_file: b.jsonl\n---\n",
    }
    suite = plugin(
        tmp_path,
        {
            f"{case}/{path}": text
            for case in "ab"
            for path, text in {"prompt.md": head, **graders}.items()
        },
    )
    (warning,) = [warning for of_file in suite.files for warning in of_file.warnings]
    assert warning == (
        1,
        (
            "what has no equal here is left out: allowed_tools (2 times), graders of"
            " type baseline (2 times), model (2 times); graders without a type are"
            " judged, as those of type llm"
        ),
    )


def test_keys_of_a_case(tmp_path: Path) -> None:
    case = """\
schema_version: "1.1"
name: late-ship
tags: [port, "case:late"]
context: {scaffold_script: ../make.sh, history_file: history.jsonl}
runs: 2
execution: {prompt: "Where now?", max_turns: 7, timeout_seconds: 60}
append_system_prompt: Be brief.
graders:
  - {type: regex, name: a, pattern: L1, flags: i}
"""
    turns = [
        {"role": "user", "content": "A ship comes."},
        {
            "message": {
                "role": "assistant",
                "content": [{"type": "text", "text": "Noted."}],
            }
        },
        {
            "message": {
                "role": "assistant",
                "content": [{"type": "tool_use", "name": "Read"}],
            }
        },
        {"type": "summary"},
    ]
    history = "\n".join(map(json.dumps, turns))
    files = {
        "sub/late/case.yaml": case,
        "sub/late/history.jsonl": history,
        "sub/make.sh": "true",
    }
    (of_file,) = plugin(tmp_path, files).files
    assert of_file.written == (
        {
            "id": "late-ship",
            "input": [
                {"role": "user", "content": "A ship comes."},
                {"role": "assistant", "content": "Noted."},
                {"role": "user", "content": "Where now?"},
            ],
            "expected": {"regex": "L1"},
            "system": "Be brief.",
            "tags": ["port", "case-late"],
            "runs": 2,
            "max_turns": 7,
            "timeout": 60,
            "scaffold": "evals/sub/make.sh",
        },
    )


def test_cases_are_found_at_any_depth_but_not_in_results_or_mocks(
    tmp_path: Path,
) -> None:
    names = (
        "a/prompt.md",
        "b/c/case.yaml",
        "results/d/case.yaml",
        "mocks/e/case.yaml",
        "f/x.md",
    )
    write(tmp_path / "evals", {**dict.fromkeys(names, "x"), "a/graders/a.md": "x"})
    found = case_folders(tmp_path / "evals")
    assert [case.relative_to(tmp_path).as_posix() for case in found] == [
        "evals/a",
        "evals/b/c",
    ]
    assert not case_folders(tmp_path / "none")


GRADER = "graders/g.md"
GOOD = "---\ntype: regex\npattern: x\n---\n"


def grader(text: str) -> dict[str, str]:
    return {"prompt.md": "x", GRADER: text}


def regex(more: str) -> dict[str, str]:
    return grader(f"---\ntype: regex\npattern: x\n{more}\n---\n")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            grader("---\ntype: regexp\n---\n"),
            "g.md:2: type: unknown type 'regexp' (did you mean",
        ),
        (grader("---\ntype: [\n---\n"), "g.md:2: invalid YAML"),
        (grader("---\ntype: regex\n---\n"), "g.md:1: no pattern"),
        (
            grader("---\ntype: regex\npattern: '('\n---\n"),
            "g.md:3: pattern: invalid pattern: ",
        ),
        (
            grader("---\ntype: tool_used\ntool: Bash\ninput_match: '['\n---\n"),
            "g.md:4: input_match: invalid pattern: ",
        ),
        (grader("---\ntype: regex"), "g.md:1: frontmatter not closed"),
        (regex("flags: q"), "g.md:4: flags: unknown flag 'q'"),
        (regex("arm: with_only"), "g.md:4: arm: 'with_only' is unknown"),
        (regex("target: reply"), "g.md:4: target: 'reply' is unknown"),
        (regex("weight: heavy"), "g.md:4: weight: must be a number"),
        ({"prompt.md": "x", "graders/x.txt": ""}, "prompt.md:1: no grader"),
        ({"prompt.md": "", GRADER: GOOD}, "prompt.md:1: no prompt"),
        ({"case.yaml": "execution: 3\n"}, "case.yaml:1: execution: must be a mapping"),
        (
            {"case.yaml": "prompt: x\ngraders: [3]\n"},
            "case.yaml:2: graders: must be a list",
        ),
        ({"case.yaml": "- 1\n"}, "case.yaml:1: must be a mapping"),
        (
            {
                "case.yaml": "context: {scaffold_script: a.sh}\n",
                "prompt.md": "x",
                GRADER: GOOD,
            },
            "case.yaml:1: context: no such file: a.sh",
        ),
        (
            grader("---\ntype: baseline\n---\n"),
            "prompt.md:1: no grader that can be used",
        ),
    ],
)
def test_what_is_wrong_is_told_with_file_and_line(
    tmp_path: Path, files: dict[str, str], message: str
) -> None:
    suite = plugin(tmp_path, {**{f"late/{path}": text for path, text in files.items()}})
    ((broken,),) = [of_file.broken for of_file in suite.files]
    assert broken.name == "late"
    assert message in broken.message


def test_one_broken_case_leaves_the_others(tmp_path: Path) -> None:
    plugin(tmp_path, {"a/case.yaml": "[", "b/prompt.md": "x", f"b/{GRADER}": GOOD})
    suite = read_suites(tmp_path).cases
    assert suite
    assert [case.id for case in suite.cases] == ["b"]
    assert list(suite.ids) == ["a", "b"]


TEXT = st.text(max_size=60)


@given(TEXT, TEXT, TEXT)
def test_no_text_breaks_it(
    tmp_path_factory: pytest.TempPathFactory, prompt: str, case: str, grader: str
) -> None:
    folder = new_folder(tmp_path_factory)
    files = {
        "a/prompt.md": prompt,
        "a/case.yaml": case,
        f"a/{GRADER}": f"---\n{grader}\n---\n",
    }
    write(folder / "evals", files)
    suite = plugin_suite(folder / "evals", folder)
    assert suite
    (of_file,) = suite.files
    assert len(of_file.cases) + len(of_file.broken) == 1
    assert all(isinstance(broken.error, CasesError) for broken in of_file.broken)


@pytest.mark.parametrize("path", ["prompt.md", "graders/late.md"])
def test_no_file_of_a_case_is_a_link_out_of_the_plugin(
    tmp_path: Path, path: str
) -> None:
    secret = write(tmp_path, {"secret.txt": "hidden words"}) / "secret.txt"
    root = tmp_path / "plugin"
    case = write(root / "evals/one", {"prompt.md": "x", "graders/late.md": "y"})
    (case / path).unlink()
    (case / path).symlink_to(secret)
    (of_file,) = plugin(root, {}).files
    assert not of_file.cases
    assert f"{path}:1: a link out of" in str(of_file.broken[0].error)


@pytest.mark.parametrize("key", ["history_file", "scaffold_script"])
@pytest.mark.parametrize(
    "name", ["../../../words.jsonl", r"a\0b", "a" * 5000, "[a]", "/words"]
)
def test_files_that_a_case_names_are_in_the_plugin(
    tmp_path: Path, key: str, name: str
) -> None:
    write(tmp_path, {"words.jsonl": '{"role": "user", "content": "hidden"}'})
    written = name if name == "[a]" else f'"{name}"'
    files = {"one/case.yaml": f"context: {{{key}: {written}}}", "one/prompt.md": "x"}
    (of_file,) = plugin(tmp_path / "plugin", {**files, "one/graders/a.md": "y"}).files
    assert "case.yaml:1: context: no such file: " in str(of_file.broken[0].error)


@pytest.mark.parametrize(
    "grader",
    [
        f"type: regex\npattern: x\nmatch: 'count:{'9' * 5000}'",
        f"type: file_exists\npath: '{'{a,b}' * 40}'",
    ],
)
def test_graders_without_end_are_refused(tmp_path: Path, grader: str) -> None:
    with pytest.raises(CasesError):
        expected(tmp_path, f"---\n{grader}\n---\n")


def test_keys_may_be_numbers(tmp_path: Path) -> None:
    files = {"one/case.yaml": "execution: {1: 2, speed: 3}", "one/prompt.md": "x"}
    (of_file,) = plugin(tmp_path, {**files, "one/graders/a.md": "y"}).files
    assert "1, speed" in of_file.warnings[0][1]
