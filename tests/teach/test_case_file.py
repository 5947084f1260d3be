"""The cases that a skill is learned with."""

from pathlib import Path

import pytest

from pytest_upskill.errors import CasesError
from pytest_upskill.teach.case_file import read_case_file
from support.kit import case, write_skill


def test_cases_for_agents_are_refused(tmp_path: Path) -> None:
    plain = case("How?", "gate up", id="plain")
    folder = write_skill(tmp_path / "gate", [plain])
    assert [one.case.id for one in read_case_file(folder).cases] == ["plain"]
    made = {
        "id": "made",
        "input": "Write it.",
        "expected": {"files": {"a.md": {"exists": True}}},
    }
    write_skill(tmp_path / "gate", [plain, made])
    with pytest.raises(
        CasesError, match=r'cases\[1\]: "files" looks at what an agent does; its '
    ):
        read_case_file(folder)
