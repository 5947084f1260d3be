"""Lint rules for SKILL.md: specification, size, references."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.lint import Finding, lint_skill
from support.folders import new_folder
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
        tmp_path,
        f"---\nname: Gate\ndescription: {long}\nlicense: [1]\ncolour: red\n---\n{BODY}",
    )
    assert brief(found) == [
        (2, "warning", "skill-name"),
        (3, "error", "skill-description"),
        (4, "warning", "skill-metadata"),
        (5, "warning", "skill-unknown-key"),
    ]
    assert "lowercase" in found[0].message
    assert "1024" in found[1].message
    assert found[1].hint == "Shorten it."
    assert found[0].file == str(tmp_path / "gate/SKILL.md")


@pytest.mark.parametrize(
    ("text", "line", "code", "part"),
    [
        ("no frontmatter", 1, "skill-frontmatter", "no frontmatter"),
        (
            "---\nname: gate\ndescription: d\n\nBody.",
            1,
            "skill-frontmatter",
            "not closed",
        ),
        (
            "---\nname: gate\ndescription: a: b\n---\nBody.",
            3,
            "skill-yaml",
            "invalid YAML",
        ),
        ("---\nname: gate\n---\nBody.", 2, "skill-description", "'description'"),
        ("---\ndescription: d\n---\nBody.", 2, "skill-name", "'name'"),
        (HEAD, 1, "skill-invalid", "no text"),
        (b"\xff\xfe", 1, "skill-invalid", "UTF-8"),
    ],
)
def test_file_that_some_agent_does_not_load_is_one_error(
    tmp_path: Path, text: str | bytes, line: int, code: str, part: str
) -> None:
    (finding,) = lint_text(tmp_path, text)
    assert (finding.line, finding.level, finding.code) == (line, "error", code)
    assert part in finding.message
    assert finding.hint


def test_lines_of_the_body_count_without_good_frontmatter(tmp_path: Path) -> None:
    text = "<!-- x -->\n---\nname: gate\ndescription: a: b\n----\n\nSee [x](no.md).\n"
    assert brief(lint_text(tmp_path, text)) == [
        (1, "error", "skill-frontmatter"),
        (4, "error", "skill-yaml"),
        (5, "error", "skill-frontmatter"),
        (7, "error", "reference-broken"),
    ]


def test_link_out_of_the_skill_is_reported_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "secret").touch()
    file = write_skill_md(tmp_path, HEAD + BODY)
    (file.parent / "link").symlink_to(tmp_path / "secret")
    (finding,) = lint(file)
    assert brief([finding]) == [(1, "warning", "skill-link")]
    assert "'link'" in finding.message


@pytest.mark.parametrize(("more", "lines"), [(494, []), (495, [501])])
def test_more_than_500_lines_are_a_warning(
    tmp_path: Path, more: int, lines: list[int]
) -> None:
    found = lint_text(tmp_path, HEAD + "a\n" * (more + 1))
    assert brief(found) == [(line, "warning", "skill-long") for line in lines]


@pytest.mark.parametrize(("tokens", "number"), [(5000, 0), (5001, 1)])
def test_more_than_5000_tokens_are_a_warning(
    tmp_path: Path, tokens: int, number: int
) -> None:
    found = lint_text(tmp_path, HEAD + "abc\n" * 400 + "x" * (4 * tokens - 1600))
    assert brief(found) == [(5, "warning", "skill-long")] * number


def test_skill_with_too_many_lines_and_tokens_is_one_warning(tmp_path: Path) -> None:
    (finding,) = lint_text(tmp_path, HEAD + f"{'x' * 50}\n" * 600)
    assert (finding.line, finding.code) == (501, "skill-long")
    assert (
        finding.message
        == "605 lines (recommended: up to 500) and about 7,650 tokens (recommended: up"
        " to 5,000)"
    )


def lint_body(folder: Path, body: str) -> list[Finding]:
    """The findings of a skill with some files; its body starts on line 6."""
    file = write_skill_md(folder, HEAD + body)
    for name in (
        "references/x.md",
        "references/deep/y.md",
        "scripts/run.py",
        "FORMS (1).md",
    ):
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
        (
            "[x](https://example.org/no.md) [x](mailto:a@b.c) [x](//host/a) [x](#part)"
            " [x]()"
        ),
        "[x]({baseDir}/no.md) and `scripts/<name>.py` and `references/*.md`",
        "```\n[x](no.md) `scripts/no.py`\n```",
        "- item\n\n  ~~~text\n  ```\n  [x](no.md)\n  ~~~",
        "`[x](no.md)` and ``a ` [x](no.md)``",
        (
            "`python scripts/run.py --flag` and `references/` and `src/main.py` and"
            " `no.md`"
        ),
        "[x](LINK) [x](url) [x](path/to/file.md) [x](your-file.md) [x](docs/guide)",
        "For example `scripts/rotate.py`, such as `references/finance.md`.",
        "Examples:\n\n- `scripts/rotate.py`\n\n## Example\n\nRun `scripts/rotate.py`.",
        "<!-- `scripts/no.py` -->",
        "(see `scripts/run.py)` or `scripts/run.py,`",
        "Their app has `assets/no.png` and `test/no.py`.",
        "[wiki](.wiki/page.md) and [command](/other:skill) and [page](/docs/page)",
        "Read `SKILL.md` or `skill.md`.",
        "Their repository has `scripts/no.py`,\nand it creates `scripts/other.py`.",
        "`references/filename.md` and `scripts/your-script.py` and `references/x-*.md`",
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
def test_broken_reference_is_found(
    tmp_path: Path, body: str, line: int, level: str
) -> None:
    (finding,) = lint_body(tmp_path, body)
    assert (finding.line, finding.level, finding.code) == (
        line,
        level,
        "reference-broken",
    )


@pytest.mark.parametrize(
    "body",
    [
        "[x](../other/SKILL.md)",
        "[x](/etc/passwd)",
        "[x](references/../../y)",
        "[x](..)",
    ],
)
def test_reference_outside_the_skill_is_a_warning(tmp_path: Path, body: str) -> None:
    assert brief(lint_body(tmp_path, body)) == [(6, "warning", "reference-outside")]


def test_reference_to_a_skill_beside_it_is_fine(tmp_path: Path) -> None:
    door = write_skill(tmp_path / "door")
    (door / "scripts").mkdir()
    (door / "scripts/door.py").touch()
    assert (
        lint_body(tmp_path, "[x](../door/SKILL.md) [y](../door) `scripts/door.py`")
        == []
    )
    (finding,) = lint_body(tmp_path, "[x](../door/no.md)")
    assert (
        finding.message
        == "'../door/no.md' is outside the skill's folder, and not there"
    )


def test_path_in_code_may_mean_a_file_of_the_repository(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/check.py").touch()
    (tmp_path / "skills").mkdir()
    found = lint_body(
        tmp_path / "skills", "`scripts/check.py` and [x](scripts/check.py)"
    )
    assert brief(found) == [(6, "error", "reference-broken")]


def test_skill_of_a_plugin_may_refer_to_the_plugin(tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    (plugin / "skills").mkdir(parents=True)
    (plugin / ".claude-plugin").mkdir()
    (plugin / ".claude-plugin/plugin.json").touch()
    for file in (plugin / "README.md", tmp_path / "README.md"):
        file.touch()
    found = lint_body(plugin / "skills", "[x](../../README.md) [y](../../../README.md)")
    assert [finding.message.split()[0] for finding in found] == ["'../../../README.md'"]


def test_skill_of_a_project_may_refer_to_the_project(tmp_path: Path) -> None:
    (tmp_path / ".claude/skills").mkdir(parents=True)
    (tmp_path / "README.md").touch()
    found = lint_body(
        tmp_path / ".claude/skills", "[x](../../../README.md) [y](../../../no.md)"
    )
    assert [finding.message.split()[0] for finding in found] == ["'../../../no.md'"]


def test_reference_is_reported_once(tmp_path: Path) -> None:
    found = lint_body(tmp_path, "[x](no.md)\n[x](no.md)\n[x](../no.md)\n[x](../no.md)")
    assert [finding.line for finding in found] == [6, 8]
    found = lint_body(tmp_path, "`scripts/no.py`\n\n[`scripts/no.py`](scripts/no.py)")
    assert brief(found) == [(8, "error", "reference-broken")]


@pytest.mark.parametrize(
    ("body", "level"),
    [
        ("See [x](references/X.md).", "error"),
        ("Read REFERENCES/X.MD, then go on.", "warning"),
        ("Run `python Scripts/run.py`.", "warning"),
        ("(forms (1).md) [x](<forms (1).md>)", "error"),
    ],
)
def test_other_spelling_of_a_file_is_found(
    tmp_path: Path, body: str, level: str
) -> None:
    (finding,) = lint_body(tmp_path, body)
    assert (finding.line, finding.level, finding.code) == (6, level, "reference-broken")
    assert "is spelled" in finding.message


def test_file_named_only_by_another_file_is_a_warning(tmp_path: Path) -> None:
    file = write_skill_md(
        tmp_path, HEAD + "See [a](references/a.md) and references/c.md."
    )
    for name, text in {
        "a.md": (
            "# A\n\nSee [b](b.md), `references/b.md`, [c](c.md), `d.md` and"
            " [no](no.md)."
        ),
        "b.md": "[a](a.md) and [e](e.md)",
        "c.md": "",
        "d.md": "",
        "e.md": "",
        "run.py": "",
    }.items():
        (file.parent / "references").mkdir(exist_ok=True)
        (file.parent / "references" / name).write_text(text)
    (finding,) = lint(file)
    assert brief([finding]) == [(3, "warning", "reference-deep")]
    assert finding.file == str(file.parent / "references/a.md")
    assert (
        finding.message
        == "'references/b.md' is named here, but not in SKILL.md, and 1 file more"
        " like it"
    )


@pytest.mark.parametrize(
    "text",
    [
        "Never touch `b.md`.",
        "For example, see [b](b.md).",
        "```\n[b](b.md)\n```",
        "See [readme](README.ja.md) and [form](../assets/form.md).",
        "See [skill](../SKILL.md) and [a](a.md) and [b](https://example.org/b.md).",
    ],
)
def test_other_mentions_are_no_chain(tmp_path: Path, text: str) -> None:
    file = write_skill_md(tmp_path, HEAD + "See references/a.md.")
    for name in ("references/b.md", "references/README.ja.md", "assets/form.md"):
        (file.parent / name).parent.mkdir(exist_ok=True)
        (file.parent / name).touch()
    (file.parent / "references/a.md").write_text(text)
    assert lint(file) == []


def test_translation_of_the_skill_is_no_chain(tmp_path: Path) -> None:
    file = write_skill_md(tmp_path, HEAD + "中文: [SKILL.zh-CN.md](SKILL.zh-CN.md)")
    (file.parent / "SKILL.zh-CN.md").write_text("[b](b.zh-CN.md)")
    (file.parent / "b.zh-CN.md").touch()
    assert lint(file) == []


def test_folder_named_by_the_skill_is_no_chain(tmp_path: Path) -> None:
    file = write_skill_md(tmp_path, HEAD + "See `references/`.")
    (file.parent / "references").mkdir()
    (file.parent / "references/a.md").write_text("[b](b.md)")
    (file.parent / "references/b.md").write_text("[a](a.md)")
    assert lint(file) == []


def test_deep_folder_is_no_chain(tmp_path: Path) -> None:
    assert lint_body(tmp_path, "[x](references/deep/y.md)") == []


def test_skill_without_cases_is_a_warning(tmp_path: Path) -> None:
    file = write_skill_md(tmp_path, HEAD + BODY)
    (finding,) = lint_skill(file, judge=False, lift=0.2)
    assert (finding.level, finding.code) == ("warning", "no-cases")
    write_skill(file.parent)
    assert "no-cases" not in [
        found.code for found in lint_skill(file, judge=False, lift=0.2)
    ]


PIECES = st.sampled_from(
    [
        *(
            "---\n",
            "name: gate\n",
            "[",
            "](",
            ")",
            "]: ",
            "<",
            ">",
            "`",
            "```\n",
            "\n",
            " " * 4,
        ),
        *("references/", "scripts/a.py", "..", "/", "#", "%00", "%ff", "\0", "\ud800"),
    ]
)


@given(
    data=st.text().map(lambda text: text.encode("utf-8"))
    | st.binary()
    | st.lists(PIECES | st.text()).map(lambda parts: _bytes(HEAD + "".join(parts)))
)
def test_lint_does_not_raise_on_any_skill_md(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    for finding in lint_text(new_folder(tmp_path_factory), data):
        assert finding.line >= 1
        assert finding.message


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
