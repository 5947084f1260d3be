"""Keep credentials out of what is shown or written: commands, errors, reports, stored rows.

A credential is known by where it stands (in a URL, after a name such as ``--api-token``); see
``keys`` for those that are known by their value.
"""

import re
import shlex
from collections.abc import Iterable
from typing import Final

from .keys import HIDDEN, passwords, without_keys
from .texts import harmless

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
_SHORTEST: Final = 4  # a shorter password could be part of any text


def without_credentials(text: str, secrets: Iterable[str] = ()) -> str:
    """A text with nothing in it that is, or looks like, a credential."""
    text = without_keys(text)
    # Unlike above, passwords that are ordinary words are masked, too.
    values = {*secrets, *passwords()}
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= _SHORTEST:
            text = text.replace(value, HIDDEN)
    text = _USER.sub(rf"\1{HIDDEN}@", text)
    return _QUERY.sub(rf"\1{HIDDEN}", text)


def shown_command(words: Iterable[str]) -> str:
    """A command line to print; whoever runs it puts the credentials back."""
    return " ".join(shown_words(words))


def shown_words(words: Iterable[str]) -> list[str]:
    """The words of such a command, quoted for a shell."""
    # A folder's name may hold control characters of terminals.
    return [shlex.quote(harmless(word).replace("\n", "\\n")) for word in masked_words(words)]


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
