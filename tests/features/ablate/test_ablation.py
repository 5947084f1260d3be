"""Parts of a skill as a study."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill._util.texts import digest
from pytest_upskill.errors import InputError
from pytest_upskill.features.ablate.plans import (
    NOT_IN_CONTEXT,
    SHORTER,
    WHOLE,
    Ablation,
)
from pytest_upskill.measure.arm_maker import ArmMaker
from pytest_upskill.measure.evaluate import Evaluator
from pytest_upskill.measure.study_cases import load_skill_cases
from pytest_upskill.measure.study_runner import StudyRunner
from pytest_upskill.results.contrasts import Study
from pytest_upskill.settings import Settings
from pytest_upskill.trials.answer import Answer, NoAnswer, Reply, Usage
from pytest_upskill.trials.subject import CHAT, Subject
from pytest_upskill.trials.trial import Question
from support.kit import case, write_skill
from support.made_studies import made_contrast, made_study

HAIKU = Subject(CHAT, "m")
LOOP = Subject("loop", "m")
BODY = """# Pages

Read the page.

## Alignment

Turn it LEFT.

## Troubleshooting

Try again, then try another way.

## Links

See references/forms.md and [more](references/more.md).
"""
Answers = Callable[[Question, int], bool]  # right or not, by the number of the case


class Model:
    """Right where the function says so; it counts four characters per token."""

    def __init__(self, right: Answers) -> None:
        self._right = right
        self.asked = list[Question]()

    def __call__(self, questions: Sequence[Question]) -> list[Reply]:
        self.asked += questions
        return [self._reply(one) for one in questions]

    def _reply(self, question: Question) -> Reply:
        number = int(question.messages[-1][1].split()[1])
        text = "right" if self._right(question, number) else "wrong"
        return Answer(text, Usage(len(question.system) // 4, 5, 0))


def needs_left(question: Question, number: int) -> bool:
    """Four cases of five need the section about alignment,
    the last is right with any skill.
    """
    return "LEFT" in question.system or (
        number % 5 == 4 and "skill above" in question.system
    )


def ablation(
    folder: Path,
    cases: int = 80,
    subject: Subject = HAIKU,
    body: str = BODY,
    **more: object,
) -> Ablation:
    skill = folder / "pages"
    asked = [case(f"Question {number} please", "right") for number in range(cases)]
    write_skill(skill, asked, body=body)
    (skill / "references").mkdir()
    (skill / "references/forms.md").write_text("All forms. " * 40)
    (skill / "references/more.md").write_text("More.")
    settings = Settings(references=bool(more.pop("references", False)))
    source = load_skill_cases(skill / "SKILL.md", "pages", settings)
    whole = Ablation(
        source, subject, source.cases, folder / "made", settings, ArmMaker(settings)
    )
    return replace(whole, **more)  # type: ignore[arg-type]


def studied(one: Ablation, right: Answers, runs: int = 1) -> Study:
    settings = replace(one.settings, runs=runs)
    runner = StudyRunner(
        Evaluator(settings, Model(right), lambda _model: None, lambda _agent: "1")
    )
    return runner.run(one.plan())


def going(one: Ablation, study: Study) -> list[str]:
    return [part.name for part in one.could_go(study)]


def test_what_is_missed_and_what_could_go(tmp_path: Path) -> None:
    one = ablation(tmp_path)
    found = studied(one, needs_left)
    assert list(one.parts) == [
        "without Pages",
        "without Alignment",
        "without Troubleshooting",
        "without Links",
    ]
    assert found.title == f"Parts of pages (about {one.source.skill.tokens} tokens)"
    first, *_, last = found.contrasts
    assert first.lift
    assert (first.name, first.word) == (WHOLE, "helps")
    assert first.lift.lift == pytest.approx(1.0)
    assert last.lift
    assert last.lift.lift == pytest.approx(-0.8)
    assert (last.name, last.word) == ("without Alignment", "hurts")
    idle = found.contrast("without Troubleshooting")
    assert idle.lift
    assert idle.lift.lift == 0
    assert idle.lift.low > -one.margin
    assert idle.word == "no loss shown"
    # As the model counts: "## Troubleshooting" and its text,
    # in four characters per token.
    assert (idle.tokens, idle.tokens_span) == (-14, (-14, -14))
    assert going(one, found) == ["Links", "Troubleshooting", "Pages"]
    assert re.fullmatch(
        r"Could go \(each by itself\): Links \(\d+ tokens\), Troubleshooting \(\d+"
        r" tokens\), "
        r"Pages \(\d+ tokens\)\. A loss of 10 points or more is ruled out, a smaller"
        r" one is not",
        found.conclusions[-1],
    )


def test_few_cases_never_show_that_a_part_could_go(tmp_path: Path) -> None:
    one = ablation(tmp_path, cases=12)
    found = studied(one, needs_left)
    assert not one.could_go(found)
    idle = found.contrast("without Troubleshooting")
    assert idle.word == "not known"
    assert (
        found.conclusions[-1]
        == "Nothing is shown to be free to go: no part rules out a loss of 10 points"
        " with 12 cases"
    )


def test_nothing_could_go_if_the_cases_do_not_show_what_the_skill_is_for(
    tmp_path: Path,
) -> None:
    one = ablation(tmp_path)
    found = studied(one, lambda _question, _number: True)
    assert found.contrast("without Links").word == "no loss shown"
    assert not one.could_go(found)
    assert found.conclusions[-1].startswith(
        "The skill itself is not shown to help on these cases"
    )
    other = replace(one, folder=tmp_path / "other")
    worse = studied(
        other, lambda question, _number: "skill above" not in question.system
    )
    assert worse.conclusions[-1].startswith(
        "The skill itself hurts on these cases (-100 points"
    )


def test_a_shorter_skill_is_compared_with_the_whole_one_on_other_cases(
    tmp_path: Path,
) -> None:
    one = ablation(tmp_path, cases=40)
    parts = [one.parts["without Alignment"], one.parts["without Links"]]
    plan = replace(one, held_out=one.cases[:30]).shorter_plan(parts)
    runner = StudyRunner(
        Evaluator(one.settings, Model(needs_left), lambda _model: None, str)
    )
    contrast = runner.run(plan).contrast(SHORTER)
    assert (contrast.cases, contrast.word, contrast.margin) == (30, "hurts", one.margin)
    assert contrast.words.startswith("loses 80 points (")
    assert plan.title.startswith("pages, shorter (")
    # Nothing else is paid for
    assert [arm.name for arm in plan.groups[0].arms] == [WHOLE, SHORTER]


def test_an_outage_is_no_loss(tmp_path: Path) -> None:
    one = ablation(tmp_path)
    model = Model(needs_left)

    def ask(questions: Sequence[Question]) -> list[Reply]:
        return [
            NoAnswer("down") if "another way" not in asked.system else model([asked])[0]
            for asked in questions
        ]

    runner = StudyRunner(
        Evaluator(one.settings, ask, lambda _model: None, lambda _agent: "1")
    )
    found = runner.run(one.plan())
    assert found.contrast("without Troubleshooting").word == "incomplete"
    assert not one.could_go(found)
    assert not found.complete
    assert found.conclusions[-1] == "Incomplete: 160 trials without an answer: down"


def test_files_count_where_a_model_can_see_them(tmp_path: Path) -> None:
    plain = ablation(tmp_path / "plain")
    assert "without references/forms.md" not in plain.parts
    found = studied(plain, needs_left)
    for name in ("references/forms.md", "references/more.md"):
        assert f"{name} was not left out: {NOT_IN_CONTEXT}" in found.conclusions
    seen = ablation(tmp_path / "seen", references=True)
    assert [part.name for part in seen.parts.values() if part.kind == "file"] == [
        "references/forms.md",
        "references/more.md",
    ]
    tokens = studied(seen, needs_left).contrast("without references/forms.md").tokens
    assert tokens is not None
    assert -125 <= tokens <= -105
    assert 105 <= seen.tokens_of([seen.parts["without references/forms.md"]]) <= 125
    of_agent = ablation(tmp_path / "agent", subject=LOOP)
    assert [part.kind for part in of_agent.parts.values()].count("file") == 2


def test_an_agent_gets_a_folder_of_the_same_name_without_the_part(
    tmp_path: Path,
) -> None:
    one = ablation(tmp_path, cases=2, subject=LOOP)
    (group,) = one.plan().groups
    tested = {arm.name: arm.skills[0] for arm in group.arms if arm.tested}
    assert list(tested) == [WHOLE, *one.parts]
    assert {skill.name for skill in tested.values()} == {"pages"}
    assert len({skill.digest for skill in tested.values()}) == 1 + len(one.parts)
    copies = [Path(tested[name].folder) for name in one.parts]
    assert not any((folder / "skill_meta.json").exists() for folder in copies)


def test_one_section_can_only_be_studied_by_paragraph(tmp_path: Path) -> None:
    one = ablation(tmp_path, body="# All\n\nOne.\n\nTwo LEFT.")
    with pytest.raises(InputError, match="only one section"):
        one.plan()
    found = studied(replace(one, by="paragraph"), needs_left)
    assert {contrast.name for contrast in found.contrasts} == {
        WHOLE,
        "without One.",
        "without Two LEFT.",
    }


def test_there_must_be_cases(tmp_path: Path) -> None:
    one = replace(ablation(tmp_path), cases=())
    with pytest.raises(InputError, match=f"there are no cases for {HAIKU.label}"):
        one.plan()


@pytest.mark.nightly
def test_more_runs_may_show_that_less_than_the_margin_is_lost(tmp_path: Path) -> None:
    """Cases that pass by chance: two runs say little, sixteen say enough."""

    def by_chance(question: Question, number: int) -> bool:
        chance = digest(question.system, str(number), str(question.run))[0]
        return "LEFT" in question.system and chance in "0123456789"

    one = ablation(tmp_path, cases=100)
    name = "without Troubleshooting"
    assert studied(one, by_chance, 2).contrast(name).word == "not known"
    late = studied(replace(one, folder=tmp_path / "late"), by_chance, 16)
    assert late.contrast(name).word == "no loss shown"


def test_the_dearest_points_come_first(tmp_path: Path) -> None:
    changes = {
        "dear": (-10, -500),
        "cheap": (-50, -10),
        "idle": (0, -20),
        "long": (10, -200),
    }
    rows = [
        replace(
            made_contrast(name, (points, points - 9, points + 9)), tokens=float(tokens)
        )
        for name, (points, tokens) in changes.items()
    ]
    study = made_study([made_contrast(WHOLE, (60, 40, 80)), *rows])
    concluded = replace(ablation(tmp_path), cases=())._conclude(
        replace(
            study,
            contrasts=(*study.contrasts, made_contrast("none", None)),
        )
    )
    names = [contrast.name for contrast in concluded.contrasts]
    assert names == [WHOLE, "long", "idle", "dear", "cheap", "none"]
