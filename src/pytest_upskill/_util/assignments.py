"""Mask values by the names they are given to: ``DB_PASS=…``, ``"token": "…"``,
``password is …``.

A name says what its value may be. A password may be any word, so all but types,
placeholders and code is masked; a token or a key must look random. Where each is found
is decided by one pattern that starts at the name, so that masking takes linear time.
"""

import re
from typing import Final

SECRET: Final = "<SECRET>"
PASSWORD: Final = "<PASSWORD>"

# The ends of names, in lower case, and what may follow in the same name.
_PASSWORDS: Final = (
    *(
        "pass",
        "pwd",
        "pw",
        "psk",
        "mnemonic",
        "seed_phrase",
        "seed phrase",
        "contraseña",
        "senha",
    ),
    *(
        "contrasena",
        "пароль",
        "hasło",
        "lösenord",
        "密码",
        "密碼",
        "パスワード",
        "비밀번호",
    ),
)
_KEYS: Final = ("key", "key_id", "key-id", "keyid")  # most keys open nothing
_STEMS: Final = (
    *(*_PASSWORDS, *_KEYS, "secret", "token", "apikey", "credential", "credentials"),
    *(
        "auth",
        "sig",
        "bearer",
        "dockerconfigjson",
        "dockercfg",
        "_session",
        "sonar.login",
    ),
    *("secret_id", "secretid", "secret id", "token_id"),
    *(
        "signature",
        "sessionid",
        "session_id",
        "jsessionid",
        "phpsessid",
        "connectionstring",
    ),
    *("assertion", "code_verifier", "data-key", "key-data", "otp", "nonce_secret"),
)
_WITHIN_WORDS: Final = ("pass", "auth", "sig", "otp", "pw")
_SUFFIX: Final = (
    r"(?:word|wd|phrase|code|wort|e)?(?:[_-]?(?:prod|production|dev|staging|test|live|default|plain"
    r"|current|base|base64|b64|value|text|string|hash|private|\d{1,3})|[ ]\d)?"
    r"(?:s(?=[\"']?[ ]{0,9}[:=][ ]{0,9}[\"']))?"
)
_VALUE_KEY: Final = (
    r"[\"']?\s{0,20}[,{]?\s{0,20}[\"']?"
    r"(?:value|default|defaultValue|content)[\"']?\s{0,3}[:=]"
)
_ASSIGNED: Final = re.compile(
    rf"(?i:{_SUFFIX})(?![a-z0-9])(?:"
    # Not [ \t]: JSON in JSON has \n and \" as text.
    rf"(?P<assigned>(?i:{_VALUE_KEY})\s{{0,3}}"
    r"|\\*[\"'`]?\]?\)?[ \t]{0,12}(?::=|=>|\?=|\|\|=|[=:](?![=:]))"
    r"(?:[ ]{4,24}|(?:\s|\\n){0,3})|\([ ]?(?=\\*[\"']))"
    r"|(?P<prose>[ ](?:(?:for|of|on|to)[ ](?:[\w@.-]{1,30}["
    r" ]){1,4}?)?(?:is|was|=|ist|-|has[ ]been)"
    r"(?:[ ](?:set|now|changed|reset|updated)[ ]to)?:?(?:\s|\\n){1,3}"
    r"|[ ]for[ ][\w@.'-]{1,40}:[ ]{1,3})"
    r"|(?P<element>\\*[\"']?[ ]?/?>)"
    r"|(?P<listed>\\*[\"'](?:,[ ]{0,3}|[ ])(?=\\*[\"']))"
    r"|[ \t]{1,8})"
    r"(?:[bru]{1,2}(?=[\"']))?(?P<quote>\\*[\"'`])?"
)
_QUOTED: Final = re.compile(r"[^\"'`\\\n]{3,300}+")
_PLAIN: Final = re.compile(r"[^\s\"'`\\<>;,(){}\[\]|&]{3,300}+")
_LINE: Final = re.compile(r"[^\n\\\"'<>]{1,200}")
_FLAG: Final = re.compile(
    r"(?:^|[\s\"'\[,])-{1,2}[\w-]{0,24}\Z|(?:^|\s)(?:ENV|ARG|setx|set|setenv|put)\s+[\w.:/-]{0,30}\Z"
)
_KEY_OF: Final = (
    *("unseal", "instrumentation", "product", "recovery"),
    *(
        "secret",
        "api",
        "access",
        "private",
        "auth",
        "signing",
        "encryption",
        "account",
        "master",
    ),
    *(
        "license",
        "licence",
        "ssh",
        "tls",
        "subscription",
        "deploy",
        "service",
        "storage",
        "shared",
    ),
    *(
        "client",
        "consumer",
        "webhook",
        "session",
        "admin",
        "root",
        "hmac",
        "jwt",
        "cookie",
    ),
    *(
        "crypt",
        "crypto",
        "app",
        "application",
        "project",
        "publishable",
        "server",
        "ingest",
    ),
    *("write", "bot"),
    *(
        "restricted",
        "function",
        "functions",
        "host",
        "wallet",
        "integration",
        "rapidapi",
        "maps",
    ),
)
_NO_KEY_OF: Final = (
    *(
        "primary",
        "foreign",
        "sort",
        "partition",
        "cache",
        "routing",
        "public",
        "hash",
        "range",
    ),
    *(
        "group",
        "unique",
        "object",
        "index",
        "dedup",
        "deduplication",
        "idempotency",
        "lookup",
    ),
    *("map", "dict", "json", "row", "col", "column", "natural", "composite"),
)
_CODE: Final = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)*[.:!?]?")
_DOTTED: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
# Base64 keys may begin with a slash too, but rarely have only lowercase letters.
_PATH: Final = re.compile(
    r"[.~]{0,2}(?:/[a-z0-9_.~*-]++)+/?+|(?:https?|file|s3|gs):.*|[A-Za-z]:\\.*"
)
_TEMPLATE: Final = re.compile(
    r"\A[$%][A-Za-z_({]|\A!(?:Ref|Sub|GetAtt|vault|secret|env|Import\w+)\Z|<\||\$[({]"
    r"|%[sdr(]|\{\{|\{[A-Za-z_.]*\}|#\{|<[A-Za-z_ -]+>|@@|\*{3,}|\.{3}|…"
    r"|(?i:(?:\A|[-_"
    r" ])(?:your|example|placeholder|dummy|fake|insert|replace|change)[-_ ])"
    r"|x{4,}|X{4,}|•{2,}|\[(?i:redacted|masked|hidden|secret|filtered)"
)
_RANDOM: Final = re.compile(r"(?=\D*\d)(?=[^A-Za-z]*[A-Za-z])[\w+/=~.:@!#%^*?$-]{8,}")
MIXED: Final = re.compile(r"(?=\D*\d)(?=[^A-Za-z]*[A-Za-z]).{6,}")
_LONG: Final = re.compile(
    r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])[A-Za-z+/=_-]{24,}|[a-z]{24,}|[A-Z]{24,}"
)
_PHRASE: Final = re.compile(r"[A-Za-z0-9'!-]{2,}(?:[ ][A-Za-z0-9'!-]{2,}){1,23}")
_VERSION: Final = re.compile(
    r"v?\d+(?:[.:-]\d+)*(?:[a-z]{1,2}|px|em|ms)?|0x[0-9a-fA-F]{1,8}"
)
# Types, placeholders and what programs are made of: values that are no password.
_WORDS: Final = frozenset(
    re.findall(
        r"\S+",
        "str string strings text bytes byte int integer number float bool boolean any"
        " object dict list array map char varchar optional required missing empty none"
        " null nil undefined void true false yes no on off password passwd passwort"
        " passphrase pass pwd pw secret secrets token tokens key keys apikey credential"
        " credentials auth user username login email name value values default defaults"
        " example examples test dummy sample changeme change_me placeholder redacted"
        " masked hidden filtered removed xxx xxxx here your yours mine field input"
        " output param params parameter argument args arg env environment environ"
        " config conf settings self this that it and or not if then else for in the a"
        " an is are was were be to of with from by at as must should can may will"
        " cannot invalid wrong incorrect correct weak strong new old current hash"
        " hashed hashing plain plaintext encrypted bcrypt argon2 sha256 sha1 md5 hmac"
        " basic bearer digest oauth jwt import return def class function const let var"
        " type types typing unknown never data file files path url uri base64 hex utf-8"
        " utf8 ascii random generate generated prompt ask asked stdin stdout manager"
        " reset policy strength length min max protected protection prompt expired"
        " expires unset set get got read write only admin enabled disabled auto header"
        " headers body json yaml form query cookie session storage store vault keyring"
        " keychain kms ssm fernet getpass async await also already authentication"
        " authorization based can't check checks checked count counts does doesn't"
        " error errors fails failed found match matches mismatch okay ok sent use used"
        " uses using when where which while would you we they store stored stores len"
        " print log instead something anything nothing everything someone above below"
        " see via per each both identifier symbol literal keyword operator start end"
        " next last first second kind usage limit limits budget id ids index usd"
        " exchange refresh access api private public client",
    )
)
_JOINED: Final = re.compile(r"[^\W_]\Z|[_.-]\Z")
_ONE_WORD: Final = re.compile(r"[A-Za-z][a-z]{3,}|[A-Z]{4,}")
_NAMED: Final = re.compile(r"(?i)pass(?:word|wd|phrase|code|wort)|PASS=")
_NAME_PARTS: Final = re.compile(
    r"(?i)pass|pwd|secret|token|cred|param|value|input|env|conf|user|field|hash"
)
_UI: Final = re.compile(
    r"(?i)\b(?:passw\w*|passphrase|your|enter|must|invalid|required|please|incorrect|forgot\w*"
    r"|confirm|characters?|field|cannot|can't|should|reset|change|wrong|users?|the|secret|token|key"
    r"|is|are|not|no|when|this|that|with|for|from|and|used?)\b|[.!?:]\Z"
)


def masked_assignments(text: str) -> str:
    """Mask values by the names they are assigned to, and the same values elsewhere."""
    lower = (
        text.lower()
        if text.isascii()
        else re.sub("[A-Z]+", lambda m: m[0].lower(), text)
    )
    parts, end, repeated = list[str](), 0, set[str]()
    for place, stem in _places(lower):
        match = _ASSIGNED.match(text, place + len(stem)) if place >= end else None
        span = _secret_span(text, place, stem, match) if match else None
        if span:
            value = text[span[0] : span[1]]
            parts += text[end : span[0]], PASSWORD if stem in _PASSWORDS else SECRET
            end = span[1]
            repeated |= (
                {value} if len(value) >= 12 and _RANDOM.fullmatch(value) else set()
            )
    text = "".join([*parts, text[end:]])
    for value in sorted(repeated, key=len, reverse=True)[:1000]:
        text = text.replace(value, SECRET)
    return text


def _opens_something(name: str) -> bool:
    """Whether a key of this name may be a secret: an API key, or any in capitals,
    as FOO_KEY.
    """
    word = name.rstrip("_ -.").lower()
    if word.endswith(_NO_KEY_OF):
        return False
    loud = name[-1:] == "_" and (name[-2:-1].isupper() or name[-2:-1].isdigit())
    return loud or word.endswith(_KEY_OF)


def _is_phrase(value: str, fewest: int) -> bool:
    """Whether words are a passphrase, and neither prose nor a text of a screen."""
    words = value.split()
    is_prose = sum(word.lower() in _WORDS for word in words) * 2 > len(words)
    if not _PHRASE.fullmatch(value) or _UI.search(value) or is_prose:
        return False
    return len(words) >= fewest


def _places(lower: str) -> list[tuple[int, str]]:
    """Where names end with these stems; the longest stem first."""
    stems = dict[int, str]()
    for stem in _STEMS:
        for match in re.finditer(stem, lower):
            if len(stems.get(match.start(), "")) < len(stem):
                stems[match.start()] = stem
    return sorted(stems.items())


def _secret_span(
    text: str, place: int, stem: str, match: re.Match[str]
) -> tuple[int, int] | None:
    """Where the secret is that a name is given; None for a word,
    or code that fetches one.
    """
    start, quote = match.end(), match["quote"]
    value = (_QUOTED if quote else _PLAIN).match(text, start)
    if not value:
        return None
    closed = bool(quote) and text.startswith(quote[-1], value.end() + len(quote) - 1)
    if quote and not closed:  # it ends elsewhere
        value = _PLAIN.match(text, start) or value
    before = text[max(0, place - 48) : place].rpartition("\n")[2]
    line = _LINE.match(text, start)
    if line and not quote and match["assigned"] and stem in _PASSWORDS:
        phrase = line[0].strip()
        fewest = (
            2 if before[-1:] == "_" and before.isupper() else 3 if stem == "pass" else 6
        )
        if " " in phrase and _is_phrase(phrase, fewest):
            return start, start + len(phrase)
    after = text[value.end() : value.end() + 2]
    sep = match["assigned"] or ""
    is_sum = sep.strip() == "=" != sep and after[:1] == " " and after[1:].isalpha()
    # A call, a type, an expression
    is_code = after[:1] in ("(", "[") or after == " =" or is_sum
    if (is_code and not quote) or (match["element"] and after != "</"):
        return None
    if _is_secret(
        value[0], stem, text[place : place + 20], before, match, quoted=closed
    ):
        return value.span()
    return None


def _is_no_secret(value: str) -> bool:
    """Whether a value is of a kind that nobody hides, whatever its name."""
    word = value.lower().rstrip(".,:;!? ")
    if len(word) < 3 or word in _WORDS or value.startswith("-"):
        return True
    patterns = (_PATH.fullmatch, _TEMPLATE.search, _VERSION.fullmatch)
    return any(match(value) for match in patterns)


def _is_secret(
    value: str, stem: str, name: str, before: str, match: re.Match[str], *, quoted: bool
) -> bool:
    """``name`` begins with the stem, and ``before`` is what the line has before it."""
    if _is_no_secret(value):
        return False
    is_flag = _FLAG.search(before) is not None
    if stem in _KEYS and not is_flag and not _opens_something(before):
        return False  # keys of maps, of caches, of keyboards
    if stem in _WITHIN_WORDS and before[-1:].islower() and name[0].islower():
        return False  # bypass, oauth, config
    is_assigned = bool(match["assigned"] or match["element"] or is_flag)
    is_loud = is_assigned and name[:2].isupper()
    is_spoken = not is_assigned and not match["prose"] and not match["listed"]
    is_mixed, is_code = (
        MIXED.fullmatch(value) is not None,
        _CODE.fullmatch(value) is not None,
    )
    if stem not in _PASSWORDS:
        may_be_word = is_assigned and (is_loud or (quoted and stem == "secret"))
        if may_be_word and stem in ("secret", "token") and " " not in value:
            shortest = 5 if stem == "secret" else 8
            is_code = bool(_DOTTED.fullmatch(value) or _NAME_PARTS.search(value))
            return len(value) >= shortest and not is_code
        if _LONG.fullmatch(value):
            return not {"_", "."} & {*value}
        shortest = 20 if is_spoken else 8 if quoted or is_loud or is_flag else 12
        is_odd = len(value) >= 12 and (is_assigned or match["prose"]) and not is_code
        is_random = len(value) >= shortest and _RANDOM.fullmatch(value)
        return " " not in value and bool(is_random or is_odd)
    if stem in _WITHIN_WORDS and not _NAMED.match(name) and not _JOINED.search(before):
        is_odd = " " not in value and (is_mixed or not is_code)
        return is_odd and not is_spoken and name[0].islower()  # PASS: test_1
    if " " in value:
        return quoted and is_assigned and _is_phrase(value, 2)
    if is_mixed and (quoted or not _DOTTED.fullmatch(value)):
        return True
    if match["prose"]:
        return quoted and len(value) >= 6
    if not is_assigned or _DOTTED.fullmatch(value):
        return False
    # A word, or a name in a program: password=pw_of(user), password: newPassword
    is_name = is_code and not _ONE_WORD.fullmatch(value)
    return quoted or is_loud or is_flag or not (is_name or _NAME_PARTS.search(value))
