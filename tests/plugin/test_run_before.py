"""--skill-html: the page is compared with the run before, if the history has one."""

from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.results.history import runs
from support.kit import case, commit_all, write_script, write_skill
from support.pages import data_of

PAGE = "report.html"


@pytest.fixture
def args(pytester: pytest.Pytester) -> list[str]:
    """Two cases that pass with the skill; the answers are asked again in every run."""
    write_skill(
        pytester.path / "skills/gate",
        [case("Open?", "gate up", id="a"), case("And up?", "gate up", id="b")],
    )
    model = write_script(pytester.path / "a.json")
    return ["--skill", "skills", "--model", model, "--skill-fresh", "--skill-html", PAGE]


def page(pytester: pytest.Pytester) -> str:
    return (pytester.path / PAGE).read_text("utf-8")


def data(pytester: pytest.Pytester) -> dict[str, Any]:
    return data_of(page(pytester))


def changes(pytester: pytest.Pytester) -> list[str | None]:
    return [test["change"] for test in data(pytester)["tests"]]


def folder(pytester: pytest.Pytester) -> Path:
    return pytester.path / ".upskill/runs"


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    """Runs of one second have no order, so each is kept under a time of its own."""
    known = runs(folder(pytester))
    result = pytester.runpytest_inprocess(*args)
    for kept in runs(folder(pytester)):
        if kept not in known:
            moment = f"2026{len(known) + 1:02d}01T000000Z"
            kept.path.rename(kept.path.with_name(f"{moment}-{kept.id[-6:]}.json.gz"))
    return result


def test_the_run_before_is_named_and_its_answers_are_kept(
    pytester: pytest.Pytester, args: list[str], workers: str
) -> None:
    commit_all(pytester.path)
    run(pytester, *args, "-n", workers).assert_outcomes(passed=2)
    assert data(pytester)["before"] is None
    assert "Changed since the run before" not in page(pytester)
    (before,) = runs(folder(pytester))
    write_script(pytester.path / "a.json", knows="Type stop.")
    run(pytester, *args, "-n", workers).assert_outcomes(failed=2)
    assert data(pytester)["before"]["id"] == before.id
    assert before.head.commit
    assert data(pytester)["before"]["commit"] == before.head.commit.id
    assert f"<code>{before.id}</code>" in page(pytester)
    assert changes(pytester) == ["broke", "broke"]
    (trial,) = [one for one in data(pytester)["tests"][0]["was"]["trials"] if one["arm"] == "skill"]
    assert trial["answer"] == ["Type gate up."]


def test_without_a_history_nothing_is_compared(pytester: pytest.Pytester, args: list[str]) -> None:
    run(pytester, *args)
    run(pytester, *args, "--skill-no-history")
    assert data(pytester)["before"] is None


def test_a_run_of_another_skill_or_on_another_model_is_passed_over(
    pytester: pytest.Pytester, args: list[str]
) -> None:
    run(pytester, *args)
    (first,) = runs(folder(pytester))
    write_skill(pytester.path / "other/door", [case("Open?", "gate up", id="a")])
    run(pytester, "--skill", "other", *args[2:])
    assert data(pytester)["before"] is None
    other = write_script(pytester.path / "b.json")
    run(pytester, *args[:3], other, *args[4:])
    assert data(pytester)["before"] is None
    run(pytester, *args)
    assert data(pytester)["before"]["id"] == first.id
    run(pytester, *args, "--model", other)
    assert data(pytester)["before"]["id"] == runs(folder(pytester))[1].id
    assert "Only in this run: gate on scripted:b.json." in page(pytester)


def test_a_run_of_fewer_cases_is_passed_over_while_there_is_a_whole_one(
    pytester: pytest.Pytester, args: list[str]
) -> None:
    run(pytester, *args, "-k", "a and not b")
    run(pytester, *args)
    partial = runs(folder(pytester))[1]
    assert data(pytester)["before"]["id"] == partial.id
    assert changes(pytester) == [None, None]  # the other one is not new
    assert "1 case asked in only one of the runs." in page(pytester)
    whole = runs(folder(pytester))[0]
    run(pytester, *args, "-k", "a and not b")
    assert data(pytester)["before"]["id"] == whole.id
    run(pytester, *args)
    assert data(pytester)["before"]["id"] == whole.id


def test_a_damaged_run_is_said_and_not_fatal(pytester: pytest.Pytester, args: list[str]) -> None:
    run(pytester, *args)
    (kept,) = runs(folder(pytester))
    kept.path.write_bytes(kept.path.read_bytes()[:-40])
    result = run(pytester, *args)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines([f"Not compared with the run before: *{kept.id}.json.gz:"])
    assert "Not compared with the run before" in page(pytester)
    assert data(pytester)["before"] is None


def test_nothing_is_read_from_the_history_without_a_page(
    pytester: pytest.Pytester, args: list[str]
) -> None:
    run(pytester, *args[:-2])
    (kept,) = runs(folder(pytester))
    kept.path.write_bytes(b"")
    result = run(pytester, *args[:-2])
    assert "run before" not in result.stdout.str()
