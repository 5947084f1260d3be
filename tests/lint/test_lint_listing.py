"""Lint: whether the skills of a folder fit into the list that an agent gives its
model.
"""

from pathlib import Path

import pytest

from pytest_upskill.lint import listing_findings
from pytest_upskill.lint.listing_rules import BUDGET


def write(folder: Path, name: str, length: int, more: str = "") -> Path:
    """A skill whose line in the list, with its end, has this length."""
    description = "d" * (length - len(f"- {name}: \n"))
    file = folder / name / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text(
        f"---\nname: {name}\n{more}description: {description}\n---\n\n# Body\n"
    )
    return file


@pytest.mark.parametrize(("last", "by"), [(81, 0), (82, 1), (1_081, 1_000)])
def test_the_lines_of_all_skills_are_added_up(
    tmp_path: Path, last: int, by: int
) -> None:
    files = [write(tmp_path, f"a-{number}", 990) for number in range(8)]
    findings = list(listing_findings([*files, write(tmp_path, "z", last)]))
    assert [finding.code for finding in findings] == ["listing-budget"] * bool(by)
    for finding in findings:
        assert f"9 skills take {BUDGET + by:,} characters" in finding.message
        assert f" {by:,} more than its budget of 8,000" in finding.message


def test_the_longest_are_named_at_the_first_of_them(tmp_path: Path) -> None:
    lengths = {
        "b": 1_200,
        "a": 1_200,
        "c": 1_100,
        "d": 1_020,
        "e": 1_010,
        "f": 1_000,
        "g": 1_600,
    }
    files = [
        write(tmp_path, name, length, "license: MIT\n")
        for name, length in lengths.items()
    ]
    (finding,) = listing_findings(files)
    assert (Path(finding.file).parent.name, finding.line, finding.level) == (
        "g",
        4,
        "warning",
    )
    # Of g, 1,536 are listed
    longest = "g (1,541), a (1,199), b (1,199), c (1,099), d (1,019)"
    assert finding.message.endswith(f"the longest: {longest}")


def test_skills_of_a_plugin_are_listed_with_its_name(tmp_path: Path) -> None:
    files = [write(tmp_path, f"a-{number}", 1_000) for number in range(8)]
    assert not list(listing_findings(files))
    (tmp_path / ".claude-plugin").mkdir()
    (tmp_path / ".claude-plugin" / "plugin.json").write_text('{"name": "lamps"}')
    (finding,) = listing_findings(files)
    assert "8 skills take 8,047 characters" in finding.message
    assert "the longest: lamps:a-0 (1,005), lamps:a-1 (1,005)" in finding.message


def test_when_to_use_counts_and_skills_for_users_only_do_not(tmp_path: Path) -> None:
    files = [write(tmp_path, f"a-{number}", 1_000) for number in range(7)]
    files.append(write(tmp_path, "b", 900, "disable-model-invocation: true\n"))
    files.append(write(tmp_path, "c", 900, f"when_to_use: {'w' * 99}\n"))
    files.append(tmp_path / "gone" / "SKILL.md")
    (finding,) = listing_findings(files)
    assert "8 skills take 8,001 characters" in finding.message
    assert not list(listing_findings(files[:-2]))
    assert not list(listing_findings([]))
