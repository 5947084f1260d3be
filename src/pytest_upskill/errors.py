"""What can go wrong, as one tree.

UpskillError
├── InputError         something a person wrote is wrong; found before the first call
│   ├── SkillError     SKILL.md or the skill's folder
│   ├── CasesError     skill_meta.json or another file of cases
│   ├── AcceptedError  skill_results.json
│   ├── ResultsError   a file of results, as --skill-json writes it
│   ├── TraceError     a trace of an agent that a skill is to be made of
│   └── SettingsError  an option, an ini value, the name of a model, a key
├── ModelError         a model gave no answer to a question
├── TeachError         a teacher, a student or an author of cases gave nothing to go on with
│   ├── BudgetError    going on could pass the budget
│   └── UnusableError  what it wrote can't be used, even after it was told what is wrong
└── CheckError         a check could not be held to an answer
"""

from pathlib import Path


class UpskillError(Exception):
    """Base of everything that pytest-upskill raises on purpose."""


class InputError(UpskillError):
    """Says where, what is wrong, and how to fix it."""

    def __init__(self, where: str | Path, problem: str, hint: str = "") -> None:
        self.where = shown(where) if isinstance(where, Path) else where
        self.problem = problem
        self.hint = hint
        super().__init__(f"{self.where}: {problem}" + (f"\n  {hint}" if hint else ""))


class SkillError(InputError):
    """SKILL.md or the skill's folder."""


class CasesError(InputError):
    """skill_meta.json or another file of cases.

    ``problems`` is each thing that is wrong with its JSON path, where the file is JSON at all.
    """

    problems: tuple[tuple[tuple[str | int, ...], str], ...] = ()


class AcceptedError(InputError):
    """skill_results.json."""


class ResultsError(InputError):
    """A file of results, as --skill-json writes it."""


class TraceError(InputError):
    """A trace of an agent that a skill is to be made of."""


class SettingsError(InputError):
    """An option, an ini value, the name of a model, a key."""


class ModelError(UpskillError):
    """A model gave no answer.

    ``fatal``: every other question to this model would end the same way (a wrong key, say).
    ``unreachable``: nobody listens at the model's address.
    ``passing``: the same question may well be answered if it is asked again.
    ``rate_limited``: it would have been, had less been asked; ``retry_after`` are the seconds
    that the server wants to be left alone, if it says so.
    """

    def __init__(
        self,
        problem: str,
        hint: str = "",
        *,
        fatal: bool = False,
        unreachable: bool = False,
        passing: bool = False,
        rate_limited: bool = False,
        retry_after: float | None = None,
    ) -> None:
        self.problem = problem
        self.hint = hint
        self.fatal = fatal
        self.unreachable = unreachable
        self.passing = passing or unreachable or rate_limited
        self.rate_limited = rate_limited
        self.retry_after = retry_after
        super().__init__(f"{problem}. {hint}" if hint else problem)


class CheckError(UpskillError):
    """A check raised, or said neither yes nor no: the answer is neither right nor wrong."""


class TeachError(UpskillError):
    """A teacher, a student or an author of cases gave nothing to go on with."""


class BudgetError(TeachError):
    """Going on could pass the budget."""


class UnusableError(TeachError):
    """What a model wrote can't be used, even after it was told what is wrong."""


def shown(path: Path) -> str:
    """A path as people want to read it: relative to where they stand, if it lies below."""
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(path)
