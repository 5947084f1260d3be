"""pytest_upskill_agents: agents of a project, and what is wrong with them in one line."""

import json
import shutil

import pytest

from support.hook_runs import example, records, run
from support.sandboxes import needs_bwrap

EXAMPLE = example("pytest_upskill_agents")
KNOWS = """
def answer(question):
    return "Type gate up." if "gate up" in repr(question) else "No idea."
"""
MADE = """
from pytest_upskill import CommandAgent, Launch

class Acme(CommandAgent):
    program = "sh"
    install = "pip install acme-agent"
    {more}

    def launch(self, job):
        return Launch(["-c", "true"])

def pytest_upskill_agents():
    return {{"acme": {made}}}
"""


def made(made: str = "Acme", more: str = "def version(self): return '1.2'") -> str:
    return MADE.format(made=made, more=more)


@needs_bwrap
def test_the_example_of_the_docs(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    system = "/usr/local/bin:/usr/bin:/bin"  # which is in the sandbox as it is
    if not shutil.which("python3", path=system):
        pytest.skip("no python3 in /usr")
    monkeypatch.setenv("PATH", system)
    assert len(EXAMPLE.splitlines()) <= 30
    pytester.makeconftest(EXAMPLE)
    pytester.makepyfile(model=KNOWS)
    args = ("--skill-agent", "acme", "-n", workers)
    result = run(pytester, *args, model="scripted:model.py:answer")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["upskill: carried out by acme 3.*, sandbox: bwrap"])
    known = {record["arm"]: record for record in records(pytester)}
    assert [known[arm]["outcome"] for arm in ("baseline", "skill")] == ["failed", "passed"]
    report = json.loads((pytester.path / "r.json").read_text())
    (version,) = report["agents"].values()
    assert known["skill"]["activated"]
    assert known["skill"]["agents"] == {"acme": version}
    assert report["summary"][0]["agent_version"] == version


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (made("lambda: 1 / 0"), "conftest.py:12: pytest_upskill_agents: 'acme' raised ZeroDiv*"),
        (made("int"), "pytest_upskill_agents: 'acme': made 0, not an agent"),
        (made("7"), "pytest_upskill_agents: returned {'acme': 7}"),
        (made("CommandAgent"), "*pytest_upskill_agents: 'acme' raised TypeError: Can't instant*"),
        (made(more="protocols = 'chat'"), "pytest_upskill_agents: 'acme': speaks 'chat'"),
        (made(more="protocols = ('smtp',)"), "pytest_upskill_agents: 'acme': speaks ('smtp',)"),
        (made(more="def version(self): return 7"), "agent acme: its version is 7, not a text"),
        (
            made(more="def version(self): return self.x"),
            "agent acme: telling its version raised AttributeError: *'x'",
        ),
        (
            made(more="program = 'no-such-acme'"),
            "--skill-agent acme: no-such-acme is not installed",
        ),
        ("def pytest_upskill_agents(): return 7", "pytest_upskill_agents: returned 7"),
        ("def pytest_upskill_agents(): return {'a b': int}", "*: 'a b' can't be a name"),
        ("def pytest_upskill_agents(): return {'loop': int}", "*: 'loop' is taken"),
        ("def pytest_upskill_agents(): return {'chat': int}", "*: 'chat' is taken"),
        ("def pytest_upskill_agents(): 1 / 0", "conftest.py:1: pytest_upskill_agents raised Zero*"),
    ],
)
def test_what_is_wrong_with_an_agent_is_one_line(
    pytester: pytest.Pytester, source: str, told: str
) -> None:
    pytester.makeconftest(source)
    result = run(pytester, "--skill-agent", "acme")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {told}"])


def test_a_broken_agent_is_told_by_the_controller(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(made("lambda: 1 / 0"))
    result = run(pytester, "--skill-agent", "acme", "-n", "2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: conftest.py:12: pytest_upskill_agents: 'acme' raised *"])


def test_an_agent_that_nobody_uses_is_not_made(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(made("lambda: 1 / 0"))
    run(pytester).assert_outcomes(passed=1)


def test_an_agent_of_the_ini_file_with_a_version(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(made())
    pytester.makeini("[pytest]\nskill_agents = acme@1.3\n")
    result = run(pytester)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: *tox.ini: skill_agents: acme@1.3: acme 1.2 is installed",
            "  Install it: pip install acme-agent==1.3",
        ]
    )
