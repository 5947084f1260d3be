"""Mask secrets in text: keys, tokens, passwords, e-mail addresses, home folders.

Traces go to models and into files that people commit, so everything that looks like a secret is
replaced by a placeholder that says what it was. Digests, commits and UUIDs are no secrets and
stay, since a trace is hard to follow without them. All patterns take linear time.
"""

import os
import re
from collections.abc import Mapping
from typing import Final

_SECRET: Final = "<SECRET>"
_PASSWORD: Final = "<PASSWORD>"

# Prefixes of providers' keys, each with a tail that no word in a program has.
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
# Patterns that begin with plain text are ten times faster, so lookbehinds come after it.
_JWT: Final = re.compile(r"eyJ(?<![\w-]eyJ)[A-Za-z0-9_-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]+)?")
_HEADERS: Final = (
    re.compile(r"(earer\s{1,3})(?=[A-Za-z._~+/=-]*+\d)[A-Za-z0-9._~+/=-]{16,}"),
    re.compile(
        r"(uthorization\\*[\"']?\s?[:=]\s?\\*[\"']?(?i:basic|token|digest)\s{1,3})"
        r"[A-Za-z0-9._~+/=-]{8,}"
    ),
)
_PEM: Final = re.compile(
    r"-----BEGIN ([A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?)-----"
    # The key, perhaps in JSON or with line numbers, as a tool shows it.
    r"((?:[A-Za-z0-9+/=\s\\→|]|[A-Z][A-Za-z-]{2,20}: [^\n]{0,200}\n)*+)"
    r"(-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?"
)
_PEM_RUN: Final = re.compile(r"[A-Za-z0-9+/=]{12,}")
_PEM_AROUND: Final = re.compile(r"[\s\\→|]+")
# The secret half of an AWS key has no prefix: 40 characters, near something that gives it away.
_AWS_ID: Final = re.compile(r"(?:AKIA|ASIA)[A-Z0-9]{16}")
_AWS_SECRET: Final = re.compile(
    r"(?<![A-Za-z0-9+/])(?=[^a-z]{0,39}[a-z])(?=[^A-Z]{0,39}[A-Z])(?=\D{0,39}\d)"
    r"[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])"
)
_AWS_NEAR: Final = 200
# curl -u NAME:PASSWORD
_USER: Final = re.compile(
    r"(-(?<![\w-]-)(?:[uU]\s{0,3}|-(?:proxy-)?user[=\s]\s{0,3})(\\*[\"'])?[^\s:\"'\\<>$]{1,100}:)"
    r"([^\s\"'\\<>$](?(2)[^\"'\\\n]*+|[^\s\"'\\]*+))"
)
_COOKIES: Final = re.compile(
    r"([Cc](?i:ookie)\\*[\"']?:\s{0,3}\\*[\"']?)((?:[\w.-]{1,100}=[^\s;\"'\\(){}\[\]$]*+;?[ ]?)++)"
)
_COOKIE: Final = re.compile(r"([\w.-]{1,100}=)([^<;\s][^;\s]{3,})")
_COOKIE_WORDS: Final = ("path", "domain", "expires", "max-age", "samesite", "version")
_URL: Final = re.compile(r"(://[^\s/:@\"'<>`]{0,100}:)([^\s/@\"'<>`{}$%][^\s/@\"'<>`]{0,200})(?=@)")
_NETRC: Final = re.compile(
    r"(machine\s{1,9}\S{1,99}\s{1,9}login\s{1,9}\S{1,99}\s{1,9}password\s{1,9})(\S+)"
)
_LOCAL_BACKWARDS: Final = re.compile(r"[\w.%+-]{0,63}[A-Za-z0-9](?![\w.%+/:-])")
_DOMAIN: Final = re.compile(r"@(?:[A-Za-z0-9][A-Za-z0-9-]{0,62}\.){1,8}[A-Za-z]{2,24}(?![\w-])")

# NAME=value, NAME: value, "name": "value", --name value
_NAMES: Final = (
    *("password", "passwd", "passphrase", "pwd", "secret", "token", "key", "key_id", "key-id"),
    *("credential", "credentials"),
)
_SPELLINGS: Final = tuple(
    spelling for name in _NAMES for spelling in (name, name.capitalize(), name.upper())
)
_KEY_OF: Final = re.compile(
    r"(?i:secret|api|access|private|auth|signing|encryption|account|master)[_-]?$|[A-Z0-9]_$"
)
_ASSIGNED: Final = re.compile(
    rf"(?P<name>{'|'.join(sorted(_SPELLINGS, key=len, reverse=True))})"
    r"(?P<sep>\\*[\"']?\]?\s{0,3}(?::=|=>|[=:](?!=))\s{0,3}"
    r"|[ ](?:(?:for|of|on|to)[ ](?:[\w@.-]{1,30}[ ]){1,4}?)?(?:is|was):?[ ]|[ ])"
    r"(?P<quote>\\*[\"'`])?"
    r"(?P<value>[^\s\"'`\\<>;,(){}\[\]$|&]{4,100})"
    r"(?P<after>[(\[]|\\*[\"'`])?"
)
_MORE: Final = re.compile(r"[^\s\"'`\\<>;,(){}\[\]$|&]*+")
_CODE: Final = re.compile(r"[A-Za-z_]+(?:\.[A-Za-z_]+)*\.?")
# Base64 keys may begin with a slash too, but rarely have only lowercase letters.
_PATH: Final = re.compile(r"[.~]{0,2}(?:/[a-z0-9_.~-]++)+/?+|https?:.*")
_RANDOM: Final = re.compile(r"(?=\D*\d)(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9+/=_~.:@!#%^*?-]{12,}")

_MIXED: Final = re.compile(r"(?=\D*\d)(?=[^A-Za-z]*[A-Za-z]).{6,}")

_HOMES: Final = (
    re.compile(r"/mnt/[a-z]/Users/[\w.@~-]+"),
    re.compile(r"/home/(?<![\w.~-]/home/)[\w.@~-]+"),
    re.compile(r"/Users/(?<![\w.~-]/Users/)[\w.@~-]+"),
    # Claude Code's folders of projects.
    re.compile(r"-home-(?<=/projects/-home-)[A-Za-z0-9]+"),
    re.compile(r"-Users-(?<=/projects/-Users-)[A-Za-z0-9]+"),
)
_DRIVE_HOME: Final = re.compile(r"[A-Za-z]:(?:\\{1,4}|/)Users(?:\\{1,4}|/)[\w.@~-]+")
_SECRET_NAME: Final = re.compile(r"(?i)key|token|secret|passw|credential")


def masked(text: str) -> str:
    """The text with placeholders for all secrets; masking it again changes nothing."""
    for _ in range(8):  # one placeholder may reveal another secret beside it
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
    text = _NETRC.sub(rf"\1{_PASSWORD}", text)
    text = _USER.sub(_masked_user, text)
    text = _COOKIES.sub(_masked_cookies, text)
    text = _masked_addresses(text)
    return _masked_homes(text)


def _secrets_of(env: Mapping[str, str]) -> list[str]:
    """Values of variables whose names suggest a secret, longest first."""
    values = {
        value.strip()
        for name, value in env.items()
        if _SECRET_NAME.search(name) and not _PATH.fullmatch(value.strip())
    }
    return sorted((value for value in values if len(value) >= 12), key=len, reverse=True)


def _masked_keys(text: str) -> str:
    text = _PEM.sub(_masked_pem, text)
    text = _AWS_SECRET.sub(_masked_aws, text)  # before the id beside it is masked
    text = _KNOWN.sub("<API KEY>", text)
    text = _JWT.sub("<TOKEN>", text)
    for header in _HEADERS:
        text = header.sub(r"\1<TOKEN>", text)
    return text


def _masked_pem(match: re.Match[str]) -> str:
    """Code may mention the marker without a key; then nothing is masked."""
    if match[3]:
        size = len(_PEM_AROUND.sub("", match[2]))
    else:  # cut off, or followed by prose
        size = sum(map(len, _PEM_RUN.findall(match[2])))
    return "<PRIVATE KEY>" if size >= 32 else match[0]


def _masked_aws(match: re.Match[str]) -> str:
    before = match.string[max(0, match.start() - _AWS_NEAR) : match.start()]
    after = match.string[match.end() : match.end() + _AWS_NEAR]
    near = "secret" in before[-60:].lower() or _AWS_ID.search(before) or _AWS_ID.search(after)
    return _SECRET if near else match[0]


def _masked_user(match: re.Match[str]) -> str:
    """Other programs have -u too, for example with the ids of a user and a group."""
    name, password = match[1], match[3]
    curl = "curl" in match.string[max(0, match.start() - 300) : match.start()]
    likely = len(password) >= 8 and _MIXED.fullmatch(password)
    return f"{name}{_PASSWORD}" if likely or (curl and not password.isdigit()) else match[0]


def _masked_cookies(match: re.Match[str]) -> str:
    def one(pair: re.Match[str]) -> str:
        plain = pair[1][:-1].lower() in _COOKIE_WORDS
        return pair[0] if plain else f"{pair[1]}{_SECRET}"

    return match[1] + _COOKIE.sub(one, match[2])


def _places(text: str, *wanted: str) -> list[int]:
    """The positions of these texts, in order."""
    found = set[int]()
    for one in wanted:
        place = text.find(one)
        while place >= 0:
            found.add(place)
            place = text.find(one, place + 1)
    return sorted(found)


def _masked_assignments(text: str) -> str:
    """Mask values by the names they are assigned to, and the same values elsewhere."""
    parts, end, repeated = list[str](), 0, set[str]()
    for place in _places(text, *_SPELLINGS):
        match = _ASSIGNED.match(text, place) if place >= end else None
        if match and _is_secret(match):
            is_password = match["name"].lower().startswith("p")
            parts += text[end : match.start("value")], _PASSWORD if is_password else _SECRET
            more = _MORE.match(text, match.end("value"))
            end = more.end() if more else match.end("value")
            if _RANDOM.fullmatch(match["value"]):
                repeated.add(match["value"])
    text = "".join([*parts, text[end:]])
    for value in sorted(repeated, key=len, reverse=True)[:1000]:
        text = text.replace(value, _SECRET)
    return text


def _is_secret(match: re.Match[str]) -> bool:
    """Whether an assigned value is a secret, and not a word or code that fetches one."""
    name, value, start = match["name"], match["value"], match.start()
    if match["after"] in ("(", "["):
        return False
    if name[:1] in "kK" and not _KEY_OF.search(match.string[max(0, start - 12) : start]):
        return False  # keys of maps, of caches, of keyboards
    if _PATH.fullmatch(value):
        return False
    if match["sep"] == " ":
        flag = "--" in match.string[max(0, start - 12) : start]
        return flag and _RANDOM.fullmatch(value) is not None
    if match["sep"].rstrip(": ").endswith(("is", "was")):  # prose
        pattern = _MIXED if name[:1] in "pP" else _RANDOM
        return pattern.fullmatch(value) is not None
    if name[:1] in "pP":
        loud = name.isupper() and match["sep"] == "="
        return (bool(match["quote"]) and len(value) >= 6) or loud or not _CODE.fullmatch(value)
    if _CODE.fullmatch(value):
        return len(value) >= 24 and not {"_", "."} & {*value}
    return _RANDOM.fullmatch(value) is not None


def _masked_addresses(text: str) -> str:
    """Mask e-mail addresses; git@host is none."""
    parts, end = list[str](), 0
    for place in _places(text, "@"):
        domain = _DOMAIN.match(text, place) if place > end else None
        local = domain and _LOCAL_BACKWARDS.match(text[max(end, place - 65) : place][::-1])
        if domain and local and local[0] != "tig":
            parts += text[end : place - local.end()], "<EMAIL>"
            end = domain.end()
    return "".join([*parts, text[end:]])


def _masked_homes(text: str) -> str:
    home = os.path.expanduser("~")  # noqa: PTH111  # Path.home() raises where there is none
    if len(home) > 3 and home in text:
        text = re.sub(rf"{re.escape(home)}(?<![\w.~-]{re.escape(home)})(?![\w.-])", "<HOME>", text)
    parts, end = list[str](), 0
    for place in _places(text, ":\\", ":/Users/"):
        match = _DRIVE_HOME.match(text, place - 1) if place > end else None
        if match and not text[place - 2 : place - 1].isalnum():
            parts += text[end : place - 1], "<HOME>"
            end = match.end()
    text = "".join([*parts, text[end:]])
    for pattern in _HOMES:
        text = pattern.sub("<HOME>", text)
    return text
