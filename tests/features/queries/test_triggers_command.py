"""``triggers`` from end to end: a balanced set of queries,
none of which names the skill.
"""

import json
import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill import generate_triggers
from pytest_upskill.features.queries.suite import load as load_triggers
from pytest_upskill.skills.loaded_cases import all_cases
from support.fake_models import FakeModels, Project, lines, served
from support.loopback import Asked, Fault, LoopbackServer, Reply
from support.shell import COMMAND, started

DESCRIPTION = (
    "Commands of lamp, the tool that lights rooms. Use it when a room should get a"
    " colour."
)
KEY = "sk-ant-api03-" + "A" * 80
THINGS = (
    *(
        "curtains",
        "sofa",
        "violin",
        "teapot",
        "ladder",
        "puppet",
        "garden",
        "engine",
        "window",
    ),
    *(
        "mirror",
        "camera",
        "bicycle",
        "carpet",
        "piano",
        "fridge",
        "balcony",
        "stairs",
        "pool",
    ),
    *("barn", "tent"),
)
PLACES = (
    "hall",
    "attic",
    "cellar",
    "yard",
    "loft",
    "porch",
    "garage",
    "study",
    "den",
    "lobby",
)


def wish(number: int) -> str:
    """Any two of them differ in half of their words."""
    thing, place = THINGS[number % 20], PLACES[number // 2 % 10]
    other, count = THINGS[(number * 7 + 3) % 20], number + 2
    return (
        f"{count} {other}s, the {thing} and my {place} look dull, brighten"
        f" {place}{number}"
    )


def miss(number: int) -> str:
    thing, place = THINGS[(number * 3 + 1) % 20], PLACES[number % 10]
    return (
        f"Order {number + 2} bulbs for {thing}{number} in our {place} near the"
        f" {THINGS[number]}"
    )


def entry(query: str, should: bool) -> dict[str, Any]:
    return {"query": query, "should_trigger": should}


def reply(should: int, should_not: int, first: int = 0) -> str:
    made = [entry(wish(first + one), should=True) for one in range(should)]
    made += [entry(miss(first + one), should=False) for one in range(should_not)]
    return json.dumps({"queries": made})


def skill(project: Project, name: str = "lamp-colours") -> Path:
    folder = project.folder / "skills" / name
    folder.mkdir(parents=True)
    head = f"name: {name}\ndescription: {DESCRIPTION}\n"
    (folder / "SKILL.md").write_text(f"---\n{head}---\n\nType lamp zorp for red.\n")
    return folder


def words(url: str, *more: str) -> list[str]:
    return ["triggers", "lamp-colours", "-m", "big", "--base-url", url, "--yes", *more]


def run(project: Project, fake: FakeModels, *more: str) -> tuple[int, str, str]:
    with served(fake) as url:
        return project.run(*words(url, *more))


def saved(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        (folder / "evals/triggers.json").read_bytes()
    )
    return found


def kinds(folder: Path) -> tuple[int, int]:
    count = Counter(one["should_trigger"] for one in saved(folder))
    return count[True], count[False]


def test_a_balanced_set_is_written(project: Project) -> None:
    folder = skill(project)
    before = (folder / "SKILL.md").read_bytes()
    fake = FakeModels(queries=[reply(10, 10)])
    status, shown, error = run(project, fake)
    assert (status, error) == (0, "")
    assert kinds(folder) == (10, 10)
    assert all(one.keys() == {"query", "should_trigger"} for one in saved(folder))
    loaded = load_triggers(folder)
    assert len(all_cases(loaded)) == 20
    assert not any(of_file.broken for of_file in loaded)
    assert "Generating queries with big… 20 kept" in lines(shown)
    assert lines(shown)[-1] == "Saved to ./skills/lamp-colours"
    assert max(map(len, shown.splitlines())) <= 80
    assert (folder / "SKILL.md").read_bytes() == before
    (asked,) = fake.of("query author")
    for told in (
        "lamp-colours",
        DESCRIPTION,
        "Write 10 with should_trigger true and 10",
        "typo",
    ):
        assert told in asked.question
    assert "near miss" in asked.question
    assert "copies" in asked.question


def test_queries_that_name_the_skill_are_asked_for_again_with_the_reason(
    project: Project,
) -> None:
    folder = skill(project)
    bad = [
        entry("please use Lamp Colours on my kitchen tonight", should=True),
        entry("does lampcolour work with a dimmer in the hall?", should=False),
        entry("Use it when a room should get a colour", should=True),
        entry(wish(1), should=True),
        entry(wish(1).upper(), should=True),
        entry(miss(1), should=False),
        entry("short", should=False),
        entry("x y " * 25_000, should=False),
        {"query": ["no", "text"], "should_trigger": True},
        {"question": "what?"},
        "hello",
    ]
    fake = FakeModels(queries=[json.dumps({"queries": bad}), reply(4, 4, 10)])
    status, shown, _ = run(project, fake, "--queries", "8")
    assert (status, "8 kept, 9 rejected" in shown) == (0, True)
    assert kinds(folder) == (4, 4)
    assert saved(folder)[:2] == [
        entry(wish(1), should=True),
        entry(miss(1), should=False),
    ]
    _, again = fake.of("query author")
    assert (
        "Write 3 with should_trigger true and 3 with should_trigger false"
        in again.question
    )
    for reason in (
        "names the skill (lamp-colours)",
        "copies the description",
        "nearly the same as another",
        "too short",
        "it has 100,000 characters (limit 2,000)",
        "query: Input should be a valid string",
    ):
        assert reason in again.question
    assert len(again.question) < 10_000


def test_all_of_one_kind_is_no_set(project: Project) -> None:
    folder = skill(project)
    fake = FakeModels(queries=[reply(20, 0), reply(20, 0), reply(0, 10)])
    status, _, _ = run(project, fake)
    assert status == 0
    assert kinds(folder) == (10, 10)
    for asked in fake.of("query author")[1:]:
        assert (
            "Write 0 with should_trigger true and 10 with should_trigger false"
            in asked.question
        )


def test_what_there_is_is_saved_if_the_teacher_cant_fill_the_set(
    project: Project,
) -> None:
    folder = skill(project)
    fake = FakeModels(queries=[reply(3, 2), "no JSON at all"])
    status, shown, _ = run(project, fake)
    assert status == 0
    assert kinds(folder) == (3, 2)
    assert "5 kept, 15 given up" in " ".join(lines(shown))
    again = FakeModels(queries=[reply(3, 2), reply(8, 8, 10)])
    status, shown, _ = run(project, again)
    assert (status, kinds(folder)) == (0, (10, 10))
    assert (
        "Write 7 with should_trigger true and 8" in again.of("query author")[0].question
    )
    assert wish(0) in again.of("query author")[0].question


def test_a_teacher_that_repeats_itself_comes_to_an_end(project: Project) -> None:
    folder = skill(project)
    fake = FakeModels(queries=[reply(2, 2)])
    status, shown, _ = run(project, fake, "--json")
    assert (status, kinds(folder)) == (0, (2, 2))
    assert len(fake.of("query author")) <= 4
    assert json.loads(shown)["stop"]


@pytest.mark.usefixtures("short_pauses")
@pytest.mark.parametrize(
    "said",
    [
        "",
        "I can't.",
        '{"queries": []}',
        '{"queries": [1, null]}',
        "{" * 5000,
        '{"queries": "all"}',
    ],
)
def test_garbage_is_an_error_and_writes_nothing(project: Project, said: str) -> None:
    folder = skill(project)
    status, _, error = run(project, FakeModels(queries=[said]))
    assert status == 1
    assert error.startswith("pytest-upskill: ")
    assert not (folder / "evals").exists()


def test_a_bare_list_in_prose_is_read(project: Project) -> None:
    folder = skill(project)
    bare = json.dumps(json.loads(reply(2, 2))["queries"])
    status, _, _ = run(
        project, FakeModels(queries=[f"Here:\n```json\n{bare}\n```"]), "--queries", "4"
    )
    assert (status, kinds(folder)) == (0, (2, 2))


def test_known_queries_are_kept_and_completed(project: Project) -> None:
    folder = skill(project)
    (folder / "evals").mkdir()
    mine = [
        {**entry(f"my own query, number {one} of many", should=True), "note": one}
        for one in range(5)
    ]
    (folder / "evals/triggers.json").write_text(json.dumps(mine))
    (folder / "skill_meta.json").write_text(
        json.dumps({"triggers": [entry("a bulb?", should=False)]})
    )
    fake = FakeModels(queries=[reply(20, 20)])
    status, shown, _ = run(project, fake, "--queries", "10")
    assert status == 0
    assert "5 queries should open the skill, 5 should not; 4 of them new" in shown
    assert saved(folder)[:5] == mine
    assert kinds(folder) == (5, 4)  # and one beside the cases
    assert "my own query, number 4" in fake.of("query author")[0].question
    status, _, error = run(project, FakeModels(), "--queries", "10")
    assert status == 2
    assert "this skill has 10 queries already" in error
    assert "--queries 12" in error


def test_queries_that_are_there_already_are_not_added_again(project: Project) -> None:
    folder = skill(project)
    (folder / "evals").mkdir()
    mine = [entry(wish(1), should=True), entry(miss(1), should=False)]
    (folder / "evals/triggers.json").write_text(json.dumps(mine))
    fake = FakeModels(queries=[json.dumps({"queries": mine}), reply(1, 1, 10)])
    status, shown, _ = run(project, fake, "--queries", "4")
    assert (status, "2 kept, 2 rejected" in shown) == (0, True)
    assert saved(folder) == [
        *mine,
        entry(wish(10), should=True),
        entry(miss(10), should=False),
    ]


def test_a_near_miss_of_the_other_kind_is_no_duplicate(project: Project) -> None:
    folder = skill(project)
    query = (
        "we have 12 windows in the long dark hall, so make them as red as the old barn"
    )
    pair = [
        entry(query, should=True),
        entry(query.replace("red", "tall"), should=False),
    ]
    fake = FakeModels(queries=[json.dumps({"queries": pair})])
    status, _, _ = run(project, fake, "--queries", "2")
    assert (status, saved(folder)) == (0, pair)


def test_an_unbalanced_set_grows_no_further_than_asked(project: Project) -> None:
    folder = skill(project)
    (folder / "evals").mkdir()
    mine = [
        entry(f"my own query, number {one} of many", should=True) for one in range(7)
    ]
    (folder / "evals/triggers.json").write_text(json.dumps(mine))
    status, _, _ = run(project, FakeModels(queries=[reply(9, 9)]), "--queries", "10")
    assert (status, kinds(folder)) == (0, (7, 3))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[1", "triggers.json:1"),
        ('[{"query": "", "should_trigger": true}]', "must not be empty"),
        ('"queries"', "only be added to a list"),
    ],
)
def test_a_file_that_cant_be_completed_stays(
    project: Project, content: str, told: str
) -> None:
    folder = skill(project)
    (folder / "evals").mkdir()
    (folder / "evals/triggers.json").write_text(content)
    fake = FakeModels(queries=[reply(10, 10)])
    status, _, error = run(project, fake)
    assert status == 2
    assert told in error
    assert (folder / "evals/triggers.json").read_text() == content
    assert fake.asked == []


def test_an_empty_list_is_completed(project: Project) -> None:
    folder = skill(project)
    (folder / "evals").mkdir()
    (folder / "evals/triggers.json").write_text("[]\n")
    status, _, error = run(project, FakeModels(queries=[reply(10, 10)]))
    assert (status, error, kinds(folder)) == (0, "", (10, 10))


def test_a_link_out_of_the_skill_is_not_followed(project: Project) -> None:
    folder = skill(project)
    (folder / "evals").symlink_to(project.home)
    fake = FakeModels(queries=[reply(10, 10)])
    status, _, error = run(project, fake)
    assert (status, "link out of the skill's folder" in error) == (2, True)
    assert list(project.home.iterdir()) == []
    assert fake.asked == []


def trace(project: Project, name: str, *said: str) -> Path:
    file = project.folder / name
    file.parent.mkdir(exist_ok=True)
    text = [{"role": "user", "content": one} for one in said]
    file.write_text(
        json.dumps([*text, {"role": "assistant", "content": "assistant's words"}])
    )
    return file


def test_user_messages_of_traces_are_the_voice_of_queries(project: Project) -> None:
    folder = skill(project)
    real = f"my login is {KEY} and the kitchen needs some red, asap pls"
    trace(project, "logs/one.json", real, "and now the hall as well, same as before")
    trace(project, "logs/two.json", "what's the weather going to be like tomorrow")
    (project.folder / "logs/three.json").write_text("[1, 2]")
    claude = {
        "role": "user",
        "content": [{"type": "text", "text": "dim it a bit for the film"}],
    }
    line = {"type": "user", "sessionId": "s", "message": claude, "uuid": "u"}
    (project.folder / "session.jsonl").write_text(json.dumps(line))
    written = json.loads(reply(1, 2))
    written["queries"].append(entry(real, should=True))  # as it was said
    fake = FakeModels(queries=[json.dumps(written)])
    more = ("--from", "logs", "--from", "session.jsonl", "--queries", "4")
    status, shown, error = run(project, fake, *more)
    assert (status, error) == (0, "")
    assert "logs/one.json, its user messages (" in shown
    assert "Not sent: logs/three.json (" in shown
    (asked,) = fake.of("query author")
    assert "the kitchen needs some red, asap pls" in asked.question
    assert "what's the weather" in asked.question
    assert "dim it a bit for the film" in asked.question
    assert "assistant's words" not in asked.question
    assert kinds(folder) == (2, 2)
    written_to = (folder / "evals/triggers.json").read_text()
    assert KEY not in str(fake.asked) + written_to + shown
    assert "<API KEY> and the kitchen needs some red" in written_to


def test_traces_without_users_are_refused(project: Project) -> None:
    skill(project)
    (project.folder / "none.json").write_text(
        json.dumps([{"role": "assistant", "content": "hm"}])
    )
    (project.folder / "empty").mkdir()
    for path, told in (
        ("none.json", "--from none.json: no message of a user"),
        ("empty", "--from empty: no trace in this folder"),
        ("missing.json", "missing.json: no such file"),
    ):
        status, _, error = run(project, FakeModels(), "--from", path)
        assert (status, told in error) == (2, True), error


def test_the_result_as_json(project: Project) -> None:
    folder = skill(project)
    named = {"queries": [entry("use lamp-colours in my kitchen", should=True)]}
    fake = FakeModels(queries=[json.dumps(named), reply(2, 2)])
    status, shown, error = run(project, fake, "--json", "--queries", "4")
    data = json.loads(shown)
    assert status == 0
    assert "Generating queries" in error
    assert (data["name"], data["folder"]) == ("lamp-colours", str(folder))
    assert (
        "2 queries should open the skill, 2 should not; 4 of them new"
        in data["sentences"][0]
    )


def test_it_asks_before_it_spends(project: Project) -> None:
    folder = skill(project)
    fake = FakeModels(queries=[reply(10, 10)])
    with served(fake) as url:
        status, shown, error = project.run(
            *(one for one in words(url) if one != "--yes")
        )
    assert (status, fake.asked) == (2, [])
    assert "This takes up to about 3 calls" in shown
    assert "add --yes to make up to about 3 calls" in error
    assert not (folder / "evals").exists()


def test_the_estimate_counts_replies_that_replace_rejected_queries(
    project: Project,
) -> None:
    skill(project)
    named = json.dumps(
        {"queries": [entry("use lamp-colours in my kitchen", should=True)]}
    )
    fake = FakeModels(queries=[reply(1, 0), named])
    status, shown, _ = run(project, fake, "--queries", "4")
    assert status == 0
    assert f"up to about {len(fake.of('query author'))} calls" in shown


def test_a_budget_that_ends_saves_what_there_is(project: Project) -> None:
    folder = skill(project)
    (project.folder / "pytest.ini").write_text(
        "[pytest]\nskill_prices =\n    big 2.50 10\n"
    )
    fake = FakeModels(queries=[reply(3, 3)], output_tokens=8000)
    status, shown, _ = run(project, fake, "--max-cost", "0.1", "--json")
    assert (status, kinds(folder)) == (0, (3, 3))
    data = json.loads(shown)
    assert data["cost"] == pytest.approx(0.08, abs=0.005)
    assert "budget" in data["stop"]


@pytest.mark.nightly  # test_running_again.py has it of generate
def test_a_killed_command_run_again_asks_nothing_twice(project: Project) -> None:
    folder = skill(project)
    fake = FakeModels(queries=[reply(4, 4), reply(10, 10, 10)])
    process: list[subprocess.Popen[str]] = []

    def script(asked: Asked) -> Reply | Fault:
        if process and len(fake.asked) == 1:
            process.pop().kill()
            return Fault("hang")
        return fake(asked)

    with LoopbackServer(script) as server:
        command = words(f"{server.url}/v1")
        with started(
            [COMMAND, *command], stdout=subprocess.PIPE, cwd=project.folder
        ) as killed:
            process.append(killed)
            killed.communicate()
        assert not (folder / "evals").exists()
        status, _, error = project.run(*command)
        assert (status, error) == (0, "")
        assert kinds(folder) == (10, 10)
        assert max(Counter(fake.keys()).values()) == 1


def test_from_python(project: Project) -> None:
    folder = skill(project)
    heard = list[str]()
    with served(FakeModels(queries=[reply(3, 3)])) as url:
        made = generate_triggers(
            folder, 6, teacher="big", teacher_url=url, traces=(), tell=heard.append
        )
    assert kinds(folder) == (3, 3)
    assert made.folder == folder
    assert any("6 kept" in line for line in heard)


def test_hostile_text_reaches_no_terminal(project: Project) -> None:
    skill(project)
    evil = [
        entry(f"\x1b]0;owned\x07 ::error::x {one} {wish(one)}\u202e", should=True)
        for one in range(9)
    ]
    fake = FakeModels(queries=[json.dumps({"queries": evil}), reply(2, 2)])
    status, shown, error = run(project, fake, "--queries", "4")
    assert status == 0
    assert "\x1b" not in shown + error
    assert "\u202e" not in shown + error
    assert os.linesep + "::error" not in shown
