"""Studies as commands: ``matrix``, what skills do to each other, and ``ablate``, what each part of
a skill earns, and a shorter skill without some."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from ..._util.files import why_unwritable
from ..._util.texts import counted, one_line
from ...checks import CheckedCase
from ...errors import InputError, Setting, SettingsError, shown
from ...measure.ablation import SHORTER, Ablation, fewest_cases_within
from ...measure.skill_matrix import matrix_plans
from ...measure.study_runner import StudyPlan
from ...results.contrasts import MARGIN, size_of
from ...results.study import Study
from ...skills.copies import beside, save_beside
from ...skills.skill_parts import Part
from ...teach.case_file import ids_held_out
from ...teach.teach_settings import TeachSettings
from ...trials.trial import sample_of
from ..studying import StudyCommand, StudySession, add_study_arguments, run_studies

_MOST_NAMES: Final = 6
_HELD_OUT: Final = 0.4  # of the cases


def add_matrix_arguments(parser: argparse.ArgumentParser) -> None:
    add_study_arguments(parser, "matrix")


def run_matrix(args: argparse.Namespace) -> tuple[str, int]:
    return run_studies(args, _Matrix())


class _Matrix(StudyCommand):
    def plan(self, session: StudySession) -> Sequence[StudyPlan]:
        return matrix_plans(session.sources, session.subjects, session.maker)

    def passes(self, studies: Sequence[Study]) -> bool:
        """Unless a pair is shown to hurt."""
        return not any(contrast.word == "hurts" for s in studies for contrast in s.contrasts)


def add_ablate_arguments(parser: argparse.ArgumentParser) -> None:
    groups = add_study_arguments(parser, "ablate", TeachSettings)
    parser.add_argument(
        "--by",
        choices=("section", "paragraph"),
        default="section",
        help="what is left out: sections, by heading, or paragraphs (default: section)",
    )
    groups["output"].add_argument(
        "--apply",
        action="store_true",
        help="also write the skill without the parts that could go, beside the old one, and "
        "measure it on held-out cases",
    )


def run_ablate(args: argparse.Namespace) -> tuple[str, int]:
    return run_studies(args, _Ablate(args))


@dataclass
class _Ablate(StudyCommand):
    args: argparse.Namespace
    ablations: list[Ablation] = field(default_factory=list)  # by agent and model
    held: list[tuple[CheckedCase, ...]] = field(default_factory=list)  # held-out cases of each
    proven: bool = False  # that a shorter skill loses nothing that counts

    def plan(self, session: StudySession) -> list[StudyPlan]:
        """One study for each agent on a model; held-out cases are in none of them."""
        if len(session.sources) != 1:
            number = counted(len(session.sources), "skill")
            raise InputError("SKILL", f"{number}, and parts are of one", "Name one skill.")
        source = session.sources[0]
        held = frozenset[str]()
        if self.args.apply:
            held = ids_held_out([case for case, _ in source.cases], _HELD_OUT)
            _require_place(source.skill.file)
        for subject, model_id in session.subjects.items():
            cases = source.cases_for(subject, model_id)
            learn = tuple(checked for checked in cases if checked[0].id not in held)
            self.held.append(tuple(checked for checked in cases if checked[0].id in held))
            folder = session.folder / f"{len(self.ablations)}"
            settings, by, margin = (
                session.runner.evaluator.settings,
                self.args.by,
                self.args.margin or MARGIN,
            )
            self.ablations.append(
                Ablation(source, subject, learn, folder, settings, session.maker, by, margin)
            )
        plans = [ablation.plan() for ablation in self.ablations]
        for ablation, held_out in zip(self.ablations, self.held, strict=True):
            self._require_cases(ablation, held_out, session)
        return plans

    def _require_cases(
        self, ablation: Ablation, held_out: Sequence[CheckedCase], session: StudySession
    ) -> None:
        """Say before anything is asked if the cases can't show that a part could go."""
        looks, margin, parts = session.runner.looks, size_of(ablation.margin), len(ablation.parts)
        # Cases that ask the same count as one.
        have, held = (
            len({sample_of(case) for case, _ in cases}) for cases in (ablation.cases, held_out)
        )
        needed, needed_held = (
            fewest_cases_within(ablation.margin, effects, looks) for effects in (parts + 1, 1)
        )
        if self.args.apply and have < needed:
            problem = (
                f"too few cases to rule out a loss of {margin}: it takes {needed:,} to choose from "
                f"{counted(parts, 'part')}, and {needed_held:,} held-out ones (there are "
                f"{have:,} and {held:,})"
            )
            hint = ("Write more, raise ", Setting("margin"), ", or leave out ", Setting("apply"))
            raise InputError(shown(ablation.source.skill.file), problem, (*hint, "."))
        if have < needed:
            session.screen.line(
                f"{counted(have, 'case')} may show that a part is missed, but not that one could "
                f"go: that takes {needed:,}, with a margin of {margin}."
            )
        elif self.args.apply and held < needed_held:
            session.screen.line(
                f"{counted(held, 'held-out case')} can't show that nothing is lost: that takes "
                f"{needed_held:,}, with a margin of {margin}."
            )

    def follow_ups(self) -> list[StudyPlan]:
        """What measuring a shorter skill takes; the whole one stands for it."""
        if not self.args.apply:
            return []
        return [
            ablation.shorter_plan((), held)
            for ablation, held in zip(self.ablations, self.held, strict=True)
        ]

    def follow_up(self, session: StudySession, studies: list[Study]) -> list[Study]:
        """With --apply, measure the skill without the parts that could go, and write it."""
        if not self.args.apply:
            return studies
        if not all(study.complete for study in studies):
            return _noted(studies, "Nothing was written, as answers are missing")
        parts = self._chosen(studies)
        if not parts:
            return _noted(studies, "Nothing was written, as no part is shown to be free to go")
        session.screen.line(f"Without {counted(len(parts), 'part')}, on held-out cases:")
        shorter = session.carry_out(
            ablation.shorter_plan(parts, held)
            for ablation, held in zip(self.ablations, self.held, strict=True)
        )
        if not all(study.complete for study in shorter):
            last = "Nothing was written, as answers to held-out cases are missing"
        else:
            last = self._written(shorter, parts)
        return [*studies, *(_measured(study, parts, last) for study in shorter)]

    def _chosen(self, studies: Sequence[Study]) -> list[Part]:
        """The parts that could go for all agents and models that see them; never all of them."""
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

    def _written(self, shorter: Sequence[Study], parts: Sequence[Part]) -> str:
        """Write the shorter skill unless a loss is shown, and say so."""
        words = {study.contrast(SHORTER).word for study in shorter}
        if "hurts" in words:
            return "Not written: a loss is shown, if not of one part alone"
        ablation = self.ablations[0]
        text, removed = ablation.parted.without(parts)
        folder = shown(save_beside(ablation.source.skill.file, text, removed))
        self.proven = words <= {"no loss shown", "helps"}
        if not self.proven:
            return f"Written to {folder}, but it is not shown that nothing is lost"
        return f"Written to {folder}: a loss of {size_of(ablation.margin)} or more is ruled out"

    def passes(self, studies: Sequence[Study]) -> bool:  # noqa: ARG002
        return self.proven or not self.args.apply


def _measured(study: Study, parts: Sequence[Part], last: str) -> Study:
    contrast = study.contrast(SHORTER)
    names = ", ".join(one_line(part.name, 40) for part in parts[:_MOST_NAMES])
    unnamed = len(parts) - _MOST_NAMES
    names += f" and {unnamed:,} more" if unnamed > 0 else ""
    cases = counted(contrast.cases, "held-out case")
    measured = f"Without {names}, on {cases}: {contrast.words}"
    return replace(study, conclusions=(*study.conclusions, measured, last))


def _noted(studies: Sequence[Study], note: str) -> list[Study]:
    return [replace(study, conclusions=(*study.conclusions, note)) for study in studies]


def _require_place(file: Path) -> None:
    """SettingsError if the shorter skill can't be written: found before anything is paid for."""
    target = beside(file.parent)
    if problem := why_unwritable(target, folder=True):
        raise SettingsError("apply", problem, "Check the folder.", value=shown(target))
