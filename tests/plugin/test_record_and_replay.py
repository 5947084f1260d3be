"""--skill-record and --skill-replay."""

import json
import shutil
from pathlib import Path

import pytest

from pytest_upskill.errors import SettingsError
from pytest_upskill.reports.writers import require_apart
from support.kit import case, write_script, write_skill
from support.loopback import Asked, Fault, LoopbackServer, Reply
from support.runs import SkillRun, run_skills

SECRET = "sk-not-to-be-seen"
CASES = [case(f"question {n}", "gate up", id=f"c{n}") for n in (2, 1)]


@pytest.fixture
def recorded(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A skill, a recording of it, and neither key nor server
    nor stored answers any more.
    """
    write_skill(pytester.path / "skills/gate", CASES)
    with LoopbackServer(lambda _: Reply("gate up", stop="length")) as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        run = run_skills(pytester, "haiku", "--skill-record", "a.jsonl")
    assert run.outcomes == {"passed": 2}
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.delenv("ANTHROPIC_BASE_URL")
    shutil.rmtree(pytester.path / ".upskill")
    return pytester.path / "a.jsonl"


def replay(pytester: pytest.Pytester, *args: str, subprocess: bool = False) -> SkillRun:
    return run_skills(
        pytester, "haiku", "--skill-replay", "a.jsonl", *args, subprocess=subprocess
    )


def test_a_replay_needs_no_key_no_server_and_no_sdk(
    pytester: pytest.Pytester, recorded: Path
) -> None:
    lines = [json.loads(line) for line in recorded.read_text().splitlines()]
    assert {(line["case"], line["arm"], line["text"]) for line in lines} == {
        (name, arm, "gate up") for name in ("c1", "c2") for arm in ("baseline", "skill")
    }
    assert SECRET not in recorded.read_text()
    pytester.makeconftest("""
        import sys
        from pathlib import Path

        def pytest_unconfigure(config):
            loaded = {"anthropic", "openai"} & set(sys.modules)
            Path("loaded.txt").write_text(" ".join(loaded) or "none")
        """)
    run = replay(pytester, subprocess=True)
    assert run.outcomes == {"passed": 2}
    assert (run.summary["lift"], run.summary["skill_tokens"]) == (0, 15)
    assert [record["stored"] for record in run.records] == [True] * 4
    assert (pytester.path / "loaded.txt").read_text() == "none"
    assert not (pytester.path / ".upskill/answers.sqlite").exists()


def test_an_unrecorded_question_shows_how_to_record_it(
    pytester: pytest.Pytester, recorded: Path
) -> None:
    write_skill(pytester.path / "skills/gate", [*CASES, case("new?", "x", id="new")])
    run = replay(pytester)
    assert run.outcomes == {"passed": 2, "errors": 1}
    error = run.record(case="new", arm="skill")["error"]
    assert (
        f"not in {recorded.name}. Record it: pytest --skill skills --model haiku"
        in error
    )
    assert error.endswith(f"--skill-record {recorded.name}")


def test_a_partial_run_keeps_what_was_recorded(
    pytester: pytest.Pytester, workers: str
) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    broken: list[bool] = []

    def script(_: Asked) -> Reply | Fault:
        return Fault("status", 400) if broken else Reply("gate up")

    def record(*args: str) -> list[str]:
        """The cases whose answers are in the file after another run."""
        run_skills(
            pytester,
            server,
            "--skill-record",
            "b.jsonl",
            "--skill-fresh",
            "-n",
            workers,
            *args,
        )
        lines = (pytester.path / "b.jsonl").read_text().splitlines()
        return [json.loads(line)["case"] for line in lines]

    with LoopbackServer(script) as server:
        both = ["c1", "c1", "c2", "c2"]
        assert record() == both
        assert record("-k", "c1") == both
        broken.append(True)
        assert record() == both


@pytest.mark.parametrize("name", ["b.jsonl", "soft", "hard", "b.jsonl/x"])
def test_every_file_has_a_path_of_its_own(tmp_path: Path, name: str) -> None:
    file = tmp_path / "b.jsonl"
    file.write_text("")
    (tmp_path / "soft").symlink_to(file)
    (tmp_path / "hard").hardlink_to(file)
    if "/" in name:
        file.unlink()  # a new file can't be a folder, too
    with pytest.raises(SettingsError) as caught:
        require_apart({"html_file": tmp_path / name}, [("the other", file)])
    assert caught.value.setting == "html_file"


@pytest.mark.parametrize(
    ("args", "owner"),
    [
        (["--junitxml", "./b.jsonl"], "--junitxml"),
        (["--skill-markdown", "skills/gate/SKILL.md"], "the skill gate"),
        (["--skill-markdown", "skills/gate/skill_results.json"], "the skill gate"),
    ],
)
def test_no_file_of_the_run_is_overwritten(
    pytester: pytest.Pytester, args: list[str], owner: str
) -> None:
    write_skill(pytester.path / "skills/gate")
    model = write_script(pytester.path / "a.json")
    run = run_skills(pytester, model, "--skill-record", "b.jsonl", *args)
    assert run.status == pytest.ExitCode.USAGE_ERROR
    assert f"{owner} uses the same file" in run.screen


def test_another_file_is_not_overwritten_by_a_recording(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate")
    file = pytester.path / "a.jsonl"
    file.write_text("my notes")
    run = run_skills(pytester, "haiku", "--skill-record", "a.jsonl")
    assert run.status == pytest.ExitCode.USAGE_ERROR
    assert "--skill-record a.jsonl:1: not a recorded" in run.screen
    assert file.read_text() == "my notes"


@pytest.mark.parametrize(
    ("text", "args", "message"),
    [
        ('\n{"key": "k"}\n', [], "--skill-replay a.jsonl:2: not a recorded answer"),
        ("", ["--skill-json", "a.jsonl"], "--skill-replay uses the same file"),
        ("", ["--skill-record", "b.jsonl"], "can't be combined with --skill-replay"),
        (None, [], "--skill-replay a.jsonl: no such file or folder"),
    ],
)
def test_what_can_not_be_replayed_is_a_usage_error(
    pytester: pytest.Pytester, text: str | None, args: list[str], message: str
) -> None:
    write_skill(pytester.path / "skills/gate")
    if text is not None:
        (pytester.path / "a.jsonl").write_text(text)
    words = [
        "--skill",
        "skills",
        "--model",
        "haiku",
        "--skill-replay",
        "a.jsonl",
        *args,
    ]
    result = pytester.runpytest_inprocess(*words)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in result.stderr.str()
    assert text is None or (pytester.path / "a.jsonl").read_text() == text
