"""Loading a skill: what it has, what is a fault of its form, and what is refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.skills.frontmatter import Fault
from pytest_upskill.skills.skill import Skill, load_skill, name_of
from support.folders import new_folder
from support.kit import BODY, refused, skill_or_error, write_skill, write_skill_md

GOOD = "name: gate\ndescription: About a gate.\n"


def read(folder: Path, frontmatter: str, body: str = BODY) -> Skill:
    return load_skill(write_skill_md(folder, f"---\n{frontmatter}---\n{body}\n"))


def test_skill_has_name_description_and_body(tmp_path: Path) -> None:
    file = write_skill(tmp_path / "gate") / "SKILL.md"
    skill = load_skill(file)
    assert (skill.name, skill.description, skill.body) == (
        "gate",
        "About a gate.",
        BODY,
    )
    assert skill.file == file
    assert skill.warnings == ()


def test_every_key_of_the_specification_is_accepted(tmp_path: Path) -> None:
    more = (
        "license: MIT\ncompatibility: needs git\nallowed-tools: Bash(git:*) Read\n"
        "metadata:\n  author: someone\n  version: 1.0\n"
    )
    assert read(tmp_path, GOOD + more).warnings == ()


@pytest.mark.parametrize(
    "more",
    [
        "allowed-tools: [Read, Write]\n",
        "allowed-tools:\n  - Read\n",
        "metadata:\n",
        "license:\n",
    ],
)
def test_common_variants_of_optional_keys_are_accepted(
    tmp_path: Path, more: str
) -> None:
    assert read(tmp_path, GOOD + more).warnings == ()


@pytest.mark.parametrize(
    ("written", "description"),
    [
        (">\n  About\n  a gate.\n", "About a gate.\n"),
        (">-\n  About\n  a gate.\n", "About a gate."),
        ("|\n  About\n  a gate.\n", "About\na gate.\n"),
        ('"Gates: open # them"\n', "Gates: open # them"),
        ("'it''s a gate'\n", "it's a gate"),
        ("About\n  a gate.\n", "About a gate."),
        ("yes\n", "yes"),
        ("2024-01-01\n", "2024-01-01"),
        ("Über das Tor 門\n", "Über das Tor 門"),
    ],
)
def test_description_may_be_any_yaml_string(
    tmp_path: Path, written: str, description: str
) -> None:
    assert (
        read(tmp_path, f"description: {written}name: gate\n").description == description
    )


def test_windows_line_ends_and_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    text = f"---\n{GOOD}---\n\nOne.\n\nTwo, für Zoë.\n"
    plain = load_skill(write_skill_md(tmp_path, text))
    windows = load_skill(
        write_skill_md(tmp_path, b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    )
    assert plain.body == "One.\n\nTwo, für Zoë."
    assert (windows.name, windows.description, windows.body) == (
        plain.name,
        plain.description,
        plain.body,
    )


def test_rule_in_the_body_does_not_end_it(tmp_path: Path) -> None:
    assert read(tmp_path, GOOD, "One.\n\n---\n\nTwo.").body == "One.\n\n---\n\nTwo."


def test_lowercase_file_name_is_accepted(tmp_path: Path) -> None:
    assert (
        load_skill(
            write_skill_md(tmp_path, f"---\n{GOOD}---\n{BODY}\n", "skill.md")
        ).name
        == "gate"
    )


def test_tokens_grow_with_the_body(tmp_path: Path) -> None:
    assert read(tmp_path, GOOD, "x" * 400).tokens == 100
    assert read(tmp_path, GOOD, "x" * 800).tokens == 200


LONG = "d" * 1025


def only_fault(skill: Skill) -> Fault:
    (fault,) = skill.warnings
    assert fault.hint
    return fault


@pytest.mark.parametrize(
    ("frontmatter", "line", "code", "level", "message"),
    [
        ("description: d\n", 2, "name", "error", "'name' is missing"),
        ("name:\ndescription: d\n", 2, "name", "error", "'name' must be"),
        ("description: d\nname: {a: b}\n", 3, "name", "error", "'name' must be"),
        (
            f"description: d\nname: {'g' * 65}\n",
            3,
            "name",
            "error",
            "65 characters (limit 64)",
        ),
        ("description: d\nname: Gate\n", 3, "name", "warning", "invalid name 'Gate'"),
        (
            "description: d\nname: door\n",
            3,
            "name",
            "warning",
            "differs from the folder's name",
        ),
        ("name: gate\n", 2, "description", "error", "'description' is missing"),
        (
            "name: gate\ndescription:\n",
            3,
            "description",
            "error",
            "'description' must be",
        ),
        ('name: gate\ndescription: "  "\n', 3, "description", "error", "must be"),
        ("name: gate\ndescription: [a, b]\n", 3, "description", "error", "must be"),
        (
            f"name: gate\ndescription: {LONG}\n",
            3,
            "description",
            "error",
            "1025 characters",
        ),
        (
            f"{GOOD}compatibility: {'c' * 501}\n",
            4,
            "metadata",
            "warning",
            "501 characters",
        ),
        (
            f"{GOOD}compatibility: [a]\n",
            4,
            "metadata",
            "warning",
            "'compatibility' must be",
        ),
        (
            f"{GOOD}compatibility:\n",
            4,
            "metadata",
            "warning",
            "'compatibility' must be",
        ),
        (f"{GOOD}license: [MIT]\n", 4, "metadata", "warning", "'license' must be"),
        (f"{GOOD}metadata: text\n", 4, "metadata", "error", "'metadata' must map"),
        (f"{GOOD}metadata: [a]\n", 4, "metadata", "error", "'metadata' must map"),
        (
            f"{GOOD}metadata:\n  a:\n    b: c\n",
            4,
            "metadata",
            "warning",
            "'a' is a map",
        ),
        (
            f"{GOOD}metadata:\n  b: c\n  a: [b]\n",
            4,
            "metadata",
            "warning",
            "'a' is a list",
        ),
        (
            f"{GOOD}allowed-tools: {{a: b}}\n",
            4,
            "metadata",
            "warning",
            "'allowed-tools' must",
        ),
        (
            f"{GOOD}allowed-tools: [[a]]\n",
            4,
            "metadata",
            "warning",
            "'allowed-tools' must",
        ),
        (
            f"{GOOD}colour: red\n",
            4,
            "unknown-key",
            "warning",
            "'colour' is not in the Agent",
        ),
        (
            f"{GOOD}license: MIT\nname: gate\n",
            5,
            "yaml",
            "error",
            "duplicate key 'name'",
        ),
    ],
)
def test_fault_of_form_is_a_warning_with_its_line_and_a_hint(
    tmp_path: Path, frontmatter: str, line: int, code: str, level: str, message: str
) -> None:
    skill = read(tmp_path, frontmatter)
    fault = only_fault(skill)
    assert (fault.line, fault.code, fault.level) == (line, f"skill-{code}", level)
    assert message in fault.message
    assert skill.body == BODY


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("colour", "Agents may ignore it; 'metadata' has room for keys of your own."),
        ("user-invocable", "Claude Code reads it; other agents may ignore it."),
    ],
)
def test_hint_about_a_key_says_who_reads_it(
    tmp_path: Path, key: str, hint: str
) -> None:
    assert only_fault(read(tmp_path, f"{GOOD}{key}: false\n")).hint == hint


@pytest.mark.parametrize("name", ["a", "9-lives", "g" * 64, "tür-öffner", "門"])
def test_valid_name_is_accepted(tmp_path: Path, name: str) -> None:
    skill = load_skill(write_skill(tmp_path / name) / "SKILL.md")
    assert (skill.name, skill.warnings) == (name, ())


@pytest.mark.parametrize(
    ("name", "example"),
    [
        *(("Gate Keeper", "gate-keeper"), ("gate_up", "gate-up"), ("Gate!", "gate")),
        *(
            ("a.b", "a-b"),
            ("-gate", "gate"),
            ("gate-", "gate"),
            ("gate--up", "gate-up"),
        ),
        *(("gate/up", "gate-up"), ("gate:up", "gate-up"), ("!!!", "my-skill")),
    ],
)
def test_odd_name_is_kept_and_a_valid_one_suggested(
    tmp_path: Path, name: str, example: str
) -> None:
    skill = read(tmp_path, f"name: '{name}'\ndescription: d\n")
    assert skill.name == name
    assert (
        "only lowercase letters, digits and single hyphens" in only_fault(skill).message
    )
    assert only_fault(skill).hint == f"For example: {example}"


@pytest.mark.parametrize(
    ("frontmatter", "name"),
    [
        ("name: Any Name\n", "Any Name"),
        ('name: "two\\nlines\\e"\n', "two lines\\x1b"),
        (f"name: {'g' * 70}\n", "g" * 63 + "…"),
        ("description: d\n", "gate"),
        ("name:\n", "gate"),
        ("name: [a]\n", "gate"),
    ],
)
def test_name_is_one_short_line_and_falls_back_to_the_folder(
    tmp_path: Path, frontmatter: str, name: str
) -> None:
    skill = read(tmp_path, frontmatter)
    assert skill.name == name_of(skill.file) == name


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"---\nname: door\n"])
def test_name_of_a_skill_that_is_refused_is_that_of_its_folder(
    tmp_path: Path, data: bytes
) -> None:
    file = write_skill_md(tmp_path, data)
    assert name_of(file) in ("gate", "door")
    assert name_of(tmp_path / "nowhere" / "SKILL.md") == "nowhere"
    (tmp_path / "loop").symlink_to("loop")
    assert name_of(tmp_path / "loop" / "SKILL.md") == "loop"


def test_relative_path_has_the_name_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_skill_md(tmp_path, "Text.")
    monkeypatch.chdir(file.parent)
    assert name_of(Path("SKILL.md")) == "gate"


@pytest.mark.parametrize(
    ("frontmatter", "body", "description"),
    [
        ("name: gate\n", "# Gates\n\nHow to open\nthem.\n\nMore.", "How to open them."),
        ("name: gate\ndescription: [a]\n", "Text.", "Text."),
        ("name: gate\n", "<!-- x\n\ny -->\n> Quoted `text`.", "Quoted `text`."),
        ("name: gate\n", "```\ncode\n```\n| a |\n![p](p.png)\nAt last.", "At last."),
        ("name: gate\n", "# Only a heading", "Only a heading"),
        ("name: gate\n", "```\nnothing but code\n```", "```"),
        ("name: gate\n", "word " * 500, ("word " * 500)[:1023] + "…"),
    ],
)
def test_missing_description_is_the_first_paragraph(
    tmp_path: Path, frontmatter: str, body: str, description: str
) -> None:
    assert read(tmp_path, frontmatter, body).description == description


def test_half_characters_in_a_description_can_be_printed(tmp_path: Path) -> None:
    skill = read(tmp_path, 'name: gate\ndescription: "a \\ud800 b"\n')
    assert skill.description == "a ? b"


def test_long_description_is_kept_whole(tmp_path: Path) -> None:
    assert read(tmp_path, f"name: gate\ndescription: {LONG}\n").description == LONG


def test_unicode_normal_form_of_the_folder_does_not_matter(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "t\u00fcr").rename(tmp_path / "tu\u0308r")
    skill = load_skill(folder / "SKILL.md")
    assert (skill.name, skill.warnings) == ("t\u00fcr", ())


@pytest.mark.parametrize("sign", [".git", ".github", ".gitignore"])
def test_folder_of_a_whole_repository_may_have_any_name(
    tmp_path: Path, sign: str
) -> None:
    folder = write_skill(tmp_path / "gate").rename(tmp_path / "gate-main")
    assert only_fault(load_skill(folder / "SKILL.md")).code == "skill-name"
    (folder / sign).mkdir()
    assert load_skill(folder / "SKILL.md").warnings == ()


def test_unknown_key_is_a_warning_with_a_suggestion(tmp_path: Path) -> None:
    skill = read(tmp_path, GOOD + "licence: MIT\nzebra: 1\n")
    odd = "is not in the Agent Skills specification"
    assert [(fault.line, fault.message) for fault in skill.warnings] == [
        (4, f"'licence' {odd} (did you mean \"license\"?)"),
        (5, f"'zebra' {odd}"),
    ]


def test_faults_are_in_the_order_of_their_lines(tmp_path: Path) -> None:
    skill = read(tmp_path, "colour: red\nname: Gate\nmetadata: [a]\ndescription: []\n")
    assert [fault.line for fault in skill.warnings] == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no text"),
        (" \n\n", "no text"),
        (f"---\n{GOOD}---\n \n\n", "no text after the frontmatter"),
        (f"---\n{GOOD}---", "no text after the frontmatter"),
        (f"---\n{GOOD}", "no text after the frontmatter"),
        (f"---\n{GOOD}---\n".encode() + b"caf\xe9\n", "not UTF-8 (byte 49)"),
        ("Text.".encode("utf-16"), "not UTF-8 (byte 0)"),
        ("../../other/SKILL.md\n", "a symbolic link that git wrote as a text"),
    ],
)
def test_skill_without_usable_text_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | bytes, problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    error = refused(write_skill_md(tmp_path, text))
    assert (error.where, error.problem) == ("gate/SKILL.md", problem)
    assert str(error) == f"{error.where}: {error.problem}\n  {error.hint}"


def test_missing_file_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path / "SKILL.md").problem == "no such file or folder"


def test_other_file_is_refused(tmp_path: Path) -> None:
    file = write_skill_md(tmp_path, "Text.", "README.md")
    assert refused(file).problem == "not a SKILL.md"


PIECES = st.sampled_from(
    [
        *(
            "---\n",
            "----\n",
            "...\n",
            "\n",
            "\t",
            "  ",
            "<!--",
            "-->",
            "\ufeff",
            "\r\n",
            "\0",
        ),
        *(
            "name: gate\n",
            "name:gate\n",
            "description: a: b\n",
            "metadata:\n  a:\n",
            "# T\n",
        ),
        *(
            "- a\n",
            '"',
            "'",
            "|\n",
            ">\n",
            "&a ",
            "*a ",
            "[",
            "{",
            "? ",
            ": ",
            "!!x ",
            "\\ud800",
        ),
    ]
)


@given(
    text=st.text() | st.lists(PIECES | st.text(max_size=3)).map("".join),
    closed=st.booleans(),
)
def test_any_text_loads_or_raises_skill_error(
    tmp_path_factory: pytest.TempPathFactory, text: str, closed: bool
) -> None:
    written = f"---\n{text}\n---\nx\n" if closed else f"---{text}"
    file = write_skill_md(new_folder(tmp_path_factory), written)
    found = skill_or_error(file)
    assert name_of(file)
    if not isinstance(found, Skill):
        assert "SKILL.md" in found.where
        return
    assert found.body
    assert found.description
    number = len(written.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    for fault in found.warnings:
        assert 1 <= fault.line <= number
        assert len(fault.message) < 500
    for value in (found.name, found.description):
        value.encode("utf-8")


@pytest.mark.parametrize(
    "value",
    [
        *(
            '"\\UFFFFFFFF"',
            '"\\U00110000"',
            "[" * 3000,
            "{a: " * 3000,
            "&a [*a]",
            "!!python/x y",
        ),
        *(
            "- " * 10_000,
            "? " * 10_000,
            "\n" + "\n".join(" " * n + "a:" for n in range(1, 300)),
        ),
        "&a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c, *c]",
        "x\n" + "k" * 900_000 + ": v",
        "x\n" + "".join(f"k{number}: v\n" for number in range(10_000)),
        "x\na: 1" * 3000,
        "x\n" + "".join(f"k{number}: v\nk{number}: v\n" for number in range(1000)),
        "x " * 400_000,
        "'" + "''" * 400_000,
    ],
    ids=[
        *(
            "huge-code",
            "code-too-big",
            "deep-list",
            "deep-map",
            "inside-itself",
            "python-tag",
        ),
        *("deep-items", "deep-keys", "deep-lines", "aliases", "huge-key", "many-keys"),
        *("same-keys", "keys-twice", "huge-value", "huge-quoted"),
    ],
)
def test_odd_yaml_loads_with_its_name_and_few_faults(
    tmp_path: Path, value: str
) -> None:
    skill = load_skill(
        write_skill_md(tmp_path, f"---\n{GOOD}license: {value}\n---\nx\n")
    )
    assert (skill.name, skill.body) == ("gate", "x")
    assert len(skill.warnings) < 40
    assert all(len(fault.message) < 500 for fault in skill.warnings)
