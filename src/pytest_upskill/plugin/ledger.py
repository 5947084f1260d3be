"""The controller's book of a run: test reports in, records, summaries and files out.

The same with and without xdist, since records ride on the reports of their own tests.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any, Final

import pytest

from ..engine import Engine
from ..engine.recording import Recorded, recorded_lines
from ..judging import all_questions
from ..models.prices import Price, cost
from ..records import Answer, Record, Usage, errored_record, load_records, total_usage
from ..regressions import AcceptedComparison
from ..reports.json_report import json_report
from ..settings import Settings
from ..stats import LEVEL, plan_level
from ..summary import Summary, summarize
from ..texts import counted, dollars
from ..trials import Arm, Plan, PlannedItem, SkillInfo, Trial
from ..verdict import Verdict, gate_reasons, verdicts_of
from .items import ASKED_PROPERTY, RECORDS_PROPERTY

CRASHED: Final = "the xdist worker that ran this test crashed. Run again, or without -n"


class Ledger:
    """What was planned, and what came of it."""

    def __init__(
        self,
        model_ids: dict[str, str],
        price_of: Callable[[str], Price | None],
        looks: tuple[int, ...] = (),
    ) -> None:
        self.model_ids = model_ids
        self._price_of = price_of  # asked only for a summary, since it may import much
        self._looks = looks  # of frugal runs
        self._started = datetime.now(UTC)
        self._clock = monotonic()
        self._skills: tuple[SkillInfo, ...] = ()
        self._planned: dict[str, PlannedItem] = {}
        self._records: dict[str, list[Record]] = {}
        self._report_ids: dict[str, Any] = {}
        self._asked: dict[str, list[tuple[Arm, int, str]]] = {}  # by tests in Python

    def set_plan(self, plan: Plan) -> None:
        self._skills = plan.skills
        self._planned = {item.nodeid: item for item in plan.items}

    def add_report(self, report: pytest.TestReport) -> None:
        self._report_ids[report.nodeid] = getattr(report, "id", report.nodeid)  # from 9.2 on
        if report.when in ("setup", "call"):
            for name, value in report.user_properties:
                if name == RECORDS_PROPERTY:
                    self._records[report.nodeid] = load_records(str(value))
                elif name == ASKED_PROPERTY:
                    self._asked[report.nodeid] = [tuple(asked) for asked in json.loads(str(value))]
        elif report.when != "teardown" and report.nodeid in self._planned:
            # xdist's own report of a worker that died ("???" is no phase that pytest knows);
            # if the test had ended by then, its records stay.
            trials = self._planned[report.nodeid].trials
            lost = [errored_record(trial, CRASHED) for trial in trials if not trial.later]
            self._records.setdefault(report.nodeid, lost)

    @property
    def has_plan(self) -> bool:
        return bool(self._planned)

    @property
    def skills(self) -> tuple[SkillInfo, ...]:
        return self._skills

    @property
    def planned(self) -> Iterable[PlannedItem]:
        return self._planned.values()

    @property
    def date(self) -> str:
        return self._started.date().isoformat()

    def records_of(self, nodeid: str) -> list[Record]:
        return self._records.get(nodeid, [])

    def report_id(self, nodeid: str) -> Any:
        """What pytest itself calls a test that was reported."""
        return self._report_ids[nodeid]

    def records(self) -> list[Record]:
        """All records in the order of the plan, however workers finished them."""
        return [record for nodeid in self._planned for record in self._records.get(nodeid, ())]

    def summaries(self) -> list[Summary]:
        """One per skill and model that has records, skills and models as given."""
        records = self.records()
        return [
            summarize(
                records,
                skill.name,
                model,
                model_id=model_id,
                price=self._price_of(model),
                not_run=self._not_run(skill.name, model),
                against=skill.against,
                most_runs=self._looks[-1] if self._looks else None,
            )
            for skill in self._skills
            for model, model_id in self.model_ids.items()
            if any((record.skill, record.model) == (skill.name, model) for record in records)
        ]

    def verdicts(self) -> list[Verdict]:
        level = plan_level(self._looks) if self._looks else LEVEL
        return verdicts_of(self.summaries(), level)

    def gate(self, settings: Settings, compared: Sequence[AcceptedComparison]) -> list[str] | None:
        """Why the run does not pass, by its gates and by what was accepted; None if it has
        neither."""
        if not compared and not settings.gates.any():
            return None
        regressions = [reason for comparison in compared for reason in comparison.reasons]
        return [*gate_reasons(self.verdicts(), settings.gates), *regressions]

    def _not_run(self, skill: str, model: str) -> int:
        return sum(
            (item.trials[0].skill, item.trials[0].model) == (skill, model)
            for nodeid, item in self._planned.items()
            if nodeid not in self._records
        )

    def stored_notes(self) -> list[str]:
        """What was not asked, since it was known: for people who watch what they spend."""
        records = self.records()
        stored = [record for record in records if record.stored]
        if not stored:
            return []
        saved = counted(sum(record.tokens or 0 for record in stored), "token")
        prices = {model: self._price_of(model) for model in {record.model for record in stored}}
        money = sum(cost(prices[record.model], record.usage) or 0.0 for record in stored)
        saved += f" and {dollars(money)}" if money else ""
        share = f"{len(stored):,} of {counted(len(records), 'answer')}"
        return [f"{share} re-used, which saved {saved}. --skill-fresh asks anew."]

    def judge_notes(self, judge: str | None) -> list[str]:
        """What judging took, apart from what the models under test did."""
        judged = [record for record in self.records() if record.judge_calls]
        if not judge or not judged:
            return []
        usages = [
            Usage(record.judge_input_tokens, record.judge_output_tokens, 0) for record in judged
        ]
        spent = total_usage(usages)
        tokens = None if spent.input is None else spent.input + (spent.output or 0)
        costs = [cost(self._price_of(judge), usage) for usage in usages]
        usd = None if None in costs else sum(filter(None, costs))
        calls = counted(sum(record.judge_calls for record in judged), "call")
        told = [f"judged by {judge}: {counted(len(judged), 'answer')}, {calls}"]
        told += [counted(tokens, "token")] if tokens is not None else []
        told += [dollars(usd)] if usd else []
        return [f"{', '.join(told)}, not in the table."]

    def write_files(self, settings: Settings, engine: Engine, gate: Sequence[str] | None) -> None:
        if settings.json_file:
            self._write_json(settings.json_file, gate)
        if settings.record_file:
            file = settings.record_file
            before = file.read_text("utf-8") if file.is_file() and not self._is_whole() else ""
            file.write_text(recorded_lines(self._recorded(engine), before), encoding="utf-8")

    def _is_whole(self) -> bool:
        """Whether every case was planned and every planned one was answered."""
        planned = Counter(
            (item.case.folder, item.trials[0].model) for item in self._planned.values()
        )
        return all(
            nodeid in self._records
            and all(record.outcome != "errored" for record in self._records[nodeid])
            and planned[item.case.folder, item.trials[0].model] >= item.case.of
            for nodeid, item in self._planned.items()
        )

    def _recorded(self, engine: Engine) -> Iterator[Recorded]:
        """Every answer that was used, those of a judge too."""
        for nodeid, item in self._planned.items():
            for trial in item.trials:
                place = (trial.arm, trial.run)
                asked = [key for *own, key in self._asked.get(nodeid, ()) if tuple(own) == place]
                keys = asked if trial.is_open else _asked_in(trial, engine)
                for step, key in enumerate(keys):
                    reply = engine.known_reply(key)
                    if isinstance(reply, Answer):
                        yield Recorded(trial, step, key, reply)

    def _write_json(self, file: Path, gate: Sequence[str] | None) -> None:
        text = json_report(
            started=self._started,
            seconds=monotonic() - self._clock,
            skills=self._skills,
            verdicts=self.verdicts(),
            gate=gate,
            records=self.records(),
        )
        # A lone surrogate in an answer becomes \udXXX, which JSON reads back as the same.
        file.write_bytes(text.encode("utf-8", "backslashreplace"))


def _asked_in(trial: Trial, engine: Engine) -> Iterator[str]:
    """The keys of all that was asked for a trial: its question, then those to the judge."""
    yield trial.question.key
    answer = engine.known_reply(trial.question.key)
    if trial.rubric and isinstance(answer, Answer):
        for question in all_questions(trial.rubric, trial.question, answer, engine.known_reply):
            yield question.key
