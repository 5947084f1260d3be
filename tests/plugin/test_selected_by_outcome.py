"""Cases that are selected because they failed, which make any skill look harmful."""

import pytest

from support.known_model import KnownModel
from support.words import TOO_FEW

GATES = ("--skill-min-lift", "-0.3", "--skill-min-pass-rate", "0.1")


@pytest.mark.parametrize("workers", ["0", pytest.param("1", marks=pytest.mark.nightly)])
def test_failures_of_a_useless_skill_are_not_judged_again(
    pytester: pytest.Pytester, workers: str
) -> None:
    with KnownModel(pytester, 12, baseline=0.5, skill=0.5, seed=1) as known:
        first = known.run(*GATES, "-n", workers)
        again = known.run(*GATES, "-n", workers, "--lf")
        chosen = known.run(
            *GATES, "-k", " or ".join(f"c{n}" for n in range(6)), "-n", workers
        )
    failed = first.outcomes["failed"]
    assert 0 < failed == again.outcomes["failed"] < 12
    assert first.summary["verdict"] == TOO_FEW
    row = again.summary
    assert (row["verdict"], row["lift"], row["cases"]) == ("incomplete", None, failed)
    assert again.gate["passed"] is None
    assert ["No gate is decided" in run.screen for run in (first, again, chosen)] == [
        0,
        1,
        0,
    ]
    assert first.gate["passed"] is True
    assert chosen.summary["lift"] is not None  # -k is a choice that knows no outcome
    kept = list((pytester.path / ".upskill/runs").glob("*.gz"))
    assert len(kept) == 2  # not that of --lf


def test_cases_that_failed_are_not_accepted_when_they_pass(
    pytester: pytest.Pytester,
) -> None:
    chances = [1.0, 0.0, 0.0]
    with KnownModel(pytester, 3, baseline=0.0, skill=chances, better=1.0) as known:
        assert known.run().outcomes["failed"] == 2
        known.write("better")
        run = known.run("--lf", "--skill-accept")
        assert run.outcomes["passed"] == 2
        assert run.status != 0
        assert not (known.folder / "skill_results.json").exists()
        assert known.run("--skill-accept").status == 0


def test_all_cases_are_judged_if_all_of_them_failed(pytester: pytest.Pytester) -> None:
    with KnownModel(pytester, 8, baseline=1.0, skill=0.0) as known:
        known.run()
        assert known.run("--lf").summary["verdict"] == "hurts"


def test_stepwise_leaves_out_what_passed(pytester: pytest.Pytester) -> None:
    chances = [1.0, 1.0, 0.0, 1.0]
    with KnownModel(pytester, 4, baseline=0.0, skill=chances, better=1.0) as known:
        known.run("--sw")
        known.write("better")
        run = known.run("--sw")
    assert run.outcomes["passed"] == 2
    assert (run.summary["verdict"], run.summary["lift"]) == ("incomplete", None)
