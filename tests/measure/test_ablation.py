"""Parts of a skill as a study."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill._util.texts import digest
from pytest_upskill.errors import InputError
from pytest_upskill.measure.ablation import NOT_IN_CONTEXT, Ablation, ablation_studies
from pytest_upskill.measure.study import load_skill_cases
from pytest_upskill.measure.study_runner import StudyRunner
from pytest_upskill.results.part_effects import PartEffect, Parts, part_conclusions, part_sentence
from pytest_upskill.settings import Settings
from pytest_upskill.trials.answer import Answer, NoAnswer, Reply, Usage
from pytest_upskill.trials.subject import CHAT, Subject
from pytest_upskill.trials.trial import Question
from support.kit import case, write_skill

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
    """Four cases of five need the section about alignment, the last is right with any skill."""
    return "LEFT" in question.system or (number % 5 == 4 and "skill above" in question.system)


def ablation(
    folder: Path, cases: int = 80, subject: Subject = HAIKU, body: str = BODY, **more: object
) -> Ablation:
    skill = folder / "pages"
    asked = [case(f"Question {number} please", "right") for number in range(cases)]
    write_skill(skill, asked, body=body)
    (skill / "references").mkdir()
    (skill / "references/forms.md").write_text("All forms. " * 40)
    (skill / "references/more.md").write_text("More.")
    settings = Settings(references=bool(more.pop("references", False)))
    source = load_skill_cases(skill / "SKILL.md", "pages", settings)
    whole = Ablation(source, subject, source.cases, folder / "made", settings)
    return replace(whole, **more)  # type: ignore[arg-type]


def studied(one: Ablation, right: Answers, looks: tuple[int, ...] = (1,)) -> Parts:
    runner = StudyRunner(one.settings, looks, Model(right), lambda _agent: "1", lambda _model: None)
    study = one.study()
    found = study.conclude(runner.run(study))
    assert isinstance(found, Parts)
    return found


def by_name(found: Parts) -> dict[str, PartEffect]:
    return {part.name: part for part in found.parts}


def test_what_is_missed_and_what_could_go(tmp_path: Path) -> None:
    found = studied(ablation(tmp_path), needs_left)
    assert found.lift is not None
    assert found.lift.lift == pytest.approx(1.0)
    parts = by_name(found)
    assert list(parts) == ["Pages", "Alignment", "Troubleshooting", "Links"]
    missed, idle = parts["Alignment"], parts["Troubleshooting"]
    assert missed.change
    assert missed.change.lift == pytest.approx(-0.8)
    assert missed.effect.state == "shown"
    assert not missed.could_go
    assert idle.change
    assert idle.change.lift == 0
    assert idle.could_go
    assert idle.change.low > -found.margin
    assert [part.name for part in found.sorted][-1] == "Alignment"
    # As the model counts: "## Troubleshooting" and its text, in four characters per token.
    assert idle.tokens == 14
    assert idle.saved is not None
    assert idle.saved.tokens == idle.tokens
    assert part_sentence(missed, found.margin).startswith("Alignment (8 tokens): -80 (-")
    assert part_sentence(idle, found.margin).startswith(
        "Troubleshooting (14 tokens): no loss shown ("
    )
    assert part_conclusions(found)[-1].startswith("Could go (each by itself): ")


def test_few_cases_never_show_that_a_part_could_go(tmp_path: Path) -> None:
    found = studied(ablation(tmp_path, cases=12), needs_left)
    idle = by_name(found)["Troubleshooting"]
    assert not idle.could_go
    needed = idle.effect.cases_needed
    assert needed is not None
    assert 40 < needed < 80
    assert f"about {needed} cases would tell" in part_sentence(idle, found.margin)
    assert part_conclusions(found)[-1].startswith("Nothing is shown to be free to go")


def test_the_number_of_cases_that_would_tell_is_enough(tmp_path: Path) -> None:
    few = studied(ablation(tmp_path / "few", cases=12), needs_left)
    needed = by_name(few)["Troubleshooting"].effect.cases_needed
    assert needed
    enough = studied(ablation(tmp_path / "enough", cases=needed), needs_left)
    assert by_name(enough)["Troubleshooting"].could_go


def test_nothing_could_go_if_the_cases_do_not_show_what_the_skill_is_for(tmp_path: Path) -> None:
    found = studied(ablation(tmp_path), lambda _question, _number: True)
    assert not any(part.could_go for part in found.parts)
    assert part_conclusions(found)[-1].startswith("The skill itself is not shown to help")


def test_an_outage_is_no_loss(tmp_path: Path) -> None:
    one = ablation(tmp_path)
    model = Model(needs_left)

    def ask(questions: Sequence[Question]) -> list[Reply]:
        return [
            NoAnswer("down") if "another way" not in asked.system else model([asked])[0]
            for asked in questions
        ]

    study = one.study()
    runner = StudyRunner(one.settings, (1,), ask, lambda _agent: "1", lambda _model: None)
    found = study.conclude(runner.run(study))
    assert isinstance(found, Parts)
    part = by_name(found)["Troubleshooting"]
    assert part.standing(found.margin) == "incomplete"
    assert not part.could_go
    assert not found.complete
    assert "Incomplete: 160 trials without an answer" in "\n".join(part_conclusions(found))


def test_files_count_where_a_model_can_see_them(tmp_path: Path) -> None:
    plain = ablation(tmp_path / "plain")
    assert "references/forms.md" not in [part.name for part in plain.parts]
    found = studied(plain, needs_left)
    assert found.not_measured == dict.fromkeys(
        ["references/forms.md", "references/more.md"], NOT_IN_CONTEXT
    )
    seen = ablation(tmp_path / "seen", references=True)
    assert [part.name for part in seen.parts if part.kind == "file"] == [
        "references/forms.md",
        "references/more.md",
    ]
    part = by_name(studied(seen, needs_left))["references/forms.md"]
    assert 105 <= part.tokens <= 125
    of_agent = ablation(tmp_path / "agent", subject=LOOP)
    assert [part.kind for part in of_agent.parts].count("file") == 2


def test_an_agent_gets_a_folder_of_the_same_name_without_the_part(tmp_path: Path) -> None:
    one = ablation(tmp_path, cases=2, subject=LOOP)
    study = one.study()
    runner = StudyRunner(
        one.settings, (1,), Model(needs_left), lambda _agent: "1", lambda _model: None
    )
    tasks = [trial.trial.question.task for trial in runner._all_trials([study], 1)]
    known = [skill for task in tasks if task and task.tested for skill in task.skills]
    assert {skill.name for skill in known} == {"pages"}
    assert len({skill.digest for skill in known}) == 1 + len(one.parts)
    assert all(not Path(skill.folder, "skill_meta.json").exists() for skill in known[2:])


def test_one_section_can_only_be_studied_by_paragraph(tmp_path: Path) -> None:
    one = ablation(tmp_path, body="# All\n\nOne.\n\nTwo LEFT.")
    with pytest.raises(InputError, match="only one section"):
        one.study()
    parts = studied(replace(one, by="paragraph"), needs_left)
    assert list(by_name(parts)) == ["One.", "Two LEFT."]
    silent = ablation_studies([one.source], {HAIKU: "m"}, tmp_path / "more", one.settings)
    told = silent[0].conclude(
        StudyRunner(one.settings, (1,), Model(needs_left), str, lambda _: None).run(silent[0])
    )
    assert isinstance(told, Parts)
    assert "only one section" in part_conclusions(told)[-1]


def test_what_is_missing_is_said_in_a_whole_sentence(tmp_path: Path) -> None:
    one = replace(ablation(tmp_path), cases=())
    assert f"it can't be studied, as {one.problem}" == (
        f"it can't be studied, as there are no cases for {HAIKU.label}"
    )


def test_runs_are_added_only_while_they_may_tell(tmp_path: Path) -> None:
    """A part that is missed for sure, and one that surely is not, are settled at once."""
    one = ablation(tmp_path)
    model = Model(needs_left)
    runner = StudyRunner(one.settings, (2, 4, 8), model, lambda _agent: "1", lambda _model: None)
    runner.run(one.study())
    assert max(question.run for question in model.asked) == 2


@pytest.mark.nightly
def test_more_runs_may_show_that_less_than_the_margin_is_lost(tmp_path: Path) -> None:
    """Cases that pass by chance: two runs say little, sixteen say enough."""

    def by_chance(question: Question, number: int) -> bool:
        chance = digest(question.system, str(number), str(question.run))[0]
        return "LEFT" in question.system and chance in "0123456789"

    one = ablation(tmp_path, cases=100)
    early = by_name(studied(one, by_chance, (2,)))["Troubleshooting"]
    late = by_name(studied(replace(one, folder=tmp_path / "late"), by_chance, (2, 4, 8, 16)))
    assert not early.could_go
    assert late["Troubleshooting"].effect.runs > 2
    assert late["Troubleshooting"].could_go
