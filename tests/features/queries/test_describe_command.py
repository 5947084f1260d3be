"""``describe`` from end to end: versions of a description, and what is kept of them."""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill import describe
from pytest_upskill.features.queries.descriptions import read_description
from pytest_upskill.features.queries.suite import load as load_triggers
from pytest_upskill.skills.loaded_cases import all_cases
from pytest_upskill.skills.skill import load_skill
from pytest_upskill.teach.case_file import ids_held_out
from pytest_upskill.teach.drafts import draft_of
from pytest_upskill.teach.replies import NotUsable
from support.fake_models import FakeModels, Project, lines, served
from support.kit import write_skill
from support.loopback import Asked, Reply
from support.sandboxes import needs_bwrap

NAME = "lamp-colours"
VAGUE = "Commands of a tool."
GOOD = "Lights rooms. Use it when something should brighten."
HALF = "Lights rooms, such as halls. Use it to light halls."
BROAD = "Use it for everything: brighten, halls, orders and bulbs."
# In a description, and what each fits in queries
WORDS = ("brighten", "halls", "orders")
FITS = {"brighten": "brighten", "halls": "hall,", "orders": "Order"}
HEAD = (
    f"name:  {NAME}\nlicense: MIT # keep\ndescription: >-\n  Commands of\n  a"
    " tool.\nmodel: x\n"
)
TEXT = f"---\r\n{HEAD}---\n\nType lamp zorp for red.  \n\n\n"
THINGS = [
    f"{one}{two}" for one in ("sofa", "tea", "film", "rain", "owl") for two in "abcdef"
]


def wish(number: int) -> str:
    place = "hall," if number % 2 else "attic,"
    return (
        f"{THINGS[number]} looks dull in the {place} brighten {THINGS[-number]}{number}"
        " please"
    )


def miss(number: int) -> str:
    return (
        f"Order {number + 2} bulbs for {THINGS[number]} with {THINGS[-number]}{number}"
        " invoices"
    )


def make_skill(project: Project, of_each: int = 15) -> Path:
    folder = project.folder / "skills" / NAME
    (folder / "evals").mkdir(parents=True)
    (folder / "references").mkdir()
    (folder / "references/more.md").write_text("More.")
    (folder / "SKILL.md").write_bytes(TEXT.encode())
    queries = [{"query": wish(one), "should_trigger": True} for one in range(of_each)]
    queries += [{"query": miss(one), "should_trigger": False} for one in range(of_each)]
    (folder / "evals/triggers.json").write_text(json.dumps(queries))
    return folder


def description_in(system: str) -> str:
    found = re.search(
        rf"<name>{NAME}</name>\s*<description>(.*?)</description>", system, re.S
    )
    assert found, system
    return found[1]


def student(asked: Asked) -> Reply:
    """Opens the skill if a word of its description fits;
    another skill if that one fits.
    """
    if asked.results:
        return Reply("Done.")
    for word in WORDS:
        if word in description_in(asked.system) and FITS[word] in asked.question:
            return Reply(calls=(("skill", {"name": NAME}),))
    if "<name>docs</name>" in asked.system and "brighten" in asked.question:
        return Reply(calls=(("skill", {"name": "docs"}),))
    return Reply("Fine.")


def described(*texts: str) -> list[str]:
    return [json.dumps({"description": text}) for text in texts]


def fakes(*texts: str, by: Callable[[Asked], Reply] = student) -> FakeModels:
    return FakeModels(descriptions=described(*texts), student=by)


def words(url: str, *more: str) -> list[str]:
    models = ["-m", "big", "--eval-model", "small", "--base-url", url]
    return ["describe", NAME, *models, "--yes", "--runs", "1", *more]


def run(project: Project, fake: FakeModels, *more: str) -> tuple[int, str, str]:
    with served(fake) as url:
        return project.run(*words(url, *more))


def results(
    project: Project, fake: FakeModels, *more: str
) -> tuple[int, dict[str, Any]]:
    """Exit status and what ``--json`` has of it."""
    status, shown, error = run(project, fake, *more, "--json")
    assert shown, error
    return status, json.loads(shown)


def learned(data: dict[str, Any]) -> list[float]:
    """What each version decides right, of the learning queries."""
    rows = [version["learning"][0] for version in data["attempts"]]
    return [
        (row["recall"]["rate"] + 1 - row["false_alarms"]["rate"]) / 2 for row in rows
    ]


def test_a_better_description_is_written_and_nothing_else(project: Project) -> None:
    folder = make_skill(project)
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    fake = fakes(GOOD)
    status, shown, error = run(project, fake)
    assert (status, error) == (0, ""), shown
    after = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    old = "description: >-\n  Commands of\n  a tool.\n"
    assert after.pop(folder / "SKILL.md").decode() == TEXT.replace(
        old, f"description: {GOOD}\n"
    )
    del before[folder / "SKILL.md"]
    assert after == before
    told = lines(shown)
    assert f"current small 50% right {len(VAGUE)} characters" in told
    assert f"attempt 2 small 100% right {len(GOOD)} characters" in told
    assert "current small 50% right held out" in told
    assert "attempt 2 small 100% right held out" in told
    assert "learning (18 queries) held out (12 queries)" in told
    whole = " ".join(told)
    assert "On the 12 held-out queries 50% → 100% right, +50 points (" in whole
    assert told[-1] == f"Saved to ./skills/{NAME}"
    assert max(map(len, shown.splitlines())) <= 80
    (kept,) = project.folder.glob(".upskill/teach/*/before")
    assert (kept / "SKILL.md").read_bytes() == TEXT.encode()
    assert f"kept in {kept.relative_to(project.folder)}" in whole


def test_the_teacher_never_sees_held_out_queries(project: Project) -> None:
    folder = make_skill(project)
    queries = all_cases(load_triggers(folder))
    names = ids_held_out(queries, 0.4)
    learn = [query for query in queries if query.id not in names]
    held = [query for query in queries if query.id in names]
    assert (len(learn), len(held)) == (18, 12)
    assert sum(one.should_open for one in held) == 6
    write_skill(project.folder / "others/docs")
    fake = fakes(HALF, GOOD)
    more = ("--with", "others", "--noise", "10", "--runs", "2")
    status, _, _ = run(project, fake, *more)
    assert status == 0
    for one in fake.of("student"):
        assert one.system.count("<skill>") == 12
    first, second = (asked.question for asked in fake.of("describer"))
    for prompt in (first, second):
        assert all(one.input in prompt for one in learn)
        assert not any(one.input in prompt for one in held)
        assert "at most 1,024 characters" in prompt
        assert "- docs: About a gate." in prompt
        assert "Type lamp zorp" in prompt
    assert (
        "should open the skill; opened in 0 of 2; docs was opened instead 2x: " in first
    )
    assert "should not open the skill; opened in 0 of 2: Order" in first
    assert f"\n{VAGUE}\n" in first
    assert f"\n{HALF}\n" in second
    asked = Counter(one.question for one in fake.of("student"))
    assert set(asked) == {one.input for one in (*learn, *held)}
    assert set(asked.values()) == {6}  # three versions, two runs


def test_a_folder_of_skills_may_have_the_skill_itself(project: Project) -> None:
    make_skill(project)
    write_skill(project.folder / "skills/docs")
    fake = fakes(GOOD)
    status, _, error = run(project, fake, "--with", "skills")
    assert (status, error) == (0, "")
    assert all("<name>docs</name>" in asked.system for asked in fake.of("student"))
    status, _, error = run(project, fake, "--noise", "500")
    assert status == 2
    assert error.startswith("pytest-upskill: --noise 500: only ")


def test_a_version_that_is_not_shown_to_be_better_changes_nothing(
    project: Project,
) -> None:
    folder = make_skill(project, 10)
    status, shown, _ = run(project, fakes(GOOD))
    assert status == 1
    told = " ".join(lines(shown))
    assert (
        "Few queries: 4 that should open the skill and 4 others are held out." in told
    )
    assert max(map(len, shown.splitlines())) <= 80
    assert f"Attempt 2 is kept in .upskill/teach/{NAME}/attempt-2" in told
    assert "Write it all the same with --anyway" in told
    assert (folder / "SKILL.md").read_bytes() == TEXT.encode()
    fake = fakes(GOOD)
    with served(fake) as url:
        status, _, _ = project.run(*words(url, "--anyway"))
    assert status == 1  # written, and still not shown
    assert load_skill(folder / "SKILL.md").description == GOOD


def test_the_report_of_a_version_names_the_queries_that_it_gets_wrong(
    project: Project,
) -> None:
    make_skill(project, 4)
    run(project, fakes("Lights halls, and takes orders."), "--attempts", "1")
    report = (
        project.folder / f".upskill/teach/{NAME}/attempt-2/report.txt"
    ).read_text()
    _, sentence, *wrong = report.splitlines()
    assert sentence.startswith("small: opened in 1 of 3 that need it (recall 33%, ")
    assert wrong == [
        f'  not opened for "{wish(0)}" (0 of 1)',
        f'  not opened for "{wish(2)}" (0 of 1)',
        f'  opened without need for "{miss(0)}" (1 of 1)',
        f'  opened without need for "{miss(1)}" (1 of 1)',
    ]


def test_the_best_on_held_out_queries_is_kept_and_not_the_last(
    project: Project,
) -> None:
    folder = make_skill(project)
    fake = fakes(GOOD, HALF, HALF)

    def nearly(asked: Asked) -> Reply:
        return Reply("Fine.") if "teac" in asked.question else student(asked)

    fake.student = nearly
    status, data = results(project, fake, "--attempts", "3")
    assert (status, data["chosen"]) == (0, 2)
    assert "adjusted for the 2 versions compared" in " ".join(data["sentences"])
    assert load_skill(folder / "SKILL.md").description == GOOD
    assert f"\n{HALF}\n" not in fake.of("describer")[1].question


def test_a_description_for_everything_is_no_better(project: Project) -> None:
    folder = make_skill(project)
    status, data = results(project, fakes(BROAD, VAGUE))
    assert (status, data["chosen"], data["folder"]) == (1, 1, None)
    assert learned(data) == [0.5, 0.5]
    assert (
        "better than the current description on both the learning"
        in data["sentences"][0]
    )
    assert (folder / "SKILL.md").read_bytes() == TEXT.encode()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("x" * 1025, "has 1,025 characters (limit 1,024)"),
        ("word " * 20_000, "characters (limit 1,024)"),
        ("", "is empty"),
        ("Use it <b>always</b>.", "markup"),
        ("Use it\u202e always.", "can't be seen"),
        ("Use it with sk-ant-api03-" + "A" * 80, "secret"),
    ],
)
def test_a_description_that_cant_be_used(project: Project, said: str, why: str) -> None:
    with pytest.raises(NotUsable, match=re.escape(why)):
        read(project, said)


def read(project: Project, said: str) -> str:
    now = draft_of(load_skill(make_skill(project) / "SKILL.md"))
    return read_description(json.dumps({"description": said}), now).description


def test_a_description_of_1024_characters_is_allowed(project: Project) -> None:
    longest = GOOD + "y" * (1024 - len(GOOD))
    assert read(project, longest) == longest


def test_what_cant_be_used_is_asked_for_again_and_counts_as_a_version(
    project: Project,
) -> None:
    folder = make_skill(project)
    fake = FakeModels(
        descriptions=["what?", "no", *described("", GOOD)], student=student
    )
    status, data = results(project, fake)
    assert (status, data["chosen"]) == (0, 3)
    assert [bool(one["problem"]) for one in data["attempts"]] == [False, True, False]
    _, _, third, fourth = (
        " ".join(asked.question.split()) for asked in fake.of("describer")
    )
    assert "no JSON object in the reply. Try" in third
    assert "is empty" in fourth
    assert load_skill(folder / "SKILL.md").description == GOOD


def test_a_good_description_stays(project: Project) -> None:
    folder = make_skill(project)
    (folder / "SKILL.md").write_text(
        f"---\nname: {NAME}\ndescription: {GOOD}\n---\nBody.\n"
    )
    fake = fakes(VAGUE)
    status, data = results(project, fake)
    assert (status, data["folder"], len(data["attempts"])) == (0, None, 1)
    assert fake.of("describer") == []


def test_a_teacher_that_writes_nothing_new_has_not_succeeded(project: Project) -> None:
    folder = make_skill(project)
    status, data = results(project, fakes(VAGUE))
    assert (status, data["succeeded"], data["folder"]) == (1, False, None)
    assert data["sentences"] == [
        "No new version was written: the teacher wrote nothing new."
    ]
    assert (folder / "SKILL.md").read_bytes() == TEXT.encode()


def test_few_queries_of_one_kind_weigh_as_much(project: Project) -> None:
    folder = make_skill(project)
    queries = json.loads((folder / "evals/triggers.json").read_bytes())
    (folder / "evals/triggers.json").write_text(
        json.dumps([*queries[:5], *queries[15:]])
    )
    status, data = results(project, fakes(BROAD))
    assert (status, learned(data)[:2]) == (1, [0.5, 0.5])


def test_both_kinds_of_queries_are_needed(project: Project) -> None:
    folder = make_skill(project)
    queries = json.loads((folder / "evals/triggers.json").read_bytes())
    fake = fakes(GOOD)
    (folder / "evals/triggers.json").write_text(json.dumps(queries[:15]))
    status, _, error = run(project, fake)
    assert status == 2
    assert "15 that should open" in error
    assert "Run pytest-upskill triggers first." in error
    assert fake.asked == []


def test_queries_that_ask_the_same_count_once(project: Project) -> None:
    folder = make_skill(project)
    queries = json.loads((folder / "evals/triggers.json").read_bytes())
    again = {**queries[0], "query": queries[0]["query"].upper()}
    (folder / "evals/triggers.json").write_text(json.dumps([*queries, again]))
    fake = fakes(GOOD)
    status, data = results(project, fake)
    assert (status, len(data["cases"])) == (0, 30)
    assert again["query"] not in [one.question for one in fake.of("student")]
    (folder / "evals/triggers.json").write_text(
        json.dumps([again, queries[0], *queries[15:]])
    )
    status, _, error = run(project, fake)
    assert status == 2
    assert "too few queries: 1 that should open the skill, 15 that should not" in error


def test_a_skill_whose_description_cant_be_changed_is_refused(project: Project) -> None:
    folder = make_skill(project)
    (folder / "SKILL.md").write_text("Only a body, about lamps.\n")
    fake = fakes(GOOD)
    status, _, error = run(project, fake)
    assert (status, fake.asked) == (2, [])
    assert "SKILL.md: the description can't be changed without changing more" in error


def test_a_skill_that_was_edited_meanwhile_is_not_overwritten(project: Project) -> None:
    folder = make_skill(project)

    def editing(asked: Asked) -> Reply:
        (folder / "SKILL.md").write_text(TEXT.replace("red", "blue"))
        return student(asked)

    status, shown, _ = run(project, fakes(GOOD, by=editing))
    assert status == 1
    assert (
        "Not saved: skills/lamp-colours/SKILL.md: it was changed while this ran."
        in shown
    )
    assert "blue" in (folder / "SKILL.md").read_text()
    assert VAGUE.split()[0] in (folder / "SKILL.md").read_text()


@pytest.mark.usefixtures("short_pauses")
def test_an_outage_is_an_error_and_run_again(project: Project) -> None:
    folder = make_skill(project)
    fake, down = fakes(GOOD), [True]

    def failing(asked: Asked) -> Reply:
        if down and len(fake.of("describer")):
            return Reply(raw={"choices": []})
        return student(asked)

    fake.student = failing
    with served(fake) as url:
        status, _, error = project.run(*words(url))
        assert status == 1
        assert "Run the same command again" in error
        assert (folder / "SKILL.md").read_bytes() == TEXT.encode()
        down.clear()
        status, shown, _ = project.run(*words(url))
        assert status == 0, shown
        assert len(fake.of("describer")) == 1


def test_the_result_as_json(project: Project) -> None:
    folder = make_skill(project)
    status, shown, _ = run(project, fakes(HALF, GOOD), "--json")
    data = json.loads(shown)
    assert status == 0
    assert (data["chosen"], data["succeeded"], data["folder"]) == (3, True, str(folder))
    texts = [version["draft"]["description"] for version in data["attempts"]]
    assert texts == [VAGUE, HALF, GOOD]
    (row,) = data["attempts"][2]["held_out"]
    rates = (row["recall"]["rate"], row["false_alarms"]["rate"])
    assert (rates, row["model"]) == ((1.0, 0.0), "small")
    (change,) = [change for change in data["changes"] if not change["student"]]
    assert (change["attempt"], change["part"]) == (3, "held out")
    contrast = change["contrast"]
    assert (contrast["cases"], contrast["word"]) == (12, "helps")
    assert 0 < contrast["lift"]["low"] < contrast["lift"]["lift"] == 0.5
    assert Counter(data["cases"].values()) == {"learn": 18, "holdout": 12}


def test_from_python(project: Project) -> None:
    folder = make_skill(project)
    with served(fakes(GOOD)) as url:
        result = describe(
            folder, teacher="big", students="small", teacher_url=url, runs=1
        )
    assert (result.succeeded, result.folder) == (True, folder)
    assert result.best.draft.description == GOOD


@pytest.mark.nightly
@needs_bwrap
def test_students_may_be_agents(project: Project) -> None:
    folder = make_skill(project)
    fake = fakes(GOOD)
    status, shown, error = run(project, fake, "--eval-agent", "loop")
    assert status == 0, (shown, error)
    assert load_skill(folder / "SKILL.md").description == GOOD
    # The request that would carry the body is not sent: one call decides a query.
    assert len(fake.of("student")) == 2 * 30
