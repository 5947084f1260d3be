"""A skill with accepted results, whose cases pass in as many runs as a test wants."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.features.accepted.results import (
    Accepted,
    read_results,
    write_results,
)
from pytest_upskill.results.planned_cases import case_digest
from pytest_upskill.skills.suites.json_suites import load_cases
from pytest_upskill.trials.plan import Count
from support.kit import case, write_skill
from support.runs import SkillRun, run_skills

MODEL = "scripted:fake.py:answer"
FAKE = """
import json
from pathlib import Path

def answer(question):
    passes = json.loads(Path(__file__).with_name("passes.json").read_text())
    of_case = passes[question.messages[-1][1].split()[0]]
    runs = of_case if isinstance(of_case, list) else range(1, of_case + 1)
    return "yes" if "SKILL" in question.system and question.run in runs else "no"
"""


class AcceptedProject:
    """A skill ``gate``; each case is asked "NAME is it?"."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.folder = pytester.path / "skills/gate"
        self.cases_file = self.folder / "skill_meta.json"
        self.results_file = self.folder / "skill_results.json"
        (pytester.path / "fake.py").write_text(FAKE)

    def write(self, *names: str, **keys: Any) -> None:
        """Write the skill; all cases have these keys, too."""
        cases = [case(f"{name} is it?", "yes", id=name, **keys) for name in names]
        write_skill(self.folder, cases, body="SKILL: say yes.")

    def edit(self, **keys: dict[str, Any]) -> None:
        """Change cases in their file, each by its name."""
        cases = json.loads(self.cases_file.read_text())["cases"]
        edited = [{**written, **keys.get(written["id"], {})} for written in cases]
        self.cases_file.write_text(json.dumps({"cases": edited}))

    def accept(self, passes: dict[str, int], runs: int = 1) -> None:
        """Write what ``--skill-accept`` would, without a run."""
        cases = {}
        for read in load_cases(self.cases_file).require_all():
            cases[case_digest(read, self.folder)] = Accepted(
                Count(passes[read.id], runs),
                "2026-01-02",
                baseline=Count(0, runs),
                model_id="id",
                case=read.id,
                skill_digest="s",
                setup="",
            )
        write_results(self.folder, {MODEL: cases})

    def run(
        self,
        passes: Mapping[str, int | list[int]],
        *args: str,
        runs: int | str = 1,
        skill: str = "skills",
    ) -> SkillRun:
        """Test the skill; without ``skill``, only what ``args`` name.

        With it, so many runs of a case pass, or those that are listed.
        """
        (self.pytester.path / "passes.json").write_text(json.dumps(passes))
        return run_skills(
            self.pytester, MODEL, "--skill-runs", str(runs), *args, skill=skill
        )

    def accepted(self, model: str = MODEL) -> dict[str, tuple[int, int]]:
        """Passes and runs of each case in the file."""
        return {
            result.case: (result.was.passes, result.was.runs)
            for result in read_results(self.folder)[model].values()
        }


def accepted_names(folder: Path, model: str) -> list[str]:
    """The names of cases that were accepted on a model, as the file has them."""
    return [result.case for result in read_results(folder)[model].values()]


def regressions(run: SkillRun) -> list[str]:
    """The cases whose tests are reported as regressions."""
    places = {
        outcome["nodeid"] for outcome in run.report["outcomes"] if outcome["regressed"]
    }
    return [test["case"] for test in run.report["tests"] if test["nodeid"] in places]


def unmatched(run: SkillRun) -> dict[str, str]:
    """Accepted cases that were not compared, and why."""
    return {missing["case"]: missing["why"] for missing in run.report["unmatched"]}
