"""Believable runs of agents: what they did, said and left behind."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pytest_upskill.results.run import RunResults
from pytest_upskill.trials.answer import AnswerFile
from pytest_upskill.trials.records import Record
from pytest_upskill.trials.transcript import (
    Activity,
    ListedSkill,
    Sent,
    Transcript,
    Turn,
)

from .made import Passes, helps, made_run

Opens = Callable[[int, int], bool]  # number of the case, run


def made_transcript(arm: str, *, opened: bool = True, steps: int = 2) -> Transcript:
    """An agent that looks around, perhaps opens the skill, and writes a report."""
    turns = [
        Turn("system", "You are an agent in /workspace."),
        Turn("user", "Sum up invoice.csv in report.md."),
        Turn(
            "thinking",
            "Let me see what is there.",
            reply=1,
            seconds=1.5,
            input_tokens=900,
        ),
        Turn("call", '{"path": "."}', "list", reply=1),
        Turn("result", "invoice.csv", "list", reply=1, seconds=0.01),
    ]
    reply = 1
    if arm == "skill" and opened:
        reply += 1
        turns += [
            Turn("call", '{"name": "pdf"}', "skill", reply=reply, seconds=0.8),
            Turn(
                "result",
                "# pdf\n\nRun scripts/sum.py, then write a heading.",
                "skill",
                reply=2,
            ),
        ]
    for step in range(steps):
        reply += 1
        failed = step == 0
        said = "sum.py: no such file\nexit status 2" if failed else "total 1,234.50"
        turns += [
            Turn(
                "call",
                f'{{"command": "python sum.py --try {step}"}}',
                "bash",
                reply=reply,
            ),
            Turn("result", said, "bash", failed=failed, reply=reply, seconds=0.2),
        ]
    return (*turns, Turn("assistant", "The report is in report.md.", reply=reply + 1))


FILES = (
    AnswerFile.of("report.md", b"# Report\n\nTotal: 1,234.50\n"),
    AnswerFile.of("data/out.bin", b"\0\1\2"),
)


def agent_run(
    *,
    cases: int = 6,
    runs: int = 1,
    passes: Passes = helps,
    opens: Opens = lambda _case, _run: True,
    agent: str = "loop",
    model: str = "haiku",
    also: tuple[str, ...] = (),  # plain completions of these models
    **more: Any,
) -> RunResults:
    """As `made_run`, with an agent on a model; tests and records of ``also`` follow."""
    label = f"{agent}/{model}"
    made = made_run(
        models=(label, *also), cases=cases, runs=runs, passes=passes, **more
    )

    def done(record: Record) -> Record:
        if record.label != label:
            return record
        number = int(record.case.removeprefix("case-"))
        opened = record.arm == "skill" and opens(number, record.run)
        turns = made_transcript(record.arm, opened=opened)
        calls = sum(turn.kind == "call" for turn in turns)
        activity = Activity(
            turns=max(turn.reply for turn in turns),
            tool_calls=calls,
            activated=opened if record.arm == "skill" else None,
            opened=(record.skill,) if opened else (),
            read=("references/layout.md",) if opened else (),
            scripts=("scripts/sum.py",) if opened else (),
        )
        return replace(
            record,
            agent=agent,
            model=model,
            activity=activity,
            transcript=turns,
            files=FILES,
        )

    return replace(
        made,
        model_ids={
            one: f"id-of-{one.removeprefix(f'{agent}/')}" for one in (label, *also)
        },
        tests=tuple(
            replace(test, agent=agent, model=model) if test.label == label else test
            for test in made.tests
        ),
        records=tuple(map(done, made.records)),
    )


def with_listing(results: RunResults, *sent: Sent) -> RunResults:
    """The results of an agent whose list showed the tested skills so,
    and another by its name.
    """
    skills = [
        ListedSkill(f"wick-{at}", kind, tested=True) for at, kind in enumerate(sent)
    ]
    listed = (*skills, ListedSkill("docs-writer", "name"))
    records = (
        (
            replace(record, activity=replace(record.activity, listed=listed))
            if record.activity and record.arm == "skill"
            else record
        )
        for record in results.records
    )
    return replace(results, records=tuple(records))
