"""The skills of a bundle as a study: all of them, without each one, and none."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Final

from ..checks import CheckedCase, runnable_in
from ..settings import Settings
from ..skills.bundle import Bundle, load_bundle, without_skills
from ..skills.skill import Skill, estimated_tokens
from ..skills.skill_parts import Part
from ..skills.suites.reading import read_suites
from ..trials.plan import score_of
from .ablation import Ablation
from .study_runner import SkillCases

ALL_SKILLS: Final = "all skills"


def load_bundle_cases(root: Path, label: str, settings: Settings) -> SkillCases:
    """A bundle with its own cases, or else with those of its skills."""
    bundle = load_bundle(root, settings)
    suite = read_suites(root).cases
    cases = (
        list(runnable_in(suite))
        if suite and suite.has_cases
        else list(_of_skills(bundle))
    )
    score = score_of(settings.score, [case for case, _ in cases])
    return SkillCases(label, bundle, tuple(cases), score, suite.path if suite else root)


def _of_skills(bundle: Bundle) -> Iterator[CheckedCase]:
    for member in bundle.members:
        suite = read_suites(member.folder).cases
        for case, checks in runnable_in(suite) if suite and suite.has_cases else ():
            yield replace(case, id=f"{member.name}/{case.id}"), checks


class BundleAblation(Ablation):
    """A bundle to be studied skill by skill."""

    whole = ALL_SKILLS
    noun = "skill"
    subject_noun = "bundle"

    @property
    def bundle(self) -> Bundle:
        assert isinstance(self.source.skill, Bundle)
        return self.source.skill

    @cached_property
    def parts(self) -> dict[str, Part]:
        names = (member.name for member in self.bundle.members)
        return {f"without {name}": Part(name, "skill") for name in names}

    @property
    def not_measured(self) -> dict[str, str]:
        return {}

    def leaves_text(self, parts: Iterable[Part]) -> bool:
        return {part.name for part in parts} < {
            member.name for member in self.bundle.members
        }

    def without(self, parts: Sequence[Part]) -> Skill:
        return without_skills(self.bundle, {part.name for part in parts})

    def tokens_of(self, parts: Sequence[Part]) -> int:
        names = {part.name for part in parts}
        texts = (member.text for member in self.bundle.members if member.name in names)
        return sum(map(estimated_tokens, texts))
