"""``drift``: which skills still help on a new model, which can go, and what got
worse.
"""

import argparse
from pathlib import Path

from ...cli.command_table import add_options
from ...cli.study_session import StudySession, add_flags, study_session
from ...errors import SettingsError
from ...settings import Gates, Settings
from ...skills.named_skill import named_once
from ...trials.subject import Subject
from .asking import ModelPair
from .results import ModelChange


def add_drift_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s SKILLS --from OLD --to NEW [options]"
    parser.add_argument(
        "skills",
        metavar="SKILLS",
        nargs="+",
        help=(
            "a skill: its folder, its SKILL.md, or its name in skills_dir; or a folder"
            " of skills, or of tasks of a benchmark"
        ),
    )
    groups = add_options(parser, "drift", Settings, Gates)
    for flag, setting, which in (
        ("--from", "from_model", "old"),
        ("--to", "to_model", "new"),
    ):
        groups["models"].add_argument(
            flag,
            dest=setting,
            metavar="MODEL",
            required=True,
            help=f"the {which} model",
        )
    groups["models"].add_argument(
        "--recorded",
        type=Path,
        metavar="FILE",
        help="use answers of a recording like stored ones; what it lacks is asked",
    )
    add_flags(groups["reports"])


def run_drift(args: argparse.Namespace) -> tuple[str, int]:
    named = {"from_model": args.from_model, "to_model": args.to_model}
    with study_session(
        args, args.skills, tasks=True, named=named, recording=args.recorded
    ) as session:
        pairs = _pairs(session)
        to_grade = [
            item
            for pair in pairs
            for asked in pair.asked.values()
            for case in asked
            for item in case.trials
        ]
        if not session.may_ask(to_grade):
            return "", 1
        changes = list[ModelChange]()
        for pair in pairs:
            changes.append(pair.run())
            if changes[-1].interrupted:
                break
    return session.report(sections=changes)


def _pairs(session: StudySession) -> list[ModelPair]:
    """One for each agent; SettingsError if it can't use both models,
    or they are the same.
    """
    named_once(source.skill for source in session.sources)
    old, new = session.args.from_model, session.args.to_model
    pairs = []
    for agent in dict.fromkeys(subject.agent for subject in session.run.subjects):
        subjects = Subject(agent, old), Subject(agent, new)
        for subject in subjects:
            if subject not in session.run.subjects:
                raise SettingsError("agents", f"can't use {subject.model}", value=agent)
        if len({session.run.subjects[subject] for subject in subjects}) == 1:
            problem = f"the same model as --from {old}"
            raise SettingsError("to_model", problem, "Name two models.", value=new)
        pairs.append(
            ModelPair(
                session.sources,
                *subjects,
                session.run.subjects,
                session.runner,
                session.run.arm_maker,
            )
        )
    return pairs
