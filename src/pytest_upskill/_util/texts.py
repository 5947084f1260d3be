"""Small pure helpers for text: escape, shorten, format, guess, slug, digest."""

import difflib
import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

from ..errors import without_commands

# What a terminal might act on or a reader can't see: C0 and C1 controls except
# newline and tab, bidirectional marks, invisible characters and tags, line
# separators, lone surrogates. Joiners stay between the letters that need them, as in
# Persian and Hindi, and inside an emoji.
_JOINED = (
    "[\u0620-\u115e\u1161-\u17b3\u17b6-\u180a\u1810-\u1fff"
    "\u2190-\u2bff\ufe0f\U0001f000-\U0001faff]"
)
_HARMFUL = re.compile(
    f"(?!(?<={_JOINED})[\u200c\u200d]{_JOINED})"
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_COLOURS = re.compile(r"(\x1b\[[\d;]*m|\r\x1b\[K)")  # colours, and clearing a line
# A hint is a sentence, a problem is none
_HINT = re.compile(r"([^\s.,:;!?…])\n[ ]*(?=[A-Z])")
_MAX_SCANNED = 100_000
# From there on dollars have two decimals, or none
_TEN_CENTS, _THOUSAND = 0.0995, 999.995
WORTH_CUTTING = 200  # characters; cutting less saves too little


def harmless(text: str) -> str:
    """Untrusted text, safe to print: without control and invisible
    characters or log commands.
    """
    return without_commands(visible(text))


def visible(text: str) -> str:
    """Untrusted text with control and invisible characters escaped,
    for the middle of a line.
    """
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    return _HARMFUL.sub(lambda match: _visible(ord(match.group())), text)


def printed(text: str) -> str:
    """Everything that a command prints, escaped, except for its own colours."""
    parts = _COLOURS.split(text)  # every second one is a code
    parts[::2] = map(visible, parts[::2])
    return without_commands("".join(parts))


def _visible(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shortened(text: str, limit: int, *, saving: int = WORTH_CUTTING) -> str:
    """The start and end of a text, unless cutting would save less
    than ``saving`` characters.
    """
    if len(text) < limit + saving:
        return text
    head, tail = limit * 3 // 4, limit // 4
    left_out = len(text) - head - tail
    return (
        f"{text[:head]}\n[… {left_out:,} characters left out"
        f" …]\n{text[len(text) - tail :]}"
    )


def one_line(text: str, limit: int | None) -> str:
    """Untrusted text on one line, safe to print, at most ``limit`` characters."""
    flat = " ".join(harmless(text if limit is None else text[:_MAX_SCANNED]).split())
    return flat if limit is None or len(flat) <= limit else flat[: limit - 1] + "…"


def end_of(text: str, limit: int) -> str:
    """The last characters of untrusted text, on one line; a mark says that it is
    cut.
    """
    end = one_line(text[-10 * limit :], None)
    return end if len(text) <= 10 * limit and len(end) <= limit else f"…{end[-limit:]}"


def message_line(message: str, limit: int) -> str:
    """A problem and, on lines of their own, its hints, as sentences on one line."""
    return one_line(_HINT.sub(r"\1. ", message[:_MAX_SCANNED]), limit)


def first_few(texts: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first of many texts: ``a, b and 3 more``."""
    joint = " " if separator == ", " else separator
    hidden = f"{joint}and {len(texts) - most:,} more" if len(texts) > most else ""
    return separator.join(texts[:most]) + hidden


def named_fence(name: str, text: str) -> str:
    """A file in a prompt: its name, and its text in a fence."""
    # Longer than any fence inside, so that a file can't close its own.
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{name}:\n{fence}\n{text.rstrip(chr(10))}\n{fence}"


def counted(number: int, word: str) -> str:
    """``1 case``, ``3 cases``, ``3 queries``."""
    return f"{number:,} {word if number == 1 else plural(word)}"


def plural(word: str) -> str:
    return f"{word[:-1]}ies" if word.endswith("ry") else f"{word}s"


def plain(number: float) -> str:
    """A number without an exponent, unless it would be very long."""
    short = f"{number:.15g}"
    return f"{Decimal(short):f}" if 1e-15 < abs(number) < 1e21 else short


def percent(share: float) -> str:
    """A share as a percentage: 0.25 is 25%."""
    return f"{share:.0%}"


def apart(first: float, second: float, sign: str = "") -> tuple[str, str]:
    """Two shares in percent or points, with enough digits to differ if they do."""
    first_text = second_text = ""
    for digits in range(4 if first != second else 1):
        texts = [f"{100 * share:{sign}.{digits}f}" for share in (first, second)]
        first_text, second_text = [text if float(text) else "0" for text in texts]
        if first_text != second_text:
            break
    return first_text, second_text


def points(share: float) -> str:
    """A difference of shares in percentage points: 0.1 is +10."""
    return f"{round(share * 100):+d}" if round(share * 100) else "0"


def unsigned_points(share: float) -> str:
    """The size of a difference: 0.1 is 10."""
    return f"{round(share * 100):,}"


def span(low: float, high: float, text: Callable[[float], str] = points) -> str:
    """An interval: ``-12 to +52``."""
    return f"{text(low)} to {text(high)}"


def whole(number: float) -> str:
    """A number such as a mean of tokens, without decimals: 1,234."""
    return f"{number:,.0f}"


def seconds(number: float) -> str:
    """Seconds with one decimal: 1.3."""
    return f"{number:,.1f}"


def duration(number: float) -> str:
    """As people say it: 8.4 s, 3 min 20 s, 1 h 5 min."""
    minutes, left = divmod(round(number), 60)
    if not minutes:
        return f"{seconds(number)} s"
    return (
        f"{minutes} min {left} s"
        if minutes < 60
        else f"{minutes // 60} h {minutes % 60} min"
    )


def dollars(amount: float) -> str:
    """USD as exactly as needed, never with an exponent: $0.0021, $1.50, $1,235."""
    if 0 < amount < 0.001:
        return "<$0.001"
    if amount < _TEN_CENTS:
        return f"${amount:.2g}"
    return f"${amount:,.2f}" if amount < _THOUSAND else f"${amount:,.0f}"


def round_dollars(amount: float) -> float:
    """An amount as exactly as `dollars` writes it."""
    if amount < _TEN_CENTS:
        return float(f"{amount:.2g}") if amount >= 0.001 else 0.0
    return round(amount, 2 if amount < _THOUSAND else 0)


def times_as_much(change: float) -> str | None:
    """A growth of 1000 % or more as a factor: 5281.4 is 5,282 times."""
    return f"{1 + change:,.0f}" if round(100 * change) >= 1000 else None


def closest(word: str, words: Iterable[str]) -> str:
    """The known word that a misspelt one is close to, if any."""
    cutoff = 0.7 if len(word) == 4 else 0.6  # "nope" shares three letters with "openai"
    return next(
        iter(difflib.get_close_matches(word, list(words), n=1, cutoff=cutoff)), ""
    )


def guess(word: str, words: Iterable[str]) -> str:
    """`` (did you mean "…"?)`` if a known word is close, else nothing."""
    close = closest(word, words)
    return f' (did you mean "{close}"?)' if close else ""


def slug(text: str, limit: int = 40) -> str:
    """The first words of a text, in ASCII, for use in a node id; may be empty."""
    return joined_words(slug_words(text), limit)


def slug_words(text: str) -> list[str]:
    """The words at the beginning of a text, in ASCII and lowercase."""
    ascii_text = (
        unicodedata.normalize("NFKD", text[:400]).encode("ascii", "ignore").decode()
    )
    return re.findall(r"[a-z0-9]+", ascii_text.lower())


def joined_words(words: Sequence[str], limit: int = 40) -> str:
    """As many words as fit, with hyphens."""
    out = ""
    for word in words:
        if len(out) + len(word) + 1 > limit:
            break
        out = f"{out}-{word}" if out else word
    return out or (words[0][:limit] if words else "")


def as_read(text: str) -> str:
    """The same for texts that differ in white space, letter case or what nobody
    sees.
    """
    if not text.isascii():
        text = "".join(
            letter for letter in text if unicodedata.category(letter) != "Cf"
        )
    return " ".join(text.casefold().split())


def digest(*parts: str) -> str:
    """SHA-256 of several texts; their boundaries count."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        total.update(len(data).to_bytes(8, "big"))
        total.update(data)
    return total.hexdigest()


def mark_of(*parts: str) -> str:
    """A word that none of these texts contains: it is made of them all,
    and always the same.
    """
    return digest(*parts)[:16]


def marked(name: str, mark: str, text: str) -> str:
    """A text that a model must take for data, between marks that it can't contain."""
    return f"<{name} {mark}>\n{text}\n</{name} {mark}>\n\n"
