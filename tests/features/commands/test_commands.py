"""Commands of cases: a stand-in answers agents, the same in both arms."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from support.agents import write_files
from support.documentation import ROOT
from support.kit import write_skill
from support.loopback import Asked, LoopbackServer, Reply
from support.runs import SkillRun, run_skills
from support.sandboxes import needs_bwrap

PAGE = (ROOT / "docs/agents.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("\n## Commands\n")[2].partition("\n## ")[0]
BODY = "Look at a pull request with `gh pr view NUMBER` first. Never merge a draft."


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```", SECTION, re.S | re.M)
    assert found
    return found[1]


def write_desk(pytester: pytest.Pytester, cases: str = "", gh: str = "") -> Path:
    """The example of the documentation."""
    folder = write_skill(pytester.path / "skills/desk", [], body=BODY)
    (folder / "skill_meta.json").write_text(cases or block("json"))
    write_files(folder, {"evals/commands/gh.yaml": gh or block("yaml")})
    return folder


def run_agent(
    pytester: pytest.Pytester, *turns: str, args: tuple[str, ...] = ()
) -> tuple[SkillRun, list[Asked]]:
    """An agent that runs a command in each turn, then says what came of them."""

    def answer(asked: Asked) -> Reply:
        done = len(asked.results)
        if done < len(turns):
            return Reply(calls=(("bash", {"command": turns[done]}),))
        return Reply(f"Done: {asked.results}")

    with LoopbackServer(answer) as server:
        ran = run_skills(pytester, server, "--skill-agent", "loop", *args)
        return ran, list(server.asked)


def commands(record: dict[str, Any]) -> list[tuple[str, int, int]]:
    calls = record["activity"]["commands"]
    return [(shlex.join(call["words"]), call["exit"], call["stdin"]) for call in calls]


@needs_bwrap
def test_example_of_the_documentation_runs(
    pytester: pytest.Pytester, workers: str
) -> None:
    def careful(asked: Asked) -> Reply:
        """Merges at once without the skill, and looks first with it."""
        has_skill = "<name>desk</name>" in asked.system
        command = f"gh pr {'view 12 --json isDraft' if has_skill else 'merge 12'}"
        if not asked.results:
            return Reply(calls=(("bash", {"command": command}),))
        return Reply("It is a draft." if "isDraft" in asked.results[0] else "Merged.")

    write_desk(pytester)
    with LoopbackServer(careful) as server:
        run = run_skills(pytester, server, "--skill-agent", "loop", "-n", workers)
    skill, baseline = run.record(arm="skill"), run.record(arm="baseline")
    assert (skill["outcome"], baseline["outcome"]) == ("passed", "failed")
    assert commands(skill) == [("gh pr view 12 --json isDraft", 0, 0)]
    assert commands(baseline) == [("gh pr merge 12", 0, 0)]
    reasons = {check["check"]: check["reason"] for check in baseline["checks"]}
    assert f": {reasons['not_called']}." in SECTION.replace("\n", " ")


SECRET = "nobody-asked-for-this"
# The last letter is in brackets, so that the search does not find itself.
HUNT = f"""
grep -rIls {SECRET[:-1]}[s] / --exclude-dir=sys
cat /proc/*/cmdline /proc/*/environ 2>/dev/null | grep -a {SECRET[:-1]}[s]
true
"""


@needs_bwrap
def test_answers_that_were_not_asked_for_are_nowhere_in_the_sandbox(
    pytester: pytest.Pytester,
) -> None:
    cases = '[{"input": "Go.", "expected": {"called": "gh a"}}]'
    answers = f"- args: a\n  stdout: asked\n- args: b\n  stdout: {SECRET}"
    write_desk(pytester, cases, answers)
    run, asked = run_agent(pytester, f"gh a; {HUNT}", "gh b > b.txt; " + HUNT)
    assert [record["outcome"] for record in run.records] == ["passed", "passed"]
    before, after = asked[-1].results
    assert before == "asked\n[exit status 0]"
    assert "/workspace/b.txt" in after


@needs_bwrap
def test_edited_answer_asks_again(pytester: pytest.Pytester) -> None:
    write_desk(pytester)
    with LoopbackServer(lambda _: Reply("Done.")) as server:
        for text, asked in [("- exit: 0", 2), ("- exit: 0", 2), ("- exit: 3", 4)]:
            write_files(pytester.path, {"skills/desk/evals/commands/gh.yaml": text})
            run_skills(pytester, server, "--skill-agent", "loop")
            assert len(server.asked) == asked


@needs_bwrap
def test_case_replaces_a_command(pytester: pytest.Pytester) -> None:
    cases = '[{"input": "Go.", "expected": {"called": "gh"}, "commands": "evals/late"}]'
    folder = write_desk(pytester, cases, "- stdout: early")
    write_files(folder, {"evals/late/gh.yaml": "- stdout: late"})
    write_files(folder, {"evals/commands/kubectl.yaml": "- stdout: pods"})
    _, asked = run_agent(pytester, "gh; kubectl")
    assert asked[-1].results[0].startswith("latepods")


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ({"called": "gh"}, '"called" looks at what an agent does'),
        ({"contains": "x"}, '"commands" names commands, which only agents can run'),
    ],
)
def test_plain_completion_is_refused_in_one_line(
    pytester: pytest.Pytester, case: dict[str, Any], reason: str
) -> None:
    more = {} if "called" in case else {"commands": "evals/commands"}
    folder = write_skill(
        pytester.path / "skills/desk", [{"input": "Go.", "expected": case, **more}]
    )
    write_files(folder, {"evals/commands/gh.yaml": "- exit: 0"})
    with LoopbackServer(lambda _: Reply("x")) as server:
        run = run_skills(pytester, server)
        assert (server.asked, reason in run.screen) == ([], True), run.screen
