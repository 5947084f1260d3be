"""generate, refine, describe and cases from end to end: what they need, the loop, saving."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any, Final

from .._util.files import resolved
from .._util.texts import counted, one_line, slug
from ..checks import KINDS, checks_of, why_agent
from ..errors import BudgetError, InputError, Setting, SettingsError, TeachError, shown
from ..measure.estimate import Estimate
from ..skills.folder import SKILL_NAMES, is_skill, skill_file
from ..skills.search import find_skills
from ..skills.skill import Skill, load_skill
from ..trials.arm import BASELINE, SKILL, TRACE
from .bodies import Bodies, body_sentences
from .case_file import (
    CaseFile,
    case_file_text,
    read_case_file,
    require_growable,
    require_judge,
    split_cases,
)
from .case_writing import HOLDOUT, LEARN, Author, Authored, CaseAuthor, Rejected, UsableCase
from .descriptions import HELD_OUT_SHARE, Descriptions, require_changeable
from .drafts import Draft, DraftSpec, ask_for_draft, draft_of
from .improvement import measure, parts_of
from .outcome import CURRENT, Attempt, Taught
from .progress_lines import as_sentence, cells_of
from .prompts import ADVERSARY, AUTHOR, draft_prompt
from .query_writing import read_queries
from .saving import checked_name, free_name, require_free, require_writable, save_skill
from .secrets import masked
from .shorter import Shorter
from .sources import Material, gather, size_of
from .teach_costs import (
    estimate_descriptions,
    estimate_teaching,
    too_few_cases,
    too_few_queries,
    too_few_to_shorten,
)
from .teach_models import TeachModels
from .teach_run import (
    StateFolder,
    TeachContext,
    TeachRun,
    open_models,
    require_unfinished,
    start_run,
)
from .teach_settings import DEFAULT_SKILL_TOKENS, FEWEST_CASES, TeachSettings, check

_FORMAT_VERSION: Final = "1.0"  # of the format, as upskill writes it
_NOT_TELLING: Final = (
    "every student passes it without the skill: ask about something only the skill explains"
)


_MOST_NEIGHBOURS: Final = 20_000  # characters
_FEWEST: Final = 2  # cases or queries of a kind: to learn from, and to hold out
_AS_GOOD: Final = 0.05
_MORE_TOKENS: Final = 0.02


def write_skill(settings: TeachSettings, context: TeachContext) -> Taught:
    """Write a skill and its cases from a task, a trace or a skill, measure and improve it."""
    check(settings, fewest_cases=FEWEST_CASES)
    parent = context.skills or context.root / "skills"
    if settings.output:
        name = checked_name("output", settings.output.resolve().name)
        settings = replace(settings, name=name)
    elif settings.name:
        checked_name("name", settings.name)
    with open_models(settings, context) as models:
        material = gather(settings, models.provider)
        start = material.start
        old = CaseFile()
        if start and start.base_folder:
            old = read_case_file(start.base_folder, agents=settings.only_agents)
        require_growable(old)
        require_unfinished(settings, context, material)
        target = _target_folder(settings, context, start, parent)
        missing = max(0, settings.cases - len(old.cases))
        estimate = estimate_teaching(
            settings, models, material, missing, len(old.cases), drafts=True
        )
        estimate = _with_warning(estimate, old, missing, settings, models)
        first_name = settings.name or (start.name if start else slug(settings.task) or "my-skill")
        run = start_run(settings, context, models, material, estimate, first_name)
        steps, taken = _Steps(run), list[Path]()

        def unused_name(name: str) -> str:
            if target:
                return name
            free = _free_name(parent, name, run.state, force=settings.force)
            taken.extend([parent / name] if free != name else [])
            return free

        draft = steps.draft(unused_name)
        new, no_signal = steps.write_cases(draft, old.cases, missing)
        new += steps.write_adversarial_cases(draft, [*old.cases, *new]) if models.students else []
        cases = _active_cases(old, new)
        learning, held_out = split_cases(cases, settings.holdout)
        if models.students:
            before = steps.before(start, learning) if start else None
            loop = Bodies(run, learning, held_out, before, spec=steps.spec(draft.name))
            taught = loop.taught(draft, is_new=True, no_signal=no_signal)
            taught = steps.compared_with_trace(taught, cases)
        else:
            parts = parts_of(learning, held_out)
            taught = Taught(draft.name, (Attempt(1, draft),), 1, parts)
        taught = _saved(run, taught, old, new, target or parent / draft.name)
        for folder in taken if taught.folder else ():
            context.screen.line(f"{shown(folder)} already exists: saved as {draft.name}")
        return taught


def _target_folder(
    settings: TeachSettings, context: TeachContext, start: Draft | None, parent: Path
) -> Path | None:
    """Where to save the skill; None if its name is not known yet. An error if that can't be."""
    if settings.output or settings.name:
        setting = "output" if settings.output else "name"
        target = settings.output or parent / (settings.name or "")
        require_free(setting, target, force=settings.force)
        require_writable(target.resolve().parent if target.is_dir() else target, setting)
        return target
    if start is None:
        require_writable(parent)
        return None
    if not context.in_place:
        raise SettingsError(
            "source",
            "this would change the skill in place",
            (
                *("Allow it with ", Setting("force"), " (the old version is kept), "),
                *("or choose another folder with ", Setting("output"), "."),
            ),
            value=shown(settings.source or parent),
        )
    require_writable(start.base_folder or parent)
    return start.base_folder


def refine_skill(path: Path, settings: TeachSettings, context: TeachContext) -> Taught:
    """Improve a skill that has cases, or make it shorter; unchanged if no version is as good."""
    check(settings)
    start, old = _skill_with_cases(path, settings)
    limit = settings.max_skill_tokens
    if limit is not None and start.tokens <= limit:
        size = (
            f"{start.name} has about {counted(start.tokens, 'token')}, and {limit:,} are allowed."
        )
        attempt = Attempt(1, start, is_new=False)
        return Taught(start.name, (attempt,), 1, sentences=(f"{size} No model was asked.",))
    if len(old.cases) < _FEWEST:
        problem = "this skill has too few cases"
        raise InputError(path, problem, "Run pytest-upskill cases first.")
    require_judge(old.cases, settings.judge)
    if settings.adversary:
        require_growable(old)
    if limit is not None:
        _require_both_parts(path, old, settings)
    require_writable(start.base_folder or path)
    with open_models(settings, context) as models:
        material = Material(start=start, sent=(size_of(SKILL_NAMES[0], start.text),))
        require_unfinished(settings, context, material)
        estimate = estimate_teaching(settings, models, material, 0, len(old.cases))
        estimate = _with_warning(estimate, old, 0, settings, models)
        if limit is not None:
            held = split_cases(_active_cases(old, ()), settings.holdout)[1]
            estimate = replace(estimate, warning=too_few_to_shorten(held, settings.margin))
        run = start_run(settings, context, models, material, estimate, start.folder_name)
        steps = _Steps(run)
        new = steps.write_adversarial_cases(start, old.cases)
        learning, held_out = split_cases(_active_cases(old, new), settings.holdout)
        if limit is None:
            spec = steps.spec(start.folder_name)
            taught = Bodies(run, learning, held_out, spec=spec).taught(start, is_new=False)
        else:
            taught = Shorter(run, learning, held_out, limit=limit).taught(start, is_new=False)
        if not taught.best.is_new and not new:
            return _with_costs(taught, run)
        return _saved(run, taught, old, new, start.base_folder or path)


def _require_both_parts(path: Path, old: CaseFile, settings: TeachSettings) -> None:
    learning, held_out = split_cases(_active_cases(old, ()), settings.holdout)
    if min(len(learning), len(held_out)) < _FEWEST:
        problem = (
            f"too few cases: {len(learning)} to learn from and {len(held_out)} held out, and at "
            f"least {_FEWEST} of each are needed"
        )
        hint = ("Write more with pytest-upskill cases, or change ", Setting("holdout"), ".")
        raise InputError(old.file or path, problem, hint)


def describe_task(skill: Skill) -> str:
    """Tells the run from those of other commands when it is resumed."""
    return f"description of {skill.name}"


def describe_skill(path: Path, settings: TeachSettings, context: TeachContext) -> Taught:
    """Improve the description of a skill that has queries; unchanged if none is shown better."""
    check(settings)
    start = draft_of(load_skill(skill_file(path)))
    assert start.base, "a skill in a folder"
    folder = start.base.file.parent
    learning, held_out = split_cases(_required_queries(folder), HELD_OUT_SHARE)
    settings = replace(settings, with_skills=_without(settings.with_skills, folder))
    require_writable(folder)
    with open_models(settings, context) as models:
        material = _queries_sent(start, learning, held_out)
        require_unfinished(settings, context, material)
        require_changeable(start)
        queries = len(learning) + len(held_out)
        estimate = estimate_descriptions(settings, models, start.base, queries)
        held = [usable.case for usable in held_out]
        estimate = replace(estimate, warning=too_few_queries(held, settings.attempts))
        neighbours = _neighbours_text(models, start.base)
        run = start_run(settings, context, models, material, estimate, start.folder_name)
        loop = Descriptions(run, learning, held_out, neighbours=neighbours)
        taught = loop.taught(start, is_new=False)
        if not taught.best.is_new:
            return _with_costs(taught, run)
        return _saved(run, taught, CaseFile(), (), folder, with_cases=False)


def _required_queries(folder: Path) -> list[UsableCase]:
    queries = read_queries(folder)
    should_open = sum(query.should_open for query in queries)
    if min(should_open, len(queries) - should_open) < _FEWEST:
        raise InputError(
            folder,
            f"too few queries: {should_open} that should open the skill, "
            f"{len(queries) - should_open} that should not, and at least {_FEWEST} of each are "
            "needed",
            "Run pytest-upskill triggers first.",
        )
    return [UsableCase({}, query, checks_of(query, KINDS, {})) for query in queries]


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


def _queries_sent(
    start: Draft, learning: Sequence[UsableCase], held_out: Sequence[UsableCase]
) -> Material:
    """What is sent of the skill; a resumed run has the same queries, sent or not."""
    texts = [
        "\n".join(f"{usable.case.should_open} {usable.case.input}" for usable in queries)
        for queries in (learning, held_out)
    ]
    sent = (size_of(SKILL_NAMES[0], start.text), size_of("its queries to learn from", texts[0]))
    return Material("\n".join(texts), start=start, sent=sent)


def _neighbours_text(models: TeachModels, skill: Skill) -> str:
    """The skills that are installed beside it, as a list for the teacher."""
    neighbours = models.neighbours(skill)
    lines = [f"- {entry.name}: {one_line(entry.description, 300)}" for entry in neighbours]
    return masked("\n".join(lines)[:_MOST_NEIGHBOURS])


def add_cases(path: Path, settings: TeachSettings, context: TeachContext) -> Taught:
    """Write cases for a skill; the skill itself is unchanged."""
    check(settings, fewest_cases=1)
    start, old = _skill_with_cases(path, settings)
    require_growable(old)
    missing = FEWEST_CASES - len(old.cases)
    if settings.cases < missing:
        problem = f"a skill needs at least {FEWEST_CASES} cases"
        hint = f"It has {len(old.cases)}: write at least {missing}."
        raise SettingsError("cases", problem, hint, value=settings.cases)
    require_writable(start.base_folder or path)
    with open_models(settings, context) as models:
        material = gather(settings, models.provider)
        sent = (size_of(SKILL_NAMES[0], start.text), *material.sent)
        material = replace(material, sent=sent)
        require_unfinished(settings, context, material)
        once = replace(settings, attempts=1)
        estimate = estimate_teaching(once, models, material, settings.cases, len(old.cases))
        run = start_run(settings, context, models, material, estimate, start.folder_name)
        steps = _Steps(run)
        new, no_signal = steps.write_cases(start, old.cases, settings.cases, fewest=1)
        parts = parts_of(*split_cases(_active_cases(old, new), settings.holdout))
        attempt = Attempt(1, start, is_new=False)
        taught = Taught(start.name, (attempt,), 1, parts, no_signal=no_signal)
        taught = replace(taught, sentences=tuple(body_sentences(taught)))
        saved = _saved(run, taught, old, new, start.base_folder or path)
        return replace(saved, kept=None)  # the skill was not changed


def _skill_with_cases(path: Path, settings: TeachSettings) -> tuple[Draft, CaseFile]:
    file = skill_file(path)
    cases = read_case_file(file.parent, agents=settings.only_agents)
    return draft_of(load_skill(file)), cases


def _active_cases(old: CaseFile, new: Sequence[UsableCase]) -> list[UsableCase]:
    return [*(usable for usable in old.cases if not usable.case.skip), *new]


def _with_warning(
    estimate: Estimate, old: CaseFile, new: int, settings: TeachSettings, models: TeachModels
) -> Estimate:
    if not models.students:  # nothing is measured
        return estimate
    warning = too_few_cases(old.cases, new, settings.holdout, len(models.students))
    return replace(estimate, warning=warning)


def _free_name(parent: Path, name: str, state: StateFolder, *, force: bool) -> str:
    """A name that is not taken, unless by what this run saved or by a skill to replace."""
    saved = Path(state.state.saved)
    if saved.parent == parent.absolute() and saved.exists():
        return saved.name
    if force and is_skill(parent / name):
        return name
    return free_name(parent, name)


@dataclass(frozen=True)
class _Steps:
    """The steps that generate, refine and cases have in common."""

    run: TeachRun

    def draft(self, unused_name: Callable[[str], str]) -> Draft:
        """The first version; ``unused_name`` gives it another name if its own is taken."""
        settings, models, screen = self.run.settings, self.run.models, self.run.screen
        start, trace = self.run.material.start, self.run.material.trace
        if trace:
            left_out = f"; {trace.left_out}" if trace.left_out else ""
            screen.line(f"Trace of {counted(trace.tokens, 'token')}{left_out}")
        screen.begin(f"Generating skill with {models.teacher}…")
        limit = settings.max_skill_tokens or DEFAULT_SKILL_TOKENS
        prompt = draft_prompt(
            settings.task,
            self.run.material.text,
            limit,
            improves=start is not None,
            agents=models.with_agents,
        )
        spec = self.spec(settings.name or (start.name if start else None))
        draft = ask_for_draft(models, prompt, spec, self.run.state.session)
        draft = replace(draft, name=unused_name(draft.name))
        over = f" (limit {limit:,})" if draft.tokens > limit else ""
        screen.done(f"SKILL.md  {counted(draft.tokens, 'token')}{over}")
        self.run.state.rename(draft.name)
        return draft

    def write_cases(
        self, draft: Draft, old: Sequence[UsableCase], number: int, fewest: int = 0
    ) -> tuple[list[UsableCase], tuple[str, ...]]:
        """New cases, and the ids of those that show nothing: every student passes them anyway.

        TeachError if fewer than ``fewest`` are usable, or too few together with the old ones.
        """
        if number <= 0:
            return [], ()
        models, screen = self.run.models, self.run.screen
        screen.begin("Generating cases…")
        author = self._author(models.author, AUTHOR, draft)
        written = author.write(number, old)
        no_signal: set[str] = set()
        if models.students and written.usable:
            with suppress(BudgetError):  # the attempts will report it, and the cases are usable
                no_signal = self._with_signal(author, draft, written, old)
        cases = written.usable
        screen.done(written.counts(number))
        if len(cases) < max(fewest, FEWEST_CASES - len(old)):
            problem = (
                f"{models.author}: only {len(cases)} of {counted(number, 'case')} usable. "
                f"Rejected: {written.reasons}\n  Try a stronger model with "
            )
            raise TeachError((problem, Setting("author"), ", or describe the task more precisely."))
        return cases, tuple(sorted(no_signal))

    def write_adversarial_cases(self, draft: Draft, old: Sequence[UsableCase]) -> list[UsableCase]:
        """Usable cases by the adversary; the teacher learns from them."""
        adversary = self.run.models.adversary
        if not adversary:
            return []
        self.run.screen.begin(f"Generating adversarial cases with {adversary}…")
        number = max(2, round(self.run.settings.cases / 4))
        written = self._author(adversary, ADVERSARY, draft).write(number, old)
        cases = [_with_tags(usable, "adversary", LEARN) for usable in written.usable]
        self.run.screen.done(f"{len(cases)} kept")
        return cases

    def before(self, start: Draft, learning: Sequence[UsableCase]) -> Attempt:
        """The skill to improve, as it was."""
        results = measure(self.run, start, learning, self.run.models.students)
        self.run.screen.row(CURRENT, cells_of(results))
        return Attempt(0, start, results, is_new=False)

    def compared_with_trace(self, taught: Taught, cases: Sequence[UsableCase]) -> Taught:
        """With the teacher's own answers, without anything, with the trace and with the skill."""
        run, trace, best = self.run, self.run.material.trace, taught.best
        plain = [one for one in cases if not why_agent(one.case, one.checks)]
        if not trace or not plain or not best.learning:
            return taught
        models, screen = run.models, run.screen
        screen.begin(f"Comparing the skill with the trace on {models.teacher}…")
        try:
            results = measure(run, best.draft, plain, models.as_student, trace=trace.text)
        except BudgetError:
            note = f"The skill was not compared with the trace: it {models.past_budget()}."
            return replace(taught, sentences=(*taught.sentences, note))
        finally:
            screen.drop()
        taught = replace(taught, teacher=results, trace_tokens=trace.tokens)
        return replace(taught, sentences=(*taught.sentences, *trace_sentences(taught)))

    def _with_signal(
        self, author: Author, draft: Draft, written: Authored, old: Sequence[UsableCase]
    ) -> set[str]:
        """Replace, once, the cases that every student passes without the skill.

        Return the ids of those for which there is no better one.
        """
        cases = written.usable
        passed = self._passed_without(draft, cases)
        easy = [usable for usable in cases if usable.case.id in passed]
        rejected = [Rejected(one_line(one.case.input, 300), _NOT_TELLING) for one in easy]
        new = author.replace(rejected, [*old, *cases]) if easy else []
        still_passed = self._passed_without(draft, new)
        better = [usable for usable in new if usable.case.id not in still_passed]
        telling = [usable for usable in cases if usable.case.id not in passed]
        written.usable = [*telling, *better, *easy[len(better) :]]
        written.rejected += rejected[: len(better)]
        return {usable.case.id for usable in easy[len(better) :]}

    def _passed_without(self, draft: Draft, cases: Sequence[UsableCase]) -> set[str]:
        """The cases that every student passes in every run without the skill."""
        if not cases:
            return set()
        students = self.run.models.students
        results = measure(self.run, draft, cases, students, only_baseline=True)
        failed = {record.case for record in results.records if record.outcome != "passed"}
        return {usable.case.id for usable in cases} - failed

    def spec(self, name: str | None) -> DraftSpec:
        settings, start = self.run.settings, self.run.material.start
        limit = settings.max_skill_tokens or DEFAULT_SKILL_TOKENS
        if settings.max_skill_tokens is None and start:
            limit = max(limit, start.tokens)
        fallback = slug(settings.task, 64) or "my-skill"
        return DraftSpec(limit, self.run.state.folder, fallback, start, name)

    def _author(self, model: str, system: str, draft: Draft) -> Author:
        return CaseAuthor(self.run, model, system, draft.body)


def _with_tags(usable: UsableCase, *added: str) -> UsableCase:
    tags = [*usable.data["tags"], *added]
    case = replace(usable.case, tags=tuple(tags))
    return replace(usable, data={**usable.data, "tags": tags}, case=case)


def _saved(
    run: TeachRun,
    taught: Taught,
    old: CaseFile,
    new: Sequence[UsableCase],
    folder: Path,
    *,
    with_cases: bool = True,
) -> Taught:
    """The chosen version in its folder, with its cases; the previous skill is kept."""
    best, cases = taught.best, None
    if with_cases:
        held = frozenset(case for case, part in taught.cases.items() if part == HOLDOUT)
        cases = case_file_text(old, new, held, _metadata(taught, run) if best.is_new else {})
    taught = _with_costs(taught, run)
    draft = best.draft if best.is_new else None
    try:
        kept = save_skill(draft, cases, folder, run.state.keep_before, old)
    except InputError as error:
        return replace(taught, unsaved=_why_unsaved(error, best, cases, run))
    run.mark_saved(folder, taught.cost)
    return replace(taught, folder=folder, kept=kept)


def _with_costs(taught: Taught, run: TeachRun) -> Taught:
    cost, seconds = run.models.spent(), round(monotonic() - run.clock, 1)
    sentences = (*taught.sentences, *map(as_sentence, run.final_notes()))
    return replace(taught, cost=cost, seconds=seconds, sentences=sentences)


def _metadata(taught: Taught, run: TeachRun) -> dict[str, Any]:
    """As upskill writes it."""
    results = taught.best.all_cases
    rows = results.summaries if results else []
    rates = [rate for row in rows if (rate := row.arm("skill").rate) is not None]
    return {
        "version": _FORMAT_VERSION,
        "generated_by": run.models.teacher,
        "generated_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "source_task": masked(run.settings.task),
        "test_pass_rate": round(sum(rates) / len(rates), 4) if rates else None,
    }


def _why_unsaved(error: InputError, best: Attempt, cases: str | None, run: TeachRun) -> str:
    """Why the skill was not saved, and where its best version is."""
    text = f"Not saved: {error.where}: {error.problem}."
    with suppress(InputError, OSError):
        kept = run.state.keep_attempt(best, cases)
        text += f"\nThe best version is kept in {shown(kept)}"
    resume = run.models.spell("resume")
    return f"{text}\nOnce that is fixed, {resume} saves it without asking anything again."


def trace_sentences(taught: Taught) -> Iterator[str]:
    """A good skill does as well as the trace, in fewer tokens."""
    if not taught.teacher or not taught.trace_tokens:
        return
    row = taught.teacher.summaries[0]
    skill, trace, bare = (row.scored(arm) or 0.0 for arm in (SKILL, TRACE, BASELINE))
    word = "as good as"
    if abs(skill - trace) > _AS_GOOD:
        word = "better than" if skill > trace else "not as good as"
    yield (
        f"With {row.label} the skill is {word} the trace: {skill:.0%} with the skill "
        f"({counted(taught.best.draft.tokens, 'token')}), {trace:.0%} with the trace "
        f"({counted(taught.trace_tokens, 'token')})."
    )
    if word == "not as good as":
        yield "The skill does not cover the whole task yet."
    if skill <= bare + _AS_GOOD and (row.token_change or 0.0) > _MORE_TOKENS:
        yield (
            f"Do not use it with {row.label}: {skill:.0%} with the skill, {bare:.0%} without, for "
            f"{row.token_change:.0%} more tokens."
        )
