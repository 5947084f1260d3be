"""Shorter versions of a skill: the sizes on the way, what a teacher may write,
the choice.
"""

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_upskill.results.run import RunResults
from pytest_upskill.skills.skill import load_skill
from pytest_upskill.stats import Lift
from pytest_upskill.teach.drafts import Draft, draft_of
from pytest_upskill.teach.outcome import Attempt
from pytest_upskill.teach.replies import NotUsable
from pytest_upskill.teach.shorter import (
    best_of_sizes,
    read_version,
    shortest_within,
    sizes_toward,
    within,
)
from support.kit import write_skill
from support.made import made_run

LONG = "\n\n".join(
    ["# Gate", "Open it with `gate up`.", "See references/keys.md.", "Words. " * 60]
)


@pytest.fixture
def whole(tmp_path: Path) -> Draft:
    folder = write_skill(tmp_path / "gate", body=LONG, frontmatter="license: MIT\n")
    (folder / "references").mkdir()
    (folder / "references/keys.md").write_text("Keys.")
    (folder / "references/more.md").write_text("More.")
    file = folder / "SKILL.md"
    return draft_of(load_skill(file))


def reply(body: str, **more: object) -> str:
    return json.dumps({"body": body, **more})


@given(st.integers(1, 5_000), st.integers(2, 100_000), st.integers(1, 6))
def test_sizes_go_down_to_the_limit(limit: int, tokens: int, most: int) -> None:
    limit = min(limit, tokens - 1)
    sizes = sizes_toward(limit, tokens, most)
    assert sizes == sorted(set(sizes), reverse=True)
    assert sizes[-1] == limit
    assert sizes[0] < tokens
    assert 1 <= len(sizes) <= most


def test_sizes_are_steps_of_the_same_ratio() -> None:
    assert sizes_toward(100, 800) == [400, 200, 100]
    assert sizes_toward(700, 800) == [700]


def test_only_the_body_changes(whole: Draft, tmp_path: Path) -> None:
    text = reply("Type `gate up`.", name="other", description="Another one.")
    version = read_version(text, whole, 50)
    assert version.body == "Type `gate up`."
    assert (version.name, version.description) == (whole.name, whole.description)
    written = version.write(tmp_path / "new")
    assert "license: MIT" in written.read_text()
    assert (tmp_path / "new/references/keys.md").is_file()


def test_a_whole_skill_md_is_taken_for_its_body(whole: Draft) -> None:
    text = "```markdown\n---\nname: x\ndescription: y\n---\nType `gate up`.\n```"
    assert read_version(text, whole, 50).body == "Type `gate up`."


@pytest.mark.parametrize(
    ("body", "more", "problem"),
    [
        (
            "Words. " * 60,
            {},
            "about 105 tokens, 55 too many: at most 50 are allowed, 200 bytes",
        ),
        ("", {}, "the body is empty"),
        (
            "See `references/other.md`.",
            {},
            "names files that are not there: 'references/other.md'",
        ),
        ("Run scripts/open.py first.", {}, "not there: 'scripts/open.py'"),
        ("```sh\npython scripts/open.py\n```", {}, "not there: 'scripts/open.py'"),
        ("[keys](keys-of-all.md)", {}, "'keys-of-all.md' not found in the skill"),
        (
            "Short.",
            {"files": [{"path": "references/a.md", "text": "A"}]},
            "no new files",
        ),
    ],
)
def test_what_a_version_must_not_be(
    whole: Draft, body: str, more: dict[str, object], problem: str
) -> None:
    with pytest.raises(NotUsable) as error:
        read_version(reply(body, **more), whole, 50)
    assert problem in str(error.value)


def test_files_that_are_there_may_be_named(whole: Draft) -> None:
    body = "`gate up`; references/keys.md, `references/more.md`, your `src/main.py`"
    assert read_version(reply(body), whole, 50).body == body


def test_faults_of_the_whole_skill_are_not_those_of_a_version(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "gate", body=f"[gone](gone.md)\n\n{LONG}")
    text = (folder / "SKILL.md").read_text()
    (folder / "SKILL.md").write_text(text.replace("About a gate.", "x" * 1100))
    file = folder / "SKILL.md"
    whole = draft_of(load_skill(file))
    assert (
        read_version(reply("See [gone](gone.md)."), whole, 50).description == "x" * 1100
    )


@given(st.text(max_size=300))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_body_is_taken_as_it_is_or_refused(
    whole: Draft, tmp_path: Path, body: str
) -> None:
    with suppress(NotUsable):
        version = read_version(reply(body), whole, 20)
        assert 0 < version.tokens <= 20
        with suppress(FileExistsError):
            assert load_skill(version.write(tmp_path / "any")).name == whole.name


# Which version is chosen: from long to short, each only if the one before it held.

GOOD = Lift(0.0, -0.08, 0.2, 1.0)
SMALL_LOSS = Lift(-0.05, -0.09, -0.01, 0.01)
UNKNOWN = Lift(0.0, -0.3, 0.3, 1.0)


def short(number: int, body: str, size: int = 500, passed: int = 4) -> Attempt:
    results = made_run(
        cases=4, passes=lambda case, _, arm, _run: arm == "skill" and case < passed
    )
    draft = Draft("gate", "About.", body)
    return Attempt(number, draft, results, most_tokens=size)


def test_the_shortest_that_holds_is_chosen() -> None:
    assert shortest_within([[GOOD], [GOOD], [GOOD]], 0.1) == 2
    assert shortest_within([[GOOD], [GOOD], [UNKNOWN]], 0.1) == 1
    assert shortest_within([[GOOD], [SMALL_LOSS], [UNKNOWN]], 0.1) == 1


def test_nothing_is_looked_at_after_the_first_that_does_not_hold() -> None:
    assert shortest_within([[UNKNOWN], [GOOD], [GOOD]], 0.1) is None
    assert shortest_within([[GOOD], [UNKNOWN], [GOOD]], 0.1) == 0


def test_every_student_counts() -> None:
    assert shortest_within([[GOOD, GOOD], [GOOD, UNKNOWN]], 0.1) == 0
    assert shortest_within([[GOOD, UNKNOWN], [GOOD, GOOD]], 0.1) is None


def test_of_each_size_the_best_version_counts_and_each_text_once() -> None:
    found = [
        short(1, "x" * 400, size=300, passed=2),
        short(2, "y" * 200, size=100, passed=1),
        short(3, "z" * 240, size=100, passed=3),
        short(4, "x" * 400, size=200, passed=2),
        Attempt(5, Draft("gate", "", ""), problem="too long", most_tokens=50),
    ]
    assert [one.number for one in best_of_sizes(found)] == [1, 3]


def test_a_loss_is_that_of_the_student_that_loses_most() -> None:
    def run(weak: int) -> RunResults:
        return made_run(
            models=("a", "b"),
            cases=4,
            passes=lambda case, model, *_: case < (weak if model == "b" else 4),
        )

    whole, less = run(4), run(3)
    assert within(whole, less, 0.25)
    assert not within(whole, less, 0.24)
