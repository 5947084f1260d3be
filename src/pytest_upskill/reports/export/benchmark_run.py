"""The folder of a trial in skill-creator's layout: outputs, transcript, grades, times."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from posixpath import splitext
from typing import Any, Final

from ..._util.keys import without_keys
from ..._util.texts import named_fence, one_line, shortened
from ...agents.snapshot import unpack, written_path
from ...checks.judging import JUDGE
from ...trials.answer import AnswerFile
from ...trials.records import Record
from ...trials.transcript import Transcript, TurnKind
from .record_files import safe_name

File = tuple[str, str | bytes]  # path and content

# Reserved: our own files, and names that their viewer hides.
_TAKEN: Final = ("answer.md", "error.txt", "metrics.json", "transcript.md", "user_notes.md")
# Their viewer inlines texts into a script, which these would end or hide.
_BREAKING: Final = re.compile(r"<(?=/?script|!--)", re.IGNORECASE)
# pytest would run these.
_TESTS: Final = re.compile(r"(?:.*[-/])?(?:test_[^/]*|[^/]*_test|conftest)\.py", re.DOTALL)
_LONGEST_SUFFIX: Final = 20
_MOST_SHOWN: Final = 20_000  # characters of a turn in a transcript
_NAMES: Final[Mapping[TurnKind, str]] = {
    "assistant": "Said",
    "call": "Input",
    "result": "Result",
    "thinking": "Thought",
    "user": "Told",
}


def run_files(record: Record, prompt: str, workspace: bytes) -> Iterator[File]:
    """A trial without a grade has no grading.json, so that their aggregator skips it.

    ``workspace`` is the packed one of an agent, or empty: then there are the texts that it left.
    """
    if record.output is not None:
        yield "outputs/answer.md", _unbroken(record.output)
    yield from _outputs(record, workspace)
    transcript = transcript_markdown(record.transcript, prompt) if record.transcript else ""
    if transcript:
        yield "transcript.md", transcript
    metrics = _metrics(record, transcript)
    if record.activity:
        created = [file.path for file in record.files if file.change == "made"]
        yield "outputs/metrics.json", json_text({**metrics, "files_created": created})
    if record.outcome == "errored":
        yield "outputs/error.txt", _unbroken(record.error or "")
        return
    results = expectations(record)
    grading = {
        "expectations": results,
        "assertion_results": results,
        "summary": summary(record),
        # Without timing, their aggregator reads timing.json, which has the tokens.
        "execution_metrics": metrics,
    }
    yield "grading.json", json_text(grading)
    yield "timing.json", json_text(_timing(record))


def json_text(value: Any) -> str:
    """ASCII, as their scripts read with the encoding of the system."""
    return _BREAKING.sub(r"<\\\\", json.dumps(value, indent=2)) + "\n"


def _unbroken(text: str) -> str:
    """A text that their viewer can show."""
    return _BREAKING.sub(r"<\\", text)


# What an agent left behind.


def _outputs(record: Record, workspace: bytes) -> Iterator[File]:
    """Side by side, since their viewer shows no folders."""
    files = [file for file in record.files if file.change != "deleted"]
    contents_by_path, links = _unpacked(workspace)
    contents = {file.path: _content(file, contents_by_path.get(file.path), links) for file in files}
    names = output_names({path: ending for path, (_, ending) in contents.items()})
    for path, (content, _) in contents.items():
        yield f"outputs/{names[path]}", content


def _unpacked(workspace: bytes) -> tuple[Mapping[str, bytes], Mapping[str, str]]:
    """Files and the targets of links, by path as an answer has it."""
    try:
        snapshot = unpack(workspace)
    except ValueError:  # damaged
        return {}, {}
    files = {written_path(file.path): file.data for file in snapshot.files}
    return files, {written_path(link.path): link.target for link in snapshot.links}


def _content(
    file: AnswerFile, data: bytes | None, links: Mapping[str, str]
) -> tuple[str | bytes, str]:
    """What to write for a file, and what to add to its name."""
    if file.path in links:
        return f"A symbolic link to {_unbroken(links[file.path])}\n", ".txt"
    if file.text is not None:
        return file.text, _ending(file)
    if data is not None:
        return without_keys(data.decode("latin-1")).encode("latin-1", "replace"), _ending(file)
    facts = f"{_unbroken(file.path)}: {file.size:,} bytes, SHA-256 {file.digest}\n"
    return f"The content of this file was not kept.\n\n{facts}", ".txt"


def _ending(file: AnswerFile) -> str:
    """A suffix that stops pytest from running a file, or their viewer from showing it as text."""
    if file.text and _BREAKING.search(file.text):
        return ".htm" if file.path.endswith(".html") else ".bin"
    return ".txt" if _TESTS.fullmatch(file.path) else ""


def output_names(endings: Mapping[str, str]) -> dict[str, str]:
    """A name for each path, with its suffix, by which their viewer tells how to show a file.

    ``endings`` are what is to follow it, by path.
    """
    names: dict[str, str] = {}
    taken = {name.casefold() for name in _TAKEN}
    for path, ending in endings.items():
        stem, suffix = splitext(path)
        if len(suffix) > _LONGEST_SUFFIX or not re.fullmatch(r"\.[A-Za-z0-9_]+", suffix):
            stem, suffix = path, ""
        base = safe_name(stem).strip("-. ") or "unnamed"
        name, number = f"{base}{suffix}{ending}", 1
        while name.casefold() in taken:
            number += 1
            name = f"{base}-{number}{suffix}{ending}"
        taken.add(name.casefold())
        names[path] = name
    return names


def transcript_markdown(transcript: Transcript, prompt: str) -> str:
    """What an agent did and said, without its own instructions."""
    parts, number = [f"# Transcript\n\n## Eval Prompt\n\n{prompt}\n\n## Steps"], 0
    for turn in transcript:
        if turn.kind == "system" or (turn.kind == "user" and not turn.reply):
            continue
        number += turn.kind == "call"
        name = _NAMES[turn.kind]
        if turn.kind == "call":
            parts.append(f"### Step {number}: {one_line(turn.tool, 80)}")
        elif turn.failed:
            name = "Failed"
        parts.append(named_fence(name, shortened(turn.text, _MOST_SHOWN)))
    return "\n\n".join(parts) + "\n"


# Grades and numbers.


def _metrics(record: Record, transcript: str) -> dict[str, Any]:
    calls = Counter(turn.tool for turn in record.transcript if turn.kind == "call")
    metrics: dict[str, Any] = {
        "tool_calls": dict(calls),
        "total_tool_calls": tool_calls(record),
        "total_steps": record.activity.turns if record.activity else 1,
        "errors_encountered": errors(record),
    }
    if record.tokens is not None:  # else their aggregator counts these as tokens
        texts = [record.output or "", *(file.text or "" for file in record.files)]
        metrics["output_chars"] = sum(map(len, texts))
    if transcript:
        metrics["transcript_chars"] = len(transcript)
    return metrics


def tool_calls(record: Record) -> int:
    return record.activity.tool_calls if record.activity else 0


def errors(record: Record) -> int:
    """Calls of tools that failed."""
    return sum(turn.failed for turn in record.transcript)


def _timing(record: Record) -> dict[str, Any]:
    times: dict[str, Any] = {}
    if record.tokens is not None:
        times["total_tokens"] = record.tokens
    if record.seconds is not None:
        times["duration_ms"] = round(1000 * record.seconds)
        times["total_duration_seconds"] = round(record.seconds, 3)
        times["executor_duration_seconds"] = times["total_duration_seconds"]
    return times


def asked_of(record: Record) -> list[str]:
    """What each check asks: the same in every run, and different for each check."""
    texts: list[str] = []
    for grade in record.checks:
        text = f"{grade.check}: {grade.asks}" if grade.asks else grade.check
        if grade.check == JUDGE.name and grade.asks:
            text = grade.asks
        base, number = text, 1
        while text in texts:
            number += 1
            text = f"{base} ({number})"
        texts.append(text)
    return texts


def expectations(record: Record) -> list[dict[str, Any]]:
    # Their viewer puts the evidence into an attribute, which a double quote would end.
    return [
        {"text": text, "passed": grade.passed, "evidence": grade.reason.replace('"', "'")}
        for text, grade in zip(asked_of(record), record.checks, strict=True)
    ]


def summary(record: Record) -> dict[str, Any]:
    passed, total = sum(grade.passed for grade in record.checks), len(record.checks)
    rate = passed / total if total else float(record.outcome == "passed")
    return {"passed": passed, "failed": total - passed, "total": total, "pass_rate": round(rate, 4)}
