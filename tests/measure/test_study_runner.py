"""Studies, carried out."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from pytest_upskill.measure.estimate import (
    NOTHING_STORED,
    Estimate,
    Stored,
    estimate_trials,
)
from pytest_upskill.measure.evaluate import Evaluator, asked_cases
from pytest_upskill.measure.study_cases import SkillCases, load_skill_cases
from pytest_upskill.measure.study_runner import (
    CasesInArms,
    StudyPlan,
    StudyRunner,
    why_too_few,
)
from pytest_upskill.models.prices import FREE, Price
from pytest_upskill.results.arm_contrasts import judge_contrasts
from pytest_upskill.results.comparison import CaseResult, Comparison, compare
from pytest_upskill.results.contrasts import Contrast, Study
from pytest_upskill.settings import Settings
from pytest_upskill.trials.answer import Answer, NoAnswer, Reply, Usage
from pytest_upskill.trials.arm import Arm
from pytest_upskill.trials.subject import CHAT, Subject
from pytest_upskill.trials.trial import Question
from support.kit import case, write_skill

MODEL = Subject(CHAT, "m")
RUNS = 2


class Asker:
    """Answers by a function of the question; counts what is asked, each question
    once.
    """

    def __init__(self, answer: Callable[[Question], str | None]) -> None:
        self._answer = answer
        self.asked = dict[str, Question]()
        self.new = list[int]()

    def __call__(self, questions: Sequence[Question]) -> list[Reply]:
        new = {one.key: one for one in questions if one.key not in self.asked}
        self.asked |= new
        self.new.append(len(new))
        return [self._reply(one) for one in questions]

    def _reply(self, question: Question) -> Reply:
        text = self._answer(question)
        return NoAnswer("no") if text is None else Answer(text, Usage(100, 10, 0))


@pytest.fixture
def gate(tmp_path: Path) -> SkillCases:
    return skill(tmp_path, 10)


def skill(folder: Path, cases: int) -> SkillCases:
    asked = [case(f"How do I open gate {n}?", "up", id=f"g{n}") for n in range(cases)]
    write_skill(folder / "gate", asked)
    return load_skill_cases(folder / "gate" / "SKILL.md", "gate", Settings())


def study(source: SkillCases, **texts: str) -> StudyPlan:
    """The skill, without it, and with other texts in its place."""
    texts_of_arms = {"whole": source.skill.text, "none": None, **texts}
    arms = tuple(Arm(name, text) for name, text in texts_of_arms.items())
    cases = asked_cases(source.cases, MODEL, "m")
    groups = (CasesInArms(source.skill, cases, arms, source.score),)
    contrasts = [Contrast(name, (name,), ("whole",)) for name in ("none", *texts)]
    return StudyPlan("Gates", "By points", MODEL, groups, tuple(contrasts))


def runner(ask: Asker, runs: int = RUNS, **more: object) -> StudyRunner:
    settings = Settings(runs=runs)
    evaluator = Evaluator(settings, ask, lambda _: FREE, lambda _: "1")
    return StudyRunner(evaluator, **more)  # type: ignore[arg-type]


def estimated(
    plan: StudyPlan,
    runs: int = RUNS,
    price: Price = FREE,
    stored: Stored = NOTHING_STORED,
) -> Estimate:
    asked = runner(Asker(knows), runs).trials(plan)
    return estimate_trials([item.trial for item in asked], lambda _: price, stored)


def knows(question: Question) -> str:
    return "gate up" if "gate up" in question.system else "no idea"


def test_all_runs_are_asked_at_once(gate: SkillCases) -> None:
    ask = Asker(knows)
    found = runner(ask).run(study(gate, shorter="Type gate up."))
    lost, same = found.contrast("none"), found.contrast("shorter")
    assert (lost.word, lost.cases) == ("hurts", 10)
    assert lost.lift
    assert lost.lift.lift == -1
    assert same.word == "no change shown"
    assert ask.new[0] == 3 * 10 * RUNS
    assert (found.trials, found.runs) == (60, RUNS)


def test_case_in_a_study_keeps_its_own_runs(tmp_path: Path) -> None:
    asked = [case(f"Gate {n}?", "up", id=f"g{n}", runs=3 - 2 * n) for n in range(2)]
    write_skill(tmp_path / "gate", asked)
    source = load_skill_cases(tmp_path / "gate" / "SKILL.md", "gate", Settings())
    ask = Asker(knows)
    runner(ask, 2).run(study(source))
    runs = dict[str, int]()
    for one in ask.asked.values():
        text = one.messages[-1][1]
        runs[text] = max(one.run, runs.get(text, 0))
    assert runs == {"Gate 0?": 3, "Gate 1?": 1}


def test_errors_make_their_contrasts_incomplete_and_no_others(gate: SkillCases) -> None:
    def answer(question: Question) -> str | None:
        broken = "Perhaps" in question.system and "gate 3?" in question.messages[-1][1]
        return None if broken else knows(question)

    found = runner(Asker(answer)).run(study(gate, perhaps="Perhaps gate up."))
    assert found.contrast("none").word == "hurts"
    effect = found.contrast("perhaps")
    assert (effect.word, effect.lift) == ("incomplete", None)


def test_a_contrast_without_any_answer_has_no_number(gate: SkillCases) -> None:
    found = runner(
        Asker(lambda one: knows(one) if "gate up" in one.system else None)
    ).run(study(gate))
    effect = found.contrast("none")
    assert (effect.word, effect.lift, effect.cases) == ("incomplete", None, 0)


def test_cases_that_ask_the_same_are_one_sample(tmp_path: Path) -> None:
    asked = [case("How do I open the gate?", "up", id=f"g{n}") for n in range(6)]
    write_skill(tmp_path / "gate", asked)
    source = load_skill_cases(tmp_path / "gate" / "SKILL.md", "gate", Settings())
    found = runner(Asker(knows)).run(study(source))
    effect = found.contrast("none")
    assert (effect.cases, effect.word) == (1, "no change shown")


def test_scores_are_of_checks_if_the_cases_say_so(tmp_path: Path) -> None:
    asked = [case(f"Gate {n}?", "gate", "up", id=f"g{n}") for n in range(8)]
    write_skill(tmp_path / "gate", asked)
    settings = Settings(score="checks")
    source = load_skill_cases(tmp_path / "gate" / "SKILL.md", "gate", settings)
    assert source.score == "checks"
    ask = Asker(lambda one: "gate up" if "gate up" in one.system else "gate")
    found = runner(ask).run(study(source))
    effect = found.contrast("none")
    assert effect.lift
    assert effect.lift.lift == pytest.approx(-0.5)


def test_ctrl_c_reports_what_is_answered_so_far(gate: SkillCases) -> None:
    stopped = list[bool]()

    def answer(question: Question) -> str | None:
        if "Perhaps" not in question.system:
            return knows(question)
        if not stopped:
            raise KeyboardInterrupt
        return None

    found = runner(Asker(answer), stop=lambda: stopped.append(True)).run(
        study(gate, perhaps="Perhaps gate up.")
    )
    assert found.interrupted
    assert found.contrast("perhaps").word == "incomplete"
    assert found.contrast("none").word == "hurts"  # all of its answers were there


def test_progress_counts_what_is_shown_and_incomplete(gate: SkillCases) -> None:
    told = list[str]()
    other = "Something else."
    runner(Asker(knows), done=told.append).run(
        study(gate, other=other, same=gate.skill.body)
    )
    assert told == ["2 of 3 differences shown"]
    told.clear()
    asker = Asker(
        lambda question: None if other in question.system else knows(question)
    )
    runner(asker, done=told.append).run(study(gate, other=other))
    assert told == ["1 of 2 differences shown, 1 incomplete"]
    told.clear()
    runner(Asker(lambda _: None), done=told.append).run(study(gate, other=other))
    assert told == ["0 of 2 differences shown, 2 incomplete"]


def test_ctrl_c_is_not_swallowed_where_nothing_can_be_stopped(gate: SkillCases) -> None:
    def answer(_: Question) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner(Asker(answer)).run(study(gate))


def test_estimate_counts_each_question_once(gate: SkillCases) -> None:
    planned = study(gate, same=gate.skill.body)  # asks what the whole skill asks
    guess = estimated(planned, price=Price(1.0, 5.0, 0.1))
    assert str(guess).startswith("up to about 40 calls, ")
    assert "about $" in guess.price


def test_too_few_cases_are_told_before_the_first_call(
    gate: SkillCases, tmp_path: Path
) -> None:
    few = study(skill(tmp_path / "few", 4))
    warning = "Too few cases: 4 can't show any difference (6 needed)."
    assert why_too_few([few]) == warning
    assert why_too_few([few, study(gate)]) == ""


def test_estimate_leaves_out_what_is_stored(gate: SkillCases) -> None:
    ask = Asker(knows)
    runner(ask, 2).run(study(gate))
    stored = Stored(dict.fromkeys(ask.asked, 0))
    guess = estimated(study(gate), 8, stored=stored)
    assert str(guess).startswith("up to about 120 calls (40 answers stored), ")
    same = estimated(study(gate), 2, Price(1.0, 5.0, 0.1), stored)
    assert same.is_free
    assert str(same) == "no call (40 answers stored), 0 tokens, free"


def test_arms_have_rates_and_tokens_and_contrasts_their_differences(
    gate: SkillCases,
) -> None:
    def tokens(question: Question) -> Reply:
        return Answer(knows(question), Usage(len(question.system), 10, 0))

    def ask(questions: Sequence[Question]) -> list[Reply]:
        return [tokens(question) for question in questions]

    found = StudyRunner(Evaluator(Settings(), ask, lambda _: FREE, lambda _: "1")).run(
        study(gate)
    )
    whole, none = found.arm("whole"), found.arm("none")
    assert (whole.rate, none.rate) == (1, 0)
    assert whole.tokens
    assert none.tokens
    assert none.tokens < whole.tokens
    assert found.contrast("none").tokens == pytest.approx(none.tokens - whole.tokens)
    assert (whole.trials, whole.opened) == (0, {})  # a plain completion opens nothing


def test_arms_of_different_days_are_incomplete(gate: SkillCases) -> None:
    def ask(questions: Sequence[Question]) -> list[Reply]:
        days = [3 if "gate" in one.system else 1 for one in questions]
        return [
            Answer(knows(one), asked_at=day * 86_400)
            for one, day in zip(questions, days, strict=True)
        ]

    def run(max_age: float) -> Study:
        evaluator = Evaluator(Settings(max_age=max_age, runs=2), ask, lambda _: FREE)
        return StudyRunner(evaluator).run(study(gate))

    apart, near = run(86_400.0), run(2 * 86_400.0)
    assert [one.word for one in apart.contrasts] == ["incomplete"]
    assert (apart.apart, apart.complete, near.apart, near.complete) == (
        True,
        False,
        False,
        True,
    )
    assert [one.word for one in near.contrasts] == ["hurts"]


def test_contrasts_that_can_not_be_shown_take_no_share_of_the_error() -> None:
    def losing(cases: int) -> Comparison:
        before = {f"{n}": CaseResult(1.0, {}, f"{n}") for n in range(10)}
        after = {f"{n}": CaseResult(float(n >= cases), {}, f"{n}") for n in range(10)}
        comparison = compare([before], [after])
        assert comparison
        return comparison

    part = Contrast("one", ("without",), ("whole",))
    others = {
        Contrast(f"other {n}", (f"without {n}",), ("whole",)): losing(cases=0)
        for n in range(9)
    }
    assert judge_contrasts({part: losing(cases=6), **others})["one"].shown

    # Each of these could be shown by itself.
    rivals = {contrast: losing(cases=6) for contrast in others}
    assert not judge_contrasts({part: losing(cases=6), **rivals})["one"].shown
