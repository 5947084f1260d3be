"""Notes about files of a skill that no model saw, and about costs."""

from dataclasses import replace

import pytest

from pytest_upskill.results.run import RunResults
from pytest_upskill.results.run_notes import run_notes, unseen_notes
from pytest_upskill.skills.skill import UnseenFile
from pytest_upskill.trials.plan import SkillInfo
from pytest_upskill.trials.transcript import Activity
from support.agent_runs import agent_run
from support.made import made_run

BIG = "no room in 20,000 tokens"


SPELL = {"references": "--refs", "agents": "--agent"}.__getitem__


def info(*files: UnseenFile, name: str = "pdf") -> SkillInfo:
    return SkillInfo(name, f"skills/{name}", "0" * 64, 10, unseen_files=files)


@pytest.mark.parametrize(
    ("files", "note"),
    [
        (
            [UnseenFile("forms.md")],
            (
                "1 file of this skill was not available to the model: forms.md; "
                "--refs puts it in context, --agent loop reads it."
            ),
        ),
        (
            [UnseenFile(f"{letter}.md") for letter in "abcdefg"],
            (
                "7 files of this skill were not available to the model: a.md, b.md,"
                " c.md, d.md, e.md, 2 more; --refs puts them in context, --agent loop"
                " reads them."
            ),
        ),
        (
            [
                UnseenFile("a.md", BIG),
                UnseenFile("b.md", BIG),
                UnseenFile("c.png", "not a text"),
            ],
            (
                "3 files of this skill were not available to the model: a.md, b.md (no"
                " room in 20,000 tokens), c.png (not a text)."
            ),
        ),
    ],
)
def test_the_first_files_are_named(files: list[UnseenFile], note: str) -> None:
    assert unseen_notes([info(*files)], SPELL) == [f"pdf: {note}"]


def test_many_skills_share_one_note() -> None:
    files = [UnseenFile("key.md"), UnseenFile("more.md")]
    [note] = unseen_notes([info(*files, name=name) for name in "abcd"], SPELL)
    assert note.startswith(
        "8 files of 4 skills were not available to the model: a/key.md, "
    )
    assert "c/key.md, 3 more; --refs " in note


def test_without_an_edge_no_option_is_named() -> None:
    (note,) = unseen_notes([info(UnseenFile("forms.md"))])
    assert note == "pdf: 1 file of this skill was not available to the model: forms.md."


def test_a_skill_whose_files_were_all_seen_has_no_note() -> None:
    assert unseen_notes([info()]) == []


def test_names_are_safe_to_print() -> None:
    files = [
        UnseenFile("a\x1b[31m.md"),
        UnseenFile("b.md", "\n::error"),
        UnseenFile("x" * 500),
    ]
    (note,) = unseen_notes([info(*files, name="x\n::error")])
    assert "\x1b" not in note
    assert "\n" not in note
    assert len(note) < 300


def test_agents_have_all_files_of_a_skill() -> None:
    def notes(results: RunResults) -> list[str]:
        lacking = replace(results.skills[0], unseen_files=(UnseenFile("a.md"),))
        return run_notes(replace(results, skills=(lacking,)))

    assert notes(agent_run()) == []
    (note,) = notes(agent_run(also=("haiku",)))
    assert (
        note
        == "gate: 1 file of this skill was not available to plain completions: a.md."
    )
    assert "to the model: a.md" in notes(made_run())[0]


def test_a_test_in_python_may_ask_an_agent_in_a_run_of_plain_completions() -> None:
    run = made_run()
    lacking = replace(run.skills[0], unseen_files=(UnseenFile("a.md"),))
    records = [replace(record, activity=Activity(turns=2)) for record in run.records]
    assert run_notes(replace(run, skills=(lacking,), records=tuple(records))) == []


def test_costs_on_a_plan_are_told() -> None:
    run = agent_run(agent="claude")
    assert not [note for note in run_notes(run) if "on a plan" in note]
    notes = run_notes(replace(run, logins=("claude/haiku",)))
    assert "claude/haiku: costs at list price, on a plan." in notes
