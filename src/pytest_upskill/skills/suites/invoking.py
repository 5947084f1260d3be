"""Cases that invoke a skill by its name, and those of skills that
no model opens by itself.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from ..._util.texts import first_few, guess, one_line
from ...errors import SkillError
from ..case import Case
from ..folder import is_skill, skill_file
from ..invocation import Invocation
from ..loaded_cases import LoadedCases, broken_case
from ..plugins import is_plugin
from ..search import find_skills
from ..skill import USERS_ONLY, fields_of, is_for_users_only, name_of

_NEVER_OPENED: Final = (
    "should trigger, but no agent opens the skill by itself: "
    f"SKILL.md says {USERS_ONLY}"
)
_CLOSED_ANYWAY: Final = (
    f"no agent opens the skill by itself: SKILL.md says {USERS_ONLY}"
)


@dataclass(frozen=True)
class Invocable:
    """The skills of a folder that cases may invoke: one, or those of a bundle."""

    folder: Path

    @cached_property
    def names(self) -> tuple[str, ...]:
        """None if there are no skills yet, or mistakes to report with them."""
        if is_skill(self.folder) and not is_plugin(self.folder):
            return (name_of(skill_file(self.folder)),)
        try:
            return tuple(map(name_of, find_skills(self.folder).files))
        except SkillError:
            return ()

    @cached_property
    def users_only(self) -> bool:
        """Whether there is only one skill, which no model opens by itself."""
        try:
            fields = fields_of(skill_file(self.folder)) if is_skill(self.folder) else {}
            return is_for_users_only(fields) and len(self.names) == 1
        except SkillError:
            return False

    def applied_to(self, loaded: LoadedCases[Case]) -> LoadedCases[Case]:
        """The cases of a file, with how they invoke a skill, or why they can't."""
        if (
            not (self.users_only or any(case.invoke for case in loaded.cases))
            or not self.names
        ):
            return loaded
        problems = {
            case.place: problem
            for case in loaded.cases
            if (problem := self._problem(case))
        }
        kept = [
            number
            for number, case in enumerate(loaded.cases)
            if case.place not in problems
        ]
        bad = [
            replace(
                broken_case(loaded.file, case, [(case.place_of(*inside), problem)]),
                kind=case.kind,
            )
            for case in loaded.cases
            if case.place in problems
            for inside, problem in [problems[case.place]]
        ]
        cases = [self._invoked(loaded.cases[number]) for number in kept]
        written = tuple(loaded.written[number] for number in kept if loaded.written)
        return replace(loaded.only(cases, bad), written=written)

    def _problem(self, case: Case) -> tuple[tuple[str, ...], str] | None:
        if case.kind.until_opened and case.should_open and self.users_only:
            return (), _NEVER_OPENED
        if case.invoke and case.invoke.skill not in self.names:
            name = one_line(case.invoke.skill, 60)
            if (self.folder / "commands" / f"{case.invoke.skill}.md").is_file():
                return (
                    "invoke",
                ), f"{name!r} is a command of the plugin, and no skill of it"
            known = guess(name, self.names) or f": write /{first_few(self.names, 5)}"
            return ("invoke",), f"{name!r} is no skill under test{known}"
        return None

    def _invoked(self, case: Case) -> Case:
        if not self.users_only:
            return case
        if case.kind.until_opened:
            return replace(case, skip=case.skip or _CLOSED_ANYWAY)
        return replace(
            case, invoke=case.invoke or Invocation(self.names[0], case.input)
        )
