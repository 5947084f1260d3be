"""What runs say of a useless skill if replies are empty, or answers are missing."""

import re

import pytest

from support.known_model import KnownModel
from support.pages import page_words

pytestmark = pytest.mark.usefixtures("short_pauses")
VERDICTS = re.compile(r"\b(helps|hurts|better|not needed|no effect|unclear)\b")


def test_empty_replies_get_no_second_try(pytester: pytest.Pytester) -> None:
    """If they were asked again until they say something,
    77 % would pass in place of 50 %.
    """
    right = 0.5 / 0.65  # so half of all first replies are right
    with KnownModel(
        pytester, 12, empty={"skill": 0.35}, baseline=0.5, skill=right
    ) as known:
        run = known.run("--skill-runs", "3")
        stored = known.run("--skill-runs", "3").summary
        assert len(known.server.asked) == 72
    row = run.summary
    assert row["skill_rate"] == pytest.approx(0.5, abs=0.1)
    assert row["verdict"] != "helps"
    assert row["errored"] == 0
    assert [row["arms"][arm]["retries"] for arm in ("baseline", "skill")] == [0, 0]
    assert stored["lift"] == row["lift"]
    empty = [record for record in run.records if not record["output"]]
    assert len(empty) == pytest.approx(0.35 * 36, abs=6)
    assert {(record["arm"], record["outcome"]) for record in empty} == {
        ("skill", "failed")
    }


def test_no_word_while_the_hard_cases_are_missing(pytester: pytest.Pytester) -> None:
    chances = [0.1] * 4 + [0.9] * 6  # in both arms
    errors = {f"c{n}": ["skill"] for n in range(4)}
    reports = ("--skill-markdown", "comment.md", "--skill-html", "page.html")
    with KnownModel(
        pytester, 10, errors=errors, baseline=chances, skill=chances
    ) as known:
        run = known.run("--skill-runs", "2", *reports)
    row = run.summary
    assert row["verdict"] == "incomplete"
    assert (row["lift"], row["lift_low"], row["p_value"]) == (None, None, None)
    counts = [
        [row["arms"][arm][count] for count in ("asked", "errored", "retries")]
        for arm in ("baseline", "skill")
    ]
    assert counts == [[20, 0, 0], [20, 8, 32]]  # each with four more attempts
    less, more = (row["arms"][arm]["passed"] for arm in ("baseline", "skill"))
    bounds = tuple(row["possible_lift"].values())
    assert bounds == pytest.approx(((more - less) / 20, (more + 8 - less) / 20))
    assert f"with the skill 12 of 20 answered, {more} passed" in row["sentence"]
    comment, page = (pytester.path.joinpath(name).read_text() for name in reports[1::2])
    screen = " ".join(run.screen.split())
    assert "worse with the skill" not in screen + comment
    # Instead of a rate of the easy cases
    assert row["sentence"] in screen
    for text in (screen, comment, page_words(page)):
        assert "8 answers missing" in text
    assert not VERDICTS.search(screen + comment)
