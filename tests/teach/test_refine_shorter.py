"""refine --max-tokens: a teacher writes shorter versions, held-out cases decide."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.skills.case import Case
from pytest_upskill.skills.skill import load_skill
from pytest_upskill.teach.case_file import ids_held_out
from support.fake_models import (
    COLOURS,
    SECRETS,
    FakeModels,
    Project,
    body,
    case,
    draft,
    lines,
    served,
)
from support.kit import write_skill
from support.loopback import Asked, Reply
from support.sandboxes import needs_bwrap

IDLE = (
    "Lamp was made long ago by people who liked light, and it is still made there. " * 6
)
LONG = f"{body(*COLOURS)}\n\n## History\n\n{IDLE}\n\n## Thanks\n\n{IDLE}"
HELD = ids_held_out(
    [Case(f"colour-{one}", one, tags=("colour",)) for one in COLOURS], 0.5
)
LEARN = [one for one in COLOURS if f"colour-{one}" not in HELD]
REST = [one for one in COLOURS if f"colour-{one}" in HELD]


def skill(
    project: Project, text: str = LONG, *, colours: tuple[str, ...] = COLOURS
) -> Path:
    shown = ("id", "input", "expected", "tags")
    written = [{key: case(colour)[key] for key in shown} for colour in colours]
    return write_skill(project.folder / "skills/gate", written, body=text)


def words(url: str, *more: str) -> list[str]:
    models = ["-m", "big", "--eval-model", "small", "--base-url", url]
    return [
        "refine",
        "gate",
        *models,
        "--max-tokens",
        "100",
        "--holdout",
        "0.5",
        "--yes",
        *more,
    ]


def shorten(
    project: Project, fake: FakeModels, *more: str, loss: str = "0.5"
) -> tuple[int, str, str]:
    """Six held-out cases can rule out a loss of half, and no less."""
    with served(fake) as url:
        return project.run(*words(url, "--margin", loss, *more))


def shortened(
    project: Project, fake: FakeModels, *more: str, loss: str = "0.5"
) -> tuple[int, dict[str, Any]]:
    """Exit status and what ``--json`` has of it."""
    status, shown, error = shorten(project, fake, *more, "--json", loss=loss)
    assert shown, error
    return status, json.loads(shown)


def content(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def told(shown: str) -> str:
    return " ".join(lines(shown))


def versions(*colours: tuple[str, ...], extra: str = "") -> list[str]:
    return [json.dumps({"body": body(*own) + extra}) for own in colours]


def test_a_shorter_version_is_saved_in_place_and_the_old_one_kept(
    project: Project,
) -> None:
    folder = skill(project)
    before = content(folder)
    status, shown, error = shorten(project, FakeModels(versions(COLOURS)))
    assert (status, error) == (0, ""), shown
    made = load_skill(folder / "SKILL.md")
    assert (made.body, made.description) == (body(*COLOURS), "About a gate.")
    assert content(folder).keys() == before.keys()
    (kept,) = project.folder.glob(".upskill/teach/*/before")
    assert content(kept) == before
    assert [
        line for line in lines(shown) if line.startswith(("current", "attempt"))
    ] == [
        "current small 0% → 100% (+100) 311 tokens",
        "attempt 2 small 0% → 100% (+100) 71 of 213 tokens",
        "current small 0% → 100% (+100) held out",
        "attempt 2 small 0% → 100% (+100) held out",
    ]
    assert (
        "small with 71 tokens, on 6 held-out cases: no loss shown (-46 to +46)."
        in told(shown)
    )
    assert "71 tokens instead of 311 (77% fewer)" in told(shown)
    assert lines(shown)[-1] == "Saved to ./skills/gate"


def test_the_teacher_sees_failures_but_no_held_out_case(project: Project) -> None:
    skill(project, LONG.replace(f"lamp {SECRETS[LEARN[0]]}", "lamp"))
    missing = tuple(one for one in COLOURS if one not in LEARN[1:3])
    fake = FakeModels(versions(missing, missing, COLOURS))
    shorten(project, fake)
    prompts = [asked.question for asked in fake.of("teacher")]
    assert case(LEARN[0])["input"] in prompts[0]  # fails with the whole skill
    assert case(LEARN[1])["input"] not in prompts[0]
    assert case(LEARN[1])["input"] in prompts[1]  # fails with the first version
    assert f"\n{body(*missing)}\n" in prompts[1]
    assert "at most 213 tokens" in prompts[0]
    assert "at most 100 tokens" in prompts[1]  # which the first one reached already
    for prompt in prompts:
        assert not any(case(one)["input"] in prompt for one in REST)


def test_a_version_that_is_too_long_is_asked_for_again_and_never_cut(
    project: Project,
) -> None:
    skill(project)
    fake = FakeModels(versions(COLOURS, extra="\n" + IDLE * 2) + versions(COLOURS))
    status, shown, _ = shorten(project, fake, "--attempts", "1")
    assert status == 0, shown
    _, second = fake.of("teacher")
    again = second.body["messages"][-1]["content"]
    assert (
        "the body has about 305 tokens, 205 too many: at most 100 are allowed, 400"
        " bytes" in again
    )
    assert load_skill(project.folder / "skills/gate/SKILL.md").body == body(*COLOURS)


def test_a_size_that_is_never_reached_ends_without_a_version(project: Project) -> None:
    folder = skill(project)
    before = content(project.folder / "skills")
    fake = FakeModels(versions(COLOURS, extra="\n" + IDLE * 2))
    status, data = shortened(project, fake, "--attempts", "2")
    assert (status, data["chosen"], data["folder"]) == (1, 1, None)
    assert len(fake.of("teacher")) == 6  # three times for each version
    assert all(version["problem"] for version in data["attempts"][1:])
    assert content(project.folder / "skills") == before
    assert folder.is_dir()


def test_a_loss_on_held_out_cases_leaves_the_skill_as_it_is(project: Project) -> None:
    skill(project)
    before = content(project.folder / "skills")
    # Knows what the teacher saw, and nothing else
    fake = FakeModels(versions(tuple(LEARN)))
    status, data = shortened(project, fake)
    assert (status, data["chosen"], data["folder"]) == (1, 1, None)
    assert data["attempts"][1]["learning"][0]["lift"] == 1
    learned, held = data["changes"]
    assert (learned["part"], learned["contrast"]["lift"]["lift"]) == ("learning", 0)
    assert (held["contrast"]["cases"], held["contrast"]["word"]) == (6, "hurts")
    assert content(project.folder / "skills") == before


def test_too_few_cases_are_told_before_and_decide_nothing(project: Project) -> None:
    skill(project)
    status, shown, _ = shorten(project, FakeModels(versions(COLOURS)), loss="0.1")
    assert status == 1
    early, _, late = told(shown).partition("current small")
    assert "6 held-out cases can't rule out a loss of 10 points (36 needed)" in early
    assert "not known" in late
    kept = project.folder / ".upskill/teach/gate/attempt-2/SKILL.md"
    assert load_skill(kept).body == body(*COLOURS)
    assert load_skill(project.folder / "skills/gate/SKILL.md").body == LONG.strip()


def test_a_skill_that_is_short_enough_asks_nobody(project: Project) -> None:
    skill(project, body(*COLOURS))
    status, shown, error = project.run(*words("http://127.0.0.1:9/v1"))
    assert (status, error) == (0, "")
    assert (
        lines(shown)[1]
        == "gate has about 71 tokens, and 100 are allowed. No model was asked."
    )
    assert not (project.folder / ".upskill").exists()


def test_cases_on_both_sides_are_needed(project: Project) -> None:
    skill(project, colours=COLOURS[:3])
    status, _, error = project.run(*words("http://127.0.0.1:9/v1"))
    assert status == 2
    assert "too few cases: 2 to learn from and 1 held out" in error


@pytest.mark.parametrize("limit", [(), ("--max-tokens", "100")])
def test_cases_that_need_a_judge_are_told_before_the_first_call(
    project: Project, limit: tuple[str, ...]
) -> None:
    folder = skill(project)
    data = json.loads((folder / "skill_meta.json").read_text())
    data["cases"][0]["expected"] = {"judge": ["It is friendly."]}
    (folder / "skill_meta.json").write_text(json.dumps(data))
    fake = FakeModels()
    with served(fake) as url:
        status, _, error = project.run(
            "refine", "gate", "--base-url", url, "-m", "x", "--yes", *limit
        )
    assert (status, fake.asked) == (2, [])
    assert "--judge: there are cases that need a judge (colour-red)" in error


def test_a_skill_that_helps_nobody_is_not_made_shorter(project: Project) -> None:
    skill(project, IDLE * 5)
    fake = FakeModels()
    status, data = shortened(project, fake)
    assert (status, data["folder"], len(data["attempts"])) == (1, None, 1)
    assert "nothing can be lost" in data["stop"]
    assert not fake.of("teacher")


def test_the_budget_ends_it_without_a_claim(project: Project) -> None:
    folder = skill(project)
    before = content(folder)
    fake = FakeModels(versions(COLOURS[:6]), output_tokens=8000)  # $0.08 for each reply
    with served(fake) as url, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", url)
        patch.setenv("OPENAI_API_KEY", "none")
        models = ["-m", "openai:gpt-4o", "--eval-model", "openai:gpt-4o-mini"]
        limits = ["--max-tokens", "100", "--max-cost", "0.1", "--yes"]
        status, shown, _ = project.run("refine", "gate", *models, *limits, "--json")
    data = json.loads(shown)
    assert (status, data["folder"]) == (1, None)
    assert "budget" in data["stop"]
    assert 0 < data["cost"] <= 0.1
    assert content(folder) == before


HOSTILE = [
    json.dumps(
        {"body": "\x1b[2J\x1b]0;x\x07" + body(*COLOURS) + "\n<script>alert(1)</script>"}
    ),
    json.dumps({"body": body(*COLOURS), "files": [{"path": "../../x", "text": "x"}]}),
    json.dumps({"body": "---\nname: other\n---\n" + body(*COLOURS)}),
]


@pytest.mark.parametrize(
    "reply",
    [  # test_shorter.py has the others
        HOSTILE[0],
        *(pytest.param(reply, marks=pytest.mark.nightly) for reply in HOSTILE[1:]),
    ],
    ids=range(len(HOSTILE)),
)
def test_hostile_replies_change_nothing_but_the_body(
    project: Project, reply: str
) -> None:
    folder = skill(project)
    before = content(folder)
    status, shown, error = shorten(project, FakeModels([reply]), "--attempts", "1")
    assert status in (0, 1)
    assert "Traceback" not in shown + error
    assert "\x1b" not in shown
    assert content(folder).keys() == before.keys()
    assert sorted(path.name for path in project.folder.parent.iterdir()) == [
        "home",
        "project",
    ]
    made = load_skill(folder / "SKILL.md")
    assert (made.name, made.description) == ("gate", "About a gate.")
    assert "\x1b" not in made.body
    assert f"lamp {SECRETS['red']}" in made.body


def agent(asked: Asked) -> Reply:
    """Opens the skill, and answers by what it read."""
    if "skill" not in asked.tools or "gate" not in asked.system:
        return Reply("I do not know.")
    if not asked.results:
        return Reply(calls=(("skill", {"name": "gate"}),))
    seen: Any = [one for one in COLOURS if f"- {one}:" in asked.results[-1]]
    found = [one for one in seen if one in asked.question]
    return Reply(f"Type lamp {SECRETS[found[0]]}." if found else "I do not know.")


@pytest.mark.nightly
@needs_bwrap
def test_students_may_be_agents(project: Project) -> None:
    skill(project)
    fake = FakeModels(versions(COLOURS), student=agent)
    status, data = shortened(project, fake, "--eval-agent", "loop", "--attempts", "1")
    assert (status, data["attempts"][1]["learning"][0]["lift"]) == (0, 1)
    assert "agent" in fake.of("teacher")[0].system
    assert load_skill(project.folder / "skills/gate/SKILL.md").body == body(*COLOURS)


def test_the_old_form_of_a_draft_is_taken_too(project: Project) -> None:
    skill(project)
    status, shown, _ = shorten(
        project, FakeModels([draft(*COLOURS)]), "--attempts", "1"
    )
    assert status == 0, shown
    made = load_skill(project.folder / "skills/gate/SKILL.md")
    assert (made.name, made.description) == ("gate", "About a gate.")
