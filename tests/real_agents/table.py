"""The table of agents and behaviours: what is expected, and what came."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_upskill.models.model import ProtocolName

EXPECTED: Final = Path(__file__).parent / "expected.md"
SKILL_COLUMNS: Final = (
    "opened",
    "listed",
    "baseline",
    "reference",
    "script",
    "file",
    "final",
)
END_COLUMNS: Final = ("401", "500", "429", "hang", "turns", "budget", "kill")
TRIGGER_COLUMNS: Final = ("opens", "answers", "opens another", "corrects itself")
TABLES: Final = (SKILL_COLUMNS, END_COLUMNS, TRIGGER_COLUMNS)


@dataclass(frozen=True)
class Row:
    """An agent in one of the protocols that it speaks; its first one is its own."""

    agent: str
    protocol: ProtocolName
    own: bool

    @property
    def name(self) -> str:
        return self.agent if self.own else f"{self.agent}/{self.protocol}"


@dataclass
class Cells:
    """What an agent of one version does, by column."""

    version: str
    cells: dict[str, str]


Table = dict[str, Cells]  # by the names of rows


def expected() -> Table:
    """The table of the repository."""
    table: Table = {}
    columns = list[str]()
    for line in EXPECTED.read_text(encoding="utf-8").splitlines():
        words = [word.strip() for word in line.strip().strip("|").split("|")]
        if not line.startswith("|") or set(line) <= set("|-: "):
            continue
        if words[0] == "agent":
            columns = words[2:]
            continue
        row = table.setdefault(words[0], Cells(words[1], {}))
        row.cells |= {
            name: cell for name, cell in zip(columns, words[2:], strict=True) if cell
        }
    return table


def differences(table: Table, name: str, came: Cells) -> list[str]:
    """The cells of a row that are not as a table says, in words."""
    known = table.get(name) or Cells("no version", {})
    return [
        f"{name} {came.version}: {column}: {cell!r} came, "
        f"{known.cells.get(column, 'nothing')!r} was expected (as {known.version} does)"
        for column, cell in came.cells.items()
        if known.cells.get(column) != cell
    ]


def accept(came: Table) -> None:
    """Write what came into the table of the repository."""
    text = EXPECTED.read_text(encoding="utf-8")
    table = expected()
    for name, row in came.items():
        before = table.get(name, row)
        table[name] = Cells(row.version, {**before.cells, **row.cells})
    start = text.index("| agent")
    EXPECTED.write_text(
        text[:start] + "\n\n".join(rendered(table)) + "\n", encoding="utf-8"
    )


def rendered(table: Mapping[str, Cells]) -> list[str]:
    """The tables in Markdown, aligned for people who read them in a terminal."""
    return [_rendered(table, columns) for columns in TABLES]


def _rendered(table: Mapping[str, Cells], columns: Sequence[str]) -> str:
    head = ["agent", "version", *columns]
    lines = [
        [name, row.version, *(row.cells.get(column, "") for column in columns)]
        for name, row in sorted(table.items())
        if not row.cells.keys().isdisjoint(columns)
    ]
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    lines = [head, ["-" * width for width in widths], *lines]
    return "\n".join(
        f"| {' | '.join(map(str.ljust, line, widths))} |" for line in lines
    )
