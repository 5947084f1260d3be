"""The lab: it carries out studies, look by look, and says before what they take."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

from .._util.texts import counted
from ..checks.grading import ToGrade, records_of, rubric_for
from ..checks.judging import Ask
from ..models.prices import Price, cost
from ..results.effects import Effect, State
from ..settings import Settings
from ..stats import Differences, Family, family_level
from ..stats.power import fewest_cases
from ..trials.records import Record
from ..trials.subject import Subject
from ..trials.trial import Question, sample_of, trials_of
from .estimate import Estimate, calls_of_trial, estimate_of
from .outfits import Outfits
from .study import Contrast, Scores, Studied, Study, Variant, differences, scores_of


@dataclass(frozen=True)
class Lab:
    """What studies are carried out with."""

    settings: Settings
    looks: tuple[int, ...]  # numbers of runs after which the effects are looked at
    ask: Ask
    version_of: Callable[[str], str]  # of an agent
    price_of: Callable[[str], Price | None]  # of a model
    begin: Callable[[str], None] = lambda _: None  # a step, in words
    done: Callable[[str], None] = lambda _: None  # what came of it
    stop: Callable[[], None] | None = None  # after Ctrl-C, ask no more
    known: Callable[[Sequence[Question]], set[str]] = lambda _: set()  # keys of stored answers

    @cached_property
    def _settings(self) -> Settings:
        """Both arms, and as many runs as there may be."""
        return replace(
            self.settings, runs=self.looks[-1], first_runs=None, baseline=True, against=None
        )

    @cached_property
    def _outfits(self) -> Outfits:
        return Outfits(lambda: self._settings, self.version_of)

    def run(self, study: Study) -> Studied:
        """Ask look by look; variants of which all contrasts are settled are asked no more."""
        work = _Work(study, self.looks)
        for before, runs in pairwise((0, *self.looks) if study.variants else ()):
            wanted = work.wanted if before else study.variants
            self._ask(work, wanted, range(before + 1, runs + 1))
            work.look(runs)
            self.done(work.progress)
            if not work.family.open:
                break
        return work.studied()

    def _ask(self, work: "_Work", variants: Sequence[Variant], runs: range) -> None:
        """Ask everything at once, and add the records."""
        subject = work.study.subject
        asked = [
            (variant.name, one)
            for variant in variants
            for one in self._trials(variant, subject, runs)
        ]
        to_grade, sandbox = [one for _, one in asked], self.settings.sandbox
        which = f"run {runs[0]}" if len(runs) == 1 else f"runs {runs[0]} to {runs[-1]}"
        self.begin(f"{subject.label}: {which}, {counted(len(asked), 'trial')}")
        try:
            graded = records_of(to_grade, self.ask, sandbox)
        except KeyboardInterrupt:
            if self.stop is None:
                raise
            self.stop()
            work.interrupted = True
            graded = records_of(to_grade, self.ask, sandbox)  # what is answered already
        price = self.price_of(subject.model)
        for (name, one), record in zip(asked, graded, strict=True):
            work.add(name, one.trial.question.key, replace(record, cost=cost(price, record.usage)))

    def estimate(self, studies: Sequence[Study], *, free: bool) -> Estimate:
        """What the studies take that is not stored, with as many runs as there may be."""
        planned = [item.trial for item in self._all_trials(studies, self.looks[-1])]
        trials = {trial.question.key: trial for trial in planned}
        stored = self.known([trial.question for trial in trials.values()])
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
        variants = [one for study in studies for one in study.variants]
        found = [len({sample_of(case) for case, _ in one.cases}) for one in variants]
        most = max(found, default=0)
        if most >= fewest:
            return ""
        return f"Too few cases: {most} can't show any difference ({fewest} needed)."

    def _trials(self, variant: Variant, subject: Subject, runs: range) -> list[ToGrade]:
        cases = [case for case, _ in variant.cases]
        outfit = self._outfits.of(subject.agent, variant.skill, cases, variant.others)
        return [
            ToGrade(trial, case, checks)
            for case, checks in variant.cases
            for trial in trials_of(
                variant.skill.name,
                variant.skill,
                case,
                subject.model,
                self._settings,
                rubric_for(checks, self.settings.judge, variant.skill),
                variant.prompt,
                outfit,
            )
            if trial.arm == variant.arm and trial.run in runs
        ]


@dataclass
class _Work:
    """A study while it is carried out."""

    study: Study
    plan: tuple[int, ...]
    records: dict[str, list[Record]] = field(default_factory=dict)  # by variant
    asked: dict[str, Record] = field(default_factory=dict)  # by question: variants share some
    interrupted: bool = False
    _broken: set[str] = field(default_factory=set)  # contrasts with answers missing

    def __post_init__(self) -> None:
        self.records = {one.name: [] for one in self.study.variants}
        self.family = Family((one.name for one in self.study.contrasts), self.plan)

    def add(self, variant: str, key: str, record: Record) -> None:
        self.records[variant].append(record)
        self.asked[key] = record

    @property
    def wanted(self) -> list[Variant]:
        """The variants that an open contrast needs."""
        open_ones = [one for one in self.study.contrasts if one.name in self.family.open]
        needed = {name for one in open_ones for name in (*one.plus, *one.minus)}
        return [one for one in self.study.variants if one.name in needed]

    @property
    def progress(self) -> str:
        """``1 of 5 differences shown, 2 open, 1 incomplete``; the rest is not worth more runs."""
        of = counted(len(self.study.contrasts), "difference")
        shown = self.family.shown.keys() - self._broken
        more = {"open": len(self.family.open), "incomplete": len(self._broken)}
        words = [f"{number:,} {word}" for word, number in more.items() if number]
        return ", ".join([f"{len(shown):,} of {of} shown", *words])

    def look(self, runs: int) -> None:
        """Judge all contrasts that are not shown yet, and settle those that can be."""
        scores, found = self._scores(), dict[str, Differences]()
        for one in self.study.contrasts:
            if one.name not in self.family.open:
                continue
            if self._misses(one):
                self._broken.add(one.name)
                if one.name in self.family.known:
                    continue  # the look before, with all answers, says more than what is left now
            plus, minus = ([scores[name] for name in own] for own in (one.plus, one.minus))
            if own := differences(plus, minus, runs, one.margin):
                found[one.name] = own
        self.family.look(found, self._broken)
        if self.interrupted:
            self._broken |= self.family.open
            self.family.open.clear()

    def _misses(self, contrast: Contrast) -> bool:
        names = (*contrast.plus, *contrast.minus)
        return any(one.outcome == "errored" for name in names for one in self.records[name])

    def _scores(self) -> dict[str, Scores]:
        return {one.name: scores_of(one, self.records[one.name]) for one in self.study.variants}

    def studied(self) -> Studied:
        scores = self._scores()
        new = [one.cost for one in self.asked.values() if not one.stored]
        known = [usd for usd in new if usd is not None]
        return Studied(
            {one.name: self._effect(one.name) for one in self.study.contrasts},
            {name: tuple(own) for name, own in self.records.items()},
            scores,
            len(self.asked),
            sum(known) if len(known) == len(new) else None,
            self.interrupted,
        )

    def _effect(self, name: str) -> Effect:
        family = self.family
        known, found = family.known.get(name), {**family.unshown, **family.shown}.get(name)
        if known is None or found is None:
            return Effect(name, None, 0, 0, "incomplete")
        state: State = "none shown" if known.runs == self.plan[-1] else "dropped"
        if name in self._broken:
            state = "incomplete"
        elif name in family.shown:
            state = "shown"
        return Effect(name, found.lift, len(known.values), known.runs, state, found.cases_needed)
