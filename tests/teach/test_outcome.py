"""What is shown of a run: rows, the table of lifts, the sentences."""

from dataclasses import replace

from pytest_upskill.reports.terminal.progress_screen import (
    ProgressScreen,
    cells_of,
    row_lines,
)
from pytest_upskill.results.run import RunResults
from pytest_upskill.teach.bodies import body_sentences
from pytest_upskill.teach.drafts import Draft
from pytest_upskill.teach.failures import report_for_teacher
from pytest_upskill.teach.improvement import lifts_of, mean_lift, why_good_enough
from pytest_upskill.teach.outcome import Attempt, Taught, report_lines
from pytest_upskill.teach.trace_comparison import trace_sentences
from support.made import checked_run, made_run


def test_students_are_on_one_line_if_they_fit() -> None:
    cells = cells_of(made_run(models=("haiku", "local", "small-one")))
    assert cells[0] == ("haiku", " 33% →  83%  (+50) ")
    assert len(row_lines("attempt 1", cells[:2], "best", 80)) == 1
    below = row_lines("attempt 1", cells, "best", 80)
    assert [line[:11].strip() for line in below] == ["attempt 1", "", ""]
    assert below[-1].endswith("   best")
    assert len({line.index("33%") for line in below}) == 1
    assert len(row_lines("attempt 1", cells, "best", 120)) == 1


def test_rows_fit_the_width() -> None:
    cells = [("loop/" + "scripted:" * 4, "  0% → 100% of checks  (+100)")] * 2
    for number in (1, 2):
        lines = row_lines("attempt 1", cells[:number], "1,234 of 2,000 tokens", 80)
        assert len(lines) == number + 1
        assert max(map(len, lines)) <= 80
        assert lines[-1].strip() == "1,234 of 2,000 tokens"


def test_sentences_fit_the_width() -> None:
    written: list[str] = []
    path = "/".join(["a-long-name"] * 9)
    ProgressScreen(written.append).text(f"{'Too few cases. ' * 9}\nKept in {path}")
    text = "".join(written)
    assert max(map(len, text.splitlines())) <= 80
    assert path in text.replace("\n", "")


def test_a_screen_that_is_not_live_writes_only_whole_lines() -> None:
    piped, live = list[str](), list[str]()
    for screen in (
        ProgressScreen(piped.append),
        ProgressScreen(live.append, live=True),
    ):
        screen.begin("Generating\x1b[31m cases…")
        screen.done("12 kept\x1b")
        screen.line("Saved")
    words = [line.split() for line in piped]
    assert words == [["Generating\\x1b[31m", "cases…", "12", "kept\\x1b"], ["Saved"]]
    assert all(line.endswith("\n") for line in piped)
    assert live[1].startswith("\r\x1b[KGenerating")
    assert "\x1b[31m" not in "".join(live)


def run_with_rates(rates: dict[str, float], cases: int = 8) -> "RunResults":
    """Some cases on haiku; so large a share of each arm passes."""

    def passes(case: int, _model: str, arm: str, _run: int) -> bool:
        return case < round(cases * rates[arm])

    arms: list[str] = ["baseline", "skill"]
    arms += ["trace"] if "trace" in rates else []
    return made_run(cases=cases, passes=passes, arms=arms)


def taught_of(learning: RunResults, held: RunResults | None, **more: object) -> Taught:
    best = Attempt(1, Draft("gate", "d", "b " * 1000), learning, held)
    taught = Taught("gate", (best,), 1, stop="one version was written")
    return replace(taught, **more)  # type: ignore[arg-type]


def sentences(taught: Taught) -> list[str]:
    return [*body_sentences(taught), *trace_sentences(taught)]


def few(results: RunResults, number: int) -> RunResults:
    names = {f"case-{n}" for n in range(number)}
    return replace(
        results,
        tests=tuple(test for test in results.tests if test.case in names),
        records=tuple(record for record in results.records if record.case in names),
    )


def renamed(results: RunResults) -> RunResults:
    return replace(
        results,
        tests=tuple(replace(test, case=f"held-{test.case}") for test in results.tests),
        records=tuple(
            replace(record, case=f"held-{record.case}") for record in results.records
        ),
    )


def test_an_overfitted_skill_is_reported_if_enough_cases_show_it() -> None:
    good, none = (
        run_with_rates({"baseline": 0, "skill": 1}),
        run_with_rates({"baseline": 0, "skill": 0}),
    )
    told = " ".join(sentences(taught_of(good, renamed(none))))
    assert "On haiku, the skill overfits: +100 points" in told
    told = " ".join(sentences(taught_of(good, renamed(few(none, 1)))))
    assert (
        "no lift on the 1 held-out case, too few to tell whether the skill overfits"
        in told
    )
    told = " ".join(sentences(taught_of(good, renamed(good))))
    assert "overfits" not in told
    assert "haiku on all cases: helps, +100 points" in told


def test_models_that_it_does_not_help_are_named() -> None:
    none = run_with_rates({"baseline": 0.5, "skill": 0.5}, 40)
    assert "The skill does not help haiku: 0 points" in " ".join(
        sentences(taught_of(none, None))
    )
    told = " ".join(sentences(taught_of(few(none, 8), None)))
    assert "haiku on all cases: too few cases for a verdict, 0 points" in told
    known = run_with_rates({"baseline": 1, "skill": 1}, 40)
    told = " ".join(sentences(taught_of(known, None)))
    assert "haiku does not need the skill: it passes 100% without it." in told


def test_the_skill_is_compared_with_the_trace() -> None:
    good = run_with_rates({"baseline": 0, "skill": 1})
    teacher = run_with_rates({"baseline": 0, "trace": 1, "skill": 1})
    told = sentences(taught_of(good, None, teacher=teacher, trace_tokens=14_200))
    assert (
        "With haiku the skill is as good as the trace: 100% with the skill (500"
        " tokens), 100% with the trace (14,200 tokens)." in told
    )
    teacher = run_with_rates({"baseline": 0, "trace": 1, "skill": 0.5})
    told = sentences(taught_of(good, None, teacher=teacher, trace_tokens=14_200))
    assert told[-2].startswith(
        "With haiku the skill is not as good as the trace: 50% with the s"
    )
    assert told[-1] == "The skill does not cover the whole task yet."
    teacher = run_with_rates({"baseline": 0, "trace": 0.5, "skill": 1})
    told = sentences(taught_of(good, None, teacher=teacher, trace_tokens=14_200))
    assert told[-1].startswith(
        "With haiku the skill is better than the trace: 100% with the ski"
    )
    teacher = run_with_rates({"baseline": 1, "trace": 1, "skill": 1})
    told = sentences(taught_of(good, None, teacher=teacher, trace_tokens=14_200))
    assert (
        told[-1]
        == "Do not use it with haiku: 100% with the skill, 100% without, for 200% more"
        " tokens."
    )


def test_the_table_of_lifts_fits_the_width() -> None:
    good = run_with_rates({"baseline": 0, "skill": 1})
    taught = taught_of(good, renamed(good))
    first, *lines = report_lines(
        replace(taught, changes=tuple(lifts_of(taught.best))), 80
    )
    assert first == ""
    assert lines[0].split() == [
        "learning",
        "(8",
        "cases)",
        "held",
        "out",
        "(8",
        "cases)",
    ]
    assert lines[1].count("+100 points") == 2
    assert max(map(len, lines)) <= 80


def test_the_teacher_sees_every_failed_case_once_before_any_twice() -> None:
    results = made_run(cases=12, models=("a", "b"), passes=lambda *_: False)
    told = report_for_teacher(results)
    assert "24 answers fail" in told
    assert told.count("What is wrong:") == 10
    assert all(f"open case-{number}?" in told for number in range(10))


def test_cases_of_evals_json_are_taught_by_their_checks() -> None:
    """A version that passes more checks is better, even if no case passes yet."""
    some, more = checked_run([(0, 2)] * 6), checked_run([(0, 6)] * 6)
    drafts = [Draft("gate", "d", "short"), Draft("gate", "d", "longer than that")]
    versions = [Attempt(1, drafts[0], some), Attempt(2, drafts[1], more)]
    assert mean_lift(versions[0]) < mean_lift(versions[1]) == 6 / 7
    assert why_good_enough(versions[1], 0.8) == "every student reached 80% of checks"
    assert cells_of(more)[0][1].split() == ["0%", "→", "86%", "of", "checks", "(+86)"]
    told = report_for_teacher(more)
    assert "The share of checks: haiku 0% without the skill, 86% with it." in told
    told = " ".join(sentences(taught_of(more, None)))
    assert "haiku on all cases: helps, +86 points of checks (+46 to" in told
    known = checked_run([(7, 7)] * 40)
    told = " ".join(sentences(taught_of(known, None)))
    assert "it passes 100% of checks without it" in told
