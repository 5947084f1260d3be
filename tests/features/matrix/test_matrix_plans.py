"""The matrix of neighbours as a study."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.errors import InputError, SettingsError
from pytest_upskill.features.matrix.plans import distinct, matrix_plans
from pytest_upskill.measure.arm_maker import ArmMaker
from pytest_upskill.measure.evaluate import Evaluator
from pytest_upskill.measure.study_cases import SkillCases, load_skill_cases
from pytest_upskill.measure.study_runner import (
    StudyRunner,
)
from pytest_upskill.results.contrasts import Study
from pytest_upskill.settings import Settings
from pytest_upskill.skills.skill import listing_tokens
from pytest_upskill.trials.answer import Answer, NoAnswer, Reply, Usage
from pytest_upskill.trials.subject import CHAT, Subject
from pytest_upskill.trials.transcript import Activity, Turn
from pytest_upskill.trials.trial import Question
from support.kit import case, write_skill

LOOP = Subject("loop", "m")
MAKER = ArmMaker(Settings())


def source(folder: Path, cases: int = 1) -> SkillCases:
    asked = [
        case(f"Question {number} for {folder.name}?", "right")
        for number in range(cases)
    ]
    write_skill(folder, asked, body=f"All about {folder.name}.")
    return load_skill_cases(folder / "SKILL.md", folder.name, Settings())


def sources(folder: Path, **cases: int) -> list[SkillCases]:
    return [source(folder / name, number) for name, number in cases.items()]


def spoiled_by(bad: str) -> "type[Answerer]":
    """A model that answers right with the tested skill,
    unless it opens another one first.
    """

    class Spoiled(Answerer):
        spoiler = bad

    return Spoiled


class Answerer:
    spoiler = ""

    def __init__(self) -> None:
        self.asked = list[Question]()

    def __call__(self, questions: Sequence[Question]) -> list[Reply]:
        self.asked += questions
        return [self.reply(one) for one in questions]

    def reply(self, question: Question) -> Reply:
        assert question.task
        names = [one.name for one in question.task.skills]
        tested = question.task.tested
        opened = list(tested)
        right = bool(tested)
        if self.spoiler in names and self.spoiler not in opened:
            opened, right = [self.spoiler, *opened], False
        first = 100 + (50 if names else 0) + 10 * sum(map(len, names))
        return Answer(
            "right" if right else "wrong",
            Usage(first, 5, 0),
            transcript=(
                Turn("system", "-"),
                Turn("assistant", "-", reply=1, input_tokens=first),
            ),
            activity=Activity(1, 0, bool(opened) if tested else None, tuple(opened)),
        )


def studied(skills: Sequence[SkillCases], ask: Answerer, runs: int = 2) -> Study:
    (plan,) = matrix_plans(skills, {LOOP: "id"}, MAKER)
    runner = StudyRunner(
        Evaluator(Settings(runs=runs), ask, lambda _model: None, lambda _agent: "1")
    )
    return runner.run(plan)


def words_of(study: Study) -> dict[str, str]:
    return {contrast.name: contrast.word for contrast in study.contrasts}


def test_every_skill_with_cases_is_asked_alone_beside_each_other_and_beside_all(
    tmp_path: Path,
) -> None:
    (plan,) = matrix_plans(sources(tmp_path, pdf=2, csv=1, docs=0), {LOOP: "id"}, MAKER)
    arms = {
        group.skill.name: {
            arm.name: (arm.tested, tuple(skill.name for skill in arm.skills))
            for arm in group.arms
        }
        for group in plan.groups
    }
    assert arms["pdf"] == {
        "pdf alone": (("pdf",), ("pdf",)),
        "no skill, cases of pdf": ((), ()),
        "pdf with csv": (("pdf",), ("csv", "pdf")),
        "csv without pdf": ((), ("csv",)),
        "pdf with docs": (("pdf",), ("docs", "pdf")),
        "docs without pdf": ((), ("docs",)),
        "pdf with all others": (("pdf",), ("csv", "docs", "pdf")),
        "all others without pdf": ((), ("csv", "docs")),
    }
    assert [len(group.arms) for group in plan.groups] == [8, 8]
    assert [len(group.cases) for group in plan.groups] == [2, 1]
    assert [one.name for one in plan.contrasts] == [
        "pdf with csv",
        "pdf with docs",
        "pdf with all others",
        "csv with docs",
        "csv with pdf",
        "csv with all others",
    ]
    first = plan.contrasts[0]
    assert first.plus == ("pdf with csv", "no skill, cases of pdf")
    assert first.minus == ("csv without pdf", "pdf alone")


def test_of_two_skills_all_others_are_the_other_one(tmp_path: Path) -> None:
    (plan,) = matrix_plans(sources(tmp_path, pdf=2, csv=0), {LOOP: "id"}, MAKER)
    # Nothing is beside csv
    assert [one.name for one in plan.contrasts] == ["pdf with csv"]


def test_names_of_arms_never_collide(tmp_path: Path) -> None:
    skills = sources(tmp_path, a=1, b=1, c=1, d=1)
    names = ("a", "b with c", "a with b", "c")
    named = [
        replace(one, skill=replace(one.skill, name=name))
        for one, name in zip(skills, names, strict=True)
    ]
    (plan,) = matrix_plans(named, {LOOP: "id"}, MAKER)
    arms = [arm.name for group in plan.groups for arm in group.arms]
    assert len(set(arms)) == len(arms) == 40
    assert len({one.name for one in plan.contrasts}) == len(plan.contrasts) == 16


def test_a_neighbour_that_is_opened_first_hurts(tmp_path: Path) -> None:
    study = studied(sources(tmp_path, pdf=10, csv=8, docs=0), spoiled_by("docs")())
    assert words_of(study) == {
        "pdf with docs": "hurts",
        "pdf with all others": "hurts",
        "csv with docs": "hurts",
        "csv with all others": "hurts",
        "pdf with csv": "no change shown",
        "csv with pdf": "no change shown",
    }
    worst = study.contrasts[0]
    assert worst.lift
    assert (worst.name, worst.lift.lift, worst.tokens) == ("pdf with docs", -1, None)
    arm, alone = study.arm("pdf with docs"), study.arm("pdf alone")
    assert (arm.rate, arm.trials, arm.opened) == (0, 20, {"docs": 20, "pdf": 20})
    assert arm.opened_first == {"docs": 20}
    assert (alone.rate, alone.trials, alone.opened) == (1, 20, {"pdf": 20})
    assert study.conclusions[0].endswith(
        "when docs is installed: it is opened first in 20 of 20"
    )
    assert study.conclusions[1].endswith(
        "when both others are installed: docs is opened first in 20 of 20"
    )
    assert study.conclusions[4:6] == (
        "pdf alone: +100 points (+69 to +100)",
        "csv alone: +100 points (+63 to +100)",
    )
    assert "docs is only a neighbour: no cases" in study.conclusions
    assert study.conclusions[-1] == "Of 6 pairs: 4 hurt, 2 no change shown"


def test_what_is_not_known_is_never_called_no_effect(tmp_path: Path) -> None:
    study = studied(sources(tmp_path, pdf=6, csv=0), Answerer())
    assert (
        study.conclusions[-1]
        == "The only pair is not shown to hurt or to help, which does not mean that"
        " nothing happens"
    )


def test_the_lift_of_a_skill_alone_needs_answers(tmp_path: Path) -> None:
    class Silent(Answerer):
        def __call__(self, questions: Sequence[Question]) -> list[Reply]:
            return [NoAnswer("down") for _ in questions]

    study = studied(sources(tmp_path, pdf=3, csv=0), Silent())
    assert "pdf alone: not known" in study.conclusions


def test_what_the_list_costs_is_estimated(tmp_path: Path) -> None:
    skills = sources(tmp_path, pdf=2, csv=0, writer=0)
    tokens = sum(listing_tokens(one.skill) for one in skills)
    assert (
        f"The list of 3 skills costs every request about {tokens} tokens"
        in studied(skills, Answerer()).conclusions
    )


def test_a_missing_answer_leaves_a_pair_incomplete(tmp_path: Path) -> None:
    class Broken(Answerer):
        def reply(self, question: Question) -> Reply:
            assert question.task
            names = [one.name for one in question.task.skills]
            return NoAnswer("down") if "docs" in names else super().reply(question)

    study = studied(sources(tmp_path, pdf=6, csv=0, docs=0), Broken())
    assert words_of(study) == {
        "pdf with csv": "no change shown",
        "pdf with docs": "incomplete",
        "pdf with all others": "incomplete",
    }
    assert (study.errored, study.error) == (48, "down")
    assert "48 trials without an answer: down" in study.conclusions
    assert study.conclusions[-1].endswith("but answers are missing for 2")


def test_a_skill_that_is_given_twice_counts_once_and_a_name_belongs_to_one(
    tmp_path: Path,
) -> None:
    pdf, csv = (source(tmp_path / one) for one in ("pdf", "csv"))
    again = load_skill_cases(tmp_path / "csv/../pdf/SKILL.md", "pdf", Settings())
    assert distinct([pdf, csv, again]) == [pdf, csv]
    with pytest.raises(InputError, match="at least two skills"):
        distinct([pdf, again])
    with pytest.raises(InputError, match=r"same name \(pdf\)"):
        distinct([pdf, csv, source(tmp_path / "more/pdf")])


def test_some_skill_must_have_cases_and_no_subject_may_be_a_plain_completion(
    tmp_path: Path,
) -> None:
    bare = [source(tmp_path / name, 0) for name in ("pdf", "csv")]
    with pytest.raises(InputError, match="none of these skills has cases"):
        matrix_plans(bare, {LOOP: "id"}, MAKER)
    with pytest.raises(SettingsError, match="sees one skill only"):
        matrix_plans(bare, {LOOP: "id", Subject(CHAT, "m"): "id"}, MAKER)


def test_a_neighbour_may_not_be_installed_everywhere_as_well(tmp_path: Path) -> None:
    own = [source(tmp_path / name) for name in ("pdf", "csv")]
    maker = ArmMaker(Settings(with_skills=(tmp_path / "csv",)))
    with pytest.raises(SettingsError, match="this skill is tested"):
        matrix_plans(own, {LOOP: "id"}, maker)


def test_files_of_a_neighbours_cases_are_not_installed(tmp_path: Path) -> None:
    own = [source(tmp_path / name) for name in ("pdf", "csv")]
    (tmp_path / "csv/fixtures").mkdir()
    (tmp_path / "csv/fixtures/answers.txt").write_text("right")
    (study,) = matrix_plans(own, {LOOP: "id"}, MAKER)
    copies = [
        copy for group in study.groups for arm in group.arms for copy in arm.skills
    ]
    assert {copy.name for copy in copies} == {"pdf", "csv"}
    assert all("fixtures" in copy.without for copy in copies)


def test_cases_for_other_models_leave_a_skill_a_neighbour(tmp_path: Path) -> None:
    own = [source(tmp_path / name) for name in ("pdf", "csv")]
    only = [case("Question?", "right", models=["opus"])]
    write_skill(tmp_path / "csv", only)
    own[1] = load_skill_cases(tmp_path / "csv/SKILL.md", "csv", Settings())
    (study,) = matrix_plans(own, {LOOP: "id"}, MAKER)
    assert [group.skill.name for group in study.groups] == ["pdf"]
    runner = StudyRunner(
        Evaluator(Settings(), Answerer(), lambda _model: None, lambda _agent: "1")
    )
    assert (
        "csv is only a neighbour: no cases for loop/m" in runner.run(study).conclusions
    )
