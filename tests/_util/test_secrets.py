"""What must not leave the machine is masked, and code stays what it was."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_upskill._util.secrets import masked

# None of them is real, and none is written as one text:
# scanners of others would find it.
ALNUM = "aB3dE5gH7jK9mN1pQ3sT5vW7xY9zA2cD4fG6hJ8k"
KEYS = (
    "sk-" + f"ant-api03-{ALNUM}-{ALNUM}_x",
    "gh" + f"p_{ALNUM[:36]}",
    (AWS_ID := "AK" + "IAIOSFODNN7ABCDEFG"),
    "ey" + f"JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{ALNUM}",
)
AWS_SECRET = "wJalrXUtnFEMI/K7MDENG+" + "bPxRfiCYzQ4tLk8sVo"


def test_a_key_is_masked_wherever_it_is() -> None:
    around = [
        "{}",
        "is {}.",
        'x("{}")',
        '{{"a": "{}"}}',
        "https://x.org/?k={}&b=1",
        "a={}\n",
    ]
    for key in KEYS:
        for text in around:
            wanted = (text.format("<API KEY>"), text.format("<TOKEN>"))
            assert masked(text.format(key)) in wanted


def not_as_wanted(table: Sequence[tuple[str, str]]) -> list[str]:
    return [
        f"{text} -> {masked(text)}" for text, wanted in table if masked(text) != wanted
    ]


NAMED = [
    ("export FOO_API_KEY=abcdef0123456789", "export FOO_API_KEY=<SECRET>"),
    ("FOO_KEY='abcdef0123456789'", "FOO_KEY='<SECRET>'"),
    ('{"api_key": "abcdef0123456789"}', '{"api_key": "<SECRET>"}'),
    (r"{\"apiKey\": \"abcdef0123456789\"}", r"{\"apiKey\": \"<SECRET>\"}"),
    ("access_token: abcdef0123456789", "access_token: <SECRET>"),
    ("X-Api-Key: abcdef0123456789", "X-Api-Key: <SECRET>"),
    ("client_secret => 'abcdef0123456789'", "client_secret => '<SECRET>'"),
    ("?token=abcdef0123456789&x=1", "?token=<SECRET>&x=1"),
    ("run --token abcdef0123456789 now", "run --token <SECRET> now"),
    (
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY",
        "aws_secret_access_key = <SECRET>",
    ),
    (
        "AWS_SECRET_ACCESS_KEY=/JalrXUtnFEMI/K7MDENG/bPx",
        "AWS_SECRET_ACCESS_KEY=<SECRET>",
    ),
    ("SSH_PRIVATE_KEY=/etc/ssh/id_ed25519", "SSH_PRIVATE_KEY=/etc/ssh/id_ed25519"),
    ("DB_PASSWORD=correcthorse", "DB_PASSWORD=<PASSWORD>"),
    ("password: hunter2", "password: <PASSWORD>"),
    ('"password": "battery staple"', '"password": "<PASSWORD>"'),
    ("connect(password='hunter22')", "connect(password='<PASSWORD>')"),
    ("postgres://bob:pw@db:5432/x", "postgres://bob:<PASSWORD>@db:5432/x"),
    ("redis://:pw@db", "redis://:<PASSWORD>@db"),
    ("Authorization: Bearer abc.def-1234567890", "Authorization: Bearer <TOKEN>"),
    ("-H 'authorization: Basic Ym9iOnB3'", "-H 'authorization: Basic <TOKEN>'"),
    (
        "machine api.org login bob password pw\n",
        "machine api.org login bob password <PASSWORD>\n",
    ),
    ("curl -u bob:s3cretpass99 https://x", "curl -u bob:<PASSWORD> https://x"),
    ("curl -s --user bob:swordfish x", "curl -s --user bob:<PASSWORD> x"),
    ("curl --user=bob:swordfish x", "curl --user=bob:<PASSWORD> x"),
    ("curl -u'bob:my sword' x", "curl -u'bob:<PASSWORD>' x"),
    (r'"curl -u \"bob:my sword\" x"', r'"curl -u \"bob:<PASSWORD>\" x"'),
    ("Cookie: session=abcdef; theme=a", "Cookie: session=<SECRET>; theme=a"),
    ("-H 'cookie: a=b; sid=xyzzyx'", "-H 'cookie: a=b; sid=<SECRET>'"),
    ('{"Cookie": "sid=xyzzyx"}', '{"Cookie": "sid=<SECRET>"}'),
    (
        "Set-Cookie: sid=xyzzyx.1; Path=/admin; HttpOnly",
        "Set-Cookie: sid=<SECRET>; Path=/admin; HttpOnly",
    ),
    ("the password is swordfish99.", "the password is <PASSWORD>"),
    ("Password for the db was: `swordfish99`", "Password for the db was: `<PASSWORD>`"),
    ("Its token is abcdef0123456789", "Its token is <SECRET>"),
    (f"{AWS_ID} {AWS_SECRET}\n", "<API KEY> <SECRET>\n"),
    (f"id,key\n{AWS_SECRET},{AWS_ID}\n", "id,key\n<SECRET>,<API KEY>\n"),
    (f"The secret of S3 is:\n  {AWS_SECRET}", "The secret of S3 is:\n  <SECRET>"),
    ("From: Bob <bob.x+y@mail.example.co.uk>", "From: Bob <<EMAIL>>"),
]


def test_values_named_as_secrets_are_masked() -> None:
    assert not_as_wanted(NAMED) == []


HOMES = [
    ("/home/bob/src/a.py", "<HOME>/src/a.py"),
    ("cd /Users/bob.smith && ls", "cd <HOME> && ls"),
    (r"C:\Users\Bob\src", r"<HOME>\src"),
    (r'"C:\\Users\\Bob\\src"', r'"<HOME>\\src"'),
    ("c:/Users/Bob/src", "<HOME>/src"),
    ("/mnt/c/Users/bob/src", "<HOME>/src"),
    ("file:///home/bob/x", "file://<HOME>/x"),
    ("projects/-home-bob-src/x.jsonl", "projects/-home-bob-src/x.jsonl"),
    ("~/.claude/projects/-home-bob-src/x", "~/.claude/projects/<HOME>-src/x"),
    ("https://example.org/home/bob", "https://example.org/home/bob"),
    ("lib/Users/list.py", "lib/Users/list.py"),
]


def test_the_rest_of_a_path_in_a_home_folder_stays() -> None:
    assert not_as_wanted(HOMES) == []


def test_the_home_folder_of_this_process_is_masked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/srv/people/bob")
    monkeypatch.setenv("USERPROFILE", "/srv/people/bob")
    assert (
        masked("/srv/people/bob/x and /srv/people/bobby")
        == "<HOME>/x and /srv/people/bobby"
    )


def test_secrets_of_the_environment_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SERVICE_KEY", "just-some-words-in-a-row")
    monkeypatch.setenv("OTHER_TOKEN", "short")
    monkeypatch.setenv("PATH_TO_KEY", "/etc/ssl/private")
    monkeypatch.setenv("EDITOR", "a-harmless-value")
    text = "just-some-words-in-a-row short /etc/ssl/private a-harmless-value"
    assert masked(text) == "<SECRET> short /etc/ssl/private a-harmless-value"


@pytest.mark.parametrize("prefix", ["", "     7→"])
def test_private_keys_are_masked_also_with_line_numbers(prefix: str) -> None:
    body = "\n".join(prefix + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" * 2 for _ in range(3))
    kind = "RSA PRIVATE " + "KEY"
    text = f"a\n-----BEGIN {kind}-----\n{body}\n{prefix}-----END {kind}-----\nb"
    assert masked(text) == "a\n<PRIVATE KEY>\nb"
    assert masked(text.replace("\n", "\\n")) == "a\\n<PRIVATE KEY>\\nb"
    cut = text[: text.index("-----END")]
    assert "MIIE" not in masked(cut)


def test_private_keys_in_short_lines_and_mere_mentions() -> None:
    kind = "PRIVATE " + "KEY"
    body = "\n".join(["MIIEvQIBADANBgkq"] * 4)
    text = f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----"
    assert masked(text) == "<PRIVATE KEY>"
    assert "MIIE" not in masked(text[: text.index("-----END")])
    for spoken in (
        f"-----BEGIN {kind}-----\nMIIE...\n-----END {kind}-----",
        f"-----BEGIN {kind}-----\n-----END {kind}-----",
        (
            f"It begins with -----BEGIN {kind}----- and then lines of a text follow as"
            " in all of them"
        ),
    ):
        assert masked(spoken) == spoken


def test_a_secret_named_once_is_masked_everywhere() -> None:
    text = "API_TOKEN=zx81spectrum48k and later: curl -d zx81spectrum48k"
    assert "zx81" not in masked(text)


CODE = r"""
def connect(user: str, password: str | None = None, token: Token = NO_TOKEN) -> Client:
    api_key = os.environ["OPENAI_API_KEY"]
    password = password or getpass.getpass("Password: ")
    secret_key = settings.SECRET_KEY
    tokens = [token for token in tokens if token.key == key]
    self.token = self._next_token()
    if token == "identifier" and key != "value1234567890":
        raise TokenError(f"token: expected {token!r}")
    return Client(f"postgres://{user}:{password}@{host}/db", max_tokens=4096)

# commit 6cc28acd59c08e4174c18b07d1455c0b4876cc28 (tag: v1.2.3)
# sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
ID = uuid.UUID("123e4567-e89b-12d3-a456-426614174000")
"resolved": "https://registry.example.org/a/-/a-1.0.0.tgz", "integrity": "sha512-Zm9vYmFyYmF6"
@pytest.mark.parametrize("key", KEYS)
git clone git@example.org:org/repo.git && npm install lodash@4.17.21
uses: actions/checkout@v4
cache_key = "user:1234567890:profile"
<input type="password" name="password">
password: ${{ secrets.DB_PASSWORD }}
token_count: 12345678901234567890
primary_key=True, foreign_key="users.id", sort_key=lambda x: x.token
docker run -u 1000:1000 --user app:app -v /a:/b image; python -u main.py
curl --user-agent test:client -u $USER:$PASSWORD https://example.org
def get(self, cookie: Cookie = None, cookies: str="session", jar: dict = {}) -> None: ...
The password is required, and the token is checked; a password of 12 letters is fine.
integrity of secrets: 6cc28acd59c08e4174c18b07d1455c0b4876cc28
keyboard: Key.SPACE; monkey = "capuchin-12345678"
"""


def test_code_is_left_alone() -> None:
    assert masked(CODE) == CODE


@pytest.mark.nightly
def test_the_source_of_this_project_has_no_secrets() -> None:
    package = Path(__file__).parents[2] / "src/pytest_upskill"
    for file in package.rglob("*.py"):
        if file.name in ("secrets.py", "assignments.py"):
            continue  # they contain examples of secrets
        text = file.read_text("utf-8")
        for nobodys in ("/home/agent", "/root"):  # homes in a sandbox
            text = text.replace(nobodys, "/srv")
        assert masked(text) == text, file


PIECES = (
    *(*KEYS, "password", "token", "api_key", "_KEY", "=", ": ", '"', "'", "\\", "@"),
    *(
        "://",
        "/home/bob",
        "C:\\Users\\bob",
        "<HOME>",
        "<SECRET>",
        "-----BEGIN PRIVATE KEY-----",
    ),
    *("curl -u ", "-u a:", "Cookie: ", "sid=abcdef; ", " is ", AWS_SECRET, " for x"),
    *(
        "Bearer ",
        "a1b2c3d4e5f6g7",
        "bob@example.org",
        "machine a login b password ",
        ".",
        "--",
    ),
)


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=12).map("".join)
)
def test_masking_again_changes_nothing(text: str) -> None:
    once = masked(text)
    assert masked(once) == once
    assert not [key for key in KEYS if f" {key} " in once]


HOSTILE = (
    *(
        "a",
        "a@",
        "sk-",
        "token=",
        "://a:",
        "eyJ",
        "a.",
        " ",
        "key=",
        "mysql ",
        "mysql -p",
        "echo ",
    ),
    *(
        "echo 'a",
        "|",
        "password\n",
        "password for a ",
        "passphrase: a b ",
        "a b ",
        "SG.",
        "eyJ.",
    ),
    *(
        "password \t",
        "--password ",
        "<password>",
        "hooks.slack.com/services/",
        "?sig=",
        "thin:",
    ),
    *(
        "Authorization: ",
        "Private-Lines: 9\n",
        "AAAA\n",
        "A" * 40 + "/",
        "MMMM.",
        "Q~",
        ":AA",
    ),
    *(
        "machine a ",
        "a:1:b:c:",
        "Cookie: a=b; ",
        "logic.azure.com",
        "$2b$10$",
        "pcsk_",
        "dp.st.",
    ),
)


@pytest.mark.nightly
def test_no_text_takes_long() -> None:
    """Many times what a pattern begins with; a quadratic one would never end."""
    for piece in (*PIECES, *HOSTILE):
        assert masked(piece * (100_000 // len(piece))) is not None
