"""Improve a description from end to end: split, versions, held-out queries, decision."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from .._util.files import read_file, reason_of, replace_file, resolved, save_file
from .._util.texts import counted, one_line, shortened
from ..errors import BudgetError, InputError, shown
from ..skills.case import Case
from ..skills.folder import SKILL_NAMES, skill_file
from ..skills.search import find_skills
from ..skills.skill import LONGEST_DESCRIPTION, Skill, fields_of, load_skill
from .described import Described, MeasuredWording, version_text
from .drafts import draft_of, require_writable
from .improvement import Improvement
from .prompts import DESCRIBER, Tried, description_prompt, fenced
from .query_writing import read_queries
from .replies import DESCRIPTION_SCHEMA, TeachRequest, ask_for
from .sources import Material, size_of
from .teach_costs import estimate_descriptions, too_few_queries
from .teach_run import TeachContext, TeachRun, open_models, require_unfinished, start_run
from .teach_settings import TeachSettings, check
from .wordings import (
    MOST_BODY,
    Wording,
    changes,
    measure_queries,
    neighbours_text,
    query_report,
    read_description,
    split_queries,
    wording_of,
)

_FEWEST: Final = 2  # queries of each kind: one to learn from, one to hold out


def describe_task(skill: Skill) -> str:
    """Tells the run from those of other commands when it is resumed."""
    return f"description of {skill.name}"


def improve_description(path: Path, settings: TeachSettings, context: TeachContext) -> Described:
    """Improve the description of a skill that has queries; unchanged if none is shown better."""
    check(settings)
    skill = load_skill(skill_file(path))
    folder = skill.file.parent
    triggers = _required_queries(folder)
    settings = replace(settings, with_skills=_without(settings.with_skills, folder))
    require_writable(folder)
    with open_models(settings, context) as models:
        learning, held_out = split_queries(triggers)
        material = _material(skill, learning, held_out)
        require_unfinished(settings, context, material)
        wording_of(skill, context.root)
        estimate = estimate_descriptions(settings, models, skill, len(triggers))
        estimate = replace(estimate, warning=too_few_queries(held_out, settings.attempts))
        neighbours = neighbours_text(models, skill)
        run = start_run(settings, context, models, material, estimate, skill.name)
        loop = DescriptionImprovement(run, learning, neighbours)
        stop = loop.improve(wording_of(skill, run.state.folder))
        described = Described(
            skill.name, tuple(loop.attempts), tuple(learning), tuple(held_out), stop
        )
        return _saved(_decided(described, run), run)


@dataclass
class DescriptionImprovement(Improvement[Wording, MeasuredWording]):
    """Versions of a description, each written by what the best one does with learning queries."""

    queries: Sequence[Case]  # only the learning ones
    neighbours: str  # skills that are installed beside it

    noun = "version"

    def propose(self) -> Wording:
        models, best = self.run.models, self.best
        assert best.learning, "the best version is a measured one"
        skill = best.wording.base
        prompt = description_prompt(
            skill.name,
            shortened(skill.body, MOST_BODY),
            _tried(best),
            fenced("queries", query_report(best.learning)),
            self.neighbours,
            [_tried(version) for version in self.attempts if version.number > best.number],
            LONGEST_DESCRIPTION,
        )
        number = len(self.attempts) + 1
        self.run.screen.begin(f"version {number}: {models.teacher} rewrites the description…")
        current = self.attempts[0].wording
        session = self.run.state.session
        request = TeachRequest(models.teacher, DESCRIBER, prompt, DESCRIPTION_SCHEMA, session)
        return ask_for(models, request, lambda text: read_description(text, current))

    def measure(self, number: int, version: Wording) -> MeasuredWording:
        measured = MeasuredWording(number, version)
        self.run.screen.begin(f"{measured.label}…")
        scores = measure_queries(self.run.models, version, self.queries)
        return replace(measured, learning=scores)

    def unmeasured(self, number: int, problem: str, version: Wording | None) -> MeasuredWording:
        return MeasuredWording(number, version or self.best.wording, problem=problem)

    def is_new(self, version: Wording) -> bool:
        earlier = {one.wording.description for one in self.attempts if not one.problem}
        return version.description not in earlier

    def why_enough(self) -> str | None:
        best, target = self.best, self.run.settings.target
        if best.learning is None:
            return "the current description could not be measured"
        if best.learning.worst < target:
            return None
        current = "" if best.number > 1 else " with the current description"
        return f"every student decides {target:.0%} of the learning queries right{current}"

    def show(self, attempt: MeasuredWording) -> None:
        if attempt.learning:
            length = counted(len(attempt.wording.description), "character")
            text = f"learning {attempt.learning.right:>4.0%} right   {length}"
        else:
            text = one_line(attempt.problem or "", 120)
        self.run.screen.line(f"{attempt.label:<12}{text}")

    def keep(self, attempt: MeasuredWording) -> None:
        _keep(attempt, self.run)


def _version_folder(version: MeasuredWording, run: TeachRun) -> Path:
    return run.state.folder / f"version-{version.number}"


def _keep(version: MeasuredWording, run: TeachRun) -> None:
    if not version.problem:
        folder = _version_folder(version, run)
        save_file(folder / version.wording.base.file.name, version.wording.text.encode())
        save_file(folder / "report.txt", f"{version_text(version)}\n")


def _tried(version: MeasuredWording) -> Tried:
    if version.problem:
        problem = f"(it could not be used: {one_line(version.problem, 300)})"
        return Tried(problem, f"version {version.number}")
    right = version.learning.right if version.learning else 0.0
    return Tried(version.wording.description, f"{right:.0%} of the queries below decided right")


def _decided(described: Described, run: TeachRun) -> Described:
    """With the held-out queries, on which versions are compared with the current one."""
    if sum(version.learning is not None for version in described.versions) < 2:
        return described
    run.screen.begin("held out…")
    versions = list(described.versions)
    try:
        for place, version in enumerate(versions):
            if version.learning:
                scores = measure_queries(run.models, version.wording, described.held)
                versions[place] = replace(version, held_out=scores)
    except BudgetError:
        run.screen.drop()
        note = f"not all held-out queries were asked: it {run.models.past_budget()}"
        return replace(described, versions=tuple(versions), notes=(note,))
    run.screen.drop()
    for version in versions:
        _keep(version, run)
    return _with_winner(replace(described, versions=tuple(versions)), run)


def _with_winner(described: Described, run: TeachRun) -> Described:
    """With the best of the versions that beat the current one on the learning queries.

    Which these are does not depend on the held-out queries, so only they count as compared.
    """
    current = described.current
    assert current.learning
    assert current.held_out
    better = [
        (version, version.held_out)
        for version in described.versions[1:]
        if version.learning and version.held_out and version.learning.right > current.learning.right
    ]
    if not better:
        return described
    runs = run.settings.runs * len(current.held_out.by_student)
    lifts = changes(current.held_out, [scores for _, scores in better], runs)
    pairs = zip([version for version, _ in better], lifts, strict=True)
    winner, change = max(pairs, key=lambda pair: (pair[1].lift, *pair[0].merit))
    described = replace(described, compared=len(better))
    if change.lift <= 0:
        return described
    folder = _version_folder(winner, run)
    return replace(described, winner=winner, change=change, version_folder=folder)


def _saved(described: Described, run: TeachRun) -> Described:
    """Change the description if the winner is shown to be better, or with ``anyway``."""
    described = replace(described, cost=run.models.spent())
    winner = described.winner
    if winner and (described.shown or run.settings.anyway):
        try:
            kept = _write(winner.wording, described.current.wording, run)
        except InputError as error:
            unsaved = f"Not saved: {error.where}: {error.problem}."
            if described.version_folder:
                unsaved += f"\nThe version is kept in {shown(described.version_folder)}"
            described = replace(described, unsaved=unsaved)
        else:
            folder = winner.wording.base.file.parent
            described = replace(described, folder=folder, kept=kept)
            run.mark_saved(folder, described.cost)
    return replace(described, notes=(*described.notes, *run.final_notes()))


def _write(new: Wording, old: Wording, run: TeachRun) -> Path:
    """Write a SKILL.md, unless somebody changed it meanwhile; return where the old skill is."""
    file = new.base.file
    try:
        if read_file(file) != old.text.encode():
            raise InputError(file, "it was changed while this ran", "Run it again.")
        kept = run.state.keep_before(file.parent)
        replace_file(file, new.text.encode())
    except OSError as error:
        problem = f"can't be written: {reason_of(error)}"
        raise InputError(file, problem, "Check the file.") from None
    return kept


def _required_queries(folder: Path) -> tuple[Case, ...]:
    triggers = read_queries(folder)
    should = sum(trigger.should_open for trigger in triggers)
    if min(should, len(triggers) - should) < _FEWEST:
        raise InputError(
            folder,
            f"too few queries: {should} that should open the skill, {len(triggers) - should} that "
            f"should not, and at least {_FEWEST} of each are needed",
            "Run pytest-upskill triggers first.",
        )
    return triggers


def _without(paths: Sequence[Path], folder: Path) -> tuple[Path, ...]:
    """The other skills: a folder of skills may hold the one that is described, too."""
    skills = list[Path]()
    for path in paths:
        try:
            files = find_skills(path).files
        except InputError:
            skills.append(path)  # reported where skills are installed
            continue
        others = [file.parent for file in files if resolved(file.parent) != resolved(folder)]
        skills += others if len(others) < len(files) and others else [path]
    return tuple(skills)


def _material(skill: Skill, learning: Sequence[Case], held_out: Sequence[Case]) -> Material:
    """What is sent of the skill; a resumed run has the same queries, sent or not."""
    start = draft_of(skill, fields_of(skill.file))
    texts = [
        "\n".join(f"{trigger.should_open} {trigger.input}" for trigger in triggers)
        for triggers in (learning, held_out)
    ]
    sent = (size_of(SKILL_NAMES[0], start.text), size_of("its queries to learn from", texts[0]))
    return Material("\n".join(texts), start=start, sent=sent)
