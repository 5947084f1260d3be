"""pytest-upskill judge: how far a judge agrees with people."""

import json
from collections.abc import Iterator
from dataclasses import replace
from operator import eq
from pathlib import Path

import pytest

from pytest_upskill.cli import main
from pytest_upskill.features.judge.agreement import load_labels
from pytest_upskill.results.run_file import results_text
from pytest_upskill.stats import kappa_of
from pytest_upskill.trials.records import Grade, Record
from support.full_disk import fill_disk
from support.judges import judge_says
from support.loopback import Asked, LoopbackServer, Reply
from support.made import made_run

EXAMPLES = Path(__file__).parents[3] / "examples/judge-labels.jsonl"


def rule(asked: Asked) -> Reply:
    """A judge that passes whatever has the word "good", and is not sure about
    "maybe".
    """
    answer = asked.question.split("<answer ")[1].split("</answer ")[0]
    criteria = asked.question.split("The criteria:\n")[1].split("\n\n")[0].split("\n")
    verdict = "unsure" if "maybe" in answer else "pass" if "good" in answer else "fail"
    verdicts = [
        {"criterion": number, "quote": "", "reason": "so I think", "verdict": verdict}
        for number, _ in enumerate(criteria, start=1)
    ]
    return Reply(judge_says(asked.question, verdicts))


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    monkeypatch.chdir(tmp_path)
    with LoopbackServer(rule) as server:
        yield server


def labelled(file: Path, *examples: tuple[str, bool]) -> Path:
    lines = [
        json.dumps(
            {
                "question": "q",
                "answer": answer,
                "judge": "It is good.",
                "passed": passed,
            }
        )
        for answer, passed in examples
    ]
    file.write_text("\n".join(lines))
    return file


def test_agreement_is_measured_and_every_difference_shown(
    server: LoopbackServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labelled(
        tmp_path / "l.jsonl",
        *[
            ("good", True),
            ("good one", True),
            ("bad", False),
            ("good?", False),
            ("fine", True),
        ],
        ("maybe", True),
    )
    assert (
        main(["judge", "l.jsonl", "--model", "m", "--base-url", f"{server.url}/v1"])
        == 0
    )
    assert capsys.readouterr().out.splitlines() == [
        "judge m",
        "-" * 40,
        "labels         5",
        "agreement      60% (23% to 88%)",
        "Cohen's kappa  0.17 (-0.60 to 0.75)",
        "false passes   1 of 2 that people failed",
        "false fails    1 of 3 that people passed",
        "no ruling      1",
        "l.jsonl:4: false pass: 'It is good.': so I think",
        "l.jsonl:5: false fail: 'It is good.': so I think",
        (
            "l.jsonl:6: the judge m is unsure about 'It is good.': so I think. "
            "Reword it, or set judge_votes to 3"
        ),
    ]


def test_rulings_that_can_not_be_kept_are_no_success(
    server: LoopbackServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fill_disk(monkeypatch, pages=4)
    labelled(tmp_path / "l.jsonl", *[("good " * n, True) for n in range(1, 20)])
    command = ["judge", "l.jsonl", "--model", "m", "--base-url", f"{server.url}/v1"]
    assert main(command) == 1
    assert "could not be stored: .upskill/answers.sqlite: " in capsys.readouterr().out


def test_agreement_as_json(
    server: LoopbackServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [
        "judge",
        "l.jsonl",
        "--model",
        "m",
        "--base-url",
        f"{server.url}/v1",
        "--json",
    ]
    labelled(tmp_path / "l.jsonl", ("good", True), ("good?", False), ("maybe", True))
    assert main(command) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["model"], data["labels"], data["agreement"]) == ("m", 2, 0.5)
    assert (data["false_passes"], data["failed_by_people"], data["false_fails"]) == (
        1,
        1,
        0,
    )
    assert (len(data["differ"]), len(data["no_ruling"])) == (1, 1)
    labelled(tmp_path / "l.jsonl", ("maybe", True))
    assert main(command) == 1
    data = json.loads(capsys.readouterr().out)
    assert (data["labels"], data["agreement"], data["kappa"]) == (0, None, None)


def test_votes_that_differ_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def sometimes(asked: Asked) -> Reply:
        """One of three votes on answers that are odd goes the other way."""
        verdict = "fail" if "odd" in asked.question and asked.attempt == 1 else "pass"
        verdicts = [{"criterion": 1, "quote": "", "reason": "so", "verdict": verdict}]
        return Reply(judge_says(asked.question, verdicts))

    labelled(
        tmp_path / "l.jsonl", *[(f"{n} {'odd' * (n == 3)}", True) for n in range(4)]
    )
    with LoopbackServer(sometimes) as server:
        command = ["judge", "l.jsonl", "--model", "m", "--base-url", f"{server.url}/v1"]
        assert main([*command, "--votes", "3"]) == 0
        assert "votes all agree  75% (30% to 95%)" in capsys.readouterr().out
        assert main([*command, "--votes", "3", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["agreement"], data["votes_agree"]) == (1, 0.75)


def test_the_example_file_can_be_judged_and_is_stored(
    server: LoopbackServer, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["judge", str(EXAMPLES), "--model", "m", "--base-url", f"{server.url}/v1"]
    assert main([*command, "--votes", "3"]) == 0
    assert "labels           21" in capsys.readouterr().out
    asked = len(server.asked)
    assert asked == 13 * 3
    assert main([*command, "--votes", "3"]) == 0
    assert len(server.asked) == asked


def test_the_example_file_has_both_labels_and_orders_to_the_judge() -> None:
    examples = load_labels(EXAMPLES)
    assert {label for example in examples for label in example.passed} == {True, False}
    assert any("grader" in example.answer for example in examples)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "l.jsonl: no examples"),
        ("{}\n", "l.jsonl:1: question: missing"),
        ("\nnope\n", "l.jsonl:2: invalid JSON"),
        (
            '{"question": "q", "answer": "a", "judge": ["x", "y"], "passed": true}',
            "l.jsonl:1: 2 texts and 1 label",
        ),
    ],
)
def test_a_broken_file_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    problem: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "l.jsonl").write_text(text)
    assert (
        main(
            ["judge", "l.jsonl", "--model", "m", "--base-url", "http://127.0.0.1:9/v1"]
        )
        == 2
    )
    assert capsys.readouterr().err.startswith(f"pytest-upskill: {problem}")


def test_there_must_be_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", "nowhere.jsonl", "--model", "haiku"]) == 2
    assert "nowhere.jsonl: no such file or folder" in capsys.readouterr().err


def test_at_least_one_vote(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["judge", str(EXAMPLES), "--model", "haiku", "--votes", "0"])
    assert "'0' is not a whole number of 1 or more" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ours", "theirs", "kappa"),
    [
        ([True, False], [True, False], 1.0),
        ([True, False], [False, True], -1.0),
        ([True, True, False, False], [True, False, True, False], 0.0),
        ([True, True], [True, True], None),
    ],
)
def test_kappa(ours: list[bool], theirs: list[bool], kappa: float | None) -> None:
    agreed = sum(map(eq, ours, theirs)) / len(ours)
    assert kappa_of(agreed, ours, theirs) == kappa


def test_labels_correct_what_a_judge_of_known_errors_passed_in_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It passes 90 % of good answers and 30 % of bad ones,
    so half good looks like 60 %.
    """
    monkeypatch.chdir(tmp_path)
    answers = [(f"good {n}" if n != 0 else "bad 0", True) for n in range(10)]
    answers += [(f"good bad {n}" if n < 3 else f"bad {n}", False) for n in range(10)]
    labelled(tmp_path / "l.jsonl", *answers)

    def judged(record: Record) -> Record:
        number = int(record.case.removeprefix("case-"))
        passed = number % 10 < (6 if record.arm == "baseline" else 9)
        return replace(record, checks=(Grade("judge", passed, "so I think"),))

    run = made_run(cases=40)
    run = replace(run, records=tuple(map(judged, run.records)))
    (tmp_path / "run.json").write_text(results_text(run))
    with LoopbackServer(rule) as server:
        command = ["judge", "l.jsonl", "--model", "m", "--base-url", f"{server.url}/v1"]
        assert main([*command, "--run", "run.json", "--json"]) == 0
        baseline, skill = json.loads(capsys.readouterr().out)["run"]
        assert main([*command, "--run", "run.json"]) == 0
        assert (
            "gate on haiku  skill     40     90%           100% ("
            in capsys.readouterr().out
        )
        labelled(tmp_path / "l.jsonl", *answers[:14])  # four bad ones: too few
        assert main([*command, "--run", "run.json", "--json"]) == 0
        unknown, _ = json.loads(capsys.readouterr().out)["run"]
    assert (baseline["arm"], baseline["cases"], baseline["passed"]) == (
        "baseline",
        40,
        0.6,
    )
    assert baseline["corrected"] == pytest.approx(0.5)
    # Few labels
    assert baseline["corrected_low"] < 0.3 < 0.7 < baseline["corrected_high"]
    assert (skill["passed"], skill["corrected"]) == (0.9, pytest.approx(1.0))
    assert (unknown["passed"], unknown["corrected"], unknown["corrected_low"]) == (
        0.6,
        None,
        None,
    )
