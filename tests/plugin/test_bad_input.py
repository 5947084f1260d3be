"""Faults of skills, servers and answers in a run: clear messages, no traceback,
no escapes.
"""

import json

import pytest

from support.kit import case, write_script, write_skill
from support.loopback import Fault, LoopbackServer, Reply
from support.runs import run_skills

SECRET = "sk-not-to-be-seen"


def test_faults_of_form_are_one_warning_and_the_skill_runs(
    pytester: pytest.Pytester, workers: str
) -> None:
    text = "---\nname: Door\ndescription: a: b\ncolour: red\n---\nx"
    (write_skill(pytester.path / "skills/gate") / "SKILL.md").write_text(text)
    model = write_script(pytester.path / "m.json")
    run = run_skills(pytester, model, "-W", "default", "-n", workers)
    assert (
        "skills/gate/SKILL.md:2: SkillWarning: 3 problems with its form" in run.screen
    )
    assert run.screen.count("SkillWarning") == 1
    assert run.outcomes["failed"] == 1  # the model does not know the text


def test_the_line_of_a_warning_is_shortened_and_escaped(
    pytester: pytest.Pytester,
) -> None:
    cases = [case("How?", "gate up", id="a") | {"nobody": "y" * 5000}]
    write_skill(pytester.path / "skills/gate", cases, frontmatter="odd: \x1b[31m\n")
    run = run_skills(
        pytester, write_script(pytester.path / "answers.json"), "-W", "default"
    )
    assert "odd: \\x1b[31m" in run.screen
    assert "SkillWarning: unknown keys" in run.screen
    assert "\x1b" not in run.screen
    assert "yyyy" * 50 not in run.screen


@pytest.mark.usefixtures("slow_machine")
def test_a_wrong_key_costs_one_call_not_one_per_case(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    cases = [case(f"question {n}", "x", id=f"c{n}") for n in range(6)]
    write_skill(pytester.path / "skills/gate", cases)
    refusal = Fault("status", 401, message=f"invalid x-api-key {SECRET}")
    with LoopbackServer(lambda _: refusal) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        run = run_skills(pytester, "haiku", "-n", workers)
    assert run.outcomes == {"errors": 6}
    assert len(server.asked) == 1
    assert run.summary["errored"] == 12
    assert "invalid x-api-key ***" in run.screen
    assert SECRET not in run.screen + json.dumps(run.report)


@pytest.mark.nightly
def test_a_reply_of_five_megabytes_is_graded_and_shown_shortened(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate")
    with LoopbackServer(lambda _: Reply("x" * 5_000_000)) as server:
        run = run_skills(pytester, server)
    assert run.outcomes == {"failed": 1}
    assert len(run.screen) < 20_000
    assert {len(record["output"]) for record in run.records} == {5_000_000}


@pytest.mark.parametrize(
    "args",
    [
        ("--collect-only",),
        ("-v",),
        pytest.param(("-n", "2"), marks=pytest.mark.nightly),
    ],
)
def test_folders_with_hostile_names_are_escaped(
    pytester: pytest.Pytester, args: tuple[str, ...]
) -> None:
    top = pytester.path / "skills/a\n::error::b\x1b[31m"
    write_skill(
        top / "wrong", [case("How?", "never", id="a")], frontmatter="odd: key\n"
    )
    (write_skill(top / "broken") / "SKILL.md").write_text("---\nname: x\n---\n")
    write_skill(top / "cases", [{"input": 5}])
    run = run_skills(pytester, write_script(pytester.path / "answers.json"), *args)
    assert run.status == pytest.ExitCode.TESTS_FAILED
    assert "\x1b" not in run.screen
    assert "\n::error" not in run.screen


def test_terminal_escapes_in_a_reply_are_escaped(
    pytester: pytest.Pytester, workers: str
) -> None:
    write_skill(pytester.path / "skills/gate")
    nasty = "\x1b]0;owned\x07 \x1b[2J \u202egnorw\u2066 \x9b31m \x00 \ud800"
    pytester.makepyfile(fake=f"def answer(question): return {nasty!a}")
    run = run_skills(
        pytester, "scripted:fake.py:answer", "-v", "-n", workers, "--junitxml", "j.xml"
    )
    assert run.outcomes == {"failed": 1}
    assert (
        r"\x1b]0;owned\x07 \x1b[2J \u202egnorw\u2066 \x9b31m \x00 \ud800" in run.screen
    )
    assert not set(run.screen) & set("\x1b\x07\u202e\u2066\x9b\x00")
    assert run.records[0]["output"] == nasty


OTHERS = ["skipping", "setuponly", "capture", "cacheprovider"]


@pytest.mark.parametrize(
    "plugins",
    [
        ["terminal"],
        OTHERS,
        *(pytest.param([name], marks=pytest.mark.nightly) for name in OTHERS),
    ],
    ids=" ".join,
)
def test_a_failing_case_works_without_plugins_of_pytest(
    pytester: pytest.Pytester, plugins: list[str]
) -> None:
    write_skill(pytester.path / "skills/gate", [case("q", "nowhere")])
    without = [word for name in plugins for word in ("-p", f"no:{name}")]
    run = run_skills(pytester, write_script(pytester.path / "a.json"), *without)
    assert run.status == pytest.ExitCode.TESTS_FAILED
    assert run.records


def test_a_mistake_is_not_reported_as_no_skill(pytester: pytest.Pytester) -> None:
    write_skill(
        pytester.path / "skills/gate", [{"input": "q", "expected": {"contians": "x"}}]
    )
    run = run_skills(pytester, write_script(pytester.path / "a.json"), "-k", "nothing")
    assert "no skill was tested" not in run.screen
