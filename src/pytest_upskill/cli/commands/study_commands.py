"""Studies as commands: ``matrix``, what skills do to each other, and ``ablate``, what each part of
a skill earns, and a shorter skill without some."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from ..._util.files import why_unwritable
from ..._util.texts import counted, one_line, unsigned_points
from ...checks import CheckedCase
from ...errors import InputError, Setting, SettingsError, shown
from ...measure.ablation import Ablation, fewest_cases_within
from ...measure.skill_matrix import matrix_studies
from ...measure.study import Study
from ...results.effects import MARGIN, loss_standing, loss_words
from ...results.part_effects import Parts
from ...results.run import RunResults
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
    def plan(self, session: StudySession) -> Sequence[Study]:
        return matrix_studies(session.sources, session.subjects, session.runner.looks)

    def status(self, results: RunResults) -> int:
        """1 if a pair is shown to hurt, or answers are missing."""
        return int(any(matrix.pairs_that("hurts", "incomplete") for matrix in results.matrices))


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

    def plan(self, session: StudySession) -> list[Study]:
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
            settings, by, margin = session.runner.settings, self.args.by, self.args.margin or MARGIN
            self.ablations.append(Ablation(source, subject, learn, folder, settings, by, margin))
        studies = [ablation.study() for ablation in self.ablations]
        for ablation, held_out in zip(self.ablations, self.held, strict=True):
            self._require_cases(ablation, held_out, session)
        return studies

    def _require_cases(
        self, ablation: Ablation, held_out: Sequence[CheckedCase], session: StudySession
    ) -> None:
        """Say before anything is asked if the cases can't show that a part could go."""
        looks, margin, parts = session.runner.looks, _points(ablation.margin), len(ablation.parts)
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

    def follow_ups(self) -> list[Study]:
        """What measuring a shorter skill takes; the whole one stands for it."""
        if not self.args.apply:
            return []
        return [
            ablation.shorter_study((), ablation.source.skill, held, ablation.unmeasured)
            for ablation, held in zip(self.ablations, self.held, strict=True)
        ]

    def conclude(self, session: StudySession, results: RunResults) -> RunResults:
        """With --apply, measure the skill without the parts that could go, and write it."""
        if not self.args.apply:
            return results
        parts = self._chosen(results.parts)
        if not all(each.complete for each in results.parts):
            return _noted(results, "Nothing was written, as answers are missing")
        if not parts:
            return _noted(results, "Nothing was written, as no part is shown to be free to go")
        session.screen.line(f"Without {counted(len(parts), 'part')}, on held-out cases:")
        each = zip(self.ablations, self.held, results.parts, strict=True)
        part_conclusions = session.carry_out(
            ablation.shorter_study(parts, ablation.without(parts), held, about)
            for ablation, held, about in each
        )
        shorter = [each for each in part_conclusions if isinstance(each, Parts)]
        if not session.complete:
            return _noted(results, "Nothing was written, as answers to held-out cases are missing")
        return replace(results, parts=tuple(self._written(shorter, parts)))

    def _chosen(self, measured: Sequence[Parts]) -> list[Part]:
        """The parts that could go for all agents and models that see them; never all of them."""
        could_go = [{part.name: part.could_go for part in parts.parts} for parts in measured]
        by_name = {part.name: part for ablation in self.ablations for part in ablation.parts}
        names = dict.fromkeys(part.name for parts in measured for part in parts.could_go)
        agreed = [name for name in names if all(each.get(name, True) for each in could_go)]
        chosen = [by_name[name] for name in agreed]
        while chosen and not self.ablations[0].leaves_text(chosen):
            chosen.pop()
        return chosen

    def _written(self, shorter: Sequence[Parts], parts: Sequence[Part]) -> list[Parts]:
        """Unless a loss is shown; with what the held-out cases say."""
        standings = {loss_standing(each.versions[0].change, each.margin) for each in shorter}
        folder = ""
        if "loses" not in standings:
            ablation = self.ablations[0]
            text, removed = ablation.parted.without(parts)
            folder = shown(save_beside(ablation.source.skill.file, text, removed))
        self.proven = standings == {"no loss shown"}
        margin = _points(shorter[0].margin)
        last = "Not written: a loss is shown, if not of one part alone"
        if self.proven:
            last = f"Written to {folder}: a loss of {margin} or more is ruled out"
        elif folder:
            last = f"Written to {folder}, but it is not shown that nothing is lost"
        return [
            replace(
                each,
                versions=(replace(each.versions[0], folder=folder),),
                notes=(*each.notes, _measured(each), last),
            )
            for each in shorter
        ]

    def status(self, results: RunResults) -> int:
        complete = all(parts.complete for parts in results.parts)
        return 0 if complete and (self.proven or not self.args.apply) else 1


def _measured(shorter: Parts) -> str:
    version = shorter.versions[0]
    words = loss_words(version.change, shorter.margin, version.cases_needed)
    names = ", ".join(one_line(name, 40) for name in version.parts[:_MOST_NAMES])
    unnamed = len(version.parts) - _MOST_NAMES
    names += f" and {unnamed:,} more" if unnamed > 0 else ""
    size = f"{version.tokens:,} of {counted(shorter.tokens, 'token')}"
    return f"Without {names}: {size}; on {counted(version.cases, 'held-out case')}: {words}"


def _noted(results: RunResults, note: str) -> RunResults:
    parts = tuple(replace(each, notes=(*each.notes, note)) for each in results.parts)
    return replace(results, parts=parts)


def _points(margin: float) -> str:
    return f"{unsigned_points(margin)} points"


def _require_place(file: Path) -> None:
    """SettingsError if the shorter skill can't be written: found before anything is paid for."""
    target = beside(file.parent)
    if problem := why_unwritable(target, folder=True):
        raise SettingsError("apply", problem, "Check the folder.", value=shown(target))
