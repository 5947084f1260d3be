"""What must not leave this machine, masked: keys, tokens, passwords, addresses, home folders.

A trace goes to a model and into files that people commit. So all that looks like a secret becomes
a placeholder that says what stood there. Digests, commits and UUIDs stay: they are no secrets, and
a trace without them is hard to follow. No pattern here can take more than linear time.
"""

import os
import re
from collections.abc import Mapping
from typing import Final

_SECRET: Final = "<SECRET>"
_PASSWORD: Final = "<PASSWORD>"

# What providers begin their keys with; each needs a tail that no word of a program has.
_KNOWN: Final = re.compile(
    r"(?<![A-Za-z0-9_])(?:"
    r"sk-(?:ant|proj|svcacct|admin|or|lf)-[A-Za-z0-9_-]{16,}"
    r"|sk-(?=[A-Za-z]{0,60}\d)[A-Za-z0-9]{20,}"
    r"|hf_[A-Za-z0-9]{20,}|gsk_[A-Za-z0-9]{20,}|xai-[A-Za-z0-9]{20,}|r8_[A-Za-z0-9]{20,}"
    r"|nvapi-[A-Za-z0-9_-]{20,}|pplx-[A-Za-z0-9]{20,}|lsv2_[a-z]{2}_[A-Za-z0-9_]{20,}"
    r"|gh[opsur]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
    r"|gl(?:pat|dt|rt|cbt|soat|ptt)-[A-Za-z0-9_-]{16,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{20,}"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{20,}"
    r"|npm_[A-Za-z0-9]{30,}|pypi-A[A-Za-z0-9_-]{32,}|dckr_pat_[A-Za-z0-9_-]{20,}"
    r"|[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{20,}"
    r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|do[opr]_v1_[a-f0-9]{40,}"
    r"|AGE-SECRET-KEY-1[0-9A-Z]{50,}|tskey-[a-z]+-[A-Za-z0-9-]{16,}"
    r")"
)
_JWT: Final = re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]+)?")
_BEARER: Final = re.compile(
    r"(?i:\b(bearer|authorization[\"']?\s?[:=]\s?[\"']?(?:basic|token|digest)))(\s+)"
    r"(?=[A-Za-z._~+/=-]*\d)[A-Za-z0-9._~+/=-]{16,}"
)
_PEM: Final = re.compile(
    r"-----BEGIN ([A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?)-----"
    # The key, perhaps in JSON, or as a tool shows it, with the numbers of its lines.
    r"((?:[A-Za-z0-9+/=\s\\→|]|[A-Z][A-Za-z-]{2,20}: [^\n]{0,200}\n)*+)"
    r"(-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?"
)
_PEM_RUN: Final = re.compile(r"[A-Za-z0-9+/]{40}")
_URL: Final = re.compile(r"(://[^\s/:@\"'<>`]{0,100}:)([^\s/@\"'<>`{}$%][^\s/@\"'<>`]{0,200})(?=@)")
_NETRC: Final = re.compile(
    r"(\bmachine\s{1,9}\S{1,99}\s{1,9}login\s{1,9}\S{1,99}\s{1,9}password\s{1,9})(\S+)"
)
_EMAIL: Final = re.compile(
    r"(?<![\w.%+/:-])(?!git@)[A-Za-z0-9][\w.%+-]{0,63}+@(?:[A-Za-z0-9][A-Za-z0-9-]{0,62}\.){1,8}"
    r"[A-Za-z]{2,24}(?![\w-])"
)

# NAME=value, NAME: value, "name": "value", --name value
_NAME: Final = (
    r"(?i:(?P<word>passw(?:or)?d|passphrase|pwd)|secret(?:[_-]?access)?[_-]?key|secret"
    r"|api[_-]?key|access[_-]?key(?:[_-]?id)?|private[_-]?key|auth[_-]?key|signing[_-]?key"
    r"|encryption[_-]?key|token|credentials?)|[A-Z0-9]_KEY"
)
_ASSIGNED: Final = re.compile(
    rf"(?P<name>{_NAME})"
    r"(?P<sep>\\*[\"']?\]?\s{0,3}(?::=|=>|[=:](?!=))\s{0,3}|(?<=--(?:\w{5}))[ ]|[ ](?=\S*\d))"
    r"(?P<quote>\\*[\"'`])?"
    r"(?P<value>[^\s\"'`\\<>;,(){}\[\]$|&]{4,400})"
    r"(?P<after>[(\[]|\\*[\"'`])?"
)
_CODE: Final = re.compile(r"[A-Za-z_]+(?:\.[A-Za-z_]+)*\.?")
_RANDOM: Final = re.compile(r"(?=[^\d]*\d)(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9+/=_~.:@!#%^*?-]{12,}")

_HOMES: Final = re.compile(
    r"(?<![\w.~-])(?:(?:/mnt|/cygdrive)?/[a-z](?=/Users/))?/(?:home|Users)/[\w.@~-]+"
    r"|(?<![A-Za-z0-9])[A-Za-z]:(?:\\{1,4}|/)Users(?:\\{1,4}|/)[\w.@~-]+"
    # What Claude Code calls the folder of a project.
    r"|(?<=/projects/)-(?:home|Users)-[A-Za-z0-9]+"
)
_TELLING: Final = re.compile(r"(?i)key|token|secret|passw|credential")


def masked(text: str) -> str:
    """The text with placeholders for all that looks secret; masking it again changes nothing."""
    for _ in range(8):  # what a placeholder parts from its surroundings may then be seen
        before, text = text, _masked_once(text, os.environ)
        if text == before:
            break
    return text


def _masked_once(text: str, env: Mapping[str, str]) -> str:
    for value in _secrets_of(env):
        text = text.replace(value, _SECRET)
    text = _masked_keys(text)
    text = _masked_assignments(text)
    text = _URL.sub(rf"\1{_PASSWORD}", text)
    if "machine" in text:
        text = _NETRC.sub(rf"\1{_PASSWORD}", text)
    if "@" in text:
        text = _EMAIL.sub("<EMAIL>", text)
    return _masked_homes(text)


def _secrets_of(env: Mapping[str, str]) -> list[str]:
    """Values of variables that are called like a secret, the longest first."""
    values = {
        value.strip()
        for name, value in env.items()
        if _TELLING.search(name) and not value.startswith(("/", "."))
    }
    return sorted((value for value in values if len(value) >= 12), key=len, reverse=True)


def _masked_keys(text: str) -> str:
    if "PRIVATE KEY" in text:
        text = _PEM.sub(_masked_pem, text)
    text = _KNOWN.sub("<API KEY>", text)
    if "eyJ" in text:
        text = _JWT.sub("<TOKEN>", text)
    return _BEARER.sub(r"\1\2<TOKEN>", text)


def _masked_pem(match: re.Match[str]) -> str:
    """Where a program only speaks of such a line, there is nothing to hide."""
    return "<PRIVATE KEY>" if _PEM_RUN.search(match[2]) else match[0]


def _masked_assignments(text: str) -> str:
    """Values by the names that they are given to; the same value elsewhere is masked as well."""
    found = set[str]()

    def mask(match: re.Match[str]) -> str:
        value = match["value"]
        if not _is_secret(match):
            return match[0]
        if _RANDOM.fullmatch(value):
            found.add(value)
        placeholder = _PASSWORD if match["word"] else _SECRET
        return f"{match['name']}{match['sep']}{match['quote'] or ''}{placeholder}{match['after'] or ''}"

    text = _ASSIGNED.sub(mask, text)
    for value in sorted(found, key=len, reverse=True)[:1000]:
        text = text.replace(value, _SECRET)
    return text


def _is_secret(match: re.Match[str]) -> bool:
    """Whether the value of an assignment is one, and not code that gets one, or a word."""
    value, quoted = match["value"], bool(match["quote"])
    if match["after"] in ("(", "[") or value.startswith(("/", "./", "../", "http")):
        return False
    if match["sep"] == " ":
        return _RANDOM.fullmatch(value) is not None
    if match["word"]:
        loud = match["name"].isupper() and match["sep"] == "="
        return (quoted and len(value) >= 6) or loud or not _CODE.fullmatch(value)
    if _CODE.fullmatch(value):
        return len(value) >= 24 and "_" not in value and "." not in value
    return _RANDOM.fullmatch(value) is not None


def _masked_homes(text: str) -> str:
    home = os.path.expanduser("~")  # noqa: PTH111  # Path.home() raises where there is none
    if len(home) > 3 and home in text:
        bounded = re.compile(rf"(?<![\w.~-]){re.escape(home)}(?![\w.-])")
        text = bounded.sub("<HOME>", text)
    return _HOMES.sub("<HOME>", text)
