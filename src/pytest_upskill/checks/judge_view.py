"""What a judge sees of an agent's work, blind to the arm.

It sees the final text, which files there are, some of them whole, and what the agent
did, in short. Nothing of it names the skill, its folder, its description or its
text: a step in which the agent looks at the skill is left out, and what is left is
reworded alike in both arms.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from .._util.texts import one_line, shortened
from .._util.tokens import without_tokens
from ..agents.skill_use import keys_of
from ..trials.answer import Answer, AnswerFile
from ..trials.transcript import Transcript, Turn
from ..trials.trial import Hidden, Question, Rubric
from .final_workspace import Workspace, matches

# Characters of the final text, and as many of files that are named
MAX_TEXT: Final = 100_000
_MAX_UNNAMED: Final = 20_000  # of files that are not named
_MAX_FILES: Final = 50
_MOST_LISTED: Final = 200
_MAX_STEPS: Final = 60
_MAX_CALL: Final = 300  # characters of a call, and as many of its result
_MAX_READ: Final = 10 * _MAX_CALL
_LONG_LINE: Final = 20  # letters: a longer line of a skill is no coincidence
_GUIDE: Final = "guide"  # what the skill is called here
_FOLDER: Final = "tools/"  # and its folder
_WORDS: Final = ("skill", "skills", "SKILL.md")


class View(NamedTuple):
    """The parts of an agent's answer, as a judge sees them."""

    text: str
    files: str
    work: str


def view_of(rubric: Rubric, question: Question, answer: Answer) -> View:
    start = question.task.files if question.task else ()
    spoken = [*rubric.texts, rubric.context, *(text for _, text in question.messages)]
    spoken += [file.path for file in start]
    blind = _Blind(rubric.hidden, "\n".join(spoken))
    return View(
        shortened(blind.reworded(without_tokens(answer.text)), MAX_TEXT),
        _files(rubric, Workspace(answer, start), blind),
        _work(answer, blind),
    )


class _Blind:
    """Rewords whatever would reveal the arm. Words of the question reveal nothing."""

    def __init__(self, hidden: Hidden, spoken: str) -> None:
        name = "|".join(map(_spelled, hidden.names)) or r"(?!)"
        # At the start of a word only, or a long one would take quadratic time.
        folder = (
            rf"(?<![\w./~$-])[\w./~$-]*\bskills/(?:{name})\b/?|(?<![\w.])/skills\b/?"
        )
        self._folder = re.compile(folder, re.I)
        self._looks = re.compile(rf"{folder}|\bSKILL\.md\b", re.I)
        quoted = rf"[\"'`]?\b(?:{name})\b[\"'`]?"
        revealing_words = [
            word for word in (*hidden.names, *_WORDS) if not _has_word(spoken, word)
        ]
        words = [rf"(?<![\w-]){_spelled(word)}(?![\w-])" for word in revealing_words]
        beside = [rf"{quoted}\s+skills?\b", rf"\bskill:?\s+{quoted}"]
        self._words = re.compile("|".join([*beside, *words]), re.I)
        keys = (key for text in hidden.texts for key in keys_of(text))
        self._lines = frozenset(key for key in keys if len(key) >= _LONG_LINE)

    def is_about_skill(
        self, call: Turn, result: Turn | None, scripts: Sequence[str]
    ) -> bool:
        """Whether a step only looks at the skill; one that runs its
        scripts is part of the work.
        """
        if "skill" in call.tool.casefold():
            return True
        if self._looks.search(call.text):
            return not any(script in call.text for script in scripts)
        lines = [
            line for line in _lines(result.text if result else "") if keys_of(line)
        ]
        return sum(map(self._is_of_skill, lines)) > len(lines) / 2

    def reworded(self, text: str) -> str:
        """Without the names and folders of the skill."""
        return self._words.sub(_GUIDE, self._folder.sub(_FOLDER, text))

    def result(self, text: str) -> str:
        """What a tool replied, without lines of the skill."""
        lines = [line for line in _lines(text) if not self._is_of_skill(line)]
        return self.reworded("\n".join(lines))

    def _is_of_skill(self, line: str) -> bool:
        return not self._lines.isdisjoint(keys_of(line))


def _lines(text: str) -> list[str]:
    """The lines of a text, also inside JSON."""
    return text.replace("\\n", "\n").splitlines()


def _spelled(name: str) -> str:
    """A pattern for a name and its spellings: ledger-sums, Ledger Sums."""
    return r"[-_\s]".join(map(re.escape, re.split(r"[-_\s]", name)))


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){_spelled(word)}(?!\w)", text, re.I) is not None


def _files(rubric: Rubric, workspace: Workspace, blind: _Blind) -> str:
    """The files that the agent made, changed or deleted, and the texts of some."""
    touched = workspace.touched
    listed = [
        f"- {file.change}: {blind.reworded(one_line(file.path, 200))}"
        + ("" if file.change == "deleted" else f" ({file.size:,} bytes)")
        for file in touched[:_MOST_LISTED]
    ]
    if len(touched) > len(listed):
        listed.append(f"- and {len(touched) - len(listed):,} more")
    named = [file for file in workspace.files.values() if _is_named(rubric, file.path)]
    unnamed = [file for file in touched if file.text and file not in named]
    unnamed = [] if rubric.files else unnamed  # the author chose
    texts = [
        *file_texts(named, MAX_TEXT, blind.reworded),
        *file_texts(unnamed, _MAX_UNNAMED, blind.reworded),
    ]
    return "\n\n".join(["\n".join(listed) or "- none", *texts])


def file_texts(
    files: Sequence[AnswerFile], limit: int, reword: Callable[[str], str] = str
) -> Iterator[str]:
    """Files with their texts, which share the limit."""
    listed = files[:_MAX_FILES]
    for file in listed:
        text = "[not a text]"
        if file.text is not None:
            text = shortened(reword(without_tokens(file.text)), limit // len(listed))
        yield f"{reword(one_line(file.path, 200))} ({file.size:,} bytes):\n{text}"
    if len(files) > len(listed):
        yield f"[… {len(files) - len(listed):,} more files left out …]"


def _is_named(rubric: Rubric, path: str) -> bool:
    if any(matches(path, pattern) for pattern in rubric.files):
        return True
    name = path.rpartition("/")[2]
    return any(_has_word(text, name) for text in rubric.texts)


def _work(answer: Answer, blind: _Blind) -> str:
    """Tool calls with their results, the user's answers, and the words before them,
    shortened.
    """
    scripts = answer.activity.scripts if answer.activity else ()
    steps_done = [
        (words, call, result)
        for words, call, result in _calls(answer.transcript)
        if call.kind == "answer" or not blind.is_about_skill(call, result, scripts)
    ]
    left_out = max(0, len(steps_done) - _MAX_STEPS)
    head = steps_done[: _MAX_STEPS * 3 // 4] if left_out else steps_done
    tail = steps_done[len(head) + left_out :]
    steps = [_step(*each, blind) for each in head]
    steps += [f"[… {left_out:,} calls left out …]"] if left_out else []
    steps += [_step(*each, blind) for each in tail]
    return "\n".join(steps) or "[no tools were called]"


def _calls(transcript: Transcript) -> Iterator[tuple[str, Turn, Turn | None]]:
    """For each call, or answer of the user: the words before it, itself,
    and its result.
    """
    words = ""
    for number, turn in enumerate(transcript):
        if turn.kind == "assistant":
            words = turn.text
        elif turn.kind == "answer":
            yield words, turn, None
            words = ""
        elif turn.kind == "call":
            after = transcript[number + 1] if number + 1 < len(transcript) else None
            yield words, turn, after if after and after.kind == "result" else None
            words = ""


def _step(words: str, call: Turn, result: Turn | None, blind: _Blind) -> str:
    """A call with its result, or an answer of the user, and the words before it."""
    # Cut generously first, and to size at the end, so that no name
    # or key is shown in part.
    arguments = blind.reworded(without_tokens(call.text[:_MAX_READ]))
    name = "the user answered:" if call.kind == "answer" else one_line(call.tool, 60)
    line = f"- {name} {one_line(arguments, _MAX_CALL)}"
    if spoken := one_line(blind.result(without_tokens(words[:_MAX_READ])), _MAX_CALL):
        line = f"- said: {spoken}\n{line}"
    if result is None:
        return line
    reply = one_line(blind.result(without_tokens(result.text[:_MAX_READ])), _MAX_CALL)
    return f"{line}\n  {'failed' if result.failed else 'gave'}: {reply or '[nothing]'}"
