"""--skill-record and --skill-replay."""

import json
import shutil
from pathlib import Path

import pytest

from support.kit import case, write_skill
from support.loopback import Asked, Fault, LoopbackServer, Reply

SECRET = "sk-not-to-be-seen"
CASES = [case(f"question {n}", "gate up", id=f"c{n}") for n in (2, 1)]


@pytest.fixture
def recorded(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A skill, a recording of it, and neither key nor server nor stored answers any more."""
    write_skill(pytester.path / "skills/gate", CASES)
    with LoopbackServer(lambda _: Reply("gate up", stop="length")) as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        args = ["--skill", "skills", "--model", "haiku", "--skill-record", "a.jsonl"]
        pytester.runpytest_inprocess(*args).assert_outcomes(passed=2)
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.delenv("ANTHROPIC_BASE_URL")
    shutil.rmtree(pytester.path / ".upskill")
    return pytester.path / "a.jsonl"


def replay(pytester: pytest.Pytester, *more: str) -> pytest.RunResult:
    args = ["--skill", "skills", "--model", "haiku", "--skill-replay", "a.jsonl"]
    return pytester.runpytest_inprocess(*args, *more)


def test_a_recording_is_sorted_readable_and_holds_no_key(recorded: Path) -> None:
    lines = [json.loads(line) for line in recorded.read_text().splitlines()]
    places = [(line["case"], line["arm"]) for line in lines]
    assert places == [(c, arm) for c in ("c1", "c2") for arm in ("baseline", "skill")]
    assert {line["text"] for line in lines} == {"gate up"}
    assert SECRET not in recorded.read_text()


def test_a_replay_needs_no_key_and_no_server(
    pytester: pytest.Pytester, recorded: Path, workers: str
) -> None:
    result = replay(pytester, "-n", workers)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["haiku * 0 *15→15*"])
    result.stdout.no_fnmatch_line("*from cache*")
    assert recorded.is_file()
    assert not (pytester.path / ".upskill/answers.sqlite").exists()


def test_a_replay_loads_no_sdk(pytester: pytest.Pytester, recorded: Path) -> None:
    assert recorded.is_file()
    pytester.makeconftest(
        """
        import sys

        def pytest_unconfigure(config):
            assert not {"anthropic", "openai"} & set(sys.modules)
        """
    )
    args = ["--skill", "skills", "--model", "haiku", "--skill-replay", "a.jsonl"]
    result = pytester.runpytest_subprocess(*args)
    assert result.ret == 0
    assert "AssertionError" not in result.stderr.str()


def test_an_unrecorded_question_shows_how_to_record_it(
    pytester: pytest.Pytester, recorded: Path
) -> None:
    assert recorded.is_file()
    write_skill(pytester.path / "skills/gate", [*CASES, case("new?", "x", id="new")])
    result = replay(pytester)
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at setup of new[[]haiku]*",
            "new[[]haiku]: this question is not in a.jsonl. Record it: "
            "pytest --skill skills --model haiku --skill-record a.jsonl",
        ]
    )


def record(pytester: pytest.Pytester, server: LoopbackServer, *more: str) -> list[str]:
    """Record with the model of a server; the cases whose answers are then in the file."""
    args = ["--skill", "skills", "--model", "m", "--skill-base-url", f"{server.url}/v1"]
    pytester.runpytest_inprocess(*args, "--skill-record", "b.jsonl", "--skill-fresh", *more)
    lines = (pytester.path / "b.jsonl").read_text().splitlines()
    return [json.loads(line)["case"] for line in lines]


def test_a_partial_run_keeps_what_was_recorded(pytester: pytest.Pytester, workers: str) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    broken: list[bool] = []

    def script(_: Asked) -> Reply | Fault:
        return Fault("status", 400) if broken else Reply("gate up")

    with LoopbackServer(script) as server:
        both = ["c1", "c1", "c2", "c2"]
        assert record(pytester, server, "-n", workers) == both
        assert record(pytester, server, "-n", workers, "-k", "c1") == both
        broken.append(True)
        assert record(pytester, server, "-n", workers) == both


def test_a_recording_never_loses_what_this_run_did_not_ask(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate", CASES[:1])
    with LoopbackServer(lambda _: Reply("gate up")) as server:
        first = record(pytester, server)
        assert first == ["c2", "c2"]
        # Another model, more runs, no baseline, another case, another skill of the same name.
        assert record(pytester, server, "--model", "n") == first * 2
        assert record(pytester, server, "--skill-no-baseline", "--skill-runs", "2") == ["c2"] * 5
        write_skill(pytester.path / "skills/gate", CASES[1:])
        assert record(pytester, server) == ["c1"] * 2 + ["c2"] * 5
        shutil.rmtree(pytester.path / "skills")
        write_skill(pytester.path / "skills/other/gate", CASES[1:], body="The gate opens by hand.")
        assert record(pytester, server) == ["c1"] * 4 + ["c2"] * 5
        # But an edited skill replaces its own answers.
        write_skill(pytester.path / "skills/other/gate", CASES[1:], body="Ask the guard.")
        assert record(pytester, server) == ["c1"] * 4 + ["c2"] * 5


@pytest.mark.parametrize(
    ("others", "told"),
    [
        (["--skill-json", "b.jsonl"], "--skill-record b.jsonl: --skill-json uses the same file"),
        (["--skill-html", "soft"], "--skill-record b.jsonl: --skill-html uses the same file"),
        (["--junitxml", "./b.jsonl"], "--skill-record b.jsonl: --junitxml uses the same file"),
        (["--log-file", "hard"], "--skill-record b.jsonl: --log-file uses the same file"),
        (["--skill-csv", "skills/gate/SKILL.md"], "the skill gate uses the same file"),
        (["--skill-csv", "skills/gate/skill_results.json"], "the skill gate uses the same file"),
        (["--skill-csv", ".upskill/answers.sqlite"], "the store of answers uses the same file"),
        (["--skill-csv", "new", "--skill-json", "new/x"], "--skill-json is below it: new/x"),
        (["--skill-benchmark", "b.jsonl"], "--skill-benchmark uses the same file"),
    ],
)
def test_every_file_of_a_run_has_a_path_of_its_own(
    pytester: pytest.Pytester, others: list[str], told: str
) -> None:
    write_skill(pytester.path / "skills/gate")
    file = pytester.path / "b.jsonl"
    file.write_text("")
    (pytester.path / "soft").symlink_to(file)
    (pytester.path / "hard").hardlink_to(file)
    args = ["--skill", "skills", "--model", "m", "--skill-base-url", "http://127.0.0.1:1"]
    result = pytester.runpytest_inprocess(*args, "--skill-record", "b.jsonl", *others)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert told in result.stderr.str()
    assert file.read_text() == ""


def test_a_replayed_file_is_not_written(pytester: pytest.Pytester, recorded: Path) -> None:
    before = recorded.read_text()
    result = replay(pytester, "--skill-json", "a.jsonl")
    assert "--skill-json a.jsonl: --skill-replay uses the same file" in result.stderr.str()
    assert recorded.read_text() == before


def test_another_file_is_not_overwritten_by_a_recording(
    pytester: pytest.Pytester, recorded: Path
) -> None:
    recorded.write_text("my notes")
    args = ["--skill", "skills", "--model", "haiku", "--skill-record", "a.jsonl"]
    result = pytester.runpytest_inprocess(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --skill-record a.jsonl:1: not a recorded*"])
    assert recorded.read_text() == "my notes"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no json\n", "a.jsonl:1: not a recorded answer"),
        ('\n{"key": "k"}\n', "a.jsonl:2: not a recorded answer"),
        (
            '{"key":"k","text":"","usage":{"x":1},"stop":"","seconds":1}',
            "a.jsonl:1: not a recorded",
        ),
    ],
)
def test_a_broken_recording_is_a_usage_error(
    pytester: pytest.Pytester, text: str, message: str
) -> None:
    write_skill(pytester.path / "skills/gate")
    (pytester.path / "a.jsonl").write_text(text)
    result = replay(pytester)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in result.stderr.str()


def test_a_missing_recording_is_a_usage_error(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    assert (
        "--skill-replay a.jsonl: no such file or folder\n  Check the path."
        in replay(pytester).stderr.str()
    )


def test_record_and_replay_exclude_each_other(pytester: pytest.Pytester, recorded: Path) -> None:
    assert recorded.is_file()
    result = replay(pytester, "--skill-record", "b.jsonl")
    assert "--skill-record: can't be combined with --skill-replay" in result.stderr.str()
