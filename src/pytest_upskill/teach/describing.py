"""Improve a description from end to end: split, versions, held-out queries, decision."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from .._util.files import read_file, reason_of, replace_file, resolved, save_file
from .._util.texts import counted, one_line, shortened
from ..errors import BudgetError, InputError, UnusableError, shown
from ..skills.folder import SKILL_NAMES, skill_file
from ..skills.search import find_skills
from ..skills.skill import LONGEST_DESCRIPTION, Skill, fields_of, load_skill
from ..skills.triggers import Trigger
from .described import Described, MeasuredWording, version_text
from .drafts import draft_of, require_writable
from .progress_lines import ProgressScreen
from .prompts import Tried, description_prompt, fenced
from .sources import Material, size_of
from .teach_costs import estimate_descriptions, too_few_queries
from .teach_models import TeachModels
from .teach_run import (
    TeachContext,
    TeachState,
    open_models,
    require_consent,
    require_unfinished,
    state_of_run,
)
from .teach_settings import TeachSettings, check
from .trigger_set import read_queries
from .wordings import (
    MOST_BODY,
    Wording,
    ask_for_description,
    changes,
    measure_queries,
    others_text,
    query_report,
    split_queries,
    wording_of,
)

_PLATEAU: Final = 2  # stop after this many versions without a better one
_FEWEST: Final = 2  # queries of each kind: one to learn from, one to hold out


def describe_task(skill: Skill) -> str:
    """What tells the run from those of other commands, when it is resumed."""
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
        learn, held = split_queries(triggers)
        material = _material(skill, learn, held)
        require_unfinished(settings, context, material)
        wording_of(skill, context.root)
        guess = estimate_descriptions(settings, models, skill, len(triggers))
        guess = replace(guess, warning=too_few_queries(held, settings.attempts))
        others = others_text(models, skill)
        require_consent(context, material, models, guess)
        state = state_of_run(settings, context, material, skill.name)
        run = DescribeRun(settings, models, state, context.screen, learn, held, others)
        described = run.described(wording_of(skill, state.folder))
        return _saved(described, settings, models, state)


@dataclass
class DescribeRun:
    """What all steps of a run need, and its versions so far."""

    settings: TeachSettings
    models: TeachModels
    state: TeachState
    screen: ProgressScreen
    learn: Sequence[Trigger]
    held: Sequence[Trigger]
    others: str  # skills that are installed beside it
    versions: list[MeasuredWording] = field(default_factory=list)

    def described(self, current: Wording) -> Described:
        stop = self._learned(current)
        name = current.base.name
        described = Described(name, (), tuple(self.learn), tuple(self.held), stop)
        measured = [one for one in self.versions if one.learning]
        if len(measured) < 2:
            return replace(described, versions=tuple(self.versions))
        self.screen.begin("held out…")
        try:
            for one in measured:
                scores = measure_queries(self.models, one.wording, self.held)
                self.versions[one.number - 1] = replace(one, held_out=scores)
        except BudgetError:
            note = f"not all held-out queries were asked: it {self.models.past_budget()}"
            self.screen.drop()
            return replace(described, versions=tuple(self.versions), notes=(note,))
        self.screen.drop()
        for one in self.versions:
            self._keep(one)
        return self._decided(replace(described, versions=tuple(self.versions)))

    def _decided(self, described: Described) -> Described:
        """Versions that beat the current one on learning queries are compared on the others.

        Which these are does not depend on the held-out queries, so only they count as compared.
        """
        first = described.current
        assert first.learning
        assert first.held_out
        better = [
            one
            for one in described.versions[1:]
            if one.learning and one.held_out and one.learning.right > first.learning.right
        ]
        if not better:
            return described
        after = [one.held_out for one in better if one.held_out]
        runs = self.settings.runs * len(first.held_out.by_student)
        lifts = changes(first.held_out, after, runs)
        pairs = zip(better, lifts, strict=True)
        winner, change = max(pairs, key=lambda pair: (pair[1].lift, *pair[0].merit))
        described = replace(described, compared=len(better))
        if change.lift <= 0:
            return described
        kept = self._folder(winner)
        return replace(described, winner=winner, change=change, version_folder=kept)

    def _learned(self, current: Wording) -> str:
        """Write versions and measure each on the learning queries; return why it ended."""
        wording: Wording | None = current
        while True:
            if wording:
                self._add(self._measured(wording))
            if self.models.out_of_budget:
                return f"another version {self.models.past_budget()}"
            if stop := self._why_stop():
                return stop
            wording = self._next()
            known = {one.wording.description for one in self.versions if not one.problem}
            if wording and wording.description in known:
                return "the teacher wrote nothing new"

    def _measured(self, wording: Wording) -> MeasuredWording:
        one = MeasuredWording(len(self.versions) + 1, wording)
        self.screen.begin(f"{one.label}…")
        try:
            return replace(one, learning=measure_queries(self.models, wording, self.learn))
        except BudgetError as error:
            return replace(one, problem=str(error))

    def _next(self) -> Wording | None:
        """Another version of the best; None if it is unusable, which counts as a version."""
        best = self._best
        assert best.learning, "the best version is a measured one"
        skill = best.wording.base
        prompt = description_prompt(
            skill.name,
            shortened(skill.body, MOST_BODY),
            _tried(best),
            fenced("queries", query_report(best.learning)),
            self.others,
            [_tried(one) for one in self.versions if one.number > best.number],
            LONGEST_DESCRIPTION,
        )
        number = len(self.versions) + 1
        self.screen.begin(f"version {number}: {self.models.teacher} rewrites the description…")
        try:
            return ask_for_description(
                self.models, prompt, self.versions[0].wording, self.state.session
            )
        except BudgetError:
            self.screen.drop()
        except UnusableError as error:
            self._add(MeasuredWording(number, best.wording, problem=str(error)))
        return None

    def _add(self, one: MeasuredWording) -> None:
        self.versions.append(one)
        length = counted(len(one.wording.description), "character")
        if one.learning:
            what = f"learning {one.learning.right:>4.0%} right   {length}"
        else:
            what = one_line(one.problem or "", 120)
        self.screen.line(f"{one.label:<12}{what}")
        self._keep(one)

    @property
    def _best(self) -> MeasuredWording:
        """On the learning queries: what is held out has no part in what the teacher gets."""
        return max(self.versions, key=lambda one: one.merit)

    def _why_stop(self) -> str | None:
        best, target = self._best, self.settings.target
        if best.learning is None:
            return "the current description could not be measured"
        if best.learning.worst >= target:
            how = "" if best.number > 1 else " with the current description"
            return f"every student decides {target:.0%} of the learning queries right{how}"
        if len(self.versions) >= self.settings.attempts:
            return f"limit of {counted(self.settings.attempts, 'version')} reached"
        if len(self.versions) - best.number >= _PLATEAU:
            return f"{_PLATEAU} versions in a row were no better"
        return None

    def _folder(self, one: MeasuredWording) -> Path:
        return self.state.folder / f"version-{one.number}"

    def _keep(self, one: MeasuredWording) -> None:
        if not one.problem:
            folder = self._folder(one)
            save_file(folder / one.wording.base.file.name, one.wording.text.encode())
            save_file(folder / "report.txt", f"{version_text(one)}\n")


def _tried(one: MeasuredWording) -> Tried:
    if one.problem:
        return Tried(
            f"(it could not be used: {one_line(one.problem, 300)})", f"version {one.number}"
        )
    right = one.learning.right if one.learning else 0.0
    return Tried(one.wording.description, f"{right:.0%} of the queries below decided right")


def _saved(
    described: Described, settings: TeachSettings, models: TeachModels, state: TeachState
) -> Described:
    """Change the description if that is shown to be better, or asked for all the same."""
    described = replace(described, cost=models.spent())
    winner = described.winner
    if winner and (described.shown or settings.anyway):
        try:
            kept = _write(winner.wording, described.current.wording, state)
        except InputError as error:
            unsaved = f"Not saved: {error.where}: {error.problem}."
            if described.version_folder:
                unsaved += f"\nThe version is kept in {shown(described.version_folder)}"
            described = replace(described, unsaved=unsaved)
        else:
            folder = winner.wording.base.file.parent
            described = replace(described, folder=folder, kept=kept)
            with suppress(InputError):  # the skill is saved, and that is what counts
                state.save(
                    saved=str(folder.absolute()),
                    cost=described.cost,
                    limits=settings.on_resume("limit"),
                    out_of_budget=models.out_of_budget,
                )
    models.close()  # only then it is known what could not be stored
    return replace(described, notes=(*described.notes, *dict.fromkeys(models.notes)))


def _write(new: Wording, old: Wording, state: TeachState) -> Path:
    """Write a SKILL.md, unless somebody changed it meanwhile; return where the old skill is."""
    file = new.base.file
    try:
        if read_file(file) != old.text.encode():
            raise InputError(file, "it was changed while this ran", "Run it again.")
        kept = state.keep_before(file.parent)
        replace_file(file, new.text.encode())
    except OSError as error:
        problem = f"can't be written: {reason_of(error)}"
        raise InputError(file, problem, "Check the file.") from None
    return kept


def _required_queries(folder: Path) -> tuple[Trigger, ...]:
    triggers = read_queries(folder)
    should = sum(one.should_trigger for one in triggers)
    if min(should, len(triggers) - should) < _FEWEST:
        raise InputError(
            folder,
            f"too few queries: {should} that should open the skill, {len(triggers) - should} that "
            f"should not, and it takes {_FEWEST} of each",
            "Run pytest-upskill triggers first.",
        )
    return triggers


def _without(paths: Sequence[Path], folder: Path) -> tuple[Path, ...]:
    """The other skills; a folder of skills may have the one that is described, too."""
    found = list[Path]()
    for path in paths:
        try:
            files = find_skills(path).files
        except InputError:
            found.append(path)  # told where all are installed
            continue
        others = [file.parent for file in files if resolved(file.parent) != resolved(folder)]
        found += others if len(others) < len(files) and others else [path]
    return tuple(found)


def _material(skill: Skill, learn: Sequence[Trigger], held: Sequence[Trigger]) -> Material:
    """What is sent of the skill; a resumed run has the same queries, sent or not."""
    start = draft_of(skill, fields_of(skill.file))
    texts = ["\n".join(f"{one.should_trigger} {one.query}" for one in own) for own in (learn, held)]
    sent = (size_of(SKILL_NAMES[0], start.text), size_of("its queries to learn from", texts[0]))
    return Material("\n".join(texts), start=start, sent=sent)
