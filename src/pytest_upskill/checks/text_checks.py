"""Checks of an answer's text, its length, its time and how it ended."""

from collections.abc import Callable, Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, Field, TypeAdapter

from .._util.texts import counted, one_line, plain
from .check import (
    COUNT,
    TEXT,
    TEXTS,
    CheckContext,
    CheckKind,
    Evaluate,
    Result,
    Text,
    one_or_more,
    quoted,
)
from .matching import (
    compile_pattern,
    find_end,
    find_patterns,
    find_start,
    find_texts,
    find_words,
    folded,
    search,
    word_pattern,
)


def _both(context: CheckContext, text: str) -> tuple[str, str]:
    """The answer and a text as they are compared."""
    sensitive = context.case_sensitive
    return folded(context.answer.text, sensitive), folded(text, sensitive)


def _contains(context: CheckContext) -> Iterator[Result]:
    for text in context.value:
        answer, part = _both(context, text)
        inside = part in answer
        yield (
            inside,
            f"{quoted(text)} is {'' if inside else 'not '}in {context.text_name}",
        )


def _not_contains(context: CheckContext) -> Iterator[Result]:
    return ((not inside, reason) for inside, reason in _contains(context))


def _contains_any(context: CheckContext) -> Iterator[Result]:
    inside = [reason for passed, reason in _contains(context) if passed]
    names = one_line(", ".join(map(quoted, context.value)), 200)
    yield (
        bool(inside),
        inside[0] if inside else f"none of {names} is in {context.text_name}",
    )


def _words(context: CheckContext) -> Iterator[Result]:
    for text in context.value:
        answer, part = _both(context, text)
        if search(word_pattern(part), answer, case_sensitive=True):
            yield True, f"{quoted(text)} is in {context.text_name} as a word"
        elif part in answer:
            yield (
                False,
                f"{quoted(text)} is in {context.text_name} only as part of other words",
            )
        else:
            yield False, f"{quoted(text)} is not in {context.text_name}"


def _compared(yes: str, no: str, holds: Callable[[str, str], bool]) -> Evaluate:
    """White space around the answer and the text is ignored."""

    def evaluate(context: CheckContext) -> Iterator[Result]:
        answer, part = (side.strip() for side in _both(context, context.value))
        passed = holds(answer, part)
        yield (
            passed,
            f"{context.text_name} {yes if passed else no} {quoted(context.value)}",
        )

    return evaluate


def _matched(expected: bool) -> Evaluate:
    def evaluate(context: CheckContext) -> Iterator[Result]:
        for text in context.value:
            answer = folded(context.answer.text, case_sensitive=True)
            match = search(text, answer, case_sensitive=context.case_sensitive)
            matched_text = "nothing" if match is None else quoted(match)
            yield (
                (match is not None) is expected,
                f"{quoted(text)} matches {matched_text} in {context.text_name}",
            )

    return evaluate


def _at_most(unit: str, count: Callable[[str], int]) -> Evaluate:
    def evaluate(context: CheckContext) -> Iterator[Result]:
        number = count(context.answer.text)
        yield (
            number <= context.value,
            f"{counted(number, unit)} (limit {context.value:,})",
        )

    return evaluate


def _min_words(context: CheckContext) -> Iterator[Result]:
    number = _words_in(context.answer.text)
    yield (
        number >= context.value,
        f"{counted(number, 'word')} (minimum {context.value:,})",
    )


def _words_in(text: str) -> int:
    return len(text.split())


def _characters_in(text: str) -> int:
    return len(folded(text, case_sensitive=True).strip())


def _max_output_tokens(context: CheckContext) -> Iterator[Result]:
    tokens = context.answer.usage.output
    if tokens is None:
        yield None, "the server does not report output tokens"
    else:
        yield (
            tokens <= context.value,
            f"{counted(tokens, 'token')} (limit {context.value:,})",
        )


def _max_seconds(context: CheckContext) -> Iterator[Result]:
    seconds = context.answer.seconds
    if seconds is None:
        yield None, "how long this answer took is not known"
        return
    reason = f"{plain(round(seconds, 3))} s (limit {plain(context.value)} s)"
    yield seconds <= context.value, reason


def _refused(context: CheckContext) -> Iterator[Result]:
    refused = context.answer.refused
    reason = f"the model {'refused' if refused else 'did not refuse'} to answer"
    yield refused is context.value, reason


def _stop(context: CheckContext) -> Iterator[Result]:
    yield (
        context.answer.stop == context.value,
        f"stop reason {quoted(context.answer.stop)}",
    )


PATTERNS: TypeAdapter[Any] = TypeAdapter(
    Annotated[list[Annotated[Text, AfterValidator(compile_pattern)]], *one_or_more]
)
_SECONDS: TypeAdapter[Any] = TypeAdapter(
    Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
)
YES_OR_NO: TypeAdapter[Any] = TypeAdapter(Annotated[bool, Field(strict=True)])

_starts = _compared("starts with", "does not start with", str.startswith)
_ends = _compared("ends with", "does not end with", str.endswith)

KINDS = (
    CheckKind("contains", TEXTS, _contains, find_texts),
    CheckKind("contains_any", TEXTS, _contains_any, find_texts),
    CheckKind("not_contains", TEXTS, _not_contains, find_texts, unwanted=True),
    CheckKind("words", TEXTS, _words, find_words),
    CheckKind("equals", TEXT, _compared("is", "is not", str.__eq__)),
    CheckKind("starts_with", TEXT, _starts, find_start),
    CheckKind("ends_with", TEXT, _ends, find_end),
    CheckKind("regex", PATTERNS, _matched(expected=True), find_patterns),
    CheckKind(
        "not_regex", PATTERNS, _matched(expected=False), find_patterns, unwanted=True
    ),
    CheckKind("min_words", COUNT, _min_words),
    CheckKind("max_words", COUNT, _at_most("word", _words_in)),
    CheckKind("max_chars", COUNT, _at_most("character", _characters_in)),
    CheckKind("max_output_tokens", COUNT, _max_output_tokens),
    CheckKind("max_seconds", _SECONDS, _max_seconds),
    CheckKind("refused", YES_OR_NO, _refused),
    CheckKind("stop", TEXT, _stop),
)
