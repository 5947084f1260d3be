"""Keep credentials out of what is shown or written: commands, errors, reports, stored rows.

A credential is known by where it stands (in a URL, after a name such as ``--api-token``) or by its
value (that of a variable such as OPENAI_API_KEY or OPENAI_CUSTOM_HEADERS).
"""

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import unquote

HIDDEN: Final = "***"
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
_VARIABLE: Final = re.compile(
    r"(?:\w*_)?(?:API)?(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)", re.I
)
_USER_AND_PASSWORD: Final = re.compile(r"://([^\s/?#]*)@")
_SHORTEST: Final = 4  # a shorter password is a part of any text
_SHORTEST_VALUE: Final = 8  # variables hold plain words, too


def without_credentials(text: str, known: Iterable[str] = ()) -> str:
    """A text with nothing in it that is, or looks like, a credential."""
    values = {*known, *_values(os.environ)}
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= _SHORTEST:
            text = text.replace(value, HIDDEN)
    text = _USER.sub(rf"\1{HIDDEN}@", text)
    return _QUERY.sub(rf"\1{HIDDEN}", text)


def shown_command(words: Iterable[str]) -> str:
    """A command line to print; whoever runs it puts the credentials back."""
    shown, hide = list[str](), False
    for word in words:
        if hide and not word.startswith("-"):
            shown.append(HIDDEN)
        else:
            shown.append(_ASSIGNED.sub(rf"\1{HIDDEN}", without_credentials(word)))
        hide = _FLAG.fullmatch(word) is not None
    return shlex.join(shown)


def password_of(url: str) -> tuple[str, ...]:
    """User and password in a URL, and the password alone, as written and as sent."""
    found = _USER_AND_PASSWORD.search(url)
    if not found:
        return ()
    both = (found[1], unquote(found[1]))
    return (*both, *(pair.partition(":")[2] for pair in both))


def _values(env: Mapping[str, str]) -> Iterator[str]:
    """The credentials in the environment."""
    for name, value in env.items():
        found = list[str]()
        if name.upper().endswith("HEADERS"):
            # "Name: value" on lines for SDKs, name=value with commas for OpenTelemetry
            for line in re.split(r"[\n,]", value):
                header = re.split(r"[:=]", line, maxsplit=1)[-1].strip()
                found += header, unquote(header), header.rpartition(" ")[2]
        elif "://" in value:
            yield from password_of(value)
        elif _VARIABLE.fullmatch(name) and not value.startswith(("/", "~", ".")):  # no path
            found.append(value.strip())
        yield from (one for one in found if len(one) >= _SHORTEST_VALUE)
