"""Which files of its folder a SKILL.md refers to."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.skills.context import FilesOnDisk
from pytest_upskill.skills.references import Reference, files_named, references_in

FILES = (
    "forms.md",
    "REFERENCE (1).md",
    "references/api.md",
    "references/keys.md",
    "references/deep/more.md",
    "scripts/run.py",
    "scripts/lib/tool.py",
    "assets/logo.png",
    "LICENSE.txt",
    "evals/evals.json",
    "skill_meta.json",
    "inner/SKILL.md",
    "inner/own.md",
    "node_modules/x.js",
    "a/same.md",
    "b/same.md",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("SKILL.md", *FILES):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text")
    return tmp_path


def named(folder: Path, text: str) -> list[str]:
    return files_named(FilesOnDisk(folder), text.split("\n"))


@pytest.mark.parametrize(
    ("text", "files"),
    [
        (
            "[forms](forms.md) and [api](./references/api.md#part)",
            "forms.md references/api.md",
        ),
        ("[x][1]\n\n[1]: references/api.md", "references/api.md"),
        ("[x](<references/api.md> 'title')", "references/api.md"),
        ("Run `python scripts/run.py --in=forms.md`.", "scripts/run.py forms.md"),
        ("First read references/api.md, then forms.md.", "references/api.md forms.md"),
        ("**forms.md**: (see scripts/run.py)", "forms.md scripts/run.py"),
        ("```bash\npython scripts/run.py\n```", "scripts/run.py"),
        (
            "```text\nreferences/\n├── api.md\n```",
            "references/api.md references/keys.md",
        ),
        ("Read FORMS.md.", "forms.md"),
        ("Read `api.md`.", "references/api.md"),
        ("python -m scripts.lib.tool", "scripts/lib/tool.py"),
        (
            "`${CLAUDE_SKILL_ROOT}/scripts/run.py` or {baseDir}/forms.md",
            "scripts/run.py forms.md",
        ),
        ("~/.claude/skills/x/references/api.md", "references/api.md"),
        (
            "Look into references/, then forms.md.",
            "forms.md references/api.md references/keys.md",
        ),
        ("All of `references/*.md`", "references/api.md references/keys.md"),
        ("[all](references)", "references/api.md references/keys.md"),
        (
            "scripts/lib/tool.py references/deep/more.md",
            "scripts/lib/tool.py references/deep/more.md",
        ),
        ("assets/logo.png", "assets/logo.png"),
        (
            "`{kind}/run.py` and `<any>/lib/tool.py`",
            "scripts/run.py scripts/lib/tool.py",
        ),
        (
            "`references/k*.md` or *scripts/run.py*",
            "references/keys.md scripts/run.py",
        ),
        ("`*/same.md` and forms.md", "forms.md a/same.md b/same.md"),
        ("forms.md, forms.md and [forms](forms.md)", "forms.md"),
        ("***forms.md***, _(*scripts/run.py*)_", "forms.md scripts/run.py"),
    ],
)
def test_files_are_found_in_the_order_of_the_text(
    folder: Path, text: str, files: str
) -> None:
    assert named(folder, text) == files.split()


def test_a_name_with_spaces_is_found_in_a_link(folder: Path) -> None:
    wanted = ["REFERENCE (1).md"]
    assert named(folder, "[x](REFERENCE%20(1).md)") == wanted
    assert named(folder, "[x](<reference (1).md>)") == wanted


@pytest.mark.parametrize(
    "text",
    [
        "https://example.org/forms.md and [x](https://example.org/references/api.md)",
        "www.example.org/references/api.md",
        "[x](../forms.md) and ../references/api.md",
        "no.md, references/no.md and the references of others",
        "`SKILL.md`, LICENSE.txt, `evals/evals.json` and skill_meta.json",
        "inner/SKILL.md, inner/own.md and inner/",
        "same.md",
        "[x](#forms.md) and [x]()",
        "more.md",
    ],
)
def test_other_words_name_no_file(folder: Path, text: str) -> None:
    assert named(folder, text) == []


def test_a_text_that_is_one_long_path_takes_no_time(folder: Path) -> None:
    assert named(folder, "a/" * 100_000) == []
    assert named(folder, "\n".join(f"`{'a/' * 140}{n}.md`" for n in range(200))) == []
    assert named(folder, f"{'*-' * 4990}x.y") == []
    assert named(folder, f"{'`' * 4990}x`{'a' * 4990}\n" * 20) == []
    (folder / ("a" * 250)).touch()
    (folder / "loop").symlink_to(folder)
    assert named(folder, f"`{'*a' * 140}b`") == []
    assert named(folder, f"`{'*/' * 140}b.md`") == []
    assert named(folder, "\n".join(f"`*{n}*x*.md`" for n in range(2000))) == []


def test_the_word_tells_how_it_is_written_and_whether_it_is_an_example() -> None:
    text = """See [x](a.md) or `b.md`, or c.md.
For example `d.md`.

Examples:
- `e.md`

After it `f.md`.
## Example
`g.md`
### Part
`h.md`
## Next
`i.md`
<!-- `j.md`
`k.md` -->
`l.md`
```
m.md
```"""
    found = list(references_in(text.split("\n"), first=5))
    assert found[:3] == [
        Reference(5, "a.md", "link"),
        Reference(5, "b.md", "code"),
        Reference(5, "c.md.", "prose"),
    ]
    examples = {reference.path[0] for reference in found if reference.example}
    assert examples == set("deghjkm")
    assert found[-1] == Reference(22, "m.md", "fence", example=True)


WORDS = st.sampled_from(
    [
        "[x](",
        ")",
        "`",
        "```\n",
        "\n",
        "references/",
        "api.md",
        "/",
        "..",
        ".",
        "%00",
        "\0",
        "<!--",
    ]
)


@given(st.lists(WORDS | st.text(max_size=5)).map("".join))
def test_any_text_can_be_searched(text: str) -> None:
    assert files_named(FilesOnDisk(Path("no-such-folder")), text.split("\n")) == []
