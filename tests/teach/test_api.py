"""The Python API: the same as the commands, sync and async."""

import asyncio
import threading
from pathlib import Path

import pytest

from pytest_upskill.errors import SettingsError, TeachError
from pytest_upskill.results.run import RunResults
from pytest_upskill.skills.skill import load_skill
from pytest_upskill.teach.api import (
    evaluate,
    evaluate_async,
    generate_cases,
    generate_cases_async,
    generate_skill,
    generate_skill_async,
    refine,
    refine_async,
)
from support.fake_models import (
    COLOURS,
    TASK,
    FakeModels,
    body,
    case,
    cases,
    draft,
    served,
)
from support.kit import write_skill
from support.loopback import Asked, Fault, LoopbackServer, Reply


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder is not the project, and must stay as it is."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


def test_from_a_task_to_a_refined_skill(tmp_path: Path, elsewhere: Path) -> None:
    told: list[str] = []
    more = cases(
        case("red", id="new", input="What is it for sunset?", reference="zorp it")
    )
    fake = FakeModels(
        [draft("red"), draft(*COLOURS[:9]), draft(*COLOURS)],
        [cases(*map(case, COLOURS)), more],
    )
    with served(fake) as url:
        taught = generate_skill(
            TASK,
            teacher="big",
            students=["small"],
            folder=tmp_path,
            attempts=2,
            teacher_url=url,
            tell=told.append,
        )
        folder = taught.folder
        assert folder == tmp_path / "skills/lamp-colours"
        assert (taught.name, taught.best.number, taught.helps) == (
            "lamp-colours",
            2,
            True,
        )
        assert taught.best.learning
        assert taught.best.held_out
        assert told[0].startswith("Generating skill with big…")
        run = evaluate(folder, students=["small"], folder=tmp_path, student_url=url)
        assert [row.arm("skill").rate for row in run.rows] == [9 / 12]
        better = refine(
            folder, teacher="big", students=["small"], folder=tmp_path, teacher_url=url
        )
        assert better.best.number == 2
        assert load_skill(folder / "SKILL.md").body == body(*COLOURS)
        with pytest.raises(SettingsError, match="would change the skill in place"):
            generate_skill(
                "shorter",
                teacher="big",
                source=folder,
                folder=tmp_path,
                teacher_url=url,
                students=(),
            )
        added = generate_cases(
            folder, 1, teacher="big", folder=tmp_path, teacher_url=url
        )
        assert "new" in added.cases
        assert len(added.cases) == 13
    assert list(elsewhere.iterdir()) == []


def test_the_same_async(tmp_path: Path) -> None:
    async def lesson(url: str) -> None:
        taught = await generate_skill_async(
            TASK, teacher="big", students=["small"], folder=tmp_path, teacher_url=url
        )
        assert taught.folder
        run = await evaluate_async(
            taught.folder, students=["small"], folder=tmp_path, student_url=url
        )
        assert [row.lift for row in run.rows] == [1.0]
        same = await refine_async(
            taught.folder,
            teacher="big",
            students=["small"],
            folder=tmp_path,
            teacher_url=url,
        )
        assert same.folder is None
        with pytest.raises(SettingsError, match="200"):
            await generate_cases_async(
                taught.folder, 201, teacher="big", teacher_url=url
            )

    with served(FakeModels()) as url:
        asyncio.run(lesson(url))


def test_cancelling_stops_all_questions(tmp_path: Path) -> None:
    reached = threading.Event()

    def script(_: Asked) -> Reply | Fault:
        reached.set()
        return Fault("hang")

    async def lesson(url: str) -> None:
        wish = generate_skill_async(
            TASK, teacher="big", students=["small"], folder=tmp_path, teacher_url=url
        )
        task = asyncio.create_task(wish)
        await asyncio.to_thread(reached.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with LoopbackServer(script) as server:
        asyncio.run(lesson(f"{server.url}/v1"))
    assert not [
        thread for thread in threading.enumerate() if thread.name == "upskill-engine"
    ]
    assert not (tmp_path / "skills").exists()


def test_evaluate_needs_a_student(tmp_path: Path) -> None:
    with served(FakeModels()) as url:
        taught = generate_skill(
            TASK,
            teacher="big",
            students=(),
            folder=tmp_path,
            teacher_url=url,
            name="mine",
        )
    assert (taught.folder, taught.best.learning) == (tmp_path / "skills/mine", None)
    with pytest.raises(SettingsError, match="no model is named"):
        evaluate(tmp_path / "skills/mine", students=[], folder=tmp_path)


def test_evaluate_puts_references_in_context(tmp_path: Path) -> None:
    skill = write_skill(tmp_path / "gate", body="How to open the gate is in how.md.")
    (skill / "how.md").write_text("Type gate up.")

    def measured(url: str, references: bool) -> RunResults:
        there = f"{url}/v1"
        return evaluate(
            skill,
            references=references,
            students="small",
            student_url=there,
            folder=tmp_path,
        )

    def answer(asked: Asked) -> Reply:
        return Reply("gate up" if "Type gate" in asked.system else "no")

    with LoopbackServer(answer) as server:
        plain, full = (
            measured(server.url, references=False),
            measured(server.url, references=True),
        )
    assert [run.rows[0].arm("skill").rate for run in (plain, full)] == [0, 1]
    assert [file.path for file in plain.skills[0].unseen_files] == ["how.md"]
    assert (full.skills[0].seen_files, full.skills[0].unseen_files) == (("how.md",), ())


def test_strings_are_accepted_as_paths_and_as_one_student(tmp_path: Path) -> None:
    with served(FakeModels()) as url:
        taught = generate_skill(
            TASK,
            teacher="big",
            students="small",
            examples="red -> lamp zorp",
            folder=str(tmp_path),
            output=str(tmp_path / "mine"),
            teacher_url=url,
            max_cost=5,
            prices=["big 1 1", "small 1 1"],
        )
        assert taught.folder == tmp_path / "mine"
        assert taught.cost
        skill = str(tmp_path / "mine")
        run = evaluate(skill, students="small", folder=str(tmp_path), student_url=url)
        assert [row.label for row in run.rows] == ["small"]
        same = refine(
            skill, teacher="big", students="small", folder=tmp_path, teacher_url=url
        )
        assert same.folder is None
        with pytest.raises(SettingsError, match=r"^201 cases|^cases 201: "):
            generate_cases(
                skill, 201, teacher="big", folder=str(tmp_path), teacher_url=url
            )
        with pytest.raises(
            SettingsError, match=r"^source .*\n  Allow it with force .* with output\."
        ):
            generate_skill(
                "x", teacher="big", source=skill, teacher_url=url, students=()
            )
        with pytest.raises(
            SettingsError,
            match=r"^max_cost: the price of big is .*\n.*Set it in prices",
        ):
            generate_skill("x", teacher="big", teacher_url=url, students=(), max_cost=1)


@pytest.mark.parametrize("role", ["teacher", "student"])
def test_keys_in_server_errors_are_masked(tmp_path: Path, role: str) -> None:
    key = "gh" + "p_aB3dE5gH7jK9mN1pQ3sT5vW7xY9zA2cD4fG6"
    fake = FakeModels()

    def script(asked: Asked) -> Reply | Fault:
        if fake.role(asked) == role:
            return Fault("status", 400, message=f"{key} is not good")
        return fake(asked)

    with (
        LoopbackServer(script) as server,
        pytest.raises(TeachError, match="<API KEY> is not good") as raised,
    ):
        generate_skill(
            TASK,
            teacher="big",
            students=["small"],
            folder=tmp_path,
            teacher_url=f"{server.url}/v1",
        )
    assert key not in str(raised.value)
