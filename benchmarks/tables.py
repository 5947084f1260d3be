"""The tables of the benchmarks, as Markdown, for the terminal and for RESULTS.md."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tabulate import tabulate

Row = list[str]

RESULTS: Final = Path(__file__).parent / "RESULTS.md"
_shown: list[str] = []  # since the last call of written


def limited(value: float, limit: float, unit: str = "") -> Row:
    """A value and its limit."""
    return [
        f"{value:.2f}{unit}",
        f"≤ {limit:.2f}{unit}",
        "ok" if value <= limit else "ABOVE",
    ]


def show(title: str, rows: Sequence[Row], head: Row | None = None) -> None:
    table = tabulate(
        rows,
        headers=head or ("", "value", "limit", ""),
        disable_numparse=True,
        tablefmt="github",
    )
    print(f"\n{title}\n\n{table}", flush=True)
    note(f"{title}:\n\n{table}")


def note(text: str) -> None:
    """Keep a text for the page."""
    _shown.append(text)


def written(name: str, page: Path | None = None) -> None:
    """Put what was shown since the last call into its place of the page."""
    text = "\n\n".join(_shown)
    _shown.clear()
    if page is None:
        return
    place = re.compile(rf"(<!-- bench: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    draft = page.with_suffix(".draft")  # so that an interrupt leaves a whole page
    old = page.read_text(encoding="utf-8")
    draft.write_text(
        place.sub(lambda at: f"{at[1]}\n{text}\n\n{at[2]}", old), encoding="utf-8"
    )
    draft.replace(page)
