"""Mask secrets in text: keys, tokens, passwords, e-mail addresses, home folders.

Traces go to models and into files that people commit, so everything that looks like
a secret is replaced by a placeholder that says what it was. Digests, commits and
UUIDs are no secrets and stay, since a trace is hard to follow without them. All
patterns take linear time.

A rule is a line: a pattern that has the secret between ⟦ and ⟧.
"""

import base64
import os
import re
from collections.abc import Iterable
from functools import cache
from typing import Final

from .assignments import PASSWORD, SECRET, masked_assignments
from .keys import HIDDEN, without_keys
from .tokens import without_tokens

_Rules = tuple[tuple[re.Pattern[str], str], ...]
_MIXED: Final = r"(?=[^\s\"']{0,99}\d)(?=[^\s\"']{0,99}[A-Za-z])"
_SCHEMES: Final = (
    "basic|token|digest|bearer|apikey|api-key|key|ssws|negotiate|ntlm|aws|genie ?key"
)
# Patterns that begin with plain text are ten times faster,
# so lookbehinds come after it.
_HEADERS: Final = (
    (
        r"earer(?:\s{1,3}|%20|\+)(?=[A-Za-z._~+/=-]*+\d)⟦[A-Za-z0-9._~+/=-]{12,}⟧",
        "<TOKEN>",
    ),
    (
        (
            rf"(?i:uthorization)\\*[\"']?\s?[:=]\s?\\*[\"']?(?:(?i:{_SCHEMES})\s{{1,3}})?"
            r"(?![$<{%]|(?i:basic|bearer|token|digest)\b)⟦[^\s\"'\\,;(){}<>\[\]`$|]{6,}+⟧(?![(])"
        ),
        "<TOKEN>",
    ),
)
# NAME:PASSWORD after -u (curl) or -a (httpie)
_USER: Final = (
    r"-(?<![\w-]-)(?:[uUa]\s{0,3}|-(?:proxy-)?(?:user|auth)[=\s]\s{0,3})"
    r"(?P<q>\\*[\"'])?[^\s:\"'\\<>$]{1,100}:"
)
_USER_PASSWORD: Final = r"⟦[^\s\"'\\<>$](?(q)[^\"'\\\n]*+|[^\s\"'\\]*+)⟧"
_PLACES: Final = (
    # The password may hold what should have been coded,
    # but host:8000/a@b is no password.
    (
        (
            r"://[^\s/:@\"'<>`]{0,100}:(?!\d{1,5}(?:[/?#]|\Z))"
            r"⟦[^\s/@\"'<>`{}$%][^\s@\"'<>`]{0,200}⟧(?=@)"
        ),
        PASSWORD,
    ),
    # A user without a password may be a token: a Sentry DSN, a GitHub URL.
    (
        rf"://{_MIXED}⟦(?=\w*\d)(?=\w*[A-Za-z])[A-Za-z0-9_-]{{16,200}}⟧(?=:?@|:<PASSWORD>@)",
        SECRET,
    ),
    (r"(?:thin|oci|oci8):[^\s/:@\"']{1,60}/⟦[^\s/@\"']{1,100}⟧(?=@)", PASSWORD),
    (
        (
            r"[?&;](?:amp;)?(?:sig|X-(?:Amz|Goog)-(?:Signature|Security-Token|Credential)|Signature|code"
            r"|key|hash|sign|st|appid|auth|k|pw|pass|access|t)="
            r"(?=[\w%.~+/=-]{0,300}\d)⟦[\w%.~+/=-]{16,}⟧"
        ),
        SECRET,
    ),
    # .netrc and .pgpass
    (
        (
            r"(?:machine\s{1,9}\S{1,99}|default)\s{1,9}(?:login\s{1,9}\S{1,99}\s{1,9})?password\s{1,9}"
            r"⟦\S+⟧"
        ),
        PASSWORD,
    ),
    (
        r"(?m)^[\w.*-]{1,100}:(?:\d{2,5}|\*):[\w.*-]{1,60}:[\w.*-]{1,60}:⟦[^\s:]{3,100}⟧$",
        PASSWORD,
    ),
    # auth=("name", "password")
    (
        (
            r"(?:auth=\(|\.(?:login|auth)\(|[Bb]asic_?[Aa]uth\w{0,10}[\s=:(]{1,4}[\[(]?)\s{0,3}"
            r"[\"'][^\"'\n]{1,60}[\"']\s{0,3},\s{0,3}[\"']"
            r"(?!(?:password|passwd|secret)[\"'])⟦[^\"'\n]{3,100}⟧(?=[\"'])"
        ),
        PASSWORD,
    ),
    (
        (
            r"(?:Client|algoliasearch)\((?:[\"'][^\"'\n]{1,60}[\"'],\s{0,3})?[\"']"
            r"(?=[a-zA-Z]{0,60}\d)⟦[A-Za-z0-9_-]{32,}⟧(?=[\"'])"
        ),
        SECRET,
    ),
    (r"[\w.-]{1,60}:⟦[^\s@\"'/:]{3,100}⟧(?=@(?:tcp|unix)\()", PASSWORD),
    (r"response=\\*\"⟦[a-f0-9]{32}⟧(?=\\*\")", SECRET),
    # what a script of expect types
    (
        rf"send[ ](?:--[ ])?\\*\"{_MIXED}⟦[^\s\"$\\]{{6,60}}⟧(?=\\{{1,2}}[rn]\\*\")",
        PASSWORD,
    ),
    (
        (
            r"/(?:reset-password|password-reset|reset|invite|magic|verify|confirm|activate)/"
            r"(?=[A-Za-z_-]{0,60}\d)⟦[\w-]{20,}⟧"
        ),
        SECRET,
    ),
    (_USER + r"(?=[^\s\"']{8})" + _MIXED + _USER_PASSWORD, PASSWORD),
    # Others have -u too, for example with the ids of a user and a group.
    (
        r"\b(?:curl|https?|xh|wget)\b[^\n]{0,300}?"
        + _USER
        + r"(?!\d+(?![^\s\"']))"
        + _USER_PASSWORD,
        PASSWORD,
    ),
    (
        (
            r"(?:echo|printf|yes)[ ](?:-\w{1,3}[ ])?(?P<q>\\*[\"'])?"
            r"(?:[A-Za-z_]\w{0,60}:)?"
            r"⟦(?(q)[^\"'\\\n]{3,100}|[^\s\"'\\|;&$]{3,100})⟧"
            r"(?=(?(q)\\*[\"'])[ ]{0,3}\|[ ]{0,3}"
            r"(?:sudo[ ](?:-\w{1,3}[ ]){0,3}-\w{0,3}S|\S{0,40}[ ]?chpasswd"
            r"|(?:sudo[ ])?passwd\b|[^\n|]{0,40}secret[ ](?:put|create|set)\b"
            r"|[^\n|]{0,100}--(?:password|token|with-token)-?(?:stdin)?))"
        ),
        PASSWORD,
    ),
)
# What comes before a password in a command. A blank matches one to three blanks,
# ~ any or none, … other arguments. DIGIT and MIXED: the password must have a
# digit, or letters and digits.
_COMMANDS: Final = r"""
(?:mysql(?:dump|admin|import|sh)?|mariadb(?:-dump)?|7za?|rar|unrar)…-p(?![=:]|ort)
sshpass -p~
redis-cli…(?:-a|--pass) ~
(?:docker|podman|helm|az|oras|crane) (?:\w{1,20} )?login…-p ~
(?:cqlsh|snowsql|mongo(?:sh|dump|restore|import|export)?)…-p ~
(?:sqlcmd|bcp|isql|zip|unzip|ipmitool|nmcli)…-P~
ldap(?:search|modify|add|delete|whoami|passwd)…-w~
(?:smbclient|rpcclient)…-U~[^\s%]{1,60}%
gh secret set…(?:-b|--body)[\s=]
ssh-keygen…-[NP] ~
-(?:store|key|src|dest)?(?:store)?pass (?:pass:)?
-pass(?:in|out)? pass:
vault login ~
rabbitmqctl (?:add_user|change_password) \S{1,60} ~
htpasswd -\w{0,4}b\w{0,4} \S{1,100} \S{1,60} ~
ConvertTo-SecureString (?:-String )?
net user \S{1,60} ~
(?:requirepass|masterauth|wpa-psk) ~
AUTH MIXED
(?:IDENTIFIED|identified) (?:WITH \S{1,40} )?(?:BY|by) ~
(?:WITH|with) (?:ENCRYPTED |encrypted )?(?:PASSWORD|password)~(?:=~|(?=\\*["']))
PASSWORD\((?=\\*["'])
PASSWORD (?:FOR \S{1,80} )?(?:=~)?N?(?=\\*')
PASSWORD=N(?=')
(?:twine|cypher-shell|sexec|rdesktop|steghide|skopeo)…-p ~
xfreerdp…/p:
schtasks…/rp ~
net use…/user:\S{1,60} ~
openssl enc…-k ~
openssl passwd(?: -\w{1,9}){0,3} ~
(?:sqlplus|impdp|expdp|sqlldr)…(?:userid=)?\w{1,30}/
lftp…-u [^\s,]{1,60},
mc alias set(?: \S{1,99}){3} ~
http-basic\.\S{1,60} \S{1,60} ~
bundle config (?:set )?\S{1,80} [\w.-]{1,60}:
(?:cargo login|shodan init|snyk auth|-initial-password|-authtoken) ~
codecov…-t ~
chpasswd~<<<~["']?[\w.-]{1,60}:
(?:bindpw|rootpw|input_pw|pre-shared-key) DIGIT
(?:server key|isakmp key|bw unlock|publish -p) DIGIT
(?:community|username \S{1,60} password \d) DIGIT
(?:wpa_passphrase|bw login|user:password|samba-tool user create) \S{1,60} DIGIT
-generic-password…-w ~
signtool…/p ~
-creds[\s=][^\s:]{1,60}:
 -u[\s=]?[^\s-]\S{0,99}(?: --?[\w-]{1,30}(?:[\s=][^\s-]\S{0,60})?){0,3} -[pP] MIXED
secret put \S{1,60} <<< ~
put-parameter…--value[\s=]
nmcli…password ~
Key Content ~:~
"""
_NOTATION: Final = (
    *((" ", "[ ]{1,3}"), ("~", "[ ]{0,20}"), ("…", r"\b[^\n|;&]{0,200}?\s")),
    *(
        ("DIGIT", r"(?=\S{0,99}\d)"),
        ("MIXED", r"(?=\S{6})(?=\S{0,99}\d)(?=\S{0,99}[A-Za-z])"),
    ),
)
_COMMAND_PASSWORD: Final = (
    r"(?P<q>\\*[\"'])?(?![-$<{%/]|@/|(?:\d+|(?i:null|none|password|default))(?:[\s\"'\\;|&,()]|\Z))"
    r"⟦(?(q)[^\"'\\\n]{3,100}|[^\s\"'\\;|&,()]{3,100})⟧"
)
_JWK: Final = (
    (r"\"(?:d|p|q|dp|dq|qi|k)\"\s{0,3}:\s{0,3}\"⟦[\w-]{20,}⟧(?=\")", SECRET),
)
_BASIC: Final = re.compile(r"(asic )([A-Za-z0-9+/]{8,400}={0,2})(?![\w+/=])")
_COOKIES: Final = re.compile(
    r"([Cc](?i:ookie)\\*[\"']?:\s{0,3}\\*[\"']?"
    r"|curl\b[^\n]{0,300}?\s(?:-b|--cookie)[ =]\\*[\"']?)"
    r"((?:[\w.-]{1,100}=[^\s;\"'\\(){}\[\]$]*+;?[ ]?)++)"
)
_COOKIE: Final = re.compile(
    r"((?<![\w.-])(?!(?i:path|domain|expires|max-age|samesite|version)=)[\w.-]{1,100}=)"
    r"[^<;\s][^;\s]{3,}"
)
_EMAIL: Final = re.compile(
    r"(?<![\w.%+/:-])(?!git@)[A-Za-z0-9][\w.%+-]{0,63}(?<=[A-Za-z0-9_.%+-])"
    r"@(?:[A-Za-z0-9][A-Za-z0-9-]{0,62}\.){1,8}[A-Za-z]{2,24}(?![\w-])"
)
_HOMES: Final = tuple(
    map(
        re.compile,
        (
            r"(?<![A-Za-z0-9])[A-Za-z]:(?:\\{1,4}|/)Users(?:\\{1,4}|/)[\w.@~-]+",
            r"/mnt/[a-z]/Users/[\w.@~-]+",
            r"/home/(?<![\w.~-]/home/)[\w.@~-]+",
            r"/Users/(?<![\w.~-]/Users/)[\w.@~-]+",
            # Claude Code's folders of projects
            r"-home-(?<=/projects/-home-)[A-Za-z0-9]+",
            r"-Users-(?<=/projects/-Users-)[A-Za-z0-9]+",
        ),
    )
)


def masked(text: str) -> str:
    """The text with placeholders for all secrets; masking it again changes nothing."""
    for _ in range(8):  # one placeholder may reveal another secret beside it
        before, text = text, _masked_once(text)
        if text == before:
            break
    return text


def _masked_once(text: str) -> str:
    text = (
        without_keys(text).replace(HIDDEN, SECRET)
        if HIDDEN not in text
        else without_keys(text)
    )
    text = without_tokens(text)
    text = _masked_by(_compiled(_HEADERS), text)
    text = masked_assignments(text)
    text = _masked_by(_compiled(_PLACES), text)
    text = _BASIC.sub(_masked_basic, text)
    if '"kty' in text:
        text = _masked_by(_compiled(_JWK), text)
    text = _masked_by(_commands(), text)
    text = _COOKIES.sub(
        lambda match: match[1] + _COOKIE.sub(rf"\1{SECRET}", match[2]), text
    )
    if "@" in text:
        text = _EMAIL.sub("<EMAIL>", text)
    return _masked_homes(text)


@cache
def _compiled(rules: Iterable[tuple[str, str]]) -> _Rules:
    return tuple(
        (re.compile(pattern.replace("⟦", "(?P<secret>").replace("⟧", ")")), placeholder)
        for pattern, placeholder in rules
    )


@cache
def _commands() -> _Rules:
    text = _COMMANDS.strip("\n")
    for mark, pattern in _NOTATION:
        text = text.replace(mark, pattern)
    return _compiled(
        tuple((line + _COMMAND_PASSWORD, PASSWORD) for line in text.split("\n"))
    )


def _masked_by(rules: _Rules, text: str) -> str:
    for pattern, placeholder in rules:
        parts, end = list[str](), 0
        for match in pattern.finditer(text):
            parts += text[end : match.start("secret")], placeholder
            end = match.end("secret")
        text = "".join([*parts, text[end:]])
    return text


def _masked_basic(match: re.Match[str]) -> str:
    """Basic authentication is base64 of a name and a password; other words are not."""
    try:
        pair = base64.b64decode(match[2], validate=True).decode()
    except ValueError:
        return match[0]
    return f"{match[1]}{PASSWORD}" if ":" in pair and pair.isprintable() else match[0]


def _masked_homes(text: str) -> str:
    home = os.path.expanduser("~")  # noqa: PTH111  # Path.home() raises where there is none
    if len(home) > 3 and home in text:
        text = re.sub(
            rf"{re.escape(home)}(?<![\w.~-]{re.escape(home)})(?![\w.-])", "<HOME>", text
        )
    for pattern in _HOMES:
        text = pattern.sub("<HOME>", text)
    return text
