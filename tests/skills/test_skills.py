"""Reading SKILL.md and checking it against the Agent Skills specification."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_upskill.skills.skill import Skill, load_skill
from support.kit import BODY, refused, skill_or_error, write_skill, write_skill_md

GOOD = "name: gate\ndescription: About a gate.\n"


def read(folder: Path, frontmatter: str, body: str = BODY) -> Skill:
    return load_skill(write_skill_md(folder, f"---\n{frontmatter}---\n{body}\n"))


def test_skill_has_name_description_and_body(tmp_path: Path) -> None:
    file = write_skill(tmp_path / "gate") / "SKILL.md"
    skill = load_skill(file)
    assert (skill.name, skill.description, skill.body) == ("gate", "About a gate.", BODY)
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
    ["allowed-tools: [Read, Write]\n", "allowed-tools:\n  - Read\n", "metadata:\n", "license:\n"],
)
def test_common_variants_of_optional_keys_are_accepted(tmp_path: Path, more: str) -> None:
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
def test_description_may_be_any_yaml_string(tmp_path: Path, written: str, description: str) -> None:
    assert read(tmp_path, f"description: {written}name: gate\n").description == description


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
        load_skill(write_skill_md(tmp_path, f"---\n{GOOD}---\n{BODY}\n", "skill.md")).name == "gate"
    )


def test_tokens_grow_with_the_body(tmp_path: Path) -> None:
    assert read(tmp_path, GOOD, "x" * 400).tokens == 100
    assert read(tmp_path, GOOD, "x" * 800).tokens == 200


LONG = "d" * 1025


@pytest.mark.parametrize(
    ("frontmatter", "line", "problem"),
    [
        ("description: d\n", 2, "'name' is missing"),
        ("name: gate\n", 2, "'description' is missing"),
        ("name:\ndescription: d\n", 2, "'name' must be"),
        ("name: gate\ndescription:\n", 3, "'description' must be"),
        ('name: gate\ndescription: "  "\n', 3, "'description' must be"),
        ("name: gate\ndescription: [a, b]\n", 3, "'description' must be"),
        ("description: d\nname: {a: b}\n", 3, "'name' must be"),
        (f"name: gate\ndescription: {LONG}\n", 3, "1025 characters (limit 1024)"),
        (f"description: d\nname: {'g' * 65}\n", 3, "65 characters (limit 64)"),
        (f"{GOOD}compatibility: {'c' * 501}\n", 4, "501 characters (limit 500)"),
        (f"{GOOD}compatibility: [a]\n", 4, "'compatibility' must be"),
        (f"{GOOD}compatibility:\n", 4, "'compatibility' must be"),
        (f"{GOOD}license: [MIT]\n", 4, "'license' must be"),
        (f"{GOOD}metadata: text\n", 4, "'metadata' must map"),
        (f"{GOOD}metadata:\n  a:\n    b: c\n", 4, "'metadata' must map"),
        (f"{GOOD}metadata: [a]\n", 4, "'metadata' must map"),
        (f"{GOOD}allowed-tools: {{a: b}}\n", 4, "'allowed-tools' must be"),
        (f"{GOOD}allowed-tools: [[a]]\n", 4, "'allowed-tools' must be"),
        (f"{GOOD}license: MIT\nname: gate\n", 5, "duplicate key 'name'"),
        ("- name: gate\n- description: d\n", 2, "must be a mapping"),
        ("just words\n", 2, "must be a mapping"),
        ("", 2, "must be a mapping"),
    ],
)
def test_violation_is_rejected_with_its_line_and_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, frontmatter: str, line: int, problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    error = refused(write_skill_md(tmp_path, f"---\n{frontmatter}---\n{BODY}\n"))
    assert error.where == f"gate/SKILL.md:{line}"
    assert problem in error.problem
    assert error.hint
    assert str(error) == f"{error.where}: {error.problem}\n  {error.hint}"


@pytest.mark.parametrize("name", ["a", "9-lives", "g" * 64, "tür-öffner", "門"])
def test_valid_name_is_accepted(tmp_path: Path, name: str) -> None:
    assert load_skill(write_skill(tmp_path / name) / "SKILL.md").name == name


@pytest.mark.parametrize(
    "name", ["Gate", "gate_up", "gate up", "-gate", "gate-", "gate--up", "gate.up", "gate/up"]
)
def test_invalid_name_is_rejected(tmp_path: Path, name: str) -> None:
    error = refused(write_skill_md(tmp_path, f"---\nname: {name}\ndescription: d\n---\n{BODY}\n"))
    assert "only lowercase letters, digits and single hyphens" in error.problem
    assert repr(name) in error.problem


@pytest.mark.parametrize(
    ("name", "example"),
    [("Gate Keeper", "gate-keeper"), ("gate_up", "gate-up"), ("Gate!", "gate"), ("a.b", "a-b")],
)
def test_valid_name_is_suggested(tmp_path: Path, name: str, example: str) -> None:
    error = refused(write_skill_md(tmp_path, f"---\nname: {name}\ndescription: d\n---\n{BODY}\n"))
    assert error.hint == f"For example: {example}"


def test_name_unlike_its_folder_is_rejected_with_its_line(tmp_path: Path) -> None:
    error = refused(write_skill_md(tmp_path, f"---\ndescription: d\nname: door\n---\n{BODY}\n"))
    assert error.where.endswith("SKILL.md:3")
    assert "'door' differs from the folder's name 'gate'" in error.problem


def test_unicode_normal_form_of_the_folder_does_not_matter(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "t\u00fcr").rename(tmp_path / "tu\u0308r")
    assert load_skill(folder / "SKILL.md").name == "t\u00fcr"


def test_unknown_key_is_a_warning_with_a_suggestion(
    tmp_path: Path,
) -> None:
    skill = read(tmp_path, GOOD + "licence: MIT\nzebra: 1\n")
    odd = "is not in the Agent Skills specification"
    assert skill.warnings == (
        (4, f"'licence' {odd} (did you mean \"license\"?)"),
        (5, f"'zebra' {odd}"),
    )


@pytest.mark.parametrize(
    ("text", "where", "problem"),
    [
        ("# Gates\n", ":1", "no frontmatter"),
        ("", ":1", "no frontmatter"),
        (f"\n---\n{GOOD}---\n{BODY}\n", ":1", "no frontmatter"),
        (f"---\n{GOOD}\n{BODY}\n", ":1", "not closed"),
        (f"---\n{GOOD}---\n \n\n", "", "no text after the frontmatter"),
        (f"---\n{GOOD}---", "", "no text after the frontmatter"),
        (f"---\n{GOOD}---\n".encode() + b"caf\xe9\n", "", "not UTF-8 (byte 49)"),
        ("---\nname: gate\ndescription: a: b\n---\nx\n", ":3:15", "invalid YAML"),
        ('---\nname: "gate\n---\nx\n', ":2:12", "invalid YAML"),
        ("---\nname: gate\n\tdescription: d\n---\nx\n", ":3:1", "invalid YAML"),
        ("---\nname: *gate\n---\nx\n", ":2:7", "invalid YAML"),
        ("---\n? [a, b]\n: c\n---\nx\n", ":2:3", "invalid YAML"),
        ("---\nname: a\x07b\n---\nx\n", "", "invalid YAML"),
    ],
)
def test_malformed_file_is_rejected_with_its_position(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str | bytes,
    where: str,
    problem: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    error = refused(write_skill_md(tmp_path, text))
    assert error.where == f"gate/SKILL.md{where}"
    assert problem in error.problem


def test_missing_file_is_rejected(tmp_path: Path) -> None:
    assert refused(tmp_path / "SKILL.md").problem == "no such file or folder"


@settings(deadline=None)
@given(text=st.text(), closed=st.booleans())
def test_any_text_loads_or_raises_skill_error(
    tmp_path_factory: pytest.TempPathFactory, text: str, closed: bool
) -> None:
    written = f"---\n{text}\n---\nx\n" if closed else f"---{text}"
    found = skill_or_error(write_skill_md(tmp_path_factory.mktemp("any"), written))
    assert isinstance(found, Skill) or "SKILL.md" in found.where


@pytest.mark.parametrize(
    "value",
    ['"\\UFFFFFFFF"', '"\\U00110000"', "[" * 3000, "{a: " * 3000, "&a [*a]", "!!python/x y"],
    ids=["huge-code", "code-too-big", "deep-list", "deep-map", "inside-itself", "python-tag"],
)
def test_odd_yaml_loads_or_raises_skill_error(tmp_path: Path, value: str) -> None:
    found = skill_or_error(write_skill_md(tmp_path, f"---\n{GOOD}license: {value}\n---\nx\n"))
    assert isinstance(found, Skill) or "SKILL.md" in found.where
