"""generate "add X" --from SKILL: cases for X, compared with the skill as it was."""

from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.skills.skill import load_skill
from pytest_upskill.skills.suites.json_suites import load_cases
from support.fake_models import (
    COLOURS,
    FakeModels,
    Project,
    body,
    case,
    cases,
    draft,
    lines,
)
from support.kit import write_skill

OLD, NEW = COLOURS[:6], COLOURS[6:]
NOTE = "\n\nSwitch the lamp off before you go."
FROM = ("--from", "skills/gate", "--cases", "6")


def existing_skill(project: Project, *, with_cases: bool = True, **more: Any) -> Path:
    """It knows the first six colours, and has a case for each."""
    saved = ("id", "input", "expected", "tags")
    written = [{key: case(colour, **more)[key] for key in saved} for colour in OLD]
    return write_skill(
        project.folder / "skills/gate", written * with_cases, body=body(*OLD)
    )


def change(
    project: Project, *drafts: str, **more: Any
) -> tuple[int, dict[str, Any], FakeModels]:
    fake = FakeModels(drafts, **{"cases": [cases(*map(case, NEW))], **more})
    status, data = project.taught(fake, *FROM)
    return status, data, fake


def about(data: dict[str, Any], part: str) -> str:
    [sentence] = [
        text for text in data["sentences"] if text.startswith(f"On the 6 {part} cases")
    ]
    return str(sentence.partition(": ")[2])


def test_a_change_gets_cases_of_its_own_and_is_compared_with_the_skill_before(
    project: Project,
) -> None:
    folder = existing_skill(project)
    status, data, fake = change(project, draft(*COLOURS))
    assert status == 0
    assert load_skill(folder / "SKILL.md").body == body(*COLOURS)
    ids = [read.id for read in load_cases(folder / "skill_meta.json").require_all()]
    assert ids == [f"colour-{colour}" for colour in COLOURS]
    assert "the skill as it is would be wrong" in fake.of("author")[0].question
    assert about(data, "new").startswith("better than before, +100 points (")
    assert about(data, "old").startswith("no change shown, 0 points (")
    parts = {change["part"]: change["contrast"] for change in data["changes"]}
    assert (parts["new"]["cases"], parts["old"]["cases"]) == (6, 6)
    assert not [text for text in data["sentences"] if "not tested" in text]


def test_a_change_that_is_no_better_is_kept_and_called_so(project: Project) -> None:
    folder = existing_skill(project)
    same = draft(body=body(*OLD) + NOTE)
    status, data, _ = change(project, same)
    assert (status, about(data, "new")[:21]) == (1, "no better than before")
    assert load_skill(folder / "SKILL.md").body == body(*OLD) + NOTE
    existing_skill(project)
    fake = FakeModels([same], [cases(*map(case, NEW))])
    shown = lines(project.generate(fake, *FROM)[1])
    assert not [line for line in shown if line.startswith("install it:")]


def test_a_shorter_version_that_ties_does_not_drop_the_change(project: Project) -> None:
    folder = existing_skill(project)
    with_note = draft(body=body(*COLOURS[:9]) + NOTE)
    _, data, fake = change(project, with_note, draft(*COLOURS[:9]))
    assert (data["chosen"], len(data["attempts"])) == (1, 2)
    assert load_skill(folder / "SKILL.md").body == body(*COLOURS[:9]) + NOTE
    assert "Keep the change that was asked for" in fake.of("teacher")[1].question


def test_a_change_that_costs_old_cases_is_no_success(project: Project) -> None:
    existing_skill(project)
    status, data, _ = change(project, draft(*NEW))
    assert (status, about(data, "new")[:6]) == (1, "better")
    assert about(data, "old").startswith("worse than before, -100 points (")


def test_without_a_case_for_the_change_nothing_is_saved(project: Project) -> None:
    folder = existing_skill(project)
    before = {path: path.read_bytes() for path in folder.rglob("*")}
    # The same as the old ones
    fake = FakeModels([draft(*COLOURS)], [cases(*map(case, OLD))])
    status, _, error = project.generate(fake, *FROM)
    assert (status, "only 0 of 6 cases usable" in error) == (1, True)
    assert {path: path.read_bytes() for path in folder.rglob("*")} == before


def test_a_skill_without_cases_is_said_to_be_untested(project: Project) -> None:
    (existing_skill(project, with_cases=False) / "skill_meta.json").unlink()
    status, data, _ = change(project, draft(*COLOURS))
    assert (status, about(data, "new")[:6]) == (0, "better")
    assert (
        "What the skill did before was not tested: it had no cases."
        in data["sentences"]
    )


def test_a_long_skill_has_room_for_a_change(project: Project) -> None:
    folder = existing_skill(project)
    file, long = folder / "SKILL.md", body(*OLD) + "\nWords." * 2_000
    file.write_text(file.read_text().replace(body(*OLD), long))
    size = load_skill(file).tokens
    assert size > 1500
    _, data, fake = change(project, draft(body=f"{long}\n{body(*NEW)}"))
    assert f"at most {size + 1500:,} tokens" in fake.of("teacher")[0].question
    assert not [text for text in data["sentences"] if "too long" in text]


def test_old_cases_that_need_a_judge_need_one_before_the_first_call(
    project: Project,
) -> None:
    existing_skill(project, expected={"judge": ["It is polite."]})
    status, _, error = project.generate(fake := FakeModels(), *FROM)
    assert (status, "there are cases that need a judge (colour-red)" in error) == (
        2,
        True,
    )
    assert fake.asked == []


@pytest.mark.parametrize("task", [[], [""]])
def test_without_a_task_refine_is_named(project: Project, task: list[str]) -> None:
    existing_skill(project)
    words = ["-f", "skills/gate", "-m", "big", "--eval-model", "small"]
    status, _, error = project.run("generate", *task, *words)
    assert status == 2
    assert (
        "pytest-upskill: TASK: must not be empty\n  Say in words what to change, or"
        in error
    )
    assert error.endswith(
        "pytest-upskill refine skills/gate --model big --eval-model small\n"
    )
    status, _, error = project.run("generate", *task)
    assert (status, "refine" in error) == (2, False)
    assert "TASK: must not be empty\n  Say in words what the skill is for." in error
