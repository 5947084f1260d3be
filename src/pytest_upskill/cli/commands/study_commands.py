"""Studies as commands: ``matrix``, what skills do to each other, and ``ablate``, what each part of
a skill earns, and a shorter skill without some."""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Final

from ..._util.files import why_unwritable
from ..._util.texts import counted, harmless, one_line
from ...checks import CheckedCase, rubric_of
from ...engine import Engine
from ...errors import DEFAULT, InputError, Setting, SettingsError, shown
from ...measure.ablation import SHORTER, Ablation
from ...measure.arm_maker import ArmMaker
from ...measure.assembly import Assembly
from ...measure.bundle_ablation import BundleAblation, load_bundle_cases
from ...measure.case_users import use_users
from ...measure.estimate import Estimate
from ...measure.evaluate import Evaluator
from ...measure.skill_matrix import matrix_plans
from ...measure.study_runner import SkillCases, StudyPlan, StudyRunner, load_skill_cases
from ...models.model import NamedBy
from ...reports.terminal.progress_screen import ProgressScreen
from ...reports.terminal.summary_text import results_lines
from ...reports.writers import report_paths, require_apart
from ...results.contrasts import MARGIN, Study, size_of
from ...results.model_change import ModelChange
from ...results.routing import Routing
from ...results.run import RunResults, versions
from ...settings import Gates, Settings, settings_of
from ...skills.bundle import Bundle, bundle_root, entry_in, entry_name, skill_files_in
from ...skills.copies import beside, save_beside
from ...skills.search import find_skills, labels_of
from ...skills.skill_parts import Part
from ...stats import cases_to_rule_out, family_level, look_plan
from ...teach.case_file import ids_held_out
from ...teach.teach_settings import TeachSettings
from ...trials.subject import Subject
from ...trials.trial import lift_sample_of
from ..command_table import add_options, add_skill, option_values
from ..output import stdout_look, write
from ..project import config_here, find_skill, root_of_run
from ..shared_steps import (
    Consent,
    prices_here,
    progress_screen,
    user_model_here,
    write_reports,
)

_HOW_TO_CONTINUE: Final = "Run it again to continue; nothing is asked twice."
_MOST_NAMES: Final = 6
_HELD_OUT: Final = 0.4  # of the cases


@dataclass
class StudySession:
    """Skills with their cases, agents on models, and what carries out studies of them."""

    args: argparse.Namespace
    sources: tuple[SkillCases, ...]
    subjects: dict[Subject, str]  # with the ids of their models
    runner: StudyRunner
    engine: Engine
    screen: ProgressScreen
    maker: ArmMaker
    folder: Path  # a temporary one, for changed skills
    free: bool
    notes: list[str]  # trouble with the stored answers
    logins: tuple[str, ...]  # labels of subjects that are asked on a login
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    clock: float = field(default_factory=monotonic)

    def may_ask(self, plans: Sequence[StudyPlan]) -> bool:
        """Estimate what it takes, and ask for consent."""
        return self.may_ask_for(self.runner.estimate(plans, free=self.free))

    def may_ask_for(self, estimate: Estimate) -> bool:
        """Ask for consent to what it takes."""
        agreed = Consent(self.args.yes, self.screen, sys.stdout)(estimate)
        if not agreed:
            self.screen.line("Nothing was asked.")
        return agreed

    def carry_out(self, plans: Iterable[StudyPlan]) -> list[Study]:
        """All studies, one after the other, until Ctrl-C."""
        studies = list[Study]()
        for plan in plans:
            studies.append(self.runner.run(plan))
            if studies[-1].interrupted:
                break
        return studies

    def report(
        self,
        studies: Sequence[Study] = (),
        routings: Sequence[Routing] = (),
        model_changes: Sequence[ModelChange] = (),
    ) -> tuple[str, int]:
        """Show and write what came of it; the exit status is 1 if a study fails."""
        results = self._results(studies, routings, model_changes)
        written, status = write_reports(self.args, results, self.notes)
        lines = results_lines(results, stdout_look(int(self.args.verbose)))
        # The last sentence of a study says why it fails; others have none of their gates.
        failed = [f"upskill: {harmless(line)}" for line in results.problems if not studies]
        write("\n".join(["", *lines, *self.notes, *written, *failed]))
        if results.interrupted:
            raise KeyboardInterrupt(_HOW_TO_CONTINUE)
        return "", status or int(bool(results.problems) or self.engine.not_kept)

    def _results(
        self,
        studies: Sequence[Study],
        routings: Sequence[Routing],
        model_changes: Sequence[ModelChange],
    ) -> RunResults:
        stopped = [study.interrupted for study in studies]
        stopped += [routing.interrupted for routing in routings]
        stopped += [change.interrupted for change in model_changes]
        infos = [source.info(shown(source.skill.folder)) for source in self.sources]
        return RunResults(
            started=self.started,
            seconds=monotonic() - self.clock,
            skills=tuple(infos),
            model_ids={subject.label: name for subject, name in self.subjects.items()},
            tests=(),
            records=(),
            logins=self.logins,
            interrupted="Ctrl-C" if any(stopped) else None,
            studies=tuple(studies),
            routings=tuple(routings),
            model_changes=tuple(model_changes),
            gates=self.runner.evaluator.settings.gates,
            versions=versions(),
        )


@contextmanager
def study_session(
    args: argparse.Namespace,
    skills: Sequence[str],
    *,
    loaded: tuple[SkillCases, ...] = (),
    sizes: Mapping[str, int] | None = None,
    as_one: bool = False,
    named: Mapping[str, str] | None = None,
    recording: Path | None = None,
) -> Iterator[StudySession]:
    """Skills, models, agents and an engine; InputError before the first call if one is missing.

    ``sizes`` are the tokens of what must fit the context of a model: by default, of each skill.
    With ``as_one``, several skills are a bundle. ``named`` are models by the settings that name
    them, in place of those of the usual one; answers of a ``recording`` are used like stored ones.
    """
    require_apart(report_paths(args))
    screen = progress_screen(sys.stdout)
    settings = replace(_settings(args), user_model=user_model_here(args))
    looks = look_plan(settings.first_runs or settings.runs, settings.runs)
    # The looks say when to ask for more, and studies have their own arms.
    settings = replace(settings, first_runs=None, baseline=True, against=None)
    bundles = _bundles(skills, settings) if as_one else ()
    sources = loaded or bundles or _sources(skills, settings)
    _require_judge(sources, settings)
    models, notes = Assembly(prices_here(args)), list[str]()
    names = [
        name
        for setting, written in (named or {}).items()
        for name in models.add_named(written, settings, NamedBy(setting))
    ]
    names = names or list(models.add_models(settings))
    subjects = models.subjects(settings.agents, names, screen.text)
    models.add_judge(settings)
    settings = models.with_limits(models.use_logins(settings, subjects))
    cases = ((source.path, case) for source in sources for case, _ in source.cases)
    use_users(models, cases, subjects, settings)
    for source in sources:
        agents = dict.fromkeys(subject.agent for subject in subjects)
        models.roster.require_mcp(agents, source.label, (case for case, _ in source.cases))
    if line := models.login_line(settings.logins):
        screen.text(f"Asked {line}.")
    sizes = sizes or {source.label: source.skill.tokens for source in sources}
    models.require_room(settings, subjects, sizes, screen.text)
    models.require_all(settings, subjects, screen.text)
    hint = ("raise ", Setting("max_cost"), ", and run this again: nothing is asked twice")
    root = root_of_run(Path.cwd())
    engine = models.engine(
        *(settings, root, notes.append),
        spell=args.spell,
        budget_hint=hint,
        recording=recording,
    )
    evaluator = Evaluator(settings, engine.ask, models.price_of, models.roster.version)
    runner = StudyRunner(
        evaluator, looks, screen.begin, screen.done, engine.close, engine.known_before
    )
    with TemporaryDirectory(prefix="upskill-study-") as folder:
        try:
            yield StudySession(
                *(args, sources, subjects, runner, engine, screen, ArmMaker(settings)),
                *(Path(folder), models.is_free, notes, settings.logins),
            )
        finally:
            engine.close()


def _settings(args: argparse.Namespace) -> Settings:
    config = config_here()
    settings = settings_of(option_values(args, config, Settings, Gates))
    if settings.models:
        return replace(settings, models_folder=Path.cwd())
    args.origins["models"] = config.origin("eval_models") or DEFAULT
    return replace(
        settings,
        models=config.eval_models,
        models_folder=Path.cwd(),
        models_file=config.file,
    )


def _sources(written: Sequence[str], settings: Settings) -> tuple[SkillCases, ...]:
    paths = [find_skill(text, os.environ) for text in written]
    files = list(dict.fromkeys(file for path in paths for file in find_skills(path).files))
    labels = labels_of(files)
    return tuple(load_skill_cases(file, labels[file], settings) for file in files)


def _bundles(written: Sequence[str], settings: Settings) -> tuple[SkillCases, ...]:
    """A plugin, or a folder, that has several skills; nothing if it has not."""
    path = find_skill(written[0], os.environ)
    entry = entry_in(path, bundle=len(find_skills(path).files) > 1) if path.is_dir() else None
    if entry is None or (root := bundle_root(entry)) is None or len(skill_files_in(entry)) < 2:
        return ()
    return (load_bundle_cases(root, entry_name(entry), settings),)


def _require_judge(sources: Sequence[SkillCases], settings: Settings) -> None:
    for source in sources:
        judged = [case.id for case, checks in source.cases if rubric_of(checks).texts]
        if judged and not settings.judge:
            problem = f"{source.label} has cases that need a judge ({judged[0]})"
            raise SettingsError("judge", problem, "Name one, for example sonnet.")


def add_flags(output: argparse._ArgumentGroup) -> None:
    output.add_argument("-y", "--yes", action="store_true", help="spend without asking")
    output.add_argument("-v", "--verbose", action="store_true", help="show all rows and arms")


def add_matrix_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s SKILLS [options]"
    parser.add_argument(
        "skills",
        metavar="SKILLS",
        nargs="+",
        help="a skill: its folder, its SKILL.md, or its name in skills_dir; or a folder of skills",
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
        help="also write the skill without the parts that could go, beside the old one, and "
        "measure it on held-out cases",
    )


def run_ablate(args: argparse.Namespace) -> tuple[str, int]:
    with study_session(args, [args.skill], as_one=True) as session:
        ablate = _Ablate(session)
        plans = [ablation.plan() for ablation in ablate.ablations]
        ablate.require_cases()
        shorter = ablate.shorter_plans(()) if args.apply else []  # the whole one stands for it
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
        self._held_out = list[tuple[CheckedCase, ...]]()  # in none of the studies of parts
        if len(session.sources) != 1:
            number = counted(len(session.sources), "skill")
            raise InputError("SKILL", f"{number}, and parts are of one", "Name one skill.")
        args, (source,), held = session.args, session.sources, frozenset[str]()
        if args.apply and isinstance(source.skill, Bundle):
            problem = "only parts of one skill are left out for good"
            raise SettingsError("apply", problem, "Remove the skill from the bundle yourself.")
        if args.apply:
            held = ids_held_out([case for case, _ in source.cases], _HELD_OUT)
            _require_place(source.skill.file)
        settings, margin = session.runner.evaluator.settings, args.margin or MARGIN
        for subject, model_id in session.subjects.items():
            cases = source.cases_for(subject, model_id)
            learn = tuple(checked for checked in cases if checked[0].id not in held)
            self._held_out.append(tuple(checked for checked in cases if checked[0].id in held))
            folder = session.folder / f"{len(self.ablations)}"
            kind = BundleAblation if isinstance(source.skill, Bundle) else Ablation
            ablation = kind(
                *(source, subject, learn, folder, settings, session.maker, args.by, margin)
            )
            self.ablations.append(ablation)

    def require_cases(self) -> None:
        """Say before anything is asked if the cases can't show that a part could go."""
        for ablation, held_out in zip(self.ablations, self._held_out, strict=True):
            self._require_cases(ablation, held_out)

    def _require_cases(self, ablation: Ablation, held_out: Sequence[CheckedCase]) -> None:
        session, parts = self._session, len(ablation.parts)
        looks, margin, apply = session.runner.looks, size_of(ablation.margin), session.args.apply
        # Cases that ask the same count as one.
        have, held = (
            len({lift_sample_of(case) for case, _ in cases}) for cases in (ablation.cases, held_out)
        )
        needed, needed_held = (
            cases_to_rule_out(ablation.margin, family_level(effects, looks))
            for effects in (parts, 1)
        )
        # Parts that are shown to be missed leave their share of the error to the others.
        if apply and have < needed_held:
            problem = (
                f"too few cases to rule out a loss of {margin}: it takes up to {needed:,} to "
                f"choose from {counted(parts, 'part')}, and {needed_held:,} held-out ones (there "
                f"are {have:,} and {held:,})"
            )
            hint = ("Write more, raise ", Setting("margin"), ", or leave out ", Setting("apply"))
            raise InputError(shown(ablation.source.skill.file), problem, (*hint, "."))
        if have < needed:
            could_go = "not that one could go: that takes up to"
            if have >= needed_held:
                could_go = "that one could go only if others are missed: else that takes"
            session.screen.text(
                f"{counted(have, 'case')} may show that a {ablation.noun} is missed, but "
                f"{could_go} {needed:,}, with a margin of {margin}."
            )
        if apply and held < needed_held:
            session.screen.text(
                f"{counted(held, 'held-out case')} can't show that nothing is lost: that takes "
                f"{needed_held:,}, with a margin of {margin}."
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
            return _noted(studies, "Nothing was written, as no part is shown to be free to go")
        self._session.screen.line(f"Without {counted(len(parts), 'part')}, on held-out cases:")
        shorter = self._session.carry_out(self.shorter_plans(parts))
        last, proven = "Nothing was written, as answers to held-out cases are missing", False
        if all(study.complete for study in shorter):
            last, proven = self._written(shorter, parts)
        shorter = [_measured(study, parts) for study in shorter]
        return [*studies, *_noted(shorter, last, failed=not proven)]

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

    def _written(self, shorter: Sequence[Study], parts: Sequence[Part]) -> tuple[str, bool]:
        """Write the shorter skill unless a loss is shown; say so, and if nothing is lost."""
        words = {study.contrast(SHORTER).word for study in shorter}
        if "hurts" in words:
            return "Not written: a loss is shown, if not of one part alone", False
        ablation = self.ablations[0]
        text, removed = ablation.parted.without(parts)
        folder = shown(save_beside(ablation.source.skill.file, text, removed))
        if not words <= {"no loss shown", "helps"}:
            return f"Written to {folder}, but it is not shown that nothing is lost", False
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
        replace(study, conclusions=(*study.conclusions, note), failure=failure) for study in studies
    ]


def _require_place(file: Path) -> None:
    """SettingsError if the shorter skill can't be written: found before anything is paid for."""
    target = beside(file.parent)
    if problem := why_unwritable(target, folder=True):
        raise SettingsError("apply", problem, "Check the folder.", value=shown(target))
