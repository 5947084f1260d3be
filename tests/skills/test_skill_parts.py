"""The parts of a SKILL.md, and its text without some of them."""

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_upskill.settings import Settings
from pytest_upskill.skills.context import load_for_run
from pytest_upskill.skills.copies import PartedSkill, text_files
from pytest_upskill.skills.skill import load_skill
from pytest_upskill.skills.skill_parts import By, PartedText

HEAD = "---\nname: pdf\ndescription: Fill forms.\n---\n\n"
SKILL = f"""{HEAD}Read this first.

# PDF forms

What it is for.

## Alignment

Turn the page.

### In detail

Left is left.

## Troubleshooting

- Try again.
- Try another way.
"""


def names(text: str, by: By = "section") -> list[str]:
    return [part.name for part in PartedText(text, by).parts]


def without(text: str, *left_out: str, by: By = "section") -> str:
    return PartedText(text, by).without(left_out)


def test_sections_keep_their_subsections_and_a_title_is_not_the_whole() -> None:
    parts = PartedText(SKILL).parts
    assert [(part.name, part.line) for part in parts] == [
        ("introduction", 6),
        ("PDF forms", 8),
        ("Alignment", 12),
        ("Troubleshooting", 20),
    ]
    left = without(SKILL, "Alignment")
    assert left == SKILL.replace(
        "## Alignment\n\nTurn the page.\n\n### In detail\n\nLeft is left.\n\n", ""
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("# A\n\na\n\n## B\n\nb\n\n# C\n\nc", ["A", "C"]),  # two of the highest level
        ("# T\n\nt\n\n## Only\n\no", ["T", "Only"]),
        # Bare headings are none
        ("# T\n\n## Only\n\n### x\n\na\n\n### y\n\nb", ["x", "y"]),
        ("no heading", ["introduction"]),
        ("Title\n=====\n\na\n\nOne\n---\n\nb\n\nTwo\n---\nc", ["Title", "One", "Two"]),
        ("# A #\n\na\n\n# B ##\n\nb\n\n# C#\n\nc", ["A", "B", "C#"]),
        (
            "#no heading\n\n # A\n\na\n\n    # code\n\n#\tB\n\nb",
            ["introduction", "A", "B"],
        ),
        ("# A\n\n```sh\n# no heading\n```\n\n# B\n\n~~~\n```\n# no\n~~~\n", ["A", "B"]),
        ("# A\n\n````\n```\n# no\n````\n\n# B\nb", ["A", "B"]),
        ("# A\n\n- one:\n\n  ```sh\n  # no\n  ```\n\n# B\nb", ["A", "B"]),
        ("# A\n\n1. ```sh\n   # no\n   ```\n\n# B\nb", ["A", "B"]),
        ("# A\n\n<!--\n# no\n\n# no\n-->\n\n# B\nb", ["A", "B"]),
        ("# A\n\n<!-- x --> \n# B\nb", ["A", "B"]),
        ("# A\n\n<pre>\n\n# no\n</pre>\n\n# B\nb", ["A", "B"]),
        ("# A\n\n<div>\n# no\n</div>\n\n# B\nb", ["A", "B"]),
        ("# A\n\n> # no\n\n- x\n---\n\n# B\nb", ["A", "B"]),
        ("# A\n\na | b\n--- | ---\n1 | 2\n\n# B\nb", ["A", "B"]),
        ("# A\n\n```\nnever closed\n\n# no", ["A"]),
        ("# Tips\na\n# Tips\nb", ["Tips (line 6)", "Tips (line 8)"]),
        ("# \na\n#\nb", ["no words (line 6)", "no words (line 8)"]),
        ("# \x1b[31mred\na\n# b\nb", ["\\x1b[31mred", "b"]),
    ],
)
def test_headings(body: str, expected: list[str]) -> None:
    assert names(HEAD + body) == expected


def test_names_are_short_and_unique_whatever_the_headings_are() -> None:
    found = names(
        HEAD
        + f"# {'x' * 10_000}\na\n# {'x' * 9_999}\nb\n# A\na\n# A\nb\n# A (line 12)\nc"
    )
    assert len(set(found)) == 5
    assert max(map(len, found)) < 100


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("One.\n\nTwo.\nStill two.\n\n\nThree.", ["One.", "Two.", "Three."]),
        ("- a\n\n- b\n\n  more of b\n\nText.", ["a", "Text."]),
        ("Run this:\n\n```sh\nmake\n\nmake test\n```\n\nDone.", ["Run this:", "Done."]),
        ("Code.\n\n```\na\n\nb\n```\nMore.", ["Code.", "a", "More."]),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n\nText.", ["a | b", "Text."]),
        ("One.\n\n    code\n\n    more code\n\nTwo.", ["One.", "Two."]),
        ("One.\n\n---\n\nTwo.", ["One.", "Two."]),
        ("Text\n- a\n\n- b\n\nEnd.", ["Text", "End."]),
        ("## H\n\nOne.\n\n## I\n\nTwo.", ["One.", "Two."]),
    ],
)
def test_paragraphs_keep_lists_tables_and_code_whole(
    body: str, expected: list[str]
) -> None:
    assert names(HEAD + body, "paragraph") == expected


def test_a_heading_goes_with_the_last_paragraph_below_it() -> None:
    text = HEAD + "# T\n\n## A\n\nOne.\n\nTwo.\n\n## B\n\nThree.\n"
    left = without(text, "One.", by="paragraph")
    assert left == HEAD + "# T\n\n## A\n\nTwo.\n\n## B\n\nThree.\n"
    left = without(text, "One.", "Two.", by="paragraph")
    assert left == HEAD + "# T\n\n## B\n\nThree.\n"
    assert (
        without(text, "One.", "Two.", "Three.", by="paragraph")
        == HEAD.rstrip("\n") + "\n"
    )


def test_what_is_left_is_byte_for_byte_the_same() -> None:
    text = (HEAD + "# A\n\na  \n\n\n# B\n\nb\t\n\n# C\n\nc").replace("\n", "\r\n")
    assert without(text, "B") == text.replace("# B\r\n\r\nb\t\r\n\r\n", "")
    assert without(text, "C") == text.replace("\r\n\r\n# C\r\n\r\nc", "")
    assert without("\ufeff" + text, "A").startswith("\ufeff---\r\n")
    assert names("\ufeff# A\na\n# B\nb") == ["A", "B"]


def test_paragraphs_that_a_part_kept_apart_stay_apart() -> None:
    text = HEAD + "One.\n```\ncode\n```\nTwo.\n"
    assert without(text, "code", by="paragraph") == HEAD + "One.\n\nTwo.\n"


@pytest.mark.parametrize(
    "line",
    [
        "# a\n\nb\n\n",
        " ",
        "\n",
        "- ",
        "<!-- ",
        "#" * 7,
        "``` ",
        "# \t",
        "> - * ",
        "a\n\n",
    ],
)
def test_long_texts_take_linear_time(line: str) -> None:
    """Anything else would take minutes."""
    text = HEAD + "# " + line * (30_000 // len(line))
    for by in ("section", "paragraph"):
        parted = PartedText(text, by)
        left = parted.without([part.name for part in parted.parts[1:]])
        assert len(left) <= len(text)


MARKS = [
    "#",
    "##",
    " ",
    "\t",
    "a",
    "b:",
    "-",
    "=",
    "*",
    "1.",
    "`",
    "```",
    "~~~",
    "<!--",
    "-->",
    ">",
]
MARKS += [
    "<pre>",
    "</pre>",
    "|",
    "---",
    "\n",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "\ufeff",
    "\u2028",
    "é",
]
MARKDOWN = st.lists(st.sampled_from(MARKS) | st.text(max_size=3), max_size=40).map(
    "".join
)


@given(
    body=MARKDOWN,
    by=st.sampled_from(["section", "paragraph"]),
    bare=st.booleans(),
    data=st.data(),
)
@example(body="", by="section", bare=False, data=None)
@example(body="#######\r#", by="section", bare=False, data=None)
def test_all_parts_together_are_the_text(
    body: str, by: By, bare: bool, data: st.DataObject | None
) -> None:
    text = body if bare else HEAD + body
    parted = PartedText(text, by)
    pieces = [text[part.start : part.end] for part in parted.all]
    assert parted.head + "".join(pieces) == text
    assert parted.without([]) == text
    assert len({part.name for part in parted.all}) == len(pieces)
    left_out = (
        data.draw(st.sets(st.sampled_from(parted.parts)))
        if data and parted.parts
        else set()
    )
    left = parted.without({part.name for part in left_out})
    assert blank_lines(left) <= blank_lines(text)
    # A text without a newline at its end has none when its last part is gone.
    lines, others = (
        re.split(r"\r\n|\r|\n", one.removeprefix("\ufeff")) for one in (text, left)
    )
    rest = iter(lines)
    assert all(line in rest for line in others if line.strip())  # in their order


def blank_lines(text: str) -> int:
    """The most blank lines in a row; one, at least, is always allowed."""
    lines = re.split(r"\r\n|\r|\n", text)
    most = run = 0
    for line in lines[:-1]:
        run = 0 if line.strip() else run + 1
        most = max(most, run)
    return max(most, 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A skill with cases, secrets, and links out of it."""
    skill = tmp_path / "skills/pdf"
    files = {
        "SKILL.md": (
            SKILL
            + "\nSee references/forms.md, `scripts/fill.py` and assets/logo.png.\n"
        ),
        "references/forms.md": "Forms.",
        "scripts/fill.py": "print()",
        "skill_meta.json": "{}",
        "evals/evals.json": "[]",
        "fixtures/a/data.csv": "1",
        "secrets.json": "{}",
        ".hidden": "",
    }
    for name, text in files.items():
        (skill / name).parent.mkdir(parents=True, exist_ok=True)
        (skill / name).write_text(text)
    (skill / "assets").mkdir()
    (skill / "assets/logo.png").write_bytes(b"\x89PNG\x00")
    (skill / "scripts/fill.py").chmod(0o755)
    (tmp_path / "outside.md").write_text("Not yours.")
    (skill / "references/out.md").symlink_to(tmp_path / "outside.md")
    (skill / "references/link.md").symlink_to("forms.md")
    return skill


def copied(folder: Path) -> list[str]:
    return sorted(
        p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()
    )


def test_a_variant_has_what_agents_get_but_the_parts(
    folder: Path, tmp_path: Path
) -> None:
    skill = load_for_run(folder / "SKILL.md", Settings())
    files = text_files(skill, ["fixtures"])
    assert files == ["references/forms.md", "scripts/fill.py"]
    parted = PartedSkill.of(skill, files=files)
    by_name = {part.name: part for part in parted.parts}
    left_out = [by_name["Alignment"], by_name["references/forms.md"]]
    target = tmp_path / "made/1/pdf"
    file = parted.write(target, left_out, ["fixtures"])
    assert copied(target) == ["SKILL.md", "assets/logo.png", "scripts/fill.py"]
    assert not any(path.is_symlink() for path in target.rglob("*"))
    assert (target / "scripts/fill.py").stat().st_mode & 0o111
    short = load_skill(file)
    assert short.name == "pdf"
    assert "Turn the page" not in short.body
    assert "references/forms.md" in short.body  # what is said of it stays
    assert (folder / "references/forms.md").exists()


def test_a_variant_without_a_change_has_the_same_text(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "SKILL.md").write_bytes(SKILL.replace("\n", "\r\n").encode())
    skill = load_skill(folder / "SKILL.md")
    file = PartedSkill.of(skill).write(tmp_path / "made/pdf", cases=["fixtures"])
    assert file.read_bytes() == (folder / "SKILL.md").read_bytes()
    assert load_skill(file).body == skill.body


def test_a_heading_that_is_the_path_of_a_file_is_told_apart(folder: Path) -> None:
    (folder / "SKILL.md").write_text(f"{HEAD}# references/forms.md\na\n# B\nb\n")
    parted = PartedSkill.of(
        load_skill(folder / "SKILL.md"), files=["references/forms.md"]
    )
    assert [part.name for part in parted.parts] == [
        "references/forms.md (line 6)",
        "B",
        "references/forms.md",
    ]
    text, gone = parted.without(parted.parts[2:])
    assert "# references/forms.md\na" in text
    assert gone == {"references/forms.md"}
    assert "# references" not in parted.without(parted.parts[:1])[0]
