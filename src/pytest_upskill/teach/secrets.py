"""Mask secrets in text: keys, tokens, passwords, e-mail addresses, home folders.

Traces go to models and into files that people commit, so everything that looks like a secret is
replaced by a placeholder that says what it was. Digests, commits and UUIDs are no secrets and
stay, since a trace is hard to follow without them. All patterns take linear time.
"""

import base64
import os
import re
from typing import Final

from .._util.keys import HIDDEN, without_keys
from .._util.tokens import without_tokens
from .assignments import MIXED, PASSWORD, SECRET, masked_assignments

# Patterns that begin with plain text are ten times faster, so lookbehinds come after it.
_BEARER: Final = re.compile(
    r"(earer(?:\s{1,3}|%20|\+))(?=[A-Za-z._~+/=-]*+\d)[A-Za-z0-9._~+/=-]{12,}"
)
_SCHEMES: Final = "basic|token|digest|bearer|apikey|api-key|key|ssws|negotiate|ntlm|aws|genie ?key"
_AUTHORIZATION: Final = re.compile(
    rf"((?i:uthorization)\\*[\"']?\s?[:=]\s?\\*[\"']?(?:(?i:{_SCHEMES})\s{{1,3}})?)"
    r"(?![$<{%]|(?i:basic|bearer|token|digest)\b)([^\s\"'\\,;(){}<>\[\]`$|]{6,})"
)
# NAME:PASSWORD after -u (curl), -a (httpie); other programs have them too
_USER: Final = re.compile(
    r"(-(?<![\w-]-)(?:[uUa]\s{0,3}|-(?:proxy-)?(?:user|auth)[=\s]\s{0,3})"
    r"(\\*[\"'])?[^\s:\"'\\<>$]{1,100}:)([^\s\"'\\<>$](?(2)[^\"'\\\n]*+|[^\s\"'\\]*+))"
)
_CURL: Final = re.compile(r"\b(?:curl|https?|xh|wget)\b")
_PROGRAMS: Final = (
    *("mysql", "mariadb", "7z", "rar", "sshpass", "redis-cli", "docker", "podman", "helm", "az "),
    *("oras", "crane", "mongo", "cqlsh", "snowsql", "bcp", "isql", "htpasswd", "sqlcmd", "zip"),
    *("ipmitool", "nmcli", "ldap", "smbclient", "rpcclient", "gh secret", "ssh-keygen"),
    *("-store", "-key", "-src", "-dest", "-pass"),
    *("vault login", "rabbitmqctl", "ConvertTo-SecureString", "net user", "requirepass"),
    *("masterauth", "AUTH ", "wpa-psk", "IDENTIFIED ", "identified ", "WITH ", "with "),
    *("PASSWORD", "twine", "cypher-shell", "sexec", "rdesktop", "steghide", "skopeo", "xfreerdp"),
    *("schtasks", "net use", "openssl", "sqlplus", "impdp", "expdp", "sqlldr", "lftp", "mc alias"),
    *("http-basic.", "bundle config", "cargo login", "shodan init", "snyk auth", "codecov"),
    *("bindpw", "rootpw", "input_pw", "pre-shared-key", "server key", "isakmp key", "community "),
    *("bw ", "wpa_passphrase", "samba-tool", "user:password", "-generic-password", "signtool"),
    *("-creds", "username ", " -u", "publish -p"),
    *("-initial-password", "chpasswd", "secret put", "put-parameter", "Key Content", "-authtoken"),
)
# Programs with a password behind a flag of one letter, or as a word of its own.
_COMMANDS: Final = re.compile(
    r"((?:mysql(?:dump|admin|import|sh)?|mariadb(?:-dump)?|7za?|rar|unrar)\b[^\n|;&]{0,200}?\s-p"
    r"|sshpass[ ]{1,3}-p[ ]{0,3}|redis-cli\b[^\n|;&]{0,200}?\s(?:-a|--pass)[ ]{1,3}"
    r"|(?:(?:docker|podman|helm|az|oras|crane)[ ](?:\w{1,20}[ ])?login|cqlsh|snowsql"
    r"|mongo(?:sh|dump|restore|import|export)?)\b[^\n|;&]{0,200}?\s-p[ ]{1,3}"
    r"|(?:sqlcmd|bcp|isql|zip|unzip|ipmitool|nmcli)\b[^\n|;&]{0,200}?\s-P[ ]{0,3}"
    r"|ldap(?:search|modify|add|delete|whoami|passwd)\b[^\n|;&]{0,300}?\s-w[ ]{0,3}"
    r"|(?:smbclient|rpcclient)\b[^\n|;&]{0,200}?\s-U[ ]?[^\s%]{1,60}%"
    r"|gh[ ]secret[ ]set\b[^\n|;&]{0,200}?\s(?:-b|--body)[ =]"
    r"|ssh-keygen\b[^\n|;&]{0,200}?\s-[NP][ ]{1,3}"
    r"|-(?:store|key|src|dest)?(?:store)?pass[ ]{1,3}(?:pass:)?|-pass(?:in|out)?[ ]{1,3}pass:"
    r"|vault[ ]login[ ]|rabbitmqctl[ ]{1,3}(?:add_user|change_password)[ ]{1,3}\S{1,60}[ ]{1,3}"
    r"|htpasswd[ ]{1,3}-\w{0,4}b\w{0,4}[ ]{1,3}\S{1,100}[ ]{1,3}\S{1,60}[ ]{1,3}"
    r"|ConvertTo-SecureString[ ]{1,3}(?:-String[ ]{1,3})?|net[ ]user[ ]\S{1,60}[ ]{1,3}"
    r"|(?:requirepass|masterauth|AUTH|wpa-psk)[ ]{1,3}"
    r"|IDENTIFIED[ ](?:WITH[ ]\S{1,40}[ ])?BY[ ]{1,3}"
    r"|identified[ ]by[ ]{1,3}|(?:WITH|with)[ ](?:ENCRYPTED[ ]|encrypted[ ])?(?:PASSWORD|password)"
    r"[ ]{0,3}(?:=[ ]{0,3}|(?=\\*[\"']))|PASSWORD\((?=\\*[\"'])"
    r"|PASSWORD[ ](?:FOR[ ]\S{1,80}[ ])?(?:=[ ]{0,3})?N?(?=\\*')|PASSWORD=N(?=')"
    r"|(?:twine|cypher-shell|sexec|rdesktop|steghide|skopeo)\b[^\n|;&]{0,200}?\s-p[ ]{1,3}"
    r"|xfreerdp\b[^\n|;&]{0,200}?\s/p:|schtasks\b[^\n|;&]{0,200}?\s/rp[ ]{1,3}"
    r"|net[ ]use\b[^\n|;&]{0,200}?\s/user:\S{1,60}[ ]{1,3}"
    r"|openssl[ ](?:enc\b[^\n|;&]{0,200}?\s-k[ ]{1,3}|passwd(?:[ ]-\w{1,9}){0,3}[ ]{1,3})"
    r"|(?:sqlplus|impdp|expdp|sqlldr)\b[^\n|;&]{0,100}?\s(?:userid=)?\w{1,30}/"
    r"|lftp\b[^\n|;&]{0,100}?\s-u[ ]{1,3}[^\s,]{1,60},|mc[ ]alias[ ]set(?:[ ]\S{1,99}){3}[ ]"
    r"|http-basic\.\S{1,60}[ ]\S{1,60}[ ]|bundle[ ]config[ ](?:set[ ])?\S{1,80}[ ][\w.-]{1,60}:"
    r"|(?:cargo[ ]login|shodan[ ]init|snyk[ ]auth|-initial-password|-authtoken)[ ]{1,3}"
    r"|codecov\b[^\n|;&]{0,100}?\s-t[ ]{1,3}|chpasswd[ ]{0,3}<<<[ ]{0,3}[\"']?[\w.-]{1,60}:"
    r"|(?:bindpw|rootpw|input_pw|pre-shared-key|server[ ]key|isakmp[ ]key|bw[ ]unlock)"
    r"[ ]{1,3}(?=\S{0,99}\d)"
    r"|(?:community|wpa_passphrase[ ]\S{1,60}|bw[ ]login[ ]\S{1,60}|user:password[ ]\S{1,60}"
    r"|samba-tool[ ]user[ ]create[ ]\S{1,60}|username[ ]\S{1,60}[ ]password[ ]\d)[ ](?=\S{0,99}\d)"
    r"|-generic-password\b[^\n|;&]{0,200}?\s-w[ ]{1,3}|signtool\b[^\n|;&]{0,200}?\s/p[ ]{1,3}"
    r"|-creds[ =][^\s:]{1,60}:|[ ]-u[ =]?[^\s-]\S{0,99}"
    r"(?:[ ]--?[\w-]{1,30}(?:[ =][^\s-]\S{0,60})?){0,3}"
    r"[ ]-[pP][ ](?=\S{0,99}\d)(?=\S{0,99}[a-zA-Z])"
    r"|publish[ ]-p[ ](?=\S{0,99}\d)"
    r"|secret[ ]put[ ]\S{1,60}[ ]<<<[ ]|put-parameter\b[^\n|;&]{0,300}?\s--value[ =]"
    r"|nmcli\b[^\n|;&]{0,200}?\spassword[ ]{1,3}|Key[ ]Content[ ]{1,24}:[ ]{1,3})"
    r"(\\*[\"'])?(?![-$<{%/]|@/)(?(2)([^\"'\\\n]{3,100})|([^\s\"'\\;|&,()]{3,100}))"
)
_PIPED: Final = re.compile(
    r"((?:echo|printf|yes)[ ](?:-\w{1,3}[ ])?)(\\*[\"'])?"
    r"((?(2)[^\"'\\\n]{3,100}|[^\s\"'\\|;&$]{3,100}))(?=(?(2)\\*[\"'])[ ]{0,3}\|[ ]{0,3}"
    r"(?:sudo[ ](?:-\w{1,3}[ ]){0,3}-\w{0,3}S|\S{0,40}[ ]?chpasswd"
    r"|(?:sudo[ ])?passwd\b|[^\n|]{0,40}secret[ ](?:put|create|set)\b"
    r"|[^\n|]{0,100}--(?:password|token|with-token)-?(?:stdin)?))"
)
_COOKIES: Final = re.compile(
    r"([Cc](?i:ookie)\\*[\"']?:\s{0,3}\\*[\"']?"
    r"|curl\b[^\n]{0,300}?\s(?:-b|--cookie)[ =]\\*[\"']?)"
    r"((?:[\w.-]{1,100}=[^\s;\"'\\(){}\[\]$]*+;?[ ]?)++)"
)
_COOKIE: Final = re.compile(r"([\w.-]{1,100}=)([^<;\s][^;\s]{3,})")
_COOKIE_WORDS: Final = ("path", "domain", "expires", "max-age", "samesite", "version")
# The password may hold what should have been coded, but host:8000/a@b is no password.
_URL: Final = re.compile(
    r"(://[^\s/:@\"'<>`]{0,100}:)(?!\d{1,5}(?:[/?#]|\Z))([^\s/@\"'<>`{}$%][^\s@\"'<>`]{0,200})(?=@)"
)
_URL_USER: Final = re.compile(r"(://)([A-Za-z0-9_-]{16,200})(?=:?@|:<PASSWORD>@)")
_JDBC: Final = re.compile(r"((?:thin|oci|oci8):[^\s/:@\"']{1,60}/)([^\s/@\"']{1,100})(?=@)")
_SIGNED: Final = re.compile(
    r"([?&;](?:amp;)?(?:sig|X-(?:Amz|Goog)-(?:Signature|Security-Token|Credential)|Signature|code|key"
    r"|hash|sign|st|appid|auth|k|pw|pass|access|t)=)(?=[\w%.~+/=-]{0,300}\d)([\w%.~+/=-]{16,})"
)
_NETRC: Final = re.compile(
    r"((?:machine\s{1,9}\S{1,99}|default)\s{1,9}(?:login\s{1,9}\S{1,99}\s{1,9})?"
    r"password\s{1,9})(\S+)"
)
_PGPASS: Final = re.compile(
    r"^([\w.*-]{1,100}:(?:\d{2,5}|\*):[\w.*-]{1,60}:[\w.*-]{1,60}:)([^\s:]{3,100})$", re.M
)
_PAIR: Final = re.compile(
    r"((?:auth=\(|\.(?:login|auth)\(|[Bb]asic_?[Aa]uth\w{0,10}[\s=:(]{1,4}[\[(]?)\s{0,3}"
    r"[\"'][^\"'\n]{1,60}[\"']\s{0,3},\s{0,3}[\"'])"
    r"(?!(?:password|passwd|secret)[\"'])([^\"'\n]{3,100})(?=[\"'])"
)
_CLIENT: Final = re.compile(
    r"((?:Client|algoliasearch)\((?:[\"'][^\"'\n]{1,60}[\"'],\s{0,3})?[\"'])"
    r"(?=[a-zA-Z]{0,60}\d)([A-Za-z0-9_-]{32,})(?=[\"'])"
)
_GO_DSN: Final = re.compile(r"([\w.-]{1,60}:)([^\s@\"'/:]{3,100})(?=@(?:tcp|unix)\()")
_BASIC: Final = re.compile(r"(asic )([A-Za-z0-9+/]{8,400}={0,2})(?![\w+/=])")
_DIGEST: Final = re.compile(r"(response=\\*\")([a-f0-9]{32})(?=\\*\")")
_SENT: Final = re.compile(r"(send[ ](?:--[ ])?\\*\")([^\s\"$\\]{3,60})(?=\\{1,2}[rn]\\*\")")
_ONCE: Final = re.compile(
    r"(/(?:reset-password|password-reset|reset|invite|magic|verify|confirm|activate)/)"
    r"(?=[A-Za-z_-]{0,60}\d)([\w-]{20,})"
)
_JWK: Final = re.compile(r"(\"(?:d|p|q|dp|dq|qi|k)\"\s{0,3}:\s{0,3}\")([\w-]{20,})(?=\")")
_LOCAL_BACKWARDS: Final = re.compile(r"[\w.%+-]{0,63}[A-Za-z0-9](?![\w.%+/:-])")
_DOMAIN: Final = re.compile(r"@(?:[A-Za-z0-9][A-Za-z0-9-]{0,62}\.){1,8}[A-Za-z]{2,24}(?![\w-])")
_HOMES: Final = (
    re.compile(r"/mnt/[a-z]/Users/[\w.@~-]+"),
    re.compile(r"/home/(?<![\w.~-]/home/)[\w.@~-]+"),
    re.compile(r"/Users/(?<![\w.~-]/Users/)[\w.@~-]+"),
    # Claude Code's folders of projects.
    re.compile(r"-home-(?<=/projects/-home-)[A-Za-z0-9]+"),
    re.compile(r"-Users-(?<=/projects/-Users-)[A-Za-z0-9]+"),
)
_DRIVE_HOME: Final = re.compile(r"[A-Za-z]:(?:\\{1,4}|/)Users(?:\\{1,4}|/)[\w.@~-]+")


def masked(text: str) -> str:
    """The text with placeholders for all secrets; masking it again changes nothing."""
    for _ in range(8):  # one placeholder may reveal another secret beside it
        before, text = text, _masked_once(text)
        if text == before:
            break
    return text


def _masked_once(text: str) -> str:
    text = without_keys(text).replace(HIDDEN, SECRET) if HIDDEN not in text else without_keys(text)
    text = without_tokens(text)
    text = _BEARER.sub(r"\1<TOKEN>", text)
    text = _AUTHORIZATION.sub(r"\1<TOKEN>", text)
    text = masked_assignments(text)
    text = _URL.sub(rf"\1{PASSWORD}", text)
    text = _URL_USER.sub(_masked_url_user, text)
    text = _JDBC.sub(rf"\1{PASSWORD}", text)
    text = _SIGNED.sub(rf"\1{SECRET}", text)
    text = _NETRC.sub(rf"\1{PASSWORD}", text)
    text = _PGPASS.sub(rf"\1{PASSWORD}", text)
    text = _PAIR.sub(rf"\1{PASSWORD}", text)
    text = _CLIENT.sub(rf"\1{SECRET}", text)
    if "@tcp(" in text or "@unix(" in text:
        text = _GO_DSN.sub(rf"\1{PASSWORD}", text)
    text = _BASIC.sub(_masked_basic, text)
    text = _DIGEST.sub(rf"\1{SECRET}", text)
    text = _SENT.sub(_masked_sent, text)
    text = _ONCE.sub(rf"\1{SECRET}", text)
    if '"kty' in text:
        text = _JWK.sub(rf"\1{SECRET}", text)
    text = _USER.sub(_masked_user, text)
    text = _masked_commands(text)
    text = _PIPED.sub(_masked_pipe, text)
    text = _COOKIES.sub(_masked_cookies, text)
    text = _masked_addresses(text)
    return _masked_homes(text)


def _masked_basic(match: re.Match[str]) -> str:
    """Basic authentication is base64 of a name and a password; other words are not."""
    try:
        pair = base64.b64decode(match[2], validate=True).decode()
    except ValueError:
        return match[0]
    return f"{match[1]}{PASSWORD}" if ":" in pair and pair.isprintable() else match[0]


def _masked_sent(match: re.Match[str]) -> str:
    """What a script of expect types."""
    return f"{match[1]}{PASSWORD}" if MIXED.fullmatch(match[2]) else match[0]


def _masked_url_user(match: re.Match[str]) -> str:
    """A user without a password may be a token: a Sentry DSN, a GitHub URL."""
    return f"{match[1]}{SECRET}" if MIXED.fullmatch(match[2]) else match[0]


def _masked_user(match: re.Match[str]) -> str:
    """Other programs have -u too, for example with the ids of a user and a group."""
    name, password = match[1], match[3]
    curl = _CURL.search(match.string, max(0, match.start() - 300), match.start())
    likely = len(password) >= 8 and MIXED.fullmatch(password)
    return f"{name}{PASSWORD}" if likely or (curl and not password.isdigit()) else match[0]


def _masked_commands(text: str) -> str:
    parts, end = list[str](), 0
    for place in _places(text, *_PROGRAMS):
        match = _COMMANDS.match(text, place) if place >= end else None
        if match and (shown := _masked_command(match)) != match[0]:
            parts += text[end:place], shown
            end = match.end()
    return "".join([*parts, text[end:]])


def _masked_command(match: re.Match[str]) -> str:
    value = match[3] or match[4]
    if value.isdigit() or value.lower() in ("null", "none", "password", "default"):
        return match[0]
    if match[1][-2:] == "-p" and (value[:1] in "=:" or value.startswith("ort")):
        return match[0]
    if match[1].startswith("AUTH") and not MIXED.fullmatch(value):
        return match[0]
    return f"{match[1]}{match[2] or ''}{PASSWORD}"


def _masked_pipe(match: re.Match[str]) -> str:
    name, colon, _ = match[3].partition(":")
    user = f"{name}:" if colon and name.isidentifier() else ""
    return f"{match[1]}{match[2] or ''}{user}{PASSWORD}"


def _masked_cookies(match: re.Match[str]) -> str:
    def one(pair: re.Match[str]) -> str:
        plain = pair[1][:-1].lower() in _COOKIE_WORDS
        return pair[0] if plain else f"{pair[1]}{SECRET}"

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
