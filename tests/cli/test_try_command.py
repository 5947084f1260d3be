"""pytest-upskill try: what it picks, what it says, and that it writes nothing."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cli import first_model as first
from pytest_upskill.cli.commands import try_out
from pytest_upskill.cli.commands.try_out import ShownCase, cases_in_time, shown_lines
from pytest_upskill.cli.first_model import first_model
from pytest_upskill.cli.shared_steps import Consent
from pytest_upskill.trials.records import Record
from support.fake_cli import fake_cli
from support.kit import BODY, write_script, write_skill
from support.logins import SETUP_TOKEN
from support.loopback import LoopbackServer, Reply
from support.sandboxes import needs_bwrap
from support.shell import Shell
from support.wick_models import answer as wick_answer

LOGGED_IN = first.logged_in


@pytest.fixture(autouse=True)
def _alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No server, and nothing in the user's cache."""
    monkeypatch.setattr(first, "SERVERS", {})
    monkeypatch.setattr(first, "logged_in", lambda _env: {})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def listen(monkeypatch: pytest.MonkeyPatch, server: LoopbackServer) -> None:
    monkeypatch.setattr(
        first, "SERVERS", {"LM Studio": int(server.url.rpartition(":")[2])}
    )


@pytest.fixture
def gate_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    def reply(asked: Any) -> Reply:
        return Reply("Type gate up." if BODY in asked.system else "No \x1b[31midea.")

    with LoopbackServer(reply) as server:
        listen(monkeypatch, server)
        yield server


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()
    }


def test_a_key_comes_before_a_server_and_that_before_the_embedded_model(
    gate_server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed = first_model({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": " "})
    assert (keyed.name.partition(":")[0], keyed.reason) == (
        "openai",
        "since OPENAI_API_KEY is set",
    )
    served = first_model({})
    assert (served.name, served.base_url) == ("loopback", f"{gate_server.url}/v1")
    monkeypatch.setattr(first, "SERVERS", {})
    embedded = first_model({})
    assert (embedded.name, embedded.is_embedded) == ("local", True)
    assert [model.free for model in (keyed, served, embedded)] == [False, True, True]


@needs_bwrap
def test_a_cli_that_is_logged_in_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first, "logged_in", LOGGED_IN)
    monkeypatch.setenv("PATH", f"{fake_cli(tmp_path)}:/usr/bin:/bin")
    env = {
        "CLAUDE_CODE_OAUTH_TOKEN": SETUP_TOKEN,
        "ANTHROPIC_API_KEY": "sk-key-made-up-1",
    }
    model = first_model(env)
    assert (model.name, model.agent, model.free) == ("haiku", "claude", False)
    assert model.reason == "by claude, on your login (CLAUDE_CODE_OAUTH_TOKEN)"
    assert first_model(env, writes_cases=True).agent == ""
    assert first_model({**env, "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}).agent == ""


def test_a_file_of_a_model_is_found_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.gguf").touch()
    (tmp_path / "a.py").touch()
    monkeypatch.chdir(tmp_path)
    names = ["local:x.gguf?threads=2", "scripted:a.py:answer", "local:y.gguf", "haiku"]
    found = [f"local:{tmp_path}/x.gguf?threads=2", f"scripted:{tmp_path}/a.py:answer"]
    assert [first.named_model(name).name for name in names] == [*found, *names[2:]]


@pytest.mark.parametrize(
    ("listing", "names"),
    [
        ({"data": [{"id": "nomic-embed"}, {"id": "qwen3:8b"}]}, ["qwen3:8b"]),
        ({"data": [{"id": "--skill-allow code"}, {"id": "a\x1b[2J"}, {}, 7]}, []),
        ({"data": None}, []),
        ([1], []),
    ],
)
def test_a_server_may_list_anything(listing: Any, names: list[str]) -> None:
    assert first._names_in(listing) == names


def test_what_was_not_tested_is_nothing_to_keep(
    shell: Shell, tmp_path: Path, gate_server: LoopbackServer
) -> None:
    write_skill(
        tmp_path / "gate",
        [{"input": "?", "expected": {"contains": "a"}, "skip": "later"}],
    )
    done = shell.run(["pytest-upskill", "try", "gate"], tmp_path)
    assert (done.status, gate_server.asked) == (0, []), done
    assert "1 skipped" in done.out
    assert "pytest-upskill init" not in done.out


def test_both_arms_are_shown_then_the_verdict_and_nothing_is_written(
    shell: Shell, tmp_path: Path, gate_server: LoopbackServer
) -> None:
    write_skill(tmp_path / "skills/gate")
    (tmp_path / "conftest.py").write_text("raise RuntimeError")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --nothing\n")
    before = files_below(tmp_path)
    done = shell.run(["pytest-upskill", "try", "skills/gate"], tmp_path)
    assert (done.status, len(gate_server.asked)) == (0, 2), done
    lines = [line.strip() for line in done.out.splitlines()]
    assert lines[0].startswith("Model: loopback (free), of LM Studio on port ")
    start = lines.index("question:")
    assert lines[start : start + 6] == [
        "question:",
        "How do I open the gate?",
        "without the skill, wrong:",
        "No \\x1b[31midea.",
        "with the skill, right:",
        "Type gate up.",
    ]
    assert "next:" not in done.out
    assert lines[-2:] == ["pytest-upskill init skills/gate", "pytest"]
    assert files_below(tmp_path) == before


@pytest.mark.parametrize("here", [".", "skills", "skills/gate"])
def test_paths_are_those_of_the_project(
    here: str, shell: Shell, tmp_path: Path, gate_server: LoopbackServer
) -> None:
    del gate_server  # it answers
    skill = write_skill(tmp_path / "skills/gate")
    done = shell.run(["pytest-upskill", "try", str(skill)], tmp_path / here)
    file = {".": "skills/gate/", "skills": "gate/", "skills/gate": "gate/"}[here]
    assert f"\n{file}skill_meta.json ." in done.out, done


def test_a_second_time_only_what_changed_is_asked(
    shell: Shell, tmp_path: Path, gate_server: LoopbackServer
) -> None:
    for expected, body in ((2, BODY), (2, BODY), (3, f"{BODY} At once.")):
        write_skill(tmp_path / "gate", body=body)
        done = shell.run(["pytest-upskill", "try", "gate"], tmp_path)
        assert (done.status, len(gate_server.asked)) == (0, expected), done


def test_without_cases_a_model_writes_three_beside_the_project(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wick = Path(__file__).parents[2] / "skills/wick/SKILL.md"
    (tmp_path / "wick").mkdir()
    (tmp_path / "wick/SKILL.md").write_bytes(wick.read_bytes())
    before = files_below(tmp_path)
    with LoopbackServer(wick_answer) as server:
        listen(monkeypatch, server)
        done = shell.run(["pytest-upskill", "try", "wick"], tmp_path)
    assert done.status == 0, done
    assert "No cases yet: loopback writes 3 for this run." in done.out
    assert "3 tests × 1 run, with and without the skill" in done.out
    assert (
        f"\n  pytest-upskill cases wick --model loopback --base-url {server.url}/v1\n"
        in done.out
    )
    assert files_below(tmp_path) == before


@pytest.mark.parametrize("agrees", [True, False])
def test_cases_and_their_run_are_one_question(
    agrees: bool, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wick = Path(__file__).parents[2] / "skills/wick/SKILL.md"
    (tmp_path / "wick").mkdir()
    (tmp_path / "wick/SKILL.md").write_bytes(wick.read_bytes())
    asked = list[str]()

    def answer(_: object, question: str) -> bool:
        asked.append(question)
        return agrees

    monkeypatch.setattr(try_out, "_on_terminal", lambda: True)
    monkeypatch.setattr(try_out, "ask", answer)
    monkeypatch.setattr(Consent, "_ask", lambda self, _: answer(self, "Continue?"))
    with LoopbackServer(wick_answer) as server:
        key = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": server.url}
        done = shell.run(["pytest-upskill", "try", "wick"], tmp_path, key)
        assert (len(asked), bool(server.asked)) == (1, agrees), done
    calls = re.search(r"This takes up to about (\d+) calls", done.out)
    assert calls
    assert int(calls[1]) >= 1 + 2 * 3


def test_without_cases_and_key_the_skills_own_sentences_are_asked_for(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(tmp_path / "gate", [])
    (tmp_path / "gate/skill_meta.json").unlink()
    write_script(tmp_path / "a.json")
    embedded = first.FirstModel(f"scripted:{tmp_path}/a.json", "here", is_embedded=True)
    monkeypatch.setattr(first, "embedded_model", lambda: embedded)
    before = files_below(tmp_path)
    done = shell.run(["pytest-upskill", "try", "gate"], tmp_path)
    assert done.status == 0, done
    assert (
        "Complete this sentence about gate: The command to open the gate is ____."
        in done.out
    )
    assert "with the skill, right:" in done.out
    assert done.out.endswith("\n  pytest-upskill init gate\n  pytest\n")
    assert files_below(tmp_path) == before


def test_without_cases_key_and_sentences_it_says_what_to_do(
    shell: Shell, tmp_path: Path
) -> None:
    write_skill(tmp_path / "gate", [], body="Open the gate with care.")
    (tmp_path / "gate/skill_meta.json").unlink()
    done = shell.run(["pytest-upskill", "try", "gate"], tmp_path)
    assert done.status == 2
    assert len(done.err.splitlines()) == 3
    assert "no API key" in done.err
    assert "pytest-upskill init gate" in done.err


def test_the_embedded_model_is_no_judge(shell: Shell, tmp_path: Path) -> None:
    write_skill(
        tmp_path / "gate", [{"input": "Open it.", "expected": {"judge": "It is open."}}]
    )
    done = shell.run(["pytest-upskill", "try", "gate"], tmp_path)
    assert done.status == 2
    assert "its cases need a judge" in done.err


@pytest.mark.parametrize("agrees", [True, False])
def test_it_asks_on_a_terminal_before_it_spends(
    agrees: bool,
    shell: Shell,
    tmp_path: Path,
    gate_server: LoopbackServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_skill(tmp_path / "gate")
    asked = list[int]()

    def answer(*_: object) -> bool:
        asked.append(len(gate_server.asked))
        return agrees

    monkeypatch.setattr(try_out, "_on_terminal", lambda: True)
    monkeypatch.setattr(try_out, "ask", answer)
    key = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": gate_server.url}
    done = shell.run(["pytest-upskill", "try", "gate"], tmp_path, key)
    assert (asked, len(gate_server.asked)) == ([0], 2 if agrees else 0)
    assert done.status == (0 if agrees else 1)
    assert ("pytest-upskill init" in done.out) == agrees
    assert "at most $" in done.out
    shell.run(["pytest-upskill", "try", "gate", "--yes"], tmp_path, key)
    assert len(asked) == 1


def test_of_several_skills_one_must_be_named(shell: Shell, tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_skill(tmp_path / "skills" / name)
    done = shell.run(["pytest-upskill", "try"], tmp_path)
    assert done.status == 2
    assert "Name one: pytest-upskill try skills/a" in done.err


def test_an_arm_without_an_answer_shows_nothing() -> None:
    skill = Record("gate", "open", "m", "skill", 1, "passed", "Type gate up.")
    assert shown_lines("How?", [skill]) == []
    assert ShownCase(asks=True).__name__ == "upskill-try"


def test_the_embedded_model_gets_what_it_can_answer_in_two_minutes() -> None:
    assert [cases_in_time(tokens)[0] for tokens in (100, 600, 8000)] == [10, 4, 1]
    assert all(
        number * each < 120 for number, each in map(cases_in_time, range(0, 3000, 100))
    )
