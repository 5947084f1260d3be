"""Text helpers: escaping, shortening, formatting, slugs, digests."""

import hashlib
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill._util.texts import (
    digest,
    dollars,
    duration,
    end_of,
    guess,
    harmless,
    message_line,
    one_line,
    plain,
    printed,
    round_dollars,
    shortened,
    slug,
    times_as_much,
)

ANY_TEXT = st.text(st.characters())  # lone surrogates too
# Format characters that are invisible or change how the text around them looks.
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
INVISIBLE = "\u200b\u200c\u200d\u2060\u2028\u2029\ufeff"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        (
            "\x1b]8;;http://a\x1b\\link\x1b]8;;\x07",
            "\\x1b]8;;http://a\\x1b\\link\\x1b]8;;\\x07",
        ),
        ("\x9d8;;http://a\x9clink", "\\x9d8;;http://a\\x9clink"),
        ("\x9b2J", "\\x9b2J"),
        ("a\x00b\x7f", "a\\x00b\\x7f"),
        ("safe\rgone", "safe\\x0dgone"),
        ("a\x08b\x0bc\x0c", "a\\x08b\\x0bc\\x0c"),
        ("\u202etxt.exe", "\\u202etxt.exe"),
        ("in\u200bvisible", "in\\u200bvisible"),
        ("\u2066isolate\u2069", "\\u2066isolate\\u2069"),
        ("\ufeffbom", "\\ufeffbom"),
        ("line\u2028end", "line\\u2028end"),
        ("half \ud83d of a pair", "half \\ud83d of a pair"),
        ("pay\u200cpal", "pay\\u200cpal"),
        ("\u0628\u200d\u200c\u0628", "\u0628\\u200d\\u200c\u0628"),
    ],
)
def test_control_characters_are_escaped(text: str, shown: str) -> None:
    assert harmless(text) == shown


PERSIAN, HINDI = (
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    "\u0915\u094d\u200d\u0937",
)
FAMILY, HEART = (
    "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "\u2764\ufe0f\u200d\U0001f525",
)


@pytest.mark.parametrize(
    "text",
    ["a\n\tb", "Grüße, 世界 → █ × 🙂", "\\x1b[31m", "", PERSIAN, HINDI, FAMILY, HEART],
)
def test_harmless_characters_are_kept(text: str) -> None:
    assert harmless(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::x", r"\u003a:error::x"),
        ("a\n \u3000::stop-commands::t", "a\n \u3000" + r"\u003a:stop-commands::t"),
        ("x ##[error]y ##vso[a b]", r"x \u0023#[error]y \u0023#vso[a b]"),
        ("###[group]", r"#\u0023#[group]"),
        ("std::vector, a::before ## [x]", "std::vector, a::before ## [x]"),
    ],
)
def test_commands_of_ci_systems_are_escaped(text: str, shown: str) -> None:
    assert harmless(text) == shown


def test_own_colours_are_printed_and_nothing_else() -> None:
    text = "\x1b[31m::error::x\x1b[0m\r\x1b[K\x1b]8;;x\x07\x1b[2J"
    shown = (
        "\x1b[31m" + r"\u003a:error::x" + "\x1b[0m\r\x1b[K" + r"\x1b]8;;x\x07\x1b[2J"
    )
    assert printed(text) == shown


def test_windows_line_end_becomes_newline() -> None:
    assert harmless("one\r\ntwo\r\n") == "one\ntwo\n"


@given(ANY_TEXT)
def test_no_harmful_character_is_left_in_any_text(text: str) -> None:
    shown = harmless(text)
    assert not {
        char for char in shown if unicodedata.category(char) in ("Cc", "Cs")
    } - {"\n", "\t"}
    assert not set(shown) & set(BIDI + INVISIBLE)
    assert shown.encode("utf-8").decode("utf-8") == shown


@given(ANY_TEXT)
def test_harmless_is_idempotent(text: str) -> None:
    assert harmless(harmless(text)) == harmless(text)


def test_text_within_the_limit_is_not_shortened() -> None:
    assert shortened("x" * 100, 100) == "x" * 100


def test_text_is_not_shortened_to_save_a_few_characters() -> None:
    assert shortened("x" * 1199, 1000) == "x" * 1199
    assert "[… 200 characters left out …]" in shortened("x" * 1200, 1000)


@pytest.mark.parametrize(
    ("change", "times"),
    [(5281.4, "5,282"), (10, "11"), (9.996, "11"), (9.99, None), (-1, None)],
)
def test_growth_of_1000_percent_or_more_is_a_factor(
    change: float, times: str | None
) -> None:
    assert times_as_much(change) == times


def test_shortened_text_has_both_ends_and_says_how_much_was_cut() -> None:
    text = "begin" + "x" * 9_990 + "ender"
    head, note, tail = shortened(text, 100).split("\n")
    assert head == text[:75]
    assert tail == text[-25:]
    assert note == "[… 9,900 characters left out …]"


@given(st.text(alphabet="ab", min_size=41), st.integers(4, 40))
def test_shown_and_cut_characters_add_up(text: str, limit: int) -> None:
    head, note, tail = shortened(text, limit, saving=1).split("\n")
    left_out = re.fullmatch(r"\[… ([0-9,]+) characters left out …\]", note)
    assert left_out
    assert len(head) + len(tail) + int(left_out[1].replace(",", "")) == len(text)
    assert text.startswith(head)
    assert text.endswith(tail)


def test_one_line_turns_lines_and_tabs_into_spaces() -> None:
    assert one_line("  first\r\n\tsecond\n\n third ", 80) == "first second third"


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("a.json: no queries\n  Write one.", "a.json: no queries. Write one."),
        ("it is broken.\n  Mend it.", "it is broken. Mend it."),
        (
            "not usable twice:\n  Bad JSON\n  Try again.",
            "not usable twice: Bad JSON. Try again.",
        ),
        ("a:1: unknown\na:2: missing", "a:1: unknown a:2: missing"),
    ],
)
def test_a_hint_is_a_sentence_of_its_own(message: str, line: str) -> None:
    assert message_line(message, 80) == line


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("boom\n", "boom"),
        ("a  b", "a b"),
        ("012345", "…2345"),
        (" " * 41 + "x", "…x"),
        ("\n", ""),
    ],
)
def test_the_end_of_a_text_has_a_mark_only_if_it_is_cut(text: str, end: str) -> None:
    assert end_of(text, 4) == end


def test_long_line_ends_in_an_ellipsis() -> None:
    assert one_line("abcdefghij", 10) == "abcdefghij"
    assert one_line("abcdefghijk", 10) == "abcdefghi…"


@given(ANY_TEXT, st.integers(1, 50))
def test_one_line_is_harmless_and_within_its_limit(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert harmless(line) == line
    assert len(line.splitlines()) <= 1


def test_close_word_is_suggested() -> None:
    assert (
        guess("contians", ["not_contains", "contains"]) == ' (did you mean "contains"?)'
    )


def test_nothing_is_suggested_if_no_word_is_close() -> None:
    assert guess("zebra", ["contains", "not_contains"]) == ""
    assert guess("contains", []) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("How do I open the gate?", "how-do-i-open-the-gate"),
        ("Änderung für Zoë", "anderung-fur-zoe"),
        ("  --build.toml__H100-- ", "build-toml-h100"),
        ("世界", ""),
        ("", ""),
    ],
)
def test_slug_is_the_words_of_a_text_in_ascii(text: str, expected: str) -> None:
    assert slug(text) == expected


def test_slug_ends_at_a_word_within_the_limit() -> None:
    assert slug("alpha beta gamma delta", 16) == "alpha-beta-gamma"
    assert slug("alpha beta gamma delta", 15) == "alpha-beta"


def test_first_word_over_the_limit_is_cut() -> None:
    assert slug("pneumonoultramicroscopic", 10) == "pneumonoul"


@given(ANY_TEXT, st.integers(1, 60))
def test_slug_has_only_lowercase_letters_digits_and_hyphens(
    text: str, limit: int
) -> None:
    made = slug(text, limit)
    assert re.fullmatch(r"([a-z0-9]+(-[a-z0-9]+)*)?", made)
    assert len(made) <= limit


@pytest.mark.parametrize(
    ("parts", "others"),
    [
        (("ab", "c"), ("a", "bc")),
        (("ab",), ("a", "b")),
        (("a", ""), ("", "a")),
        (("a", ""), ("a",)),
        ((), ("",)),
        (("a", "b"), ("b", "a")),
        (("\ud800",), ("\ufffd",)),
    ],
)
def test_digest_depends_on_how_text_is_split(
    parts: tuple[str, ...], others: tuple[str, ...]
) -> None:
    assert digest(*parts) != digest(*others)


@given(st.lists(ANY_TEXT))
def test_digest_is_stable_and_hexadecimal(parts: list[str]) -> None:
    assert digest(*parts) == digest(*parts)
    assert re.fullmatch(r"[0-9a-f]{64}", digest(*parts))


def test_digest_is_sha256_of_length_and_text() -> None:
    # It is the key of stored answers, so changing it would discard them all.
    data = b"\0\0\0\0\0\0\0\x01a" + b"\0\0\0\0\0\0\0\x02" + "ß".encode()
    assert digest("a", "ß") == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    ("amount", "told"),
    [
        (0, "$0"),
        (2.1e-05, "<$0.001"),
        (0.0009, "<$0.001"),
        (0.0021, "$0.0021"),
        (0.04, "$0.04"),
        (0.0999, "$0.10"),
        (1.2, "$1.20"),
        (120, "$120.00"),
        (1234.4, "$1,234"),
    ],
)
def test_dollars_are_rounded_for_a_sentence(amount: float, told: str) -> None:
    assert dollars(amount) == told


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (0.0, "0"),
        (1234567.0, "1234567"),
        (1e-05, "0.00001"),
        (0.1 + 0.2, "0.3"),
        (-1.5e15, "-1500000000000000"),
        (1e300, "1e+300"),
        (float("inf"), "inf"),
    ],
)
def test_number_has_no_exponent_unless_very_long(number: float, told: str) -> None:
    assert plain(number) == told


@given(st.floats(0, 1e15))
def test_common_amounts_have_no_exponent(number: float) -> None:
    assert "e+" not in dollars(number)
    assert "e-" not in dollars(number)


@given(st.floats(0, 1e9))
def test_rounded_dollars_are_those_that_are_written(amount: float) -> None:
    text = dollars(amount)
    shown = 0.0 if text.startswith("<") else float(text[1:].replace(",", ""))
    assert round_dollars(amount) == shown


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "0.2 s"),
        (59.4, "59.4 s"),
        (59.6, "1 min 0 s"),
        (200, "3 min 20 s"),
        (3599.7, "1 h 0 min"),
        (7500, "2 h 5 min"),
    ],
)
def test_durations_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words
