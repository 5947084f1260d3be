"""Lint rules for SKILL.md: specification, size, references."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_upskill.lint import Finding, lint_skill
from support.kit import BODY, write_skill, write_skill_md

HEAD = "---\nname: gate\ndescription: About a gate.\n---\n\n"
OF_CASES = ("few-cases", "no-cases")


def lint(file: Path) -> list[Finding]:
    """The findings of a SKILL.md, without those about the number of cases."""
    found = lint_skill(file, judge=False, lift=0.2)
    return [finding for finding in found if finding.code not in OF_CASES]


def lint_text(folder: Path, text: str | bytes) -> list[Finding]:
    return lint(write_skill_md(folder, text))


def brief(found: list[Finding]) -> list[tuple[int, str, str]]:
    return [(finding.line, finding.level, finding.code) for finding in found]


def test_good_skill_has_no_findings(tmp_path: Path) -> None:
    assert lint_text(tmp_path, HEAD + BODY) == []


def test_every_violation_is_found_with_its_line(tmp_path: Path) -> None:
    long = "x" * 1025
    found = lint_text(
        tmp_path, f"---\nname: Gate\ndescription: {long}\nlicense: [1]\ncolour: red\n---\n{BODY}"
    )
    assert brief(found) == [
        (2, "error", "skill-invalid"),
        (3, "error", "skill-invalid"),
        (4, "error", "skill-invalid"),
        (5, "warning", "skill-unknown-key"),
    ]
    assert "lowercase" in found[0].message
    assert "1024" in found[1].message
    assert found[1].hint == "Shorten it."
    assert found[0].file == str(tmp_path / "gate/SKILL.md")


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("no frontmatter", 1, "no frontmatter"),
        ("---\nname: gate\n", 1, "not closed"),
        ("---\nname: gate\ndescription: a: b\n---\nBody.", 3, "invalid YAML"),
        ("---\nname: gate\n---\nBody.", 2, "'description'"),
        (HEAD, 1, "no text"),
        (b"\xff\xfe", 1, "UTF-8"),
    ],
)
def test_file_that_is_no_skill_is_one_error(
    tmp_path: Path, text: str | bytes, line: int, part: str
) -> None:
    (finding,) = lint_text(tmp_path, text)
    assert (finding.line, finding.level, finding.code) == (line, "error", "skill-invalid")
    assert part in finding.message


def test_link_out_of_the_skill_is_reported_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "secret").touch()
    file = write_skill_md(tmp_path, HEAD + BODY)
    (file.parent / "link").symlink_to(tmp_path / "secret")
    (finding,) = lint(file)
    assert finding.file == str(tmp_path / "gate/link")
    assert finding.code == "skill-invalid"


@pytest.mark.parametrize(("more", "lines"), [(494, []), (495, [501])])
def test_more_than_500_lines_are_a_warning(tmp_path: Path, more: int, lines: list[int]) -> None:
    found = lint_text(tmp_path, HEAD + "a\n" * (more + 1))
    assert brief(found) == [(line, "warning", "skill-long") for line in lines]


@pytest.mark.parametrize(("tokens", "number"), [(5000, 0), (5001, 1)])
def test_more_than_5000_tokens_are_a_warning(tmp_path: Path, tokens: int, number: int) -> None:
    found = lint_text(tmp_path, HEAD + "abc\n" * 400 + "x" * (4 * tokens - 1600))
    assert brief(found) == [(5, "warning", "skill-long")] * number


def lint_body(folder: Path, body: str) -> list[Finding]:
    """The findings of a skill with some files; its body starts on line 6."""
    file = write_skill_md(folder, HEAD + body)
    for name in ("references/x.md", "references/deep/y.md", "scripts/run.py", "FORMS (1).md"):
        (file.parent / name).parent.mkdir(parents=True, exist_ok=True)
        (file.parent / name).touch()
    return lint(file)


@pytest.mark.parametrize(
    "body",
    [
        "[x](references/x.md), [x](./references/x.md#part), [x](<references/x.md>)",
        '[x](references/x.md "title") ![x](scripts/run.py)',
        "[x](FORMS%20(1).md) and [x](<FORMS (1).md>)",
        "[x][1]\n\n[1]: references/x.md",
        "[x](references/) and [x](references/x.md?raw=1)",
        "[x](https://example.org/no.md) [x](mailto:a@b.c) [x](//host/a) [x](#part) [x]()",
        "[x]({baseDir}/no.md) and `scripts/<name>.py` and `references/*.md`",
        "```\n[x](no.md) `scripts/no.py`\n```",
        "- item\n\n  ~~~text\n  ```\n  [x](no.md)\n  ~~~",
        "`[x](no.md)` and ``a ` [x](no.md)``",
        "`python scripts/run.py --flag` and `references/` and `src/main.py` and `no.md`",
    ],
)
def test_good_references_have_no_findings(tmp_path: Path, body: str) -> None:
    assert lint_body(tmp_path, body) == []


@pytest.mark.parametrize(
    ("body", "line", "level"),
    [
        ("See [x](no.md).", 6, "error"),
        ("a\n\n![x](assets/no.png)", 8, "error"),
        ("[x][1]\n\n[1]: no.md", 8, "error"),
        ("```\n[x](no.md)\n```\n[x](no.md)", 9, "error"),
        ("run `python scripts/no.py --flag`", 6, "warning"),
        ("`./references/no.md`", 6, "warning"),
    ],
)
def test_broken_reference_is_found(tmp_path: Path, body: str, line: int, level: str) -> None:
    (finding,) = lint_body(tmp_path, body)
    assert (finding.line, finding.level, finding.code) == (line, level, "reference-broken")


@pytest.mark.parametrize(
    "body", ["[x](../other/SKILL.md)", "[x](/etc/passwd)", "[x](references/../../y)", "[x](..)"]
)
def test_reference_outside_the_skill_is_an_error(tmp_path: Path, body: str) -> None:
    assert brief(lint_body(tmp_path, body)) == [(6, "error", "reference-outside")]


def test_deep_reference_is_a_warning(tmp_path: Path) -> None:
    found = lint_body(tmp_path, "[x](references/deep/y.md)\n`references/deep/y.md`")
    assert brief(found) == [(6, "warning", "reference-deep"), (7, "warning", "reference-deep")]


def test_skill_without_cases_is_a_warning(tmp_path: Path) -> None:
    file = write_skill_md(tmp_path, HEAD + BODY)
    (finding,) = lint_skill(file, judge=False, lift=0.2)
    assert (finding.level, finding.code) == ("warning", "no-cases")
    write_skill(file.parent)
    assert "no-cases" not in [found.code for found in lint_skill(file, judge=False, lift=0.2)]


PIECES = st.sampled_from(
    [
        *("---\n", "name: gate\n", "[", "](", ")", "]: ", "<", ">", "`", "```\n", "\n", " " * 4),
        *("references/", "scripts/a.py", "..", "/", "#", "%00", "%ff", "\0", "\ud800"),
    ]
)


@settings(deadline=None, max_examples=200)
@given(
    data=st.text().map(lambda text: text.encode("utf-8"))
    | st.binary()
    | st.lists(PIECES | st.text()).map(lambda parts: _bytes(HEAD + "".join(parts)))
)
def test_lint_does_not_raise_on_any_skill_md(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    for finding in lint_text(tmp_path_factory.mktemp("any"), data):
        assert finding.line >= 1
        assert finding.message


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
