"""What can go wrong, as one tree.

UpskillError ├── InputError         something a person wrote is wrong; found before the
first call │   ├── SkillError     SKILL.md or the skill's folder │   ├── CasesError
skill_meta.json or another file of cases │   │   └── NoCasesError  a file without a
single case │   ├── AcceptedError  skill_results.json │   ├── ResultsError   a JSON
report or a kept run │   ├── TraceError     an agent's trace that a skill is to be made
of │   └── SettingsError  an option, an ini value, a parameter, the name of a model ├──
ModelError         a model gave no answer to a question ├── NoAnswerError      an agent
could not carry out a trial ├── TeachError         a teacher, a student or an author of
cases gave nothing to go on with │   ├── BudgetError    going on could exceed the budget
│   └── UnusableError  what a model wrote can't be used, even after a second try └──
CheckError         a check could not be applied to an answer

Nothing below the edges knows a flag: messages name settings, as ``Setting``,
and whoever shows a message spells them: pytest's options, the options of a
command, parameters in Python.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

DEFAULT: Final = "default"  # the origin of a value that nobody gave


class Setting(str):
    """The name of a setting in a message: a field of Settings, Gates or
    TeachSettings.
    """

    __slots__ = ()


Text = str | tuple[str, ...]  # the parts of a message, if it names settings
Spell = Callable[[str], str]  # from a setting to what its users call it


def spelled(text: Text, spell: Spell = str) -> str:
    parts = (text,) if isinstance(text, str) else text
    return "".join(spell(part) if isinstance(part, Setting) else part for part in parts)


def spelling(names: Mapping[str, str]) -> Spell:
    """Spell settings by a table, and in words where there is no such option."""
    return lambda setting: names.get(setting) or f"the {setting.replace('_', ' ')}"


class UpskillError(Exception):
    """Base of everything that pytest-upskill raises on purpose."""

    def __init__(self, text: Text = "") -> None:
        self._text = text
        super().__init__(spelled(text))

    def message(self, spell: Spell) -> str:
        """The message, with settings as their users know them."""
        return spelled(self._text, spell)


class InputError(UpskillError):
    """Says where something is wrong, what it is, and how to fix it."""

    def __init__(self, where: str | Path, problem: Text, hint: Text = "") -> None:
        self.where = shown(where) if isinstance(where, Path) else where
        self.problem = spelled(problem)
        self.hint = spelled(hint)
        self._problem = problem
        self._hint = hint
        super().__init__(self._message(str, self.where))

    def message(self, spell: Spell) -> str:
        return self._message(spell, self.where)

    def _message(self, spell: Spell, where: str) -> str:
        hint = spelled(self._hint, spell)
        return f"{where}: {spelled(self._problem, spell)}" + (
            f"\n  {hint}" if hint else ""
        )


class SkillError(InputError):
    """SKILL.md or the skill's folder."""


class CasesError(InputError):
    """skill_meta.json or another file of cases.

    ``problems`` is each problem with its JSON path, if the file is JSON at all.
    """

    problems: tuple[tuple[tuple[str | int, ...], str], ...] = ()


class NoCasesError(CasesError):
    """A file without a single case: a skill that has no other file has no cases."""


class AcceptedError(InputError):
    """skill_results.json."""


class ResultsError(InputError):
    """A JSON report or a kept run."""


class TraceError(InputError):
    """An agent's trace that a skill is to be made of."""


class SettingsError(InputError):
    """A setting has a value that can't be used.

    ``origin`` is the file and the key that the value was read from,
    if it was no option.
    """

    def __init__(
        self,
        setting: str,
        problem: Text,
        hint: Text = "",
        *,
        value: object = "",
        origin: str = "",
    ) -> None:
        self.setting = setting
        self._value = str(value).replace("\n", "\\n")
        self._origin = origin
        super().__init__(self._where(str), problem, hint)

    def message(
        self, spell: Spell, origin_of: Callable[[str], str] = lambda _: ""
    ) -> str:
        """``origin_of`` gives the file and key of a setting,
        if it was not given as an option.
        """
        return self._message(spell, self._where(spell, origin_of(self.setting)))

    def _where(self, spell: Spell, origin: str = "") -> str:
        option = f"{spell(self.setting)} {self._value}".rstrip()
        if origin := self._origin or origin:
            by_file = f"{origin}: {self._value}" if self._value else origin
            return f"{option} (the default)" if origin == DEFAULT else by_file
        return option


class NoKeyError(SettingsError):
    """A model needs a key or a login that this machine does not have."""

    def sentence(self, spell: Spell) -> str:
        role = self.setting.removesuffix("s").replace("_", " ")
        hint = spelled(self._hint, spell)
        return f"{spelled(self._problem, spell)} ({role} {self._value}). {hint}"


class ModelError(UpskillError):
    """A model gave no answer.

    ``fatal``: every other question to this model would fail in the same way (a wrong
    key, say). ``unreachable``: nothing listens at the model's address.
    ``no_connection``: no connection was taken or refused in time, as by a busy server.
    ``transient``: the same question may well be answered if it is asked again.
    ``rate_limited``: too much was asked at once; ``retry_after`` is the server's own
    pause in seconds, if it names one. ``timed_out``: no answer came in time; the
    call may have waited in the server's queue. ``paid``: the tokens of question and
    answer, if the server charges for them all the same; an empty tuple if it may do
    so and doesn't say; None if it charges nothing. ``no_tools``: the model takes
    none, and was offered some. ``used_up``: nothing more is answered in this run, as
    a plan's usage limit is reached.
    """

    def __init__(
        self,
        problem: str,
        hint: Text = "",
        *,
        fatal: bool = False,
        unreachable: bool = False,
        no_connection: bool = False,
        transient: bool = False,
        rate_limited: bool = False,
        retry_after: float | None = None,
        timed_out: bool = False,
        paid: tuple[Any, ...] | None = None,
        no_tools: bool = False,
        used_up: bool = False,
    ) -> None:
        self.problem = problem
        self.hint = spelled(hint)
        self._hint = hint
        self.fatal = fatal
        self.unreachable = unreachable
        self.no_connection = no_connection
        self.transient = transient or unreachable or rate_limited
        self.rate_limited = rate_limited
        self.retry_after = retry_after
        self.timed_out = timed_out
        self.paid = paid
        self.no_tools = no_tools
        self.used_up = used_up
        super().__init__(self._parts(""))

    def message(self, spell: Spell, tries: str = "") -> str:
        return spelled(self._parts(tries), spell)

    def _parts(self, tries: str) -> Text:
        hint = (self._hint,) if isinstance(self._hint, str) else self._hint
        ending = (tries, *((". ", *hint) if self.hint else ()))
        # A server's own words may end with a period.
        return (self.problem.rstrip(". ") if any(ending) else self.problem, *ending)


class CheckError(UpskillError):
    """A check raised, or said neither yes nor no: the answer
    is neither right nor wrong.
    """


class NoAnswerError(UpskillError):
    """An agent could not carry out a trial: that is errored, not failed."""


class TeachError(UpskillError):
    """A teacher, a student or an author of cases gave nothing to go on with."""


class BudgetError(TeachError):
    """Going on could exceed the budget."""


class UnusableError(TeachError):
    """What a model wrote can't be used, even after a second try."""


def shown(path: Path) -> str:
    """A path as people want to read it: relative to the current folder, if it is
    below.
    """
    try:
        return printable(path.relative_to(Path.cwd()).as_posix())
    except ValueError:
        return printable(str(path))


def printable(path: str) -> str:
    """A path, safe to print: a folder may have any name,
    even one that a terminal acts on.
    """
    text = path if path.isprintable() else repr(path)[1:-1]
    # Any part of a path can come first in a line, once it is written as a relative one.
    return without_commands(text.replace("::", "\\u003a:"))


def without_commands(text: str) -> str:
    """A text whose lines are no commands to a CI system that reads the log.

    GitHub takes ``::error::…`` at the start of a line, behind any blanks, and
    ``##[error]…`` anywhere; Azure takes ``##vso[…]``, TeamCity ``##teamcity[…]``.
    """
    if "##" not in text and "::" not in text:
        return text
    return _LINE_COMMAND.sub(r"\1\\u003a", _COMMAND.sub(r"\\u0023", text))


_COMMAND: Final = re.compile(r"#(?=#\w*\[)")
_LINE_COMMAND: Final = re.compile(r"^((?:[^\S\n]|\x1b\[[\d;]*m)*):(?=:)", re.M)
