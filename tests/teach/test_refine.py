"""refine from end to end."""

import json
import sqlite3
from datetime import datetime, timedelta
from pathlib import Path

from pytest_upskill.skills.skill import load_skill
from pytest_upskill.skills.suites.json_suites import load_cases
from support.fake_models import (
    COLOURS,
    FakeModels,
    Project,
    body,
    case,
    draft,
    lines,
    served,
)
from support.kit import write_skill
from support.stored_answers import age_store


def refine_words(url: str) -> list[str]:
    return [
        "refine",
        "gate",
        "-m",
        "big",
        "--eval-model",
        "small",
        "--base-url",
        url,
        "--yes",
    ]


def skill_with_cases(project: Project, *colours: str) -> Path:
    shown = ("id", "input", "expected", "tags")
    written = [{key: case(colour)[key] for key in shown} for colour in COLOURS]
    return write_skill(project.folder / "skills/gate", written, body=body(*colours))


def test_refine_improves_a_skill_by_its_cases(project: Project) -> None:
    folder = skill_with_cases(project, "red")
    meta = (folder / "skill_meta.json").read_bytes()
    fake = FakeModels([draft(*COLOURS)])
    with served(fake) as url:
        status, shown, _ = project.run(*refine_words(url), "--json")
    data = json.loads(shown)
    assert (status, data["chosen"], data["folder"]) == (0, 2, str(folder))
    assert load_skill(folder / "SKILL.md").body == body(*COLOURS)
    assert not fake.of("author")
    assert len(load_cases(folder / "skill_meta.json").require_all()) == 12
    assert (
        json.loads(meta)["cases"][0]["input"]
        == load_cases(folder / "skill_meta.json").require_all()[0].input
    )
    fake = FakeModels()
    with served(fake) as url:
        status, shown, _ = project.run(*refine_words(url))
    assert (status, fake.of("teacher")) == (0, [])
    assert "current small 0% → 100% (+100)" in lines(shown)
    assert "attempt 2" not in shown


def test_refine_takes_a_skill_with_faults_of_form(project: Project) -> None:
    folder = skill_with_cases(project, "red")
    text = (folder / "SKILL.md").read_text()
    head = (
        "name: ../Big Gate\ndescription: Gates: all\nmetadata: {a: {b: c}}\ncolour:"
        " red\n"
    )
    odd = text.replace(text.split("---\n")[1], head)
    (folder / "SKILL.md").write_text(odd)
    (project.folder / "secret.txt").write_text("hush-hush")
    (folder / "link.md").symlink_to(project.folder / "secret.txt")
    fake = FakeModels([draft(*COLOURS)])
    with served(fake) as url:
        status, shown, _ = project.run(*refine_words(url))
    assert status == 0, shown
    assert len(fake.of("teacher")) == 1  # no repair of what the teacher did not write
    assert "hush-hush" not in str(fake.of("teacher"))
    skill = load_skill(folder / "SKILL.md")
    assert (skill.name, skill.body) == ("big-gate", body(*COLOURS))
    assert "metadata: {a: {b: c}}\n" in (folder / "SKILL.md").read_text()
    assert sorted(path.name for path in folder.parent.iterdir()) == ["gate"]


def test_refine_takes_a_skill_md_in_small_letters(project: Project) -> None:
    folder = skill_with_cases(project, *COLOURS)
    (folder / "SKILL.md").rename(folder / "skill.md")
    with served(FakeModels()) as url:
        status, shown, error = project.run(*refine_words(url))
    assert (status, error) == (0, ""), shown


def test_refine_leaves_a_skill_unchanged_if_nothing_is_better(project: Project) -> None:
    folder = skill_with_cases(project, *COLOURS[:9])
    before = {path: path.read_bytes() for path in folder.rglob("*")}
    with served(FakeModels([draft("red"), draft("blue")])) as url:
        status, shown, _ = project.run(*refine_words(url), "--json")
    data = json.loads(shown)
    assert (status, data["chosen"], data["folder"]) == (0, 1, None)
    assert len(data["attempts"]) > 1
    assert {path: path.read_bytes() for path in folder.rglob("*")} == before


def test_refine_needs_cases(project: Project) -> None:
    folder = skill_with_cases(project, "red")
    (folder / "skill_meta.json").unlink()
    status, _, error = project.run(*refine_words("http://127.0.0.1:9/v1"))
    words = (
        "pytest-upskill cases skills/gate --model big --base-url http://127.0.0.1:9/v1"
    )
    assert (status, f"{words} --eval-model small\n" in error) == (2, True), error


def test_the_skill_before_is_asked_again_beside_a_new_version(project: Project) -> None:
    skill_with_cases(project, "red")
    fake = FakeModels([draft("red"), draft(*COLOURS)])
    with served(fake) as url:
        project.run(*refine_words(url))  # nothing new, but the skill is measured
        with sqlite3.connect(project.folder / ".upskill/answers.sqlite") as store:
            # What the teacher said
            store.execute("DELETE FROM answers WHERE model='big'")
        store.close()
        age_store(project.folder, days=3)
        _, shown, _ = project.run(*refine_words(url), "--json")
    before, after = (
        attempt["held_out"][0] for attempt in json.loads(shown)["attempts"]
    )
    moments = [row["asked"]["first"]["skill"] for row in (before, after)]
    first, last = sorted(map(datetime.fromisoformat, moments))
    assert last - first < timedelta(hours=1)
    assert (before["skill_rate"], after["skill_rate"]) != (None, None)
