"""Studies as commands: ``matrix``, what skills do to each other, and ``ablate``, what
each part of a skill earns, and a shorter skill without some.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from ..._util.files import why_unwritable
from ..._util.texts import counted, one_line
from ...checks import CheckedCase
from ...errors import InputError, Setting, SettingsError, shown
from ...measure.ablation import SHORTER, Ablation
from ...measure.bundle_ablation import BundleAblation
from ...measure.skill_matrix import matrix_plans
from ...measure.study_runner import StudyPlan, share_error
from ...results.contrasts import MARGIN, Study, size_of
from ...settings import Settings
from ...skills.bundle import Bundle
from ...skills.copies import beside, save_beside
from ...skills.skill_parts import Part
from ...stats import cases_to_rule_out
from ...teach.case_file import ids_held_out
from ...teach.teach_settings import TeachSettings
from ...trials.trial import lift_sample_of
from ..command_table import add_options, add_skill
from ..study_session import StudySession, add_flags, study_session

_MOST_NAMES: Final = 6
_HELD_OUT: Final = 0.4  # of the cases


def add_matrix_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s SKILLS [options]"
    parser.add_argument(
        "skills",
        metavar="SKILLS",
        nargs="+",
        help=(
            "a skill: its folder, its SKILL.md, or its name in skills_dir; or a folder"
            " of skills"
        ),
    )
    output = add_options(parser, "matrix", Settings)["reports"]
    add_flags(output)


def run_matrix(args: argparse.Namespace) -> tuple[str, int]:
    with study_session(args, args.skills) as session:
        plans = matrix_plans(session.sources, session.subjects, session.maker)
        if not session.may_ask(plans):
            return "", 1
        studies = session.carry_out(plans)
    return session.report(studies)


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
        ablate = _Ablate(session)
        plans = [ablation.plan() for ablation in ablate.ablations]
        ablate.require_cases()
        # The whole one stands for it
        shorter = ablate.shorter_plans(()) if args.apply else []
        if not session.may_ask([*plans, *shorter]):
            return "", 1
        studies = session.carry_out(plans)
        if args.apply and not any(study.interrupted for study in studies):
            studies = ablate.applied(studies)
    return session.report(studies)


class _Ablate:
    """The parts of one skill, by each agent on a model."""

    def __init__(self, session: StudySession) -> None:
        self._session = session
        self.ablations = list[Ablation]()
        # In none of the studies of parts
        self._held_out = list[tuple[CheckedCase, ...]]()
        if len(session.sources) != 1:
            number = counted(len(session.sources), "skill")
            raise InputError(
                "SKILL", f"{number}, and parts are of one", "Name one skill."
            )
        args, (source,), held = session.args, session.sources, frozenset[str]()
        if args.apply and isinstance(source.skill, Bundle):
            problem = "only parts of one skill are left out for good"
            raise SettingsError(
                "apply", problem, "Remove the skill from the bundle yourself."
            )
        if args.apply:
            held = ids_held_out([case for case, _ in source.cases], _HELD_OUT)
            _require_place(source.skill.file)
        settings, margin = session.runner.evaluator.settings, args.margin or MARGIN
        for subject, model_id in session.subjects.items():
            cases = source.cases_for(subject, model_id)
            learn = tuple(checked for checked in cases if checked[0].id not in held)
            self._held_out.append(
                tuple(checked for checked in cases if checked[0].id in held)
            )
            folder = session.folder / f"{len(self.ablations)}"
            kind = BundleAblation if isinstance(source.skill, Bundle) else Ablation
            ablation = kind(
                *(
                    source,
                    subject,
                    learn,
                    folder,
                    settings,
                    session.maker,
                    args.by,
                    margin,
                )
            )
            self.ablations.append(ablation)

    def require_cases(self) -> None:
        """Say before anything is asked if the cases can't show that a part could go."""
        for ablation, held_out in zip(self.ablations, self._held_out, strict=True):
            self._require_cases(ablation, held_out)

    def _require_cases(
        self, ablation: Ablation, held_out: Sequence[CheckedCase]
    ) -> None:
        session, parts = self._session, len(ablation.parts)
        margin, apply = size_of(ablation.margin), session.args.apply
        # Cases that ask the same count as one.
        have, held = (
            len({lift_sample_of(case) for case, _ in cases})
            for cases in (ablation.cases, held_out)
        )
        needed, needed_held = (
            cases_to_rule_out(ablation.margin, share_error(effects))
            for effects in (parts, 1)
        )
        if apply and have < needed:
            problem = (
                f"too few cases to rule out a loss of {margin}: it takes {needed:,} to"
                f" choose from {counted(parts, 'part')}, and {needed_held:,} held-out"
                f" ones (there are {have:,} and {held:,})"
            )
            hint = (
                "Write more, raise ",
                Setting("margin"),
                ", or leave out ",
                Setting("apply"),
            )
            raise InputError(shown(ablation.source.skill.file), problem, (*hint, "."))
        if have < needed:
            session.screen.text(
                f"{counted(have, 'case')} may show that a {ablation.noun} is missed,"
                f" but not that one could go: that takes {needed:,}, with a margin of"
                f" {margin}."
            )
        if apply and held < needed_held:
            session.screen.text(
                f"{counted(held, 'held-out case')} can't show that nothing is lost:"
                f" that takes {needed_held:,}, with a margin of {margin}."
            )

    def shorter_plans(self, parts: Sequence[Part]) -> list[StudyPlan]:
        """The skill without all of these parts, on held-out cases."""
        each = zip(self.ablations, self._held_out, strict=True)
        return [ablation.shorter_plan(parts, held_out) for ablation, held_out in each]

    def applied(self, studies: list[Study]) -> list[Study]:
        """Measure the skill without the parts that could go, and write it."""
        if not all(study.complete for study in studies):
            return _noted(studies, "Nothing was written, as answers are missing")
        parts = self._chosen(studies)
        if not parts:
            return _noted(
                studies, "Nothing was written, as no part is shown to be free to go"
            )
        self._session.screen.line(
            f"Without {counted(len(parts), 'part')}, on held-out cases:"
        )
        shorter = self._session.carry_out(self.shorter_plans(parts))
        last, proven = (
            "Nothing was written, as answers to held-out cases are missing",
            False,
        )
        if all(study.complete for study in shorter):
            last, proven = self._written(shorter, parts)
        shorter = [_measured(study, parts) for study in shorter]
        return [*studies, *_noted(shorter, last, failed=not proven)]

    def _chosen(self, studies: Sequence[Study]) -> list[Part]:
        """The parts that could go for all agents and models that see them;
        never all of them.
        """
        each = zip(self.ablations, studies, strict=True)
        going = [(ablation.parts, ablation.could_go(study)) for ablation, study in each]
        agreed = dict.fromkeys(
            part
            for _, free in going
            for part in free
            if all(part in free or part not in parts.values() for parts, free in going)
        )
        chosen = [*agreed]
        while chosen and not self.ablations[0].leaves_text(chosen):
            chosen.pop()
        return chosen

    def _written(
        self, shorter: Sequence[Study], parts: Sequence[Part]
    ) -> tuple[str, bool]:
        """Write the shorter skill unless a loss is shown; say so,
        and if nothing is lost.
        """
        words = {study.contrast(SHORTER).word for study in shorter}
        if "hurts" in words:
            return "Not written: a loss is shown, if not of one part alone", False
        ablation = self.ablations[0]
        text, removed = ablation.parted.without(parts)
        folder = shown(save_beside(ablation.source.skill.file, text, removed))
        if not words <= {"no loss shown", "helps"}:
            return (
                f"Written to {folder}, but it is not shown that nothing is lost",
                False,
            )
        lost = f"a loss of {size_of(ablation.margin)} or more"
        return f"Written to {folder}: {lost} is ruled out", True


def _measured(study: Study, parts: Sequence[Part]) -> Study:
    contrast = study.contrast(SHORTER)
    names = ", ".join(one_line(part.name, 40) for part in parts[:_MOST_NAMES])
    unnamed = len(parts) - _MOST_NAMES
    names += f" and {unnamed:,} more" if unnamed > 0 else ""
    cases = counted(contrast.cases, "held-out case")
    measured = f"Without {names}, on {cases}: {contrast.words}"
    return replace(study, conclusions=(*study.conclusions, measured))


def _noted(studies: Sequence[Study], note: str, *, failed: bool = True) -> list[Study]:
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
