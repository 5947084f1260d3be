"""Carries out studies, look by look, and estimates what they take."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, pairwise

from .._util.texts import counted
from ..checks.grading import ToGrade, records_of, rubric_for
from ..checks.judging import Ask
from ..models.prices import PriceOf, cost
from ..results.effects import Effect, State
from ..settings import Settings
from ..stats import Differences, Family, family_level
from ..stats.power import fewest_cases
from ..trials.records import Record
from ..trials.subject import CHAT, Subject
from ..trials.trial import Question, sample_of, trials_of
from .arm_maker import ArmMaker
from .estimate import Estimate, calls_of_trial, estimate_of
from .study import Contrast, Scores, Studied, Study, Variant, scores_of


@dataclass(frozen=True)
class StudyRunner:
    """Carries out studies."""

    settings: Settings
    looks: tuple[int, ...]  # numbers of runs after which the effects are looked at
    ask: Ask
    version_of: Callable[[str], str]  # of an agent
    price_of: PriceOf  # of a model
    begin: Callable[[str], None] = lambda _: None  # a step, in words
    done: Callable[[str], None] = lambda _: None  # what came of it
    stop: Callable[[], None] | None = None  # after Ctrl-C, ask no more
    stored: Callable[[Sequence[Question]], set[str]] = lambda _: set()  # keys of stored answers

    @cached_property
    def _settings(self) -> Settings:
        """Both arms, and as many runs as there may be."""
        return replace(
            self.settings, runs=self.looks[-1], first_runs=None, baseline=True, against=None
        )

    @cached_property
    def _maker(self) -> ArmMaker:
        return ArmMaker(self._settings)

    def run(self, study: Study) -> Studied:
        """Ask look by look; variants whose contrasts are all settled are not asked again."""
        progress = _Progress(study, self.looks)
        for before, runs in pairwise((0, *self.looks) if study.variants else ()):
            variants = progress.open_variants if before else study.variants
            self._ask(progress, variants, range(before + 1, runs + 1))
            progress.look(runs)
            self.done(progress.words)
            if not progress.family.open:
                break
        return progress.studied()

    def _ask(self, progress: "_Progress", variants: Sequence[Variant], runs: range) -> None:
        """Ask everything at once, and add the records."""
        subject = progress.study.subject
        asked = [
            (variant.name, trial)
            for variant in variants
            for trial in self._trials(variant, subject, runs)
        ]
        to_grade, sandbox = [trial for _, trial in asked], self.settings.sandbox
        numbers = f"run {runs[0]}" if len(runs) == 1 else f"runs {runs[0]} to {runs[-1]}"
        self.begin(f"{subject.label}: {numbers}, {counted(len(asked), 'trial')}")
        try:
            graded = records_of(to_grade, self.ask, sandbox)
        except KeyboardInterrupt:
            if self.stop is None:
                raise
            self.stop()
            progress.interrupted = True
            graded = records_of(to_grade, self.ask, sandbox)  # what is answered already
        price = self.price_of(subject.model)
        for (variant, graded_trial), record in zip(asked, graded, strict=True):
            key = graded_trial.trial.question.key
            progress.add(variant, key, replace(record, cost=cost(price, record.usage)))

    def estimate(self, studies: Sequence[Study], *, free: bool) -> Estimate:
        """What the studies take that is not stored, with as many runs as there may be."""
        planned = [item.trial for item in self._all_trials(studies, self.looks[-1])]
        trials = {trial.question.key: trial for trial in planned}
        stored = self.stored([trial.question for trial in trials.values()])
        new = [trial for key, trial in trials.items() if key not in stored]
        calls = [group for trial in new for group in calls_of_trial(trial)]
        by_agents = sum(trial.question.task is not None for trial in new)
        guess = estimate_of(
            calls, self.price_of, free=free or not calls, trials=by_agents, stored=len(stored)
        )
        return replace(guess, warning=self._warning(studies))

    def _all_trials(self, studies: Iterable[Study], runs: int) -> Iterable[ToGrade]:
        for study in studies:
            for variant in study.variants:
                yield from self._trials(variant, study.subject, range(1, runs + 1))

    def _warning(self, studies: Sequence[Study]) -> str:
        """If there are too few cases to show anything, however large."""
        fewest = fewest_cases(family_level(1, self.looks))
        variants = [variant for study in studies for variant in study.variants]
        samples = [{sample_of(case) for case, _ in variant.cases} for variant in variants]
        most = max(map(len, samples), default=0)
        if most >= fewest:
            return ""
        return f"Too few cases: {most} can't show any difference ({fewest} needed)."

    def _trials(self, variant: Variant, subject: Subject, runs: range) -> list[ToGrade]:
        cases, skill = [case for case, _ in variant.cases], variant.skill
        agents = subject.agent != CHAT
        arms = self._maker.arms(skill, cases, variant.neighbours, agents=agents)
        return [
            ToGrade(trial, case, checks)
            for case, checks in variant.cases
            for trial in trials_of(
                skill.name,
                case,
                subject,
                [arm for arm in arms if arm.name == variant.arm],
                self._settings,
                rubric_for(checks, self.settings.judge, skill),
                variant.prompt,
                version=self.version_of(subject.agent),
            )
            if trial.run in runs
        ]


@dataclass
class _Progress:
    """A study while it is carried out."""

    study: Study
    looks: tuple[int, ...]
    records: dict[str, list[Record]] = field(default_factory=dict)  # by variant
    by_question: dict[str, Record] = field(default_factory=dict)  # variants share some
    interrupted: bool = False
    _incomplete: set[str] = field(default_factory=set)  # contrasts with answers missing

    def __post_init__(self) -> None:
        self.records = {variant.name: [] for variant in self.study.variants}
        self.family = Family((contrast.name for contrast in self.study.contrasts), self.looks)

    def add(self, variant: str, key: str, record: Record) -> None:
        self.records[variant].append(record)
        self.by_question[key] = record

    @property
    def open_variants(self) -> list[Variant]:
        """The variants that an open contrast needs."""
        contrasts = (contrast for contrast in self.study.contrasts if self._is_open(contrast))
        needed = {name for contrast in contrasts for name in (*contrast.plus, *contrast.minus)}
        return [variant for variant in self.study.variants if variant.name in needed]

    def _is_open(self, contrast: Contrast) -> bool:
        return contrast.name in self.family.open

    @property
    def words(self) -> str:
        """``1 of 5 differences shown, 2 open, 1 incomplete``; others are not worth further runs."""
        total = counted(len(self.study.contrasts), "difference")
        shown = self.family.shown.keys() - self._incomplete
        counts = {"open": len(self.family.open), "incomplete": len(self._incomplete)}
        words = [f"{number:,} {word}" for word, number in counts.items() if number]
        return ", ".join([f"{len(shown):,} of {total} shown", *words])

    def look(self, runs: int) -> None:
        """Judge all contrasts that are not shown yet, and settle those that can be."""
        scores, by_contrast = self._scores(), dict[str, Differences]()
        for contrast in filter(self._is_open, self.study.contrasts):
            if self._has_errors(contrast):
                self._incomplete.add(contrast.name)
                if contrast.name in self.family.known:
                    continue  # the look before had all answers, and says more
            if by_case := contrast.differences(scores, runs):
                by_contrast[contrast.name] = by_case
        self.family.look(by_contrast, self._incomplete)
        if self.interrupted:
            self._incomplete |= self.family.open
            self.family.open.clear()

    def _has_errors(self, contrast: Contrast) -> bool:
        records = (self.records[name] for name in (*contrast.plus, *contrast.minus))
        return any(record.outcome == "errored" for record in chain.from_iterable(records))

    def _scores(self) -> dict[str, Scores]:
        variants = self.study.variants
        return {
            variant.name: scores_of(variant, self.records[variant.name]) for variant in variants
        }

    def studied(self) -> Studied:
        costs = [record.cost for record in self.by_question.values() if not record.stored]
        return Studied(
            {contrast.name: self._effect(contrast.name) for contrast in self.study.contrasts},
            {name: tuple(records) for name, records in self.records.items()},
            self._scores(),
            len(self.by_question),
            None if None in costs else sum((usd or 0.0 for usd in costs), 0.0),
            self.interrupted,
        )

    def _effect(self, name: str) -> Effect:
        family = self.family
        by_case = family.known.get(name)
        result = {**family.unshown, **family.shown}.get(name)
        if by_case is None or result is None:
            return Effect(name, None, 0, 0, "incomplete")
        state: State = "none shown" if by_case.runs == self.looks[-1] else "dropped"
        if name in self._incomplete:
            state = "incomplete"
        elif name in family.shown:
            state = "shown"
        cases, runs = len(by_case.values), by_case.runs
        return Effect(name, result.lift, cases, runs, state, result.cases_needed)
