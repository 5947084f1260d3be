"""The matrix of neighbours as a study."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_upskill.errors import InputError, SettingsError
from pytest_upskill.measure.skill_matrix import (
    Member,
    distinct,
    listing_tokens,
    matrix_studies,
    study_of,
)
from pytest_upskill.measure.study import SkillCases, load_skill_cases
from pytest_upskill.measure.study_runner import StudyRunner
from pytest_upskill.results.neighbours import Matrix
from pytest_upskill.settings import Settings
from pytest_upskill.trials.answer import Answer, NoAnswer, Reply, Usage
from pytest_upskill.trials.arm import SkillCopy
from pytest_upskill.trials.subject import CHAT, Subject
from pytest_upskill.trials.transcript import Activity, Turn
from pytest_upskill.trials.trial import Question
from support.kit import case, write_skill

LOOP = Subject("loop", "m")


def source(folder: Path, cases: int = 1) -> SkillCases:
    asked = [case(f"Question {number} for {folder.name}?", "right") for number in range(cases)]
    write_skill(folder, asked, body=f"All about {folder.name}.")
    return load_skill_cases(folder / "SKILL.md", folder.name, Settings())


def member(folder: Path, cases: int) -> Member:
    own = source(folder, cases)
    return Member(own, SkillCopy.of(own.skill.name, folder), own.cases)


def members(folder: Path, **cases: int) -> list[Member]:
    return [member(folder / name, number) for name, number in cases.items()]


def spoiled_by(bad: str) -> "type[Answerer]":
    """A model that answers right with the tested skill, unless it opens another one first."""

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
        opened = [tested] if tested else []
        right = bool(tested)
        if self.spoiler in names and self.spoiler not in opened:
            opened, right = [self.spoiler, *opened], False
        first = 100 + (50 if names else 0) + 10 * sum(map(len, names))
        return Answer(
            "right" if right else "wrong",
            Usage(first, 5, 0),
            transcript=(Turn("system", "-"), Turn("assistant", "-", reply=1, input_tokens=first)),
            activity=Activity(1, 0, bool(opened) if tested else None, tuple(opened)),
        )


def studied(own: Sequence[Member], ask: Answerer, looks: tuple[int, ...] = (2,)) -> Matrix:
    (study,) = matrix_studies([one.source for one in own], {LOOP: "id"}, looks)
    runner = StudyRunner(Settings(), looks, ask, lambda _agent: "1", lambda _model: None)
    found = study.conclude(runner.run(study))
    assert isinstance(found, Matrix)
    return found


def test_every_skill_with_cases_is_asked_alone_beside_each_other_and_beside_all(
    tmp_path: Path,
) -> None:
    variants, contrasts = study_of(members(tmp_path, pdf=2, csv=1, docs=0))
    others = {
        (one.skill.name, one.arm, tuple(other.name for other in one.neighbours)) for one in variants
    }
    wanted = {
        ("pdf", (), ("csv",), ("docs",), ("csv", "docs")),
        ("csv", (), ("pdf",), ("docs",), ("docs", "pdf")),
    }
    assert others == {
        (name, arm, beside)
        for name, *besides in wanted
        for beside in besides
        for arm in ("baseline", "skill")
    }
    assert len(variants) == len({one.name for one in variants}) == 16
    assert [one.name for one in contrasts] == [
        '"pdf" with "csv"',
        '"pdf" with "docs"',
        '"pdf" with all others',
        '"csv" with "pdf"',
        '"csv" with "docs"',
        '"csv" with all others',
    ]
    assert all(len(one.plus) == len(one.minus) == 2 for one in contrasts)


def test_of_two_skills_all_others_are_the_other_one(tmp_path: Path) -> None:
    own = members(tmp_path, pdf=2, csv=0)
    _, contrasts = study_of(own)
    assert [one.name for one in contrasts] == ['"pdf" with "csv"']
    assert studied(own, Answerer()).columns == ("csv",)  # nothing is beside csv


def test_a_neighbour_that_is_opened_first_hurts(tmp_path: Path) -> None:
    own = members(tmp_path, pdf=10, csv=8, docs=0)
    matrix = studied(own, spoiled_by("docs")())
    words = {(one.skill, one.other): one.verdict for one in matrix.pairs}
    assert words == {
        ("pdf", "csv"): "unknown",
        ("pdf", "docs"): "hurts",
        ("pdf", None): "hurts",
        ("csv", "pdf"): "unknown",
        ("csv", "docs"): "hurts",
        ("csv", None): "hurts",
    }
    worst = matrix.pair("pdf", "docs")
    assert worst
    assert worst.effect.lift
    assert worst.effect.lift.lift == -1
    assert worst.lift
    assert worst.lift.lift == 0
    assert (worst.openings.trials, worst.openings.first) == (20, {"docs": 20})
    assert worst.openings.opened == {"docs": 20, "pdf": 20}
    alone = matrix.alone_of("pdf")
    assert alone
    assert alone.lift
    assert (alone.lift.lift, alone.cases, alone.runs) == (1, 10, 2)
    assert alone.openings.first == {"pdf": 20}
    assert matrix.not_measured == {"docs": "no cases"}


def test_what_the_list_costs_is_estimated_and_compared(tmp_path: Path) -> None:
    own = members(tmp_path, pdf=2, csv=0, writer=0)
    matrix = studied(own, Answerer())
    assert matrix.listing == {one.name: listing_tokens(one.source.skill) for one in own}
    # Ten for each letter of a name; the fifty that come with any skill are not an entry's.
    assert matrix.listing_seen == {"pdf": 30, "csv": 30, "writer": 60}


def test_a_missing_answer_leaves_a_pair_incomplete(tmp_path: Path) -> None:
    class Broken(Answerer):
        def reply(self, question: Question) -> Reply:
            assert question.task
            names = [one.name for one in question.task.skills]
            return NoAnswer("down") if "docs" in names else super().reply(question)

    matrix = studied(members(tmp_path, pdf=6, csv=0, docs=0), Broken())
    words = {one.other: one.verdict for one in matrix.pairs}
    assert words == {"csv": "unknown", "docs": "incomplete", None: "incomplete"}
    assert (matrix.errored, matrix.error) == (48, "down")


def test_a_skill_that_is_given_twice_counts_once_and_a_name_belongs_to_one(tmp_path: Path) -> None:
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
        matrix_studies(bare, {LOOP: "id"}, (2,))
    with pytest.raises(SettingsError, match="sees one skill only"):
        matrix_studies(bare, {LOOP: "id", Subject(CHAT, "m"): "id"}, (2,))


def test_a_neighbour_may_not_be_installed_everywhere_as_well(tmp_path: Path) -> None:
    own = [source(tmp_path / name) for name in ("pdf", "csv")]
    (study,) = matrix_studies(own, {LOOP: "id"}, (2,))
    settings = Settings(with_skills=(tmp_path / "csv",))
    runner = StudyRunner(settings, (2,), Answerer(), lambda _agent: "1", lambda _model: None)
    with pytest.raises(SettingsError, match="this skill is tested"):
        runner.estimate([study], free=True)


def test_files_of_a_neighbours_cases_are_not_installed(tmp_path: Path) -> None:
    own = [source(tmp_path / name) for name in ("pdf", "csv")]
    (tmp_path / "csv/fixtures").mkdir()
    (tmp_path / "csv/fixtures/answers.txt").write_text("right")
    (study,) = matrix_studies(own, {LOOP: "id"}, (2,))
    others = [other for variant in study.variants for other in variant.neighbours]
    assert {one.name for one in others} == {"pdf", "csv"}
    assert all("fixtures" in one.without for one in others)


def test_cases_for_other_models_leave_a_skill_a_neighbour(tmp_path: Path) -> None:
    own = [source(tmp_path / name) for name in ("pdf", "csv")]
    only = [case("Question?", "right", models=["opus"])]
    write_skill(tmp_path / "csv", only)
    own[1] = load_skill_cases(tmp_path / "csv/SKILL.md", "csv", Settings())
    (study,) = matrix_studies(own, {LOOP: "id"}, (1,))
    assert {variant.skill.name for variant in study.variants} == {"pdf"}
    runner = StudyRunner(Settings(), (1,), Answerer(), lambda _agent: "1", lambda _model: None)
    found = study.conclude(runner.run(study))
    assert isinstance(found, Matrix)
    assert found.not_measured == {"csv": "no cases for loop/m"}
