"""The table of what real agents do: it is complete, and says what differs."""

from pathlib import Path

import pytest

from pytest_upskill.agents.command_agent import CommandAgent
from pytest_upskill.agents.roster import AGENTS
from real_agents import table
from real_agents.packages import PACKAGES
from real_agents.table import Cells, accept, differences, expected, rendered


def test_every_agent_has_a_package_and_a_row() -> None:
    names = {name for name, make in AGENTS.items() if isinstance(make(), CommandAgent)}
    assert names <= PACKAGES.keys()
    assert names <= expected().keys()


def test_the_table_is_as_it_is_written() -> None:
    text = table.EXPECTED.read_text(encoding="utf-8")
    assert text.endswith("\n\n".join(rendered(expected())) + "\n")
    tables = text[text.index("| agent") :]
    assert max(map(len, tables.splitlines())) <= 120


def test_a_difference_names_the_cell() -> None:
    known = {"claude": Cells("2.1", {"opened": "Skill", "401": "error ×1"})}
    came = Cells("2.2", {"opened": "no", "401": "error ×1"})
    assert differences(known, "claude", came) == [
        "claude 2.2: opened: 'no' came, 'Skill' was expected (as 2.1 does)"
    ]
    assert differences(known, "claude", known["claude"]) == []
    [told] = differences(known, "codex", Cells("0.1", {"file": "yes"}))
    assert (
        told
        == "codex 0.1: file: 'yes' came, 'nothing' was expected (as no version does)"
    )


def test_cells_that_are_accepted_leave_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "expected.md"
    copy.write_text(table.EXPECTED.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(table, "EXPECTED", copy)
    before = expected()
    accept({"claude": Cells("9.9", {"file": "no"})})
    after = expected()
    assert after["claude"] == Cells("9.9", {**before["claude"].cells, "file": "no"})
    assert after.keys() == before.keys()
