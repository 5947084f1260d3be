"""The hooks for conftest files and other plugins;
docs/extend.md has an example of each.

Each implementation may take any of the arguments, by name. If it raises or returns the
wrong type, the run reports the hook and the error in one line.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_upskill import (
        Agent,
        Case,
        CheckFunction,
        ModelSource,
        NextStep,
        Record,
        RunResults,
        Standing,
        Suite,
    )
    from pytest_upskill.trials.plan import Plan, PlannedCase


@pytest.hookspec
def pytest_upskill_checks(
    config: pytest.Config,
) -> "Mapping[str, CheckFunction] | None":
    """Return checks by the names that ``expected`` may use.

    A check takes a ``CheckContext`` (the answer, the case, the value written in the
    case) and returns True or False, or that with a reason. A failing ``assert``
    fails the check too; any other exception makes the trial an error. A check can't
    see which arm it grades::

        def at_most_words(context):
            words = len(context.answer.text.split())
            return words <= context.value, f"{words} words (limit {context.value})"

        def pytest_upskill_checks():
            return {"at_most_words": at_most_words}
    """


@pytest.hookspec
def pytest_upskill_models(config: pytest.Config) -> "Mapping[str, ModelSource] | None":
    """Return providers by the prefix of their model names:
    "acme" serves ``--model acme:NAME``.

    Each is a function that takes the NAME and returns a ``Model``, or a ``Provider`` if
    it has a key, a price or an address to check before the first call::

        class Parrot(Model):
            async def ask(self, question):
                return Answer(question.messages[-1][1])

        def pytest_upskill_models():
            return {"parrot": lambda name: Parrot()}

    Called in every process, before collection; models are opened and asked in the one
    that has the engine, which under xdist is the controller. So the hook must be in a
    conftest.py that pytest loads at startup, or in a plugin.
    """


@pytest.hookspec
def pytest_upskill_agents(
    config: pytest.Config,
) -> "Mapping[str, Callable[[], Agent]] | None":
    """Return agents by their names: "acme" serves ``--skill-agent acme``.

    Each is a class without arguments, mostly of a program: a ``CommandAgent`` says how
    it is started in its sandbox, and where it finds its model::

        class Acme(CommandAgent):
            program = "acme"
            install = "npm install -g acme-agent"
            protocols = ("messages",)

            def launch(self, job):
                env = {"ANTHROPIC_BASE_URL": job.url, "ANTHROPIC_API_KEY": job.key}
                return Launch(["--model", job.model, "-p", job.prompt], env)

        def pytest_upskill_agents():
            return {"acme": Acme}

    Called in every process, before collection, so the hook must be in a conftest.py
    that pytest loads at startup, or in a plugin. An agent is made if it is used, and
    runs where the engine is.
    """


@pytest.hookspec(firstresult=True)
def pytest_upskill_suites(config: pytest.Config, path: Path) -> "Suite | None":
    """Return the cases of a skill in a form of your own,
    or None to have its files read.

    ``path`` is the folder of a skill or a plugin, or the file of --skill-tests. The
    cases are objects as in skill_meta.json::

        def pytest_upskill_suites(path):
            file = path / "evals/cases.toml" if path.is_dir() else path
            if file.suffix == ".toml" and file.is_file():
                with file.open("br") as toml:
                    return Suite.of(file, tomllib.load(toml)["case"])

    Called in every process, before collection, so the hook must be in a
    conftest.py that pytest loads at startup, or in a plugin. Keep the file in
    evals/, which agents never get.
    """


@pytest.hookspec(firstresult=True)
def pytest_upskill_prompt(
    config: pytest.Config, arm: str, skill: str | None, base: str, case: "Case"
) -> str | None:
    """Return the system text of an arm of a plain completion, or None for the default.

    ``skill`` is the text of SKILL.md in this arm, followed by the files that
    --skill-references adds; None in the baseline. ``base`` is the system text of the
    case, or the default one::

        def pytest_upskill_prompt(skill, base):
            return base if skill is None else f"<skill>{skill}</skill>" + base

    Called during collection, in every process, so it must return the same text each
    time; for a test in Python, when it asks. Stored answers belong to the text: after a
    change the models are asked again.
    """


@pytest.hookspec
def pytest_upskill_planned(config: pytest.Config, plan: "Plan") -> None:
    """Look at all that a run is going to ask, before its first call::

        def pytest_upskill_planned(plan):
            print(f"{len(list(plan.questions()))} questions")

    Called in the process that has the engine: under xdist the controller, on a
    thread of its own, once for each different list of tests that its workers collect.
    """


@pytest.hookspec(firstresult=True)
def pytest_upskill_graded(
    item: pytest.Item, case: "PlannedCase", records: "Sequence[Record]"
) -> "Standing | None":
    """Say how a test ends that has its grades, or return None: then it passes if enough
    of its own runs did.

    A test whose kind is "passed" or "better" passes; "accepted as failing" and "could
    be chance" make it an xfail, with the reason; "failed" and "regressed" fail it::

        def pytest_upskill_graded(case, records):
            if "known" in case.tags and any(r.outcome == "failed" for r in records):
                return Standing("accepted as failing", "known since 3.2")

    Called in the process that runs the test, only if every answer is there.
    """


@pytest.hookspec
def pytest_upskill_results(
    config: pytest.Config, results: "RunResults"
) -> Mapping[str, Any] | None:
    """Return fields of ``RunResults`` that you know better, before its verdicts are
    read::

        def pytest_upskill_results():
            return {"versions": {"acme": acme.__version__}}

    Called once, after the last test; under xdist in the controller only.
    """


@pytest.hookspec
def pytest_upskill_finished(
    config: pytest.Config, results: "RunResults"
) -> str | list[str] | None:
    """Use the results of a finished run; return a line, or several,
    to show below the summary.

    Called once, after the last test and after all reports are written;
    under xdist in the controller only::

        def pytest_upskill_finished(results):
            for row in results.rows:
                upload(row.skill, row.model, row.lift)
    """


@pytest.hookspec(firstresult=True)
def pytest_upskill_next_step(
    config: pytest.Config, results: "RunResults"
) -> "NextStep | None":
    """Return the command to run next, which is the last line of a run, or None to leave
    that to others::

        def pytest_upskill_next_step(results):
            if results.failed:
                return NextStep(["make", "skills"], "to build the skills again:")

    Called once, after pytest's own last line.
    """
