"""Agents with all that a run of plain completions can do."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_upskill.agents.sandboxes.bwrap import Bwrap
from support.kit import case, commit_all, write_skill
from support.loopback import Asked, LoopbackServer, Reply
from support.pages import page_words
from support.runs import SkillRun, run_skills
from support.sandboxes import needs_bwrap
from support.usage import usage_error

pytestmark = needs_bwrap

LOOP = ("--skill-agent", "loop")
CASES = [
    {
        "id": "word",
        "input": "Which word?",
        "context": {"files": {"note.txt": "a note"}},
        "expected": {
            "contains": ["KETCH"],
            "files": {"out.txt": {"contains": "a note"}},
        },
    }
]


def agent(asked: Asked) -> Reply:
    """Opens the skill if there is one, runs its script, and says what that said."""
    if asked.question.startswith("Judge") or not asked.tools:
        return Reply("KETCH")
    if "skill" not in asked.tools:
        return Reply("No idea.")
    if not asked.results:
        return Reply(calls=(("skill", {"name": "gate"}),))
    if len(asked.results) == 1:
        return Reply(
            calls=(
                ("bash", {"command": "sh /skills/gate/word.sh; cp note.txt out.txt"}),
            )
        )
    return Reply(asked.results[1].partition("\n[exit status")[0].strip())


@pytest.fixture
def server(pytester: pytest.Pytester) -> Iterator[LoopbackServer]:
    folder = write_skill(pytester.path / "skills/gate", CASES)
    (folder / "word.sh").write_text("echo KETCH")
    with LoopbackServer(agent) as server:
        yield server


def run(pytester: pytest.Pytester, server: LoopbackServer, *args: str) -> SkillRun:
    return run_skills(pytester, server, *LOOP, *args)


def no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    async def open_(*_: object) -> None:
        raise AssertionError("a sandbox was opened")

    monkeypatch.setattr(Bwrap, "open", open_)


def test_a_run_of_an_agent_is_reported_recorded_kept_and_stored(
    pytester: pytest.Pytester,
    server: LoopbackServer,
    monkeypatch: pytest.MonkeyPatch,
    workers: str,
) -> None:
    files = ["--skill-html", "r.html", "--skill-markdown", "r.md"]
    files += ["--junitxml", "r.xml", "--skill-record", "r.jsonl"]
    first = run(pytester, server, *files, "--skill-runs", "2", "-n", workers)
    assert first.outcomes["passed"] == 1
    tried = [
        (
            record["agent"],
            record["model"],
            record["arm"],
            record["run"],
            record["outcome"],
        )
        for record in first.records
    ]
    arms = [("baseline", "failed"), ("skill", "passed")]
    assert tried == [
        ("loop", "m", arm, number, end) for number in (1, 2) for arm, end in arms
    ]
    summary = first.summary
    assert (summary["agent"], summary["model"], summary["lift"]) == ("loop", "m", 1.0)
    assert '"agent": "loop"' in page_words(
        (pytester.path / "r.html").read_text("utf-8")
    )
    for name in ("r.md", "r.xml"):
        assert "loop" in (pytester.path / name).read_text()
    assert len(list((pytester.path / ".upskill/runs").iterdir())) == 1
    asked = len(server.asked)
    assert asked == 8  # two of one turn without the skill, two of three with it

    no_sandbox(monkeypatch)
    again = run(pytester, server, "--skill-runs", "2", "-n", workers)
    assert again.outcomes["passed"] == 1
    assert all(record["stored"] for record in again.records)
    assert len(server.asked) == asked

    monkeypatch.setenv("PATH", "/nowhere")  # a replay needs no sandbox
    args = ("--skill-replay", "r.jsonl", "--skill-runs", "2", "-n", workers)
    assert run(pytester, server, *args).outcomes["passed"] == 1
    assert len(server.asked) == asked


def test_editing_a_file_of_the_skill_asks_the_skill_arm_again(
    pytester: pytest.Pytester, server: LoopbackServer
) -> None:
    commit_all(pytester.path)
    assert run(pytester, server).outcomes == {"passed": 1}
    server.asked.clear()
    (pytester.path / "skills/gate/word.sh").write_text("echo KETCH again")
    edited = run(pytester, server, "--skill-against", "main")
    assert edited.outcomes == {"passed": 1}
    texts = {
        record["arm"]: (record["output"], record["stored"]) for record in edited.records
    }
    assert texts == {
        "baseline": ("No idea.", True),
        "previous": ("KETCH", True),  # the whole folder as it was, so known
        "skill": ("KETCH again", False),
    }
    assert len(server.asked) == 3


def test_accepted_results_are_of_an_agent(
    pytester: pytest.Pytester, server: LoopbackServer
) -> None:
    assert run(pytester, server, "--skill-accept", "--skill-runs", "1").outcomes == {
        "passed": 1
    }
    file = pytester.path / "skills/gate/skill_results.json"
    assert list(json.loads(file.read_text())) == ["loop/m"]
    (pytester.path / "skills/gate/word.sh").write_text("echo SLOOP")
    worse = run(pytester, server)
    assert worse.outcomes == {"failed": 1}
    assert [record["run"] for record in worse.records if record["extra"]] == [
        2,
        3,
        4,
        5,
    ]
    assert worse.report["tests"][0]["expected"]["was"] == {"passes": 1, "runs": 1}


def test_a_run_without_baseline_and_with_a_judge_keeps_to_its_budget(
    pytester: pytest.Pytester, server: LoopbackServer
) -> None:
    judged = {
        "id": "judged",
        "input": "Say it.",
        "expected": {"judge": ["It says KETCH"]},
    }
    write_skill(pytester.path / "skills/gate", [*CASES, judged])
    looked = run(
        pytester, server, "--skill-no-baseline", "--skill-judge", "m", "--collect-only"
    )
    assert "up to 2 trials by loop" in looked.screen
    assert "and 1 call by the judge" in looked.screen
    poor = run(
        pytester, server, "--skill-no-baseline", "-k", "word", "--skill-max-tokens", "9"
    )
    assert poor.outcomes == {"errors": 1, "deselected": 1}
    assert "could exceed the budget (0 of 9 tokens spent)" in poor.records[0]["error"]
    assert not server.asked


def test_tests_of_agents_are_selected_as_others_are(
    pytester: pytest.Pytester, server: LoopbackServer
) -> None:
    both = ("--skill-agent", "chat")
    (pytester.path / "skills/gate/word.sh").write_text("echo SLOOP")
    write_skill(
        pytester.path / "skills/gate", [case("Which word?", "KETCH", id="word")]
    )
    assert run(pytester, server, *both).outcomes == {"passed": 1, "failed": 1}
    assert run(pytester, server, *both, "--lf").outcomes["failed"] == 1
    chosen = run(pytester, server, *both, "-k", "not loop")
    assert chosen.outcomes == {"passed": 1, "deselected": 1}


TEST = """
    import pytest

    @pytest.mark.skill("skills/gate")
    def test_word(ask):
        answer = ask({asked})
        assert "KETCH" in answer
        assert answer.files["out.txt"].text == "a note"
        assert answer.activity.activated
        calls = [turn.tool for turn in answer.transcript if turn.kind == "call"]
        assert calls == ["skill", "bash"]
"""
FILES = 'files={"note.txt": "a note", "x.bin": b"\\x00"}'


@pytest.mark.parametrize(
    ("asked", "args", "label"),
    [
        (f'"Which word?", {FILES}', LOOP, "loop/m"),
        (f'"Which word?", agent="loop", {FILES}', (), "m"),
        pytest.param(
            *(
                '"Which word?", setup="echo -n a note > note.txt"',
                (*LOOP, "-n", "2"),
                "loop/m",
            ),
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_a_test_in_python_asks_an_agent(
    pytester: pytest.Pytester,
    server: LoopbackServer,
    asked: str,
    args: tuple[str, ...],
    label: str,
) -> None:
    pytester.makepyfile(test_gate=TEST.replace("{asked}", asked))
    result = run_skills(pytester, server, *args, skill="")
    assert result.outcomes["passed"] == 1
    assert result.report["tests"][0]["nodeid"].endswith(f"::test_word[{label}]")
    baseline, skill = result.records
    assert (baseline["outcome"], skill["outcome"]) == ("failed", "passed")
    assert skill["agent"] == ("loop" if args else "chat")


def test_what_an_agent_can_not_be_asked_is_an_error_of_the_test(
    pytester: pytest.Pytester, server: LoopbackServer
) -> None:
    pytester.makepyfile(
        test_gate="""
        import pytest

        pytestmark = pytest.mark.skill("skills/gate")

        def test_agent(ask): ask("Q", agent="lop")
        def test_not_text(ask): ask("Q", files={"x": b"\\xff"})
        def test_outside(ask): ask("Q", agent="loop", files={"../x": "a"})
        def test_type(ask): ask("Q", files={"x": 3})
        """
    )
    result = run_skills(pytester, server, skill="")
    assert result.outcomes == {"errors": 3, "failed": 1}
    assert 'no such agent (did you mean "loop"?)' in result.screen
    assert "'x' is not text, so it needs an agent" in result.screen
    assert "'../x' can't be a file in a workspace" in result.screen
    assert (
        "TypeError: ask takes files of text or bytes: 'x' is of type int"
        in result.screen
    )
    assert "functions.py" not in result.screen


def test_the_skill_is_installed_without_its_cases(
    pytester: pytest.Pytester, server: LoopbackServer
) -> None:
    looked = case(
        "Which word?", "KETCH", id="word", workspace="fixtures/in", setup="touch set-up"
    )
    looked["expected"] = {
        "not_contains": ["fixtures", "skill_meta"],
        "contains": ["set-up x.csv"],
    }
    folder = write_skill(pytester.path / "skills/gate", [looked])
    (folder / "fixtures/in").mkdir(parents=True)
    (folder / "fixtures/in/x.csv").write_text("")
    (folder / "word.sh").write_text("echo $(ls . /skills/gate)")
    assert run(pytester, server).outcomes == {"passed": 1}


def test_other_skills_are_in_both_arms(
    pytester: pytest.Pytester, server: LoopbackServer
) -> None:
    write_skill(pytester.path / "other/far")
    run(pytester, server, "--skill-with", "other")
    listed = [asked.system for asked in server.asked if not asked.results]
    assert len(listed) == 2
    assert ["<name>gate</name>" in text for text in sorted(listed, key=len)] == [
        False,
        True,
    ]
    assert all("<name>far</name>" in text for text in listed)


@pytest.mark.parametrize(
    ("sandbox", "args", "message"),
    [
        (
            {"python": ["pypdf==5.*"]},
            (),
            (
                "--skill-allow-code: gate needs Python packages, which are code:"
                " pypdf==5.*"
            ),
        ),
        ({"paths": ["/srv/x"]}, (), "--skill-allow-code: gate lets agents read /srv/x"),
        (
            {"paths": ["/opt/no-such"]},
            (),
            "gate: sandbox.paths: /opt/no-such can't be read: ",
        ),
        (
            {"paths": ["/root"]},
            ("--skill-allow-code",),
            "gate: sandbox.paths: /root is a home",
        ),
    ],
)
def test_what_scripts_need_is_refused_before_the_first_call(
    pytester: pytest.Pytester,
    server: LoopbackServer,
    sandbox: dict[str, Any],
    args: tuple[str, ...],
    message: str,
) -> None:
    file = pytester.path / "skills/gate/skill_meta.json"
    file.write_text(json.dumps({"cases": CASES, "sandbox": sandbox}))
    loop = (
        "--skill",
        "skills",
        "--model",
        "m",
        "--skill-base-url",
        f"{server.url}/v1",
        *LOOP,
    )
    assert usage_error(pytester, *loop, *args).startswith(message)
    assert not server.asked


def test_a_case_that_needs_the_network_is_refused(
    pytester: pytest.Pytester, server: LoopbackServer
) -> None:
    online = case("Online?", "x", id="online", sandbox={"network": True})
    write_skill(pytester.path / "skills/gate", [*CASES, online])
    (pytester.path / "skills/gate/word.sh").write_text("echo KETCH")
    result = run(pytester, server)
    assert result.outcomes == {"passed": 1, "failed": 1}
    assert (
        "cases[1]: this needs the network; add --skill-allow-network" in result.screen
    )


def test_no_sandbox_is_a_usage_error_but_for_collecting(
    pytester: pytest.Pytester, server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Bwrap, "why_not", lambda *_: "not found. Install it.")
    result = run(pytester, server)
    assert result.status == pytest.ExitCode.USAGE_ERROR
    assert "--skill-sandbox auto: agents need a sandbox" in result.screen
    assert "bwrap: not found. Install it." in result.screen
    assert run(pytester, server, "--collect-only").status == 0


def test_the_header_warns_of_no_sandbox(
    pytester: pytest.Pytester, server: LoopbackServer
) -> None:
    result = run(pytester, server, "--skill-sandbox", "none")
    assert "upskill: carried out by loop 1, sandbox: none" in result.screen
    assert "upskill: WARNING: no sandbox: agents can read" in result.screen
