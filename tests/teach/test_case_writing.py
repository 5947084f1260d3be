"""Cases by a model: tried before they count, replaced if rejected, split, saved."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.checks import parse_checks
from pytest_upskill.checks.kinds import KINDS
from pytest_upskill.skills.case import Case
from pytest_upskill.skills.suites.json_suites import load_cases
from pytest_upskill.teach.case_file import ids_held_out
from pytest_upskill.teach.case_writing import CaseTrial, UsableCase
from pytest_upskill.teach.replies import (
    NotUsable,
    cases_schema,
    described_checks,
    offered,
)
from pytest_upskill.trials.answer import Reply
from pytest_upskill.trials.trial import Question
from support.fake_models import (
    COLOURS,
    SECRETS,
    FakeModels,
    Project,
    body,
    case,
    cases,
    draft,
    knows,
    lines,
    served,
)
from support.kit import write_skill
from support.loopback import Asked


def nobody(questions: Sequence[Question]) -> list[Reply]:
    assert not questions, "nobody is to be asked"
    return []


def tried(
    *replies: Any,
    kept: tuple[UsableCase, ...] = (),
    agents: bool = False,
) -> tuple[list[UsableCase], list[str]]:
    """Those that hold, and why the others fell."""
    trial, usable, problems = (
        CaseTrial(nobody, agents=agents),
        list(kept),
        list[str](),
    )
    for reply in replies:
        try:
            usable.append(trial.tried(reply, usable))
        except NotUsable as error:
            problems.append(str(error))
    return usable[len(kept) :], problems


def ids(cases: Sequence[UsableCase]) -> list[str]:
    return [usable.case.id for usable in cases]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"input": "Is lamp zorp right for red?"}, "'zorp' is in the question itself"),
        (
            {"reference": "Type lamp quib."},
            'reference answer fails: "zorp" is not in the answer',
        ),
        ({"wrong": "Type lamp zorp now."}, "its wrong answer passes"),
        ({"wrong": " "}, "it has no wrong answer"),
        ({"expected": {"not_contains": ["sudo"]}}, "a bare Okay passes"),
        (
            {"expected": {"words": ["the"]}, "reference": "the"},
            "an off-topic answer passes",
        ),
        ({"expected": {}}, "expected: no check"),
        ({"expected": {"contains": []}}, "expected: no check"),
        ({"expected": {"regex": ["("]}}, "expected.regex"),
        ({"expected": {"python": "x.py:f"}}, "unknown check 'python'"),
        ({"expected": {"judge": ["It is good."]}}, "unknown check 'judge'"),
        ({"expected": {"any_of": [{"python": "x.py:f"}]}}, "unknown check 'python'"),
        ({"input": ""}, "input: must not be empty"),
        ({"input": "red " * 6000}, "the question has 24,000 characters (limit 20,000)"),
        ({"reference": None}, "reference: Input should be a valid string"),
    ],
)
def test_a_case_that_does_not_tell_right_from_wrong_is_rejected(
    change: dict[str, Any], why: str
) -> None:
    good, fallen = tried(case("red", **change), case("blue"))
    assert ids(good) == ["colour-blue"]
    assert why in fallen[0]


def test_garbage_is_rejected_and_spoils_no_other_case() -> None:
    good, fallen = tried("red", None, 3, [], case("red"))
    assert (ids(good), len(fallen)) == (["colour-red"], 4)


def test_near_duplicates_are_rejected_also_of_known_cases() -> None:
    question = (
        "Which lamp command makes everything in the whole big house {} at once tonight?"
    )
    one, two, three = (
        case(c, input=question.format(c)) for c in ("red", "blue", "pink")
    )
    good, fallen = tried(one, two)
    assert (ids(good), fallen) == (
        ["colour-red"],
        ["it asks nearly the same as another one"],
    )
    assert tried(three, kept=tuple(good))[0] == []


def test_ids_are_made_unique_and_reserved_tags_are_dropped() -> None:
    replies = [
        case("red", id="Same One!"),
        case("blue", id="same one"),
        case("pink", id=""),
    ]
    replies[0]["tags"] = ["holdout", "Learn", "big deal", "skip"]
    good, _ = tried(*replies)
    names = ["same-one", "same-one--2", "switch-over-to-pink-give-the-whole-line"]
    assert ids(good) == names
    assert good[0].case.tags == ("big-deal",)


def test_empty_checks_count_as_not_written() -> None:
    empty = {
        name: type(example)()
        for name, (example, _) in offered(judge=False).items()
        if name != "contains"
    }
    good, _ = tried(case("red", expected={**empty, "contains": ["zorp"]}))
    assert good[0].data["expected"] == {"contains": ["zorp"]}


def test_every_check_of_the_prompt_exists_and_has_a_valid_example() -> None:
    for judge in (False, True):
        told = [
            json.loads(line[2:].partition("}: ")[0] + "}")
            for line in described_checks(judge).split("\n")
        ]
        assert [name for one in told for name in one] == list(offered(judge))
        for one in told:
            assert parse_checks(one, KINDS, ())
        schema = json.loads(cases_schema(judge))
        expected = schema["properties"]["cases"]["items"]["properties"]["expected"]
        assert (
            list(expected["properties"]) == expected["required"] == list(offered(judge))
        )


def test_rejected_cases_are_replaced(project: Project) -> None:
    bad = [
        case("red", input="Is lamp zorp right for red?"),
        case("green", reference="I forgot."),
        case("amber", input=case("blue")["input"]),
    ]
    first = cases(*bad, *map(case, COLOURS[4:]), case("blue"))
    again = cases(case("red"), case("green"), case("amber"))
    fake = FakeModels(cases=[first, again])
    status, shown, _ = project.generate(fake, "--no-eval")
    assert status == 0
    assert "Generating cases… 12 kept, 3 rejected" in lines(shown)
    assert len(load_cases(project.skill / "skill_meta.json").require_all()) == 12
    _, second = fake.of("author")
    assert (
        "rejected because the expected text 'zorp' is in the question itself"
        in second.question
    )
    assert "its reference answer fails" in second.question
    assert "nearly the same as another" in second.question


def test_after_two_rounds_the_usable_cases_are_kept(project: Project) -> None:
    fake = FakeModels(
        cases=[cases(*map(case, COLOURS[:5]), case("pink", reference="no"))]
    )
    assert project.generate(fake, "--no-eval")[0] == 0
    assert len(fake.of("author")) <= 4
    assert len(load_cases(project.skill / "skill_meta.json").require_all()) == 5


def test_too_few_usable_cases_are_an_error(project: Project) -> None:
    fake = FakeModels(cases=[cases(case("red"), case("pink", reference="no"))])
    status, _, error = project.generate(fake)
    assert status == 1
    assert "only 1 of 12 cases usable" in error
    assert "its reference answer fails" in error
    assert project.files() == []


def test_the_complete_cases_of_a_cut_off_reply_are_used(project: Project) -> None:
    whole = cases(*map(case, COLOURS))
    fake = FakeModels(cases=[whole[: len(whole) - 40], cases(case("grey"))])
    assert project.generate(fake, "--no-eval")[0] == 0
    assert len(load_cases(project.skill / "skill_meta.json").require_all()) == 12


def knows_red(asked: Asked) -> str:
    return "Type lamp zorp." if " red" in asked.question else knows(asked)


def test_cases_that_every_student_passes_anyway_are_replaced_once(
    project: Project,
) -> None:
    first = cases(*map(case, COLOURS[:-1]), case("grey"))
    other = case("red", id="new", input="How is sunset light made?", tags=[])
    other |= {
        "expected": {"contains": ["sundo"]},
        "reference": "sundo",
        "wrong": "sunset",
    }
    fake = FakeModels([draft(*COLOURS)], [first, cases(other)], student=knows_red)
    assert project.generate(fake)[0] == 0
    assert "every student passes it without the skill" in fake.of("author")[1].question
    ids = [
        one.id for one in load_cases(project.skill / "skill_meta.json").require_all()
    ]
    assert "new" in ids
    assert "colour-red" not in ids


def test_answers_that_cases_are_chosen_by_do_not_count(project: Project) -> None:
    """A student that fails when cases are chosen, and passes
    without the skill from then on.
    """
    times = Counter[str]()

    def learns(asked: Asked) -> str:
        if "lamp" in asked.system:
            return knows(asked)
        times[asked.question] += 1
        words = " ".join(f"lamp {word}" for word in SECRETS.values())
        return f"Type {words}." if times[asked.question] > 1 else "I do not know."

    _, data = project.taught(FakeModels(student=learns))
    assert set(times.values()) == {2}
    assert data["attempts"][0]["held_out"][0]["baseline_rate"] == 1


def test_cases_without_signal_are_kept_and_reported(project: Project) -> None:
    fake = FakeModels(student=knows_red)
    _, data = project.taught(fake)
    assert data["no_signal"] == ["colour-red"]
    assert len(fake.of("author")) == 2


def test_cases_of_an_adversary_are_for_learning(project: Project) -> None:
    attack = case("grey", id="trick", input="Which lamp command is for fog?")
    attack |= {
        "expected": {"contains": ["foggo"]},
        "reference": "lamp foggo",
        "wrong": "lamp fog",
    }
    leak = case("grey", id="leak", input="Is tund for grey?")
    fake = FakeModels([draft("red"), draft(*COLOURS)], attacks=[cases(attack, leak)])
    assert project.generate(fake, "--adversary", "bad", "--attempts", "2")[0] == 0
    read = {
        one.id: one.tags
        for one in load_cases(project.skill / "skill_meta.json").require_all()
    }
    assert read["trick"] == ("colour", "adversary", "learn")
    assert "leak" not in read
    assert body("red") in fake.of("adversary")[0].question
    assert "Which lamp command is for fog?" in fake.of("teacher")[1].question


def test_another_model_can_write_the_cases(project: Project) -> None:
    fake = FakeModels()
    project.generate(fake, "--no-eval", "--test-model", "tester")
    assert [asked.model for asked in fake.of("author")] == ["tester"]
    project.generate(fake, "--no-eval", "--test-model", "other", "--force")
    assert fake.of("author")[-1].model == "other"


def test_cases_are_written_for_a_skill_that_has_none_and_more_are_added(
    project: Project,
) -> None:
    folder = write_skill(project.folder / "skills/gate", body=body(*COLOURS))
    (folder / "skill_meta.json").unlink()
    before = (folder / "SKILL.md").read_bytes()
    fake = FakeModels(
        cases=[cases(*map(case, COLOURS[:6])), cases(*map(case, COLOURS[6:8]))]
    )
    with served(fake) as url:
        words = ["cases", "gate", "--model", "big", "--base-url", url, "--yes"]
        status, shown, error = project.run(*words, "--cases", "6")
        assert (status, error) == (0, ""), shown
        assert len(load_cases(folder / "skill_meta.json").require_all()) == 6
        status, _, error = project.run(*words)
        assert status == 2
        assert "has cases already\n  Add more with --add N" in error
        status, _, _ = project.run(*words, "--add", "2")
    assert status == 0
    read = load_cases(folder / "skill_meta.json").require_all()
    assert [one.id for one in read] == [f"colour-{colour}" for colour in COLOURS[:8]]
    assert all({"learn", "holdout"} & set(one.tags) for one in read)
    assert (folder / "SKILL.md").read_bytes() == before
    assert not fake.of("student")
    assert body(*COLOURS) in fake.of("author")[0].question


@pytest.mark.parametrize(
    ("name", "data"),
    [
        # As upskill saves it
        ("skill_meta.json", {"metadata": {"version": "1.0"}, "tests": []}),
        ("evals/evals.json", [{"query": "Open?", "should_trigger": True}]),
    ],
)
def test_cases_are_written_beside_a_file_without_any(
    project: Project, name: str, data: Any
) -> None:
    folder = write_skill(project.folder / "skills/gate", body=body(*COLOURS))
    (folder / "skill_meta.json").unlink()
    (folder / "evals").mkdir()
    (folder / name).write_text(json.dumps(data))
    with served(FakeModels(cases=[cases(*map(case, COLOURS[:4]))])) as url:
        words = [
            "cases",
            "gate",
            "--model",
            "big",
            "--base-url",
            url,
            "--yes",
            "--cases",
            "4",
        ]
        status, shown, _ = project.run(*words)
    assert status == 0, shown
    written = json.loads((folder / "skill_meta.json").read_text())
    assert len(written["cases"]) == 4
    assert "tests" not in written
    if isinstance(data, dict):
        assert written["metadata"] == data["metadata"]


def test_a_file_of_cases_keeps_its_content(project: Project) -> None:
    folder = write_skill(project.folder / "skills/gate", body=body(*COLOURS))
    own = {"input": "Open?", "expected": {"contains": "up"}, "runs": 2}
    query = {"query": "Open it", "should_trigger": True}
    data = {
        "defaults": {"system": "Be short."},
        "cases": [own, query],
        "triggers": [query],
    }
    (folder / "skill_meta.json").write_text(json.dumps(data))
    with served(FakeModels(cases=[cases(*map(case, COLOURS[:4]))])) as url:
        words = [
            "cases",
            "skills/gate",
            "--add",
            "4",
            "--model",
            "big",
            "--base-url",
            url,
            "--yes",
        ]
        assert project.run(*words)[0] == 0
    written = json.loads((folder / "skill_meta.json").read_text())
    assert written["defaults"] == data["defaults"]
    assert written["triggers"] == data["triggers"]
    assert {**written["cases"][0], "tags": []} == {**own, "tags": []}
    assert written["cases"][1] == query
    assert len(written["cases"]) == 6
    assert "metadata" not in written  # its author wrote this skill, not a model


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--add", "0"], "--add 0: not a whole number from 1 to 200"),
        (["--add", "-1"], "--add -1: not a whole number from 1 to 200"),
        (
            ["--add", "2"],
            "--add 2: a skill needs at least 4 cases\n  It has 1: write at least 3.",
        ),
    ],
)
def test_errors_about_the_number_of_cases_name_the_option_that_was_given(
    project: Project, words: list[str], problem: str
) -> None:
    write_skill(project.folder / "skills/gate")
    status, _, error = project.run("cases", "gate", *words, "--model", "local")
    assert (status, error) == (2, f"pytest-upskill: {problem}\n")


def test_cases_are_not_added_to_evals_json(project: Project) -> None:
    folder = write_skill(project.folder / "skills/gate")
    (folder / "skill_meta.json").unlink()
    (folder / "evals").mkdir()
    evals = {
        "skill_name": "gate",
        "evals": [{"id": 1, "prompt": "a", "expectations": ["b"]}],
    }
    (folder / "evals/evals.json").write_text(json.dumps(evals))
    words = [
        "cases",
        "gate",
        "--add",
        "4",
        "--model",
        "big",
        "--base-url",
        "http://127.0.0.1:9",
    ]
    status, _, error = project.run(*words, "--yes")
    assert status == 2
    assert "cases can only be added to skill_meta.json" in error


def test_no_usable_case_is_an_error_with_reasons(project: Project) -> None:
    written = [
        {"id": f"own-{number}", "input": f"Open {number}?"} for number in range(4)
    ]
    shaped = [{**one, "expected": {"contains": "up"}} for one in written]
    folder = write_skill(project.folder / "skills/gate", shaped, body=body(*COLOURS))
    before = (folder / "skill_meta.json").read_bytes()
    with served(FakeModels(cases=[cases(case("pink", reference="no"))])) as url:
        words = [
            "cases",
            "gate",
            "--add",
            "2",
            "--model",
            "big",
            "--base-url",
            url,
            "--yes",
        ]
        status, shown, error = project.run(*words)
    assert status == 1
    assert "only 0 of 2 cases usable" in error
    assert "its reference answer fails" in error
    assert "Saved" not in shown
    assert (folder / "skill_meta.json").read_bytes() == before


IDS = [f"case-{number}" for number in range(30)]


@given(
    st.lists(
        st.tuples(st.sampled_from(IDS), st.sampled_from([(), ("a",), ("b",)])),
        unique_by=lambda c: c[0],
    ),
    st.floats(0, 0.8),
)
def test_a_split_is_the_same_in_any_order_and_leaves_enough_to_learn_from(
    named: list[tuple[str, tuple[str, ...]]], share: float
) -> None:
    cases = [Case(name, f"Question of {name}", tags=tags) for name, tags in named]
    held = ids_held_out(cases, share)
    assert held <= {case.id for case in cases}
    assert held == ids_held_out(list(reversed(cases)), share)
    if len(cases) >= 6 and share > 0.05:
        assert len(held) >= 2
        assert len(cases) - len(held) >= 2
    if share == 0:
        assert not held


def test_every_kind_of_question_is_held_out_by_its_share() -> None:
    names = [f"{kind}-{number}" for kind in "abc" for number in range(6)]
    held = ids_held_out([Case(name, name, tags=(name[0],)) for name in names], 1 / 3)
    assert sorted(name[0] for name in held) == ["a", "a", "b", "b", "c", "c"]


def test_cases_that_ask_the_same_are_held_out_together() -> None:
    cases = [Case(f"{kind}{n}", f"Question {n}") for n in range(20) for kind in "ab"]
    held = ids_held_out(cases, 0.4)
    assert len(held) == 16
    assert all(f"a{name[1:]}" in held and f"b{name[1:]}" in held for name in held)
    assert held == ids_held_out(reversed(cases), 0.4)
    first = replace(cases[0], tags=("learn",))
    assert not ids_held_out([first, *cases[1:]], 0.4) & {"a0", "b0"}
    first = replace(cases[0], tags=("holdout",))
    assert ids_held_out([first, *cases[1:]], 0.4) >= {"a0", "b0"}


LEFT = {
    "expected": {},
    "leaves": [{"path": "lamp.txt", "contains": ["zorp"], "not_contains": ["sudo"]}],
    "reference": "It is in lamp.txt.",
    "reference_files": [{"name": "lamp.txt", "text": "lamp zorp\n"}],
    "wrong": "It is in lamp.txt.",
    "wrong_files": [{"name": "lamp.txt", "text": "lamp red\n"}],
}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, None),
        ({"files": [{"name": "old.txt", "text": "lamp"}]}, None),
        ({"reference_files": []}, "its reference answer fails: lamp.txt"),
        ({"wrong_files": LEFT["reference_files"]}, "its wrong answer passes"),
        (
            {"files": [{"name": "../old.txt", "text": "lamp"}]},
            "'../old.txt' can't be a file",
        ),
        ({"leaves": [{"path": "../lamp.txt"}]}, "expected.files"),
        ({"files": [{"name": "lamp.txt", "text": "lamp zorp"}]}, "passes its checks"),
    ],
)
def test_cases_for_agents_are_tried_with_the_files_that_they_leave(
    change: dict[str, Any], why: str | None
) -> None:
    written = case("red", **{**LEFT, **change})
    good, fallen = tried(written, agents=True)
    if why is None:
        asked = {
            "files": {"lamp.txt": {"contains": ["zorp"], "not_contains": ["sudo"]}}
        }
        assert [one.data["expected"] for one in good] == [asked]
    else:
        assert not good
        assert why in fallen[0]


def test_cases_for_agents_are_not_for_plain_questions() -> None:
    good, fallen = tried(case("red", **LEFT))
    assert (good, len(fallen)) == ([], 1)
    assert "leaves" in cases_schema(judge=False, agents=True)
    assert "leaves" not in cases_schema(judge=False)
