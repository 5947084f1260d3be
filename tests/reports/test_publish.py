"""report --badge and --benchmark-md: what a skill shows of itself."""

import json
import shlex
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from pytest_upskill.errors import SettingsError
from pytest_upskill.reports.publish import write_badges, write_benchmarks
from pytest_upskill.results.run import Rerun, RunResults
from support.kit import write_skill
from support.made import made_run


def only_with(_number: int, _model: str, arm: str, _run: int) -> bool:
    return arm == "skill"


def only_without(_number: int, _model: str, arm: str, _run: int) -> bool:
    return arm == "baseline"


def half(number: int, _model: str, arm: str, _run: int) -> bool:
    return number == 0 and arm == "skill"


@pytest.mark.parametrize(
    ("results", "message", "color"),
    [
        (made_run(cases=12, passes=only_with), "+100 on haiku", "brightgreen"),
        (
            made_run(cases=12, models=("a", "b", "c"), passes=only_with),
            "+100 over 3 models",
            "brightgreen",
        ),
        (made_run(cases=12, passes=only_without), "-100 on haiku", "red"),
        (made_run(cases=12, passes=half), "unclear on haiku", "lightgrey"),
        (made_run(cases=3, passes=only_with), "no verdict on haiku", "lightgrey"),
    ],
)
def test_a_badge_has_a_number_and_a_colour_only_where_they_are_shown(
    tmp_path: Path, results: RunResults, message: str, color: str
) -> None:
    (path,) = write_badges(tmp_path / "badges", results)
    assert path == tmp_path / "badges/gate.json"
    assert json.loads(path.read_text()) == {
        "schemaVersion": 1,
        "label": "gate",
        "message": message,
        "color": color,
    }


def test_benchmark_md_has_the_table_the_digest_and_a_command(tmp_path: Path) -> None:
    file = write_skill(tmp_path / "skills/gate") / "SKILL.md"
    results = made_run(models=[f"m{n}" for n in range(8)], cases=12, passes=only_with)
    skill = replace(results.skills[0], text=file.read_text())
    rerun = Rerun(
        models=("--model", "m0"),
        options=("--skill-runs", "3"),
        replay=("--skill-replay", "answers.jsonl"),
    )
    results = replace(results, skills=(skill,), rerun=rerun)

    (path,) = write_benchmarks(results, tmp_path)
    assert path == file.parent / "BENCHMARK.md"
    text = path.read_text()
    assert len(text.splitlines()) <= 25
    assert (
        text.splitlines()[1] == "# gate helps: +100 points over 8 models (+74 to +100)"
    )
    assert "\n| m7         | 0 → 100 % " in text
    assert "\n- only with 96: case-0, case-1, case-2, case-3 and 8 more\n" in text
    assert f"`{sha256(file.read_bytes()).hexdigest()}`" in text
    command = shlex.split(text.splitlines()[-1])
    assert command == [
        *("pytest", "--skill", "skills/gate", "--model", "m0"),
        *("--skill-runs", "3", "--skill-replay", "answers.jsonl"),
    ]

    # Its own file is written anew, a person's is not.
    write_benchmarks(results, tmp_path)
    path.write_text("# Mine\n")
    with pytest.raises(SettingsError, match=r"BENCHMARK\.md"):
        write_benchmarks(results, tmp_path)
    assert path.read_text() == "# Mine\n"


@pytest.mark.parametrize("place", ["elsewhere", "../outside", "/tmp"])
def test_benchmark_md_is_only_written_beside_a_skill_of_this_project(
    tmp_path: Path, place: str
) -> None:
    write_skill(tmp_path / "outside")
    (tmp_path / "project/elsewhere").mkdir(parents=True)
    results = made_run(cases=12, passes=only_with)
    skill = replace(results.skills[0], path=place)
    with pytest.raises(SettingsError):
        write_benchmarks(replace(results, skills=(skill,)), tmp_path / "project")
    assert not list(tmp_path.rglob("BENCHMARK.md"))
