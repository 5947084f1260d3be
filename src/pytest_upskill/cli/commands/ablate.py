"""``pytest-upskill ablate``: what each part of a skill earns, and a shorter skill without some."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from ..._util.files import why_unwritable
from ..._util.texts import counted, one_line, points
from ...checks import CheckedCase
from ...errors import InputError, Setting, SettingsError, shown
from ...measure.ablation import Ablation, fewest_cases_within
from ...measure.study import Study
from ...reports.terminal.layout import Look
from ...reports.terminal.study_lines import study_lines
from ...results.losses import MARGIN, loss_words, standing_of
from ...results.parts import Parts
from ...results.run import RunResults
from ...skills.copies import beside, save_beside
from ...skills.skill_parts import Part
from ...teach.case_file import ids_held_out
from ...teach.teach_settings import TeachSettings
from ...trials.trial import sample_of
from ..studying import Desk, add_study_arguments, run_studies

_MOST_NAMES: Final = 6
_HELD_OUT: Final = 0.4  # of the cases


def add_arguments(parser: argparse.ArgumentParser) -> None:
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
        help="write the skill without the parts that could go beside the old one, and measure it "
        "on cases that were held out",
    )


def run(given: argparse.Namespace) -> tuple[str, int]:
    own = _Command(given)
    return run_studies(given, own.plan, _lines, own.then, own.status, own.later)


def _lines(results: RunResults, look: Look) -> Sequence[str]:
    return study_lines(results, look)[1:]


@dataclass
class _Command:
    given: argparse.Namespace
    ablations: list[Ablation] = field(default_factory=list)  # by agent and model
    held: list[tuple[CheckedCase, ...]] = field(default_factory=list)  # held-out cases of each
    proven: bool = False  # that a shorter skill loses nothing that counts

    def plan(self, desk: Desk) -> list[Study]:
        """One study for each agent on a model; held-out cases are in none of them."""
        if len(desk.sources) != 1:
            found = counted(len(desk.sources), "skill")
            raise InputError("SKILL", f"{found}, and parts are of one", "Name one skill.")
        source = desk.sources[0]
        held = frozenset[str]()
        if self.given.apply:
            held = ids_held_out([case for case, _ in source.cases], _HELD_OUT)
            _require_place(source.skill.file)
        for subject, model_id in desk.subjects.items():
            cases = source.cases_for(subject, model_id)
            learn = tuple(one for one in cases if one[0].id not in held)
            self.held.append(tuple(one for one in cases if one[0].id in held))
            folder = desk.folder / f"{len(self.ablations)}"
            settings, by, margin = desk.lab.settings, self.given.by, self.given.margin or MARGIN
            self.ablations.append(Ablation(source, subject, learn, folder, settings, by, margin))
        studies = [one.study() for one in self.ablations]
        for one, own in zip(self.ablations, self.held, strict=True):
            self._require_cases(one, own, desk)
        return studies

    def _require_cases(self, one: Ablation, rest: Sequence[CheckedCase], desk: Desk) -> None:
        """Say before anything is asked if the cases can't show that a part could go."""
        looks, margin = desk.lab.looks, _points(one.margin)
        # Cases that ask the same count as one.
        have, held = (len({sample_of(case) for case, _ in own}) for own in (one.cases, rest))
        needed, needed_held = (
            fewest_cases_within(one.margin, effects, looks) for effects in (len(one.parts) + 1, 1)
        )
        if self.given.apply and have < needed:
            problem = (
                f"too few cases to rule out a loss of {margin}: it takes {needed:,} to choose from "
                f"{counted(len(one.parts), 'part')}, and {needed_held:,} held-out ones (there are "
                f"{have:,} and {held:,})"
            )
            hint = ("Write more, raise ", Setting("margin"), ", or leave out ", Setting("apply"))
            raise InputError(shown(one.source.skill.file), problem, (*hint, "."))
        if have < needed:
            desk.screen.line(
                f"{counted(have, 'case')} may show that a part is missed, but not that one could "
                f"go: that takes {needed:,}, with a margin of {margin}."
            )
        elif self.given.apply and held < needed_held:
            desk.screen.line(
                f"{counted(held, 'held-out case')} can't show that nothing is lost: that takes "
                f"{needed_held:,}, with a margin of {margin}."
            )

    def later(self, _desk: Desk) -> list[Study]:
        """What measuring a shorter skill takes; the whole one stands for it."""
        own = zip(self.ablations, self.held, strict=True) if self.given.apply else ()
        return [one.shorter_study((), one.source.skill, held, one.unknown) for one, held in own]

    def then(self, desk: Desk, results: RunResults) -> RunResults:
        """With --apply, measure the skill without the parts that could go, and write it."""
        if not self.given.apply:
            return results
        parts = self._chosen(results.parts)
        if not all(one.complete for one in results.parts):
            return _noted(results, "Nothing was written, as answers are missing")
        if not parts:
            return _noted(results, "Nothing was written, as no part is shown to be free to go")
        desk.screen.line(f"Without {counted(len(parts), 'part')}, on held-out cases:")
        each = zip(self.ablations, self.held, results.parts, strict=True)
        carried = desk.carry_out(
            one.shorter_study(parts, one.without(parts), held, about) for one, held, about in each
        )
        found = [one for one in carried.found if isinstance(one, Parts)]
        if not carried.complete:
            return _noted(results, "Nothing was written, as answers to held-out cases are missing")
        return replace(results, parts=tuple(self._written(found, parts)))

    def _chosen(self, found: Sequence[Parts]) -> list[Part]:
        """The parts that could go for all agents and models that see them; never all of them."""
        known = [{one.name: one.could_go for one in own.parts} for own in found]
        all_parts = {part.name: part for one in self.ablations for part in one.parts}
        order = [one.name for own in found for one in own.could_go]
        names = [name for name in dict.fromkeys(order) if all(one.get(name, True) for one in known)]
        chosen = [all_parts[name] for name in names]
        while chosen and not self.ablations[0].leaves_text(chosen):
            chosen.pop()
        return chosen

    def _written(self, found: Sequence[Parts], parts: Sequence[Part]) -> list[Parts]:
        """Unless a loss is shown; with what the held-out cases say."""
        standings = {standing_of(one.versions[0].change, one.margin) for one in found}
        folder = ""
        if "loses" not in standings:
            one = self.ablations[0]
            text, gone = one.parted.without(parts)
            folder = shown(save_beside(one.source.skill.file, text, gone))
        self.proven = standings == {"no loss shown"}
        margin = _points(found[0].margin)
        last = "Not written: a loss is shown, if not of one part alone"
        if self.proven:
            last = f"Written to {folder}: a loss of {margin} or more is ruled out"
        elif folder:
            last = f"Written to {folder}, but it is not shown that nothing is lost"
        return [
            replace(
                one,
                versions=(replace(one.versions[0], folder=folder),),
                notes=(*one.notes, _measured(one), last),
            )
            for one in found
        ]

    def status(self, results: RunResults) -> int:
        complete = all(one.complete for one in results.parts)
        return 0 if complete and (self.proven or not self.given.apply) else 1


def _measured(found: Parts) -> str:
    version = found.versions[0]
    words = loss_words(version.change, found.margin, version.cases_needed)
    names = ", ".join(one_line(name, 40) for name in version.parts[:_MOST_NAMES])
    more = len(version.parts) - _MOST_NAMES
    names += f" and {more:,} more" if more > 0 else ""
    size = f"{version.tokens:,} of {counted(found.tokens, 'token')}"
    return f"Without {names}: {size}; on {counted(version.cases, 'held-out case')}: {words}"


def _noted(results: RunResults, note: str) -> RunResults:
    parts = tuple(replace(one, notes=(*one.notes, note)) for one in results.parts)
    return replace(results, parts=parts)


def _points(margin: float) -> str:
    return f"{points(margin).lstrip('+')} points"


def _require_place(file: Path) -> None:
    """SettingsError if the shorter skill can't be written: found before anything is paid for."""
    target = beside(file.parent)
    if problem := why_unwritable(target, folder=True):
        raise SettingsError("apply", problem, "Check the folder.", value=shown(target))
