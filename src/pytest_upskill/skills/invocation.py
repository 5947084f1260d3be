"""The explicit use of a skill: a user names it, ``/name arguments``,
and no model has to choose.
"""

import re
import shlex
from typing import Final, NamedTuple

_WRITTEN: Final = re.compile(
    r"/(?:[\w.-]+:)?(?P<skill>[^\s/:]+)(?:\s+(?P<arguments>.*))?", re.DOTALL
)
_PLACEHOLDER: Final = re.compile(r"\$ARGUMENTS(?:\[(\d{1,2})\])?|\$(\d{1,2})(?!\w)")


class Invocation(NamedTuple):
    """A skill, perhaps one of a bundle, and what it is given."""

    skill: str  # its name
    arguments: str = ""

    @classmethod
    def of(cls, written: str) -> "Invocation":
        """``/name arguments`` or ``/plugin:name arguments``;
        ValueError if it is neither.
        """
        if not (match := _WRITTEN.fullmatch(written.strip())):
            raise ValueError('must be "/name arguments", with the name of the skill')
        return cls(match["skill"], match["arguments"] or "")

    def text(self, body: str, asked: str = "") -> str:
        """The body of the skill with the arguments where it wants them.

        As Claude Code does: $ARGUMENTS are all, $ARGUMENTS[0] or $0 is the first. If
        there is no place for them, they stand below, unless they are ``asked`` anyway.
        """
        try:
            words = shlex.split(self.arguments)
        except ValueError:  # an open quote
            words = self.arguments.split()

        def filled(match: re.Match[str]) -> str:
            number = match[1] or match[2]
            if number is None:
                return self.arguments
            return words[int(number)] if int(number) < len(words) else match[0]

        text = _PLACEHOLDER.sub(filled, body)
        if _PLACEHOLDER.search(body) or self.arguments in ("", asked):
            return text
        return f"{text}\n\nARGUMENTS: {self.arguments}"
