"""Patterns are compiled and matched by another process, with limits of memory and
time.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_upskill.checks import grade, matching, parse_checks, time_budget
from pytest_upskill.checks.kinds import KINDS
from pytest_upskill.checks.matching import compile_pattern, search
from pytest_upskill.checks.parse import load_checked_cases
from pytest_upskill.checks.time_budget import LimitReachedError
from pytest_upskill.errors import CheckError
from pytest_upskill.trials.answer import Answer

MANY = "".join(chr(0x4E00 + 2 * number) for number in range(380))
# The members of a set in a set, which counts as one character, are copied 90,000 times.
NESTED_SETS = f"(?V1)[[{MANY * 4}]--[b]]{{90000}}"


@pytest.fixture(autouse=True)
def no_cache() -> Iterator[None]:
    matching._spans.cache_clear()
    yield
    matching._spans.cache_clear()


def process_id() -> int:
    search("a", "a" * 10, case_sensitive=True)
    process = matching._PROCESS._process
    assert process
    return process.pid


@pytest.mark.skipif(
    sys.platform != "linux", reason="other systems don't limit the memory"
)
def test_a_pattern_that_takes_gigabytes_is_refused_and_the_next_one_works() -> None:
    with pytest.raises(ValueError, match="a pattern may use 512 MB of memory"):
        compile_pattern(NESTED_SETS)
    assert search("b+", "abbc", case_sensitive=True) == "bb"


@pytest.mark.parametrize(
    "pattern",
    [
        f"[{MANY}]{{99999}}",
        "(?:a{999}){999}",
        "((a{99}){99}){99}",
        "(?:(?:ab|c){300}){300}",
    ],
    ids=["set", "twice", "three times", "group"],
)
def test_counts_that_multiply_are_refused_with_file_and_line(
    tmp_path: Path, pattern: str
) -> None:
    file = tmp_path / "skill_meta.json"
    file.write_text(
        '[{"id": "good", "input": "q", "expected": {"regex": "a"}},\n'
        f' {{"id": "bad", "input": "q", "expected": {{"regex": "{pattern}"}}}}]\n'
    )
    loaded = load_checked_cases(file)
    assert [case.id for case, _ in loaded.cases] == ["good"]
    (broken,) = loaded.broken
    assert f"{file}:2" in str(broken.error)
    assert "repeat counts such as {999} are too large" in str(broken.error)


def test_a_search_has_its_own_limit_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "_SECONDS", 0.05)
    checks = parse_checks({"not_regex": "(a|aa)+$"}, KINDS, ())
    with pytest.raises(
        CheckError, match=r"a pattern has 0.05 s, and not_regex .* was not done"
    ):
        grade(checks, Answer("a" * 5_000 + "b"))


def test_its_time_is_taken_from_the_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "_SECONDS", 0.05)
    with time_budget.time_budget(60):
        for _ in range(3):
            with pytest.raises(LimitReachedError):
                search("(a|aa)+$", "a" * 5_000 + "b", case_sensitive=True)
        assert time_budget.seconds_left() < 60 - 3 * 0.04


def test_who_kills_the_process_harms_no_check() -> None:
    first = process_id()
    process = matching._PROCESS._process
    assert process
    process.kill()
    process.wait()
    matching._spans.cache_clear()
    assert search("[xy]", "zy", case_sensitive=True) == "y"
    assert process_id() != first


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_process_holds_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    matching._PROCESS.end()
    monkeypatch.setenv("SOME_API_KEY", "sk-secret")
    assert b"sk-secret" not in Path(f"/proc/{process_id()}/environ").read_bytes()


def test_no_module_of_the_current_folder_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    matching._PROCESS.end()
    for name in ("json.py", "regex.py", "sitecustomize.py"):
        (tmp_path / name).write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert search("a", "xA", case_sensitive=False) == "A"
