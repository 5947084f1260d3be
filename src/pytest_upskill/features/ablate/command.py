"""``ablate``: what each part of a skill earns, and a shorter skill without some."""

import argparse
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from ..._util.files import why_unwritable
from ..._util.texts import counted, first_few, one_line
from ...cli.command_table import add_options, add_skill
from ...cli.study_session import StudySession, add_flags, study_session
from ...errors import InputError, Setting, SettingsError, shown
from ...measure.evaluate import asked_cases
from ...results.arm_contrasts import share_error
from ...results.contrasts import MARGIN, Study, size_of
from ...settings import Settings
from ...skills.bundle import Bundle
from ...skills.copies import beside, save_beside
from ...skills.skill_parts import Part
from ...stats import cases_to_rule_out
from ...teach.case_file import ids_held_out
from ...teach.teach_settings import TeachSettings
from .plans import SHORTER, Ablation, BundleAblation, count_samples

_MAX_NAMES: Final = 6
_HELD_OUT: Final = 0.4  # of the cases


def add_ablate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s SKILL [options]"
    add_skill(parser)
    output = add_options(parser, "ablate", Settings, TeachSettings)["reports"]
    add_flags(output)
    parser.add_argument(
        "--by",
        choices=("section", "paragraph"),
        default="section",
        help="what is left out: sections, by heading, or paragraphs (default: section)",
    )
    output.add_argument(
        "--apply",
        action="store_true",
        help=(
            "also write the skill without the parts that could go, beside the old one,"
            " and measure it on held-out cases"
        ),
    )


def run_ablate(args: argparse.Namespace) -> tuple[str, int]:
    with study_session(args, [args.skill], as_one=True) as session:
        ablations = _make_ablations(session)
        plans = [ablation.plan() for ablation in ablations]
        for ablation in ablations:
            _require_cases(ablation, session)
        shorter = []
        if args.apply:
            # The whole skill stands for the shorter one.
            shorter = [ablation.shorter_plan(()) for ablation in ablations]
        if not session.may_carry_out([*plans, *shorter]):
            return "", 1
        studies = session.carry_out(plans)
        if args.apply and not any(study.interrupted for study in studies):
            studies = _apply(session, ablations, studies)
    return session.report(studies)


def _make_ablations(session: StudySession) -> list[Ablation]:
    """One skill, part by part, on each agent on a model."""
    args = session.args
    if len(session.sources) != 1:
        number = counted(len(session.sources), "skill")
        raise InputError("SKILL", f"{number}, and parts are of one", "Name one skill.")
    source = session.sources[0]
    kind = Ablation
    if isinstance(source.skill, Bundle):
        kind = BundleAblation
        if args.apply:
            problem = "only parts of one skill are left out for good"
            hint = "Remove the skill from the bundle yourself."
            raise SettingsError("apply", problem, hint)

    held_out: Collection[str] = ()
    if args.apply:
        held_out = ids_held_out([case for case, _ in source.cases], _HELD_OUT)
        _require_place(source.skill.file)
    ablations: list[Ablation] = []
    for subject, model_id in session.run.subjects.items():
        cases = asked_cases(source.cases, subject, model_id)
        ablation = kind(
            source,
            subject,
            cases=tuple(each for each in cases if each[0].id not in held_out),
            held_out=tuple(each for each in cases if each[0].id in held_out),
            folder=session.folder / f"{len(ablations)}",
            settings=session.run.settings,
            maker=session.run.arm_maker,
            by=args.by,
            margin=args.margin or MARGIN,
        )
        ablations.append(ablation)
    return ablations


def _require_cases(ablation: Ablation, session: StudySession) -> None:
    """Say before anything is asked if the cases can't show that a part could go."""
    apply = session.args.apply
    margin = size_of(ablation.margin)
    parts = len(ablation.parts)
    have = count_samples(ablation.cases)
    held_out = count_samples(ablation.held_out)
    needed = cases_to_rule_out(ablation.margin, share_error(parts))
    needed_held_out = cases_to_rule_out(ablation.margin, share_error(1))
    if apply and have < needed:
        problem = (
            f"too few cases to rule out a loss of {margin}: it takes {needed:,} to"
            f" choose from {counted(parts, 'part')}, and {needed_held_out:,} held-out"
            f" ones (there are {have:,} and {held_out:,})"
        )
        leave_out = (", or leave out ", Setting("apply"), ".")
        hint = ("Write more, raise ", Setting("margin"), *leave_out)
        raise InputError(shown(ablation.source.skill.file), problem, hint)
    if have < needed:
        session.screen.text(
            f"{counted(have, 'case')} may show that a {ablation.noun} is missed,"
            f" but not that one could go: that takes {needed:,}, with a margin of"
            f" {margin}."
        )
    if apply and held_out < needed_held_out:
        session.screen.text(
            f"{counted(held_out, 'held-out case')} can't show that nothing is lost:"
            f" that takes {needed_held_out:,}, with a margin of {margin}."
        )


def _apply(
    session: StudySession, ablations: Sequence[Ablation], studies: list[Study]
) -> list[Study]:
    """Measure the skill without the parts that could go, and write it."""
    if not all(study.complete for study in studies):
        return _note(studies, "Nothing was written, as answers are missing")
    parts = _choose_parts(ablations, studies)
    if not parts:
        return _note(
            studies, "Nothing was written, as no part is shown to be free to go"
        )

    number = counted(len(parts), "part")
    session.screen.line(f"Without {number}, on held-out cases:")
    plans = [ablation.shorter_plan(parts) for ablation in ablations]
    shorter = [_describe(study, parts) for study in session.carry_out(plans)]
    words = {study.contrast(SHORTER).word for study in shorter}
    is_proven = words <= {"no loss shown", "helps"}
    if not all(study.complete for study in shorter):
        note = "Nothing was written, as answers to held-out cases are missing"
        is_proven = False
    elif "hurts" in words:
        note = "Not written: a loss is shown, if not of one part alone"
    else:
        ablation = ablations[0]
        text, removed = ablation.parted.without(parts)
        folder = shown(save_beside(ablation.source.skill.file, text, removed))
        note = f"Written to {folder}, but it is not shown that nothing is lost"
        if is_proven:
            lost = f"a loss of {size_of(ablation.margin)} or more"
            note = f"Written to {folder}: {lost} is ruled out"
    return [*studies, *_note(shorter, note, failed=not is_proven)]


def _choose_parts(
    ablations: Sequence[Ablation], studies: Sequence[Study]
) -> list[Part]:
    """The parts that could go for all agents and models that see them;
    never all of them.
    """
    needed = set()
    going: dict[Part, None] = {}
    for ablation, study in zip(ablations, studies, strict=True):
        free = ablation.could_go(study)
        going.update(dict.fromkeys(free))
        needed |= set(ablation.parts.values()) - set(free)
    chosen = [part for part in going if part not in needed]
    while chosen and not ablations[0].leaves_text(chosen):
        chosen.pop()
    return chosen


def _describe(study: Study, parts: Sequence[Part]) -> Study:
    contrast = study.contrast(SHORTER)
    names = first_few([one_line(part.name, 40) for part in parts], _MAX_NAMES)
    cases = counted(contrast.cases, "held-out case")
    measured = f"Without {names}, on {cases}: {contrast.words}"
    return replace(study, conclusions=(*study.conclusions, measured))


def _note(studies: Sequence[Study], note: str, *, failed: bool = True) -> list[Study]:
    failure = note if failed else ""
    return [
        replace(study, conclusions=(*study.conclusions, note), failure=failure)
        for study in studies
    ]


def _require_place(file: Path) -> None:
    """SettingsError if the shorter skill can't be written:
    found before anything is paid for.
    """
    target = beside(file.parent)
    if problem := why_unwritable(target, folder=True):
        raise SettingsError("apply", problem, "Check the folder.", value=shown(target))
