"""Mask every key that this process knows, wherever a text comes from or goes to.

A server may quote the key it was sent, a model may repeat one. So answers and errors
are masked as they enter (the engine), and everything is masked again on its way out:
files, reports, telemetry.

A key is known by its value: that of a variable such as OPENAI_API_KEY, GITHUB_TOKEN
or OPENAI_CUSTOM_HEADERS, a password in a URL, or a value passed to ``know``. In
commands and errors, a credential is also known by where it stands: in a URL, or after
a name such as ``--api-token``.
"""

import base64
import html
import json
import operator
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Any, Final, NamedTuple, TypeVar, cast
from urllib.parse import quote, quote_plus, unquote

from .launcher import launched
from .texts import harmless

T = TypeVar("T")

HIDDEN: Final = "***"
_VARIABLE: Final = re.compile(
    r"\w*(?:KEY|KEY_ID|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)|\w*_(?:PASS|PWD|AUTH)"
    r"|\w*_BEARER_TOKEN_\w*",
    re.I,
)
_URL: Final = re.compile(r"\s*[A-Za-z][\w+.:-]*://")
_USER_AND_PASSWORD: Final = re.compile(r"://([^\s/?#]*)@")
_IN_QUERY: Final = re.compile(
    r"[?&;#][\w.-]{0,100}?(?:key|token|secret|password|passwd|pwd|auth|sig|signature)=([^&;#\s]+)",
    re.I,
)
# Local servers take any key, so people write words.
# Masking those would spoil ordinary text.
_PLACEHOLDERS: Final = frozenset(
    re.findall(
        "[a-z]+",
        "a an and any anything api anthropic be bearer bar change changeme cpp custom"
        " default demo do does dummy empty example fake foo for here huggingface ignore"
        " ignored insert invalid is it key keys lm llama llamacpp lmstudio local"
        " localhost matter mock my need needed necessary no none not nokey nothing null"
        " ollama openai or placeholder provider put real replace required sample secret"
        " server set sk some studio test testing the this to todo token unset unused"
        " used user value vllm whatever with without x xx xxx xxxx xxxxx xxxxxxxx you"
        " your",
    )
)
# What an agent sends the gateway as its key: one per trial, too many to remember.
_TRIAL_KEY: Final = re.compile(r"(?<![A-Za-z0-9])trialkey-[\w-]{32}(?![\w-])")
_PATH: Final = re.compile(r"[/~.]|[A-Za-z]:[\\/]")
# A secret of AWS may begin with a slash.
_AWS_SECRET: Final = re.compile(r"(?=.*[A-Z])(?=.*[a-z])(?=.*\d)[A-Za-z0-9+/]{40}")
_SHORTEST: Final = 8
_SHORTEST_MIXED: Final = 6  # of letters and digits
_LONGEST_WORD: Final = 11  # longer words are not part of ordinary text
_CODED_FROM: Final = 12  # a shorter key, encoded, could be part of any text
_CUT_FROM: Final = 16  # fewer characters only tell the kind of key
_learnt: set[str] = set()  # of this process, as the environment is


class _Form(NamedTuple):
    text: str
    is_key: bool  # the key itself, which may be broken into lines or cut off


def know(*values: str) -> None:
    """Mask these values from now on, too."""
    _learnt.update(value for value in values if _is_key(value))


def without_keys(text: str) -> str:
    """The text without the keys of this process, however they are coded."""
    return _hide_in_text(text, _known_forms())


def _known_forms() -> tuple[_Form, ...]:
    return _forms(_in_environment(_state_of_environment()).union(_learnt))


def _hide_in_text(text: str, forms: tuple[_Form, ...]) -> str:
    if len(text) < _SHORTEST_MIXED:
        return text
    if "trialkey-" in text:
        text = _TRIAL_KEY.sub(HIDDEN, text)
    for form in forms:
        if form.text in text:
            text = text.replace(form.text, HIDDEN)
    keys = [form.text for form in forms if form.is_key and len(form.text) > _CUT_FROM]
    if not keys or len(text) < _CUT_FROM:
        return text
    squeezed = "".join(text.split())
    for key in keys:
        if key in squeezed:  # broken into lines
            text = re.sub(r"\s*".join(map(re.escape, key)), HIDDEN, text)
        if key[:_CUT_FROM] in text:
            text = _without_start(text, key)
        if key[-_CUT_FROM:] in text:
            text = _without_start(text[::-1], key[::-1])[::-1]
    return text


def hide_keys(value: T) -> T:
    """A value with all texts in it masked; itself if none has a key."""
    return cast("T", _hide_in_value(value, _known_forms()))


def _hide_in_value(value: Any, forms: tuple[_Form, ...]) -> Any:
    if isinstance(value, str):
        return _hide_in_text(value, forms)

    if isinstance(value, tuple):
        parts = [_hide_in_value(part, forms) for part in value]
        if all(map(operator.is_, parts, value)):
            return value
        make = getattr(value, "_make", tuple)  # a NamedTuple stays one
        return make(parts)

    hidden = {}
    for name in getattr(value, "__dataclass_fields__", ()):
        part = getattr(value, name)
        masked = _hide_in_value(part, forms)
        if masked is not part:
            hidden[name] = masked
    return replace(value, **hidden) if hidden else value


def password_of(url: str) -> tuple[str, ...]:
    """User and password in a URL, and the password alone, as written and as sent."""
    match = _USER_AND_PASSWORD.search(url)
    if not match:
        return ()
    pairs = (match[1], unquote(match[1]))
    return (*pairs, *(pair.partition(":")[2] for pair in pairs))


def environment() -> dict[str, str]:
    """A copy of the environment; another thread may remove a variable meanwhile."""
    return {name: os.environ.get(name, "") for name in os.environ}


def _state_of_environment() -> tuple[tuple[object, object], ...]:
    """The undecoded environment: decoding it for every text of
    every call takes too long.
    """
    return tuple(getattr(os.environ, "_data", os.environ).copy().items())


def passwords() -> frozenset[str]:
    """Users and passwords of all URLs in the environment."""
    return _passwords_in(_state_of_environment())


@lru_cache(maxsize=4)
def _passwords_in(_state: tuple[tuple[object, object], ...]) -> frozenset[str]:
    return frozenset(chain.from_iterable(map(password_of, environment().values())))


@lru_cache(maxsize=4)
def _in_environment(_state: tuple[tuple[object, object], ...]) -> frozenset[str]:
    return frozenset(_known_values(environment()))


def _known_values(env: Mapping[str, str]) -> Iterator[str]:
    """The keys in an environment."""
    for name, value in env.items():
        candidates: Iterable[str] = ()
        if name.upper().endswith("HEADERS"):
            candidates = _of_headers(value)
        elif _URL.match(value):
            candidates = (*password_of(value), *map(unquote, _IN_QUERY.findall(value)))
        elif _VARIABLE.fullmatch(name):
            candidates = (value.strip(),)
        yield from filter(_is_key, candidates)


def _of_headers(value: str) -> Iterator[str]:
    """``Name: value`` on lines for SDKs, ``name=value`` with commas for
    OpenTelemetry.
    """
    for line in re.split(r"[\n,]", value):
        header = re.split(r"[:=]", line, maxsplit=1)[-1].strip()
        yield from (header, unquote(header), header.rpartition(" ")[2])


def _is_key(value: str) -> bool:
    """Whether a value may be masked everywhere: no path, no number,
    no word that others use.
    """
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    if len(value) < (_SHORTEST_MIXED if mixed else _SHORTEST) or _is_path(value):
        return False
    words = re.findall(r"[a-z]+", value.lower())
    if mixed:
        return not (len(value) < _CODED_FROM and _PLACEHOLDERS.issuperset(words))
    if not words or _PLACEHOLDERS.issuperset(words):
        return len(value) >= _CODED_FROM and not words
    return len(words) > 1 or len(value) > _LONGEST_WORD or not value.islower()


def _is_path(value: str) -> bool:
    return bool(_PATH.match(value)) and not _AWS_SECRET.fullmatch(value)


@lru_cache(maxsize=32)
def _forms(values: frozenset[str]) -> tuple[_Form, ...]:
    """Each key as it is, as URLs, JSON, HTML and Basic authentication write it,
    the longest first.

    A key inside a longer base64 text is found by its middle,
    which does not depend on the text around it.
    """
    forms = dict[str, _Form]()
    for value in values:
        forms[value] = _Form(value, is_key=True)
        encoded = {
            *(
                quote(value, safe=""),
                quote(value),
                quote_plus(value),
                html.escape(value),
            ),
            *(json.dumps(value)[1:-1], repr(value)[1:-1], value.replace("/", "\\/")),
        }
        data = value.encode("utf-8", "surrogatepass")
        if len(data) >= _CODED_FROM:
            encoded |= {data.hex(), data.hex().upper()}
            for before in range(3):
                coded = base64.b64encode(bytes(before) + data).decode().rstrip("=")
                inner = coded[
                    (0, 2, 3)[before] : len(coded) - ((len(data) + before) % 3 > 0)
                ]
                encoded |= {inner, inner.replace("+", "-").replace("/", "_")}
        for text in encoded:
            forms.setdefault(text, _Form(text, is_key=False))
    return tuple(sorted(forms.values(), key=lambda form: len(form.text), reverse=True))


def _without_start(text: str, key: str) -> str:
    """Mask every beginning of a key in a text."""
    parts, end, start = list[str](), 0, key[:_CUT_FROM]
    while (place := text.find(start, end)) >= 0:
        parts += text[end:place], HIDDEN
        end = place + _CUT_FROM
        while end - place < len(key) and text[end : end + 1] == key[end - place]:
            end += 1
    return "".join([*parts, text[end:]])


# Credentials that are known by where they stand.

_MANY: Final = "{0,500}"  # bounded, so that a hostile text takes linear time
# The second form is a password with a slash that should have been written as %2F.
_USER: Final = re.compile(
    rf"(://)(?:[^\s/?#\"'<>]{_MANY}|[^\s/?#@:\"'<>]{_MANY}:(?!\d+[/?#])[^\s\"'<>]{_MANY})@"
)
_NAME: Final = (
    r"(?:[\w.-]{0,100}[_.-])?(?:api)?(?:key|token|secret|password|passwd|pwd|pass|auth|credentials?"
    r"|sig|signature|headers)"
)
_QUERY: Final = re.compile(rf"([?&;#]{_NAME}=)[^&;#\s\"'<>]+", re.I)
_ASSIGNED: Final = re.compile(rf"\A(-{{0,2}}{_NAME}=).+", re.I | re.S)
_FLAG: Final = re.compile(rf"--{_NAME}", re.I)
_SHORTEST_PASSWORD: Final = 4  # a shorter password could be part of any text


def without_credentials(text: str, secrets: Iterable[str] = ()) -> str:
    """A text with nothing in it that is, or looks like, a credential."""
    text = without_keys(text)
    # Unlike above, passwords that are ordinary words are masked, too.
    values = {*secrets, *passwords()}
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= _SHORTEST_PASSWORD:
            text = text.replace(value, HIDDEN)
    text = _USER.sub(rf"\1{HIDDEN}@", text)
    return _QUERY.sub(rf"\1{HIDDEN}", text)


def shown_command(words: Iterable[str]) -> str:
    """A command line to print; whoever runs it puts the credentials back."""
    return " ".join(shown_words(words))


def shown_words(words: Iterable[str]) -> list[str]:
    """The words of such a command, quoted for a shell."""
    # A folder's name may hold control characters of terminals.
    shown = masked_words(launched(words))
    return [shlex.quote(harmless(word).replace("\n", "\\n")) for word in shown]


def masked_words(words: Iterable[str]) -> list[str]:
    """The words of a command without what is, or looks like, a credential."""
    shown, hide = list[str](), False
    for word in words:
        if hide and not word.startswith("-"):
            shown.append(HIDDEN)
        else:
            shown.append(_ASSIGNED.sub(rf"\1{HIDDEN}", without_credentials(word)))
        hide = _FLAG.fullmatch(word) is not None
    return shown
