"""--skill-runs: every question is asked so often."""

from collections import Counter
from typing import Any

import pytest

from support.kit import write_script, write_skill
from support.runs import run_skills


def test_a_case_with_its_own_number_of_runs_keeps_it(pytester: pytest.Pytester) -> None:
    """And no answer is graded twice."""
    cases: list[dict[str, Any]] = [
        {"input": "How?", "id": "a", "expected": {"noted": True}, "runs": 2},
        {"input": "Why?", "id": "b", "expected": {"noted": True}},
    ]
    write_skill(pytester.path / "skills/gate", cases)
    pytester.makeconftest("""
        from pathlib import Path

        def noted(context):
            with Path(__file__).with_name("noted.txt").open("a") as file:
                file.write("x")
            return True

        def pytest_upskill_checks():
            return {"noted": noted}
        """)
    model = write_script(pytester.path / "a.json")
    finished = run_skills(pytester, model, "--skill-runs", "3")
    records = Counter(record["case"] for record in finished.records)
    assert records == {"a": 2 * 2, "b": 2 * 3}
    assert len((pytester.path / "noted.txt").read_text()) == len(finished.records)
