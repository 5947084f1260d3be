"""Mask values by the names they are given to: ``DB_PASS=…``, ``"token": "…"``, ``password is …``.

A name says what its value may be. A password may be any word, so all but types, placeholders and
code is masked; a token or a key must look random. Where each is found is decided by one pattern
that starts at the name, so that masking takes linear time.
"""

import re
from typing import Final

SECRET: Final = "<SECRET>"
PASSWORD: Final = "<PASSWORD>"

# The ends of names, in lower case, and what may follow in the same name.
_PASSWORDS: Final = (
    *("pass", "pwd", "pw", "psk", "mnemonic", "seed_phrase", "seed phrase", "contraseña", "senha"),
    *("contrasena", "пароль", "hasło", "lösenord", "密码", "密碼", "パスワード", "비밀번호"),
)
_TOKENS: Final = (
    *("secret", "token", "apikey", "key", "key_id", "key-id", "keyid", "credential", "credentials"),
    *("auth", "sig", "bearer", "dockerconfigjson", "dockercfg", "_session", "sonar.login"),
    *("secret_id", "secretid", "secret id", "token_id"),
    *("signature", "sessionid", "session_id", "jsessionid", "phpsessid", "connectionstring"),
    *("assertion", "code_verifier", "data-key", "key-data", "otp", "nonce_secret"),
)
_STEMS: Final = (*_PASSWORDS, *_TOKENS)
_SUFFIX: Final = (
    r"(?:word|wd|phrase|code|wort|e)?(?:[_-]?(?:prod|production|dev|staging|test|live|default|plain"
    r"|current|base|base64|b64|value|text|string|hash|private|\d{1,3})|[ ]\d)?"
    r"(?:s(?=[\"']?[ ]{0,9}[:=][ ]{0,9}[\"']))?"
)
_VALUE_KEY: Final = (
    r"[\"']?\s{0,20}[,{]?\s{0,20}[\"']?(?:value|default|defaultValue|content)[\"']?\s{0,3}[:=]"
)
_ASSIGNED: Final = re.compile(
    rf"(?i:{_SUFFIX})(?![a-z0-9])"
    # Not [ \t]: JSON in JSON has \n and \" as text.
    rf"(?P<sep>(?i:{_VALUE_KEY})\s{{0,3}}"
    r"|\\*[\"'`]?\]?\)?[ \t]{0,12}(?::=|=>|\?=|\|\|=|[=:](?![=:]))"
    r"(?:[ ]{4,24}|(?:\s|\\n){0,3})"
    r"|[ ](?:(?:for|of|on|to)[ ](?:[\w@.-]{1,30}[ ]){1,4}?)?(?:is|was|=|ist|-|has[ ]been)"
    r"(?:[ ](?:set|now|changed|reset|updated)[ ]to)?:?(?:\s|\\n){1,3}"
    r"|[ ]for[ ][\w@.'-]{1,40}:[ ]{1,3}"
    r"|[ \t]{1,8}|\\*[\"']?[ ]?/?>|\([ ]?|\\*[\"'](?:,[ ]{0,3}|[ ])(?=\\*[\"']))"
    r"(?:[bru]{1,2}(?=[\"']))?(?P<quote>\\*[\"'`])?"
)
_QUOTED: Final = re.compile(r"[^\"'`\\\n]{1,300}+")
_PLAIN: Final = re.compile(r"[^\s\"'`\\<>;,(){}\[\]|&]{1,300}+")
_LINE: Final = re.compile(r"[^\n\\\"'<>]{1,200}")
_KEY_OF: Final = (
    *("unseal", "instrumentation", "product", "recovery"),
    *("secret", "api", "access", "private", "auth", "signing", "encryption", "account", "master"),
    *("license", "licence", "ssh", "tls", "subscription", "deploy", "service", "storage", "shared"),
    *("client", "consumer", "webhook", "session", "admin", "root", "hmac", "jwt", "cookie"),
    *("crypt", "crypto", "app", "application", "project", "publishable", "server", "ingest"),
    *("write", "bot"),
    *("restricted", "function", "functions", "host", "wallet", "integration", "rapidapi", "maps"),
)
_NO_KEY_OF: Final = (
    *("primary", "foreign", "sort", "partition", "cache", "routing", "public", "hash", "range"),
    *("group", "unique", "object", "index", "dedup", "deduplication", "idempotency", "lookup"),
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
    r"|(?i:(?:\A|[-_ ])(?:your|example|placeholder|dummy|fake|insert|replace|change)[-_ ])"
    r"|x{4,}|X{4,}|•{2,}|\[(?i:redacted|masked|hidden|secret|filtered)"
)
_RANDOM: Final = re.compile(r"(?=\D*\d)(?=[^A-Za-z]*[A-Za-z])[\w+/=~.:@!#%^*?$-]{12,}")
MIXED: Final = re.compile(r"(?=\D*\d)(?=[^A-Za-z]*[A-Za-z]).{6,}")
_LONG: Final = re.compile(
    r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])[A-Za-z+/=_-]{24,}|[a-z]{24,}|[A-Z]{24,}"
)
_PHRASE: Final = re.compile(r"[A-Za-z0-9'!-]{2,}(?:[ ][A-Za-z0-9'!-]{2,}){1,23}")
_VERSION: Final = re.compile(r"v?\d+(?:[.:-]\d+)*(?:[a-z]{1,2}|px|em|ms)?|0x[0-9a-fA-F]{1,8}")
# Types, placeholders and what programs are made of: values that are no password.
_WORDS: Final = frozenset(
    re.findall(
        r"\S+",
        "str string strings text bytes byte int integer number float bool boolean any object dict "
        "list array map char varchar optional required missing empty none null nil undefined void "
        "true false yes no on off password passwd passwort passphrase pass pwd pw secret secrets "
        "token tokens key keys apikey credential credentials auth user username login email name "
        "value values default defaults example examples test dummy sample changeme change_me "
        "placeholder redacted masked hidden filtered removed xxx xxxx here your yours mine field "
        "input output param params parameter argument args arg env environment environ config conf "
        "settings self this that it and or not if then else for in the a an is are was were be to "
        "of with from by at as must should can may will cannot invalid wrong incorrect correct "
        "weak strong new old current hash hashed hashing plain plaintext encrypted bcrypt argon2 "
        "sha256 sha1 md5 hmac basic bearer digest oauth jwt import return def class function const "
        "let var type types typing unknown never data file files path url uri base64 hex utf-8 "
        "utf8 ascii random generate generated prompt ask asked stdin stdout manager reset policy "
        "strength length min max protected protection prompt expired expires unset set get got "
        "read write only admin enabled disabled auto header headers body json yaml form query "
        "cookie session storage store vault keyring keychain kms ssm fernet getpass async await "
        "also already authentication authorization based can't check checks checked count counts "
        "does doesn't error errors fails failed found match matches mismatch okay ok sent use used "
        "uses using when where which while would you we they store stored stores len print log "
        "instead something anything nothing everything someone above below see via per each both "
        "identifier symbol literal keyword operator start end next last first second kind usage "
        "limit limits budget id ids index usd exchange refresh access api private public client",
    )
)
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
    lower = text.lower() if text.isascii() else re.sub("[A-Z]+", lambda m: m[0].lower(), text)
    parts, end, repeated = list[str](), 0, set[str]()
    for place, stem in _places(lower):
        if place < end:
            continue
        match = _ASSIGNED.match(text, place + len(stem))
        span = _secret_span(text, place, stem, match) if match else None
        if span:
            is_password = stem in _PASSWORDS
            value = text[span[0] : span[1]]
            parts += text[end : span[0]], PASSWORD if is_password else SECRET
            end = span[1]
            if _RANDOM.fullmatch(value):
                repeated.add(value)
    text = "".join([*parts, text[end:]])
    for value in sorted(repeated, key=len, reverse=True)[:1000]:
        text = text.replace(value, SECRET)
    return text


def _places(lower: str) -> list[tuple[int, str]]:
    """Where names end with these stems; the longest stem first."""
    stems = dict[int, str]()
    for stem in _STEMS:
        for match in re.finditer(stem, lower):
            if len(stems.get(match.start(), "")) < len(stem):
                stems[match.start()] = stem
    return sorted(stems.items())


def _secret_span(text: str, place: int, stem: str, match: re.Match[str]) -> tuple[int, int] | None:
    """Where the secret is that a name is given; None for a word, or code that fetches one."""
    start, quote, sep = match.end(), match["quote"], match["sep"]
    literal = (_QUOTED if quote else _PLAIN).match(text, start)
    if not literal or len(literal[0]) < 3:
        return None
    value = literal[0]
    closed = bool(quote) and text.startswith(quote[-1], literal.end() + len(quote) - 1)
    if quote and not closed and (plain := _PLAIN.match(text, start)):
        value = plain[0]  # a quote that ends elsewhere
    name = _name_before(text, place)
    if stem in _PASSWORDS and not quote and sep.strip() in (":", "="):
        line = _LINE.match(text, start)
        phrase = line[0].strip() if line else ""
        if " " in phrase and _is_phrase(phrase, stem, name):
            return start, start + len(phrase)
    after = text[start + len(value) : start + len(value) + 2]
    if not quote and after[:1] in ("(", "["):
        return None  # a call
    if not quote and sep.strip() == "=" != sep and after[:1] == " " and after[1:].isalpha():
        return None  # an expression
    if _is_secret(stem, name, sep, value, quoted=closed, text=text, place=place):
        return start, start + len(value)
    return None


def _name_before(text: str, place: int) -> str:
    """What stands directly before the stem, on the same line."""
    return text[max(0, place - 24) : place].rpartition("\n")[2]


def _opens_something(name: str) -> bool:
    """Whether a key of this name may be a secret: an API key, or any in capitals, as FOO_KEY."""
    word = name.rstrip("_ -.").lower()
    if word.endswith(_NO_KEY_OF):
        return False
    loud = name[-1:] == "_" and (name[-2:-1].isupper() or name[-2:-1].isdigit())
    return loud or word.endswith(_KEY_OF)


def _is_phrase(value: str, stem: str, name: str) -> bool:
    """Whether words are a passphrase, and neither prose nor a text of a screen."""
    if not _PHRASE.fullmatch(value) or _UI.search(value):
        return False
    words = value.split()
    if sum(word.lower() in _WORDS for word in words) * 2 > len(words):
        return False
    return len(words) >= (3 if stem == "pass" else 6) or (name[-1:] == "_" and name.isupper())


def _is_secret(
    stem: str, name: str, sep: str, value: str, *, quoted: bool, text: str, place: int
) -> bool:
    if _PATH.fullmatch(value) or _TEMPLATE.search(value) or _VERSION.fullmatch(value):
        return False
    if sep.endswith(">") and "=" not in sep:  # <password>…</password>, and no placeholder of ours
        after = text[text.index(value, place) + len(value) :][:2]
        if after != "</":
            return False
    if sep.strip().endswith((",", '"', "'")):  # ("password", "hunter2")
        form = MIXED if stem in _PASSWORDS else _RANDOM
        return quoted and " " not in value and form.fullmatch(value) is not None
    if sep.strip() == "" or sep.strip() == "(":
        return _is_spoken_or_flagged(stem, name, sep, value, quoted=quoted, text=text, place=place)
    if stem in ("key", "key_id", "key-id", "keyid") and not _opens_something(name):
        return False  # keys of maps, of caches, of keyboards
    if stem == "pw" and (name[-1:].isalnum() or not MIXED.fullmatch(value)):
        return False
    if stem in ("pass", "auth", "sig", "otp") and name[-1:].islower() and text[place].islower():
        return False  # bypass, oauth, config
    alone = stem == "pass" and (
        name.endswith("\\n") or not (name[-1:].isalnum() or name[-1:] in ("_", "-", "."))
    )
    if alone and not _NAMED.match(text, place):
        # PASS: test_x, and perhaps "pass: hunter2"
        plain = text[place].islower() and " " not in value
        word = _CODE.fullmatch(value) and not MIXED.fullmatch(value)
        return plain and not word
    prose = re.search(r"(?:is|was|ist|been|to|-):?\Z|\Afor ", sep.strip()) is not None
    in_capitals = text[place].isupper() and text[place + 1].isupper()
    loud = in_capitals and ("=" in sep or (stem == "secret" and sep.strip() == ":"))
    if stem in _PASSWORDS:
        at = text.find(value, place)
        if (
            sep.strip() == ":"
            and _CODE.fullmatch(value)
            and text[at + len(value) :][:1] in ("", "\n")
        ):
            name_like = _NAME_PARTS.search(value) and not (in_capitals and value.isalpha())
            loud = _DOTTED.fullmatch(value) is None and not name_like
        return _is_password(value, quoted=quoted, loud=loud, prose=prose, stem=stem)
    if value.lower().rstrip(".:") in _WORDS or " " in value:
        return False
    if quoted and not prose and " " not in value and len(value) >= 6 and stem == "secret":
        return not _DOTTED.fullmatch(value) and not _NAME_PARTS.search(value)
    if loud and stem == "secret":
        return len(value) >= (5 if "=" in sep else 8) and not _DOTTED.fullmatch(value)
    if loud and len(value) >= 8 and stem not in ("key", "sig", "auth"):
        return not _CODE.fullmatch(value) or len(value) >= 16 or value.islower()
    if _CODE.fullmatch(value) and not MIXED.fullmatch(value):
        return _LONG.fullmatch(value) is not None and not {"_", "."} & {*value}
    if _DOTTED.fullmatch(value) and not quoted:
        return False
    strong = stem in ("secret", "token", "apikey", "auth", "signature", "sig", "credential", "key")
    shortest = 8 if strong and (quoted or loud) else 10 if strong and not prose else 12
    if len(value) < shortest:
        return False
    random = _RANDOM.fullmatch(value) or (len(value) < 12 and MIXED.fullmatch(value))
    return random is not None or _LONG.fullmatch(value) is not None


def _is_password(value: str, *, quoted: bool, loud: bool, prose: bool, stem: str) -> bool:
    word = value.lower().rstrip(".,:!?")
    if word in _WORDS or len(word) < 3:
        return False
    if " " in value:
        return quoted and not prose and _is_phrase(value, "pass", "PASS_")
    if prose:
        return MIXED.fullmatch(value) is not None or (quoted and len(value) >= 6)
    if quoted:
        return len(value) >= 4 and not _DOTTED.fullmatch(value)
    if loud:
        return True
    if not _CODE.fullmatch(value):
        return True
    # A word, or a name in a program: password=pw_of(user), password: newPassword
    if (
        _NAME_PARTS.search(value)
        or {"_", "."} & {*value}
        or not (value.islower() or value.isupper())
    ):
        return MIXED.fullmatch(value) is not None and not {"_", "."} & {*value}
    return len(value) >= 4 or stem == "psk"


def _is_spoken_or_flagged(
    stem: str, name: str, sep: str, value: str, *, quoted: bool, text: str, place: int
) -> bool:
    """``--password x``, ``ENV DB_PASSWORD x``, ``set aws_secret_access_key x``."""
    before = text[max(0, place - 48) : place].rpartition("\n")[2]
    flag = re.search(r"(?:^|[\s\"'\[,])-{1,2}[\w-]{0,24}\Z", before) is not None
    command = re.search(r"(?:^|\s)(?:ENV|ARG|setx|set|setenv|put)\s+[\w.:/-]{0,30}\Z", before)
    called = sep.strip() == "("
    if called and not (quoted and (stem in ("secret", "token", "apikey") or stem in _PASSWORDS)):
        return False
    if not (flag or command or called):
        return _is_spoken(stem, name, value, text[place : place + 20], quoted=quoted)
    if value.startswith("-"):
        return False
    if stem == "key" and not flag and not _opens_something(name):
        return False
    if value.lower() in _WORDS:
        return False
    if stem in _PASSWORDS and called:
        return _is_password(value, quoted=True, loud=False, prose=False, stem=stem)
    if stem in _PASSWORDS:
        return " " not in value or _is_phrase(value, "pass", "PASS_")
    shortest = 8 if stem in ("secret", "token", "apikey") else 12
    return (
        len(value) >= shortest
        and (MIXED.fullmatch(value) is not None or _LONG.fullmatch(value) is not None)
        and _PATH.fullmatch(value) is None
    )


def _is_spoken(stem: str, name: str, value: str, text: str, *, quoted: bool) -> bool:
    """``use the password Dr4gon!9``, ``token 0a1b…``: only what no word looks like."""
    value = value.rstrip(".,:;!?")
    if stem == "pass":
        if not MIXED.fullmatch(value) or not _NAMED.match(text):
            return False
        if quoted and name[-1:].islower():  # storePassword 'hunter22'
            return " " not in value
        return not _CODE.fullmatch(value) or re.search("[a-z][A-Z]|[A-Z][a-z]", value) is not None
    if stem not in ("token", "secret", "apikey") and not (stem == "key" and _opens_something(name)):
        return False
    digits = sum(map(str.isdigit, value))
    return len(value) >= 20 and digits > 2 and _RANDOM.fullmatch(value) is not None
