"""Where in an answer checks found what they look for: for people who read a failure."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from .folding import Folded, folded, folded_with_places
from .kind import Span
from .patterns import SECONDS, word_pattern

if TYPE_CHECKING:
    import regex

_LOOKED_AT: Final = 200_000
_MOST: Final = 20  # of one text: marks everywhere would mark nothing


def texts(answer: str, wanted: list[str], case_sensitive: bool) -> Iterator[Span | None]:
    whole = _beginning_of(answer, case_sensitive)
    for text in wanted:
        part, start = folded(text, case_sensitive), 0
        for _ in range(_MOST):
            start = whole.text.find(part, start)
            if start < 0:
                break
            yield whole.span(start, start + len(part))
            start += len(part)


def words(answer: str, wanted: list[str], case_sensitive: bool) -> Iterator[Span | None]:
    for text in wanted:
        pattern = word_pattern(folded(text, case_sensitive))
        yield from _matches(pattern, _beginning_of(answer, case_sensitive))


def patterns(answer: str, wanted: list[Any], case_sensitive: bool) -> Iterator[Span | None]:
    for _, pattern in wanted:
        yield from _matches(pattern[case_sensitive], _beginning_of(answer, True))


def start(answer: str, text: str, case_sensitive: bool) -> Iterator[Span | None]:
    whole, part = _beginning_of(answer, case_sensitive), folded(text, case_sensitive).strip()
    at = len(whole.text) - len(whole.text.lstrip())
    if whole.text.startswith(part, at):
        yield whole.span(at, at + len(part))


def end(answer: str, text: str, case_sensitive: bool) -> Iterator[Span | None]:
    whole, part = _beginning_of(answer, case_sensitive), folded(text, case_sensitive).strip()
    stop = len(whole.text.rstrip())
    if len(answer) <= _LOOKED_AT and whole.text.endswith(part, 0, stop):
        yield whole.span(stop - len(part), stop)


def merged(spans: Iterable[Span | None]) -> list[Span]:
    """In order, and none that overlaps or touches another."""
    out: list[Span] = []
    for first, last in sorted(filter(None, spans)):
        if out and first <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], last))
        else:
            out.append((first, last))
    return out


def _beginning_of(answer: str, case_sensitive: bool) -> Folded:
    """All of most answers: of more nobody reads the middle."""
    return folded_with_places(answer[:_LOOKED_AT], case_sensitive)


def _matches(pattern: "regex.Pattern[str]", whole: Folded) -> Iterator[Span | None]:
    try:
        for match in islice(pattern.finditer(whole.text, timeout=SECONDS), _MOST):
            yield whole.span(match.start(), match.end())
    except TimeoutError:
        return
