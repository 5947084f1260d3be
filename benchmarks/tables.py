"""The tables of the benchmarks, as Markdown, for the terminal and for RESULTS.md."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tabulate import tabulate

Row = list[str]

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = (ROOT / "benchmarks/RESULTS.md", ROOT / "docs/performance.md")
_shown: list[str] = []  # since the last call of written


def limited(value: float, limit: float, unit: str = "") -> Row:
    """A value and its limit."""
    return [f"{value:.2f}{unit}", f"≤ {limit:.2f}{unit}", "ok" if value <= limit else "ABOVE"]


def show(title: str, rows: Sequence[Row], head: Row | None = None) -> None:
    table = tabulate(
        rows, headers=head or ("", "value", "limit", ""), disable_numparse=True, tablefmt="github"
    )
    print(f"\n{title}\n\n{table}", flush=True)
    note(f"{title}:\n\n{table}")


def note(text: str) -> None:
    """Keep a text for the page."""
    _shown.append(text)


def written(name: str, pages: Sequence[Path] = ()) -> None:
    """Put what was shown since the last call into its place of each page that has one."""
    text = "\n\n".join(_shown)
    _shown.clear()
    place = re.compile(rf"(<!-- bench: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    for page in pages:
        old = page.read_text(encoding="utf-8")
        new = place.sub(lambda at: f"{at[1]}\n{text}\n\n{at[2]}", old)
        if new != old:
            draft = page.with_suffix(".draft")  # so that an interrupt leaves a whole page
            draft.write_text(new, encoding="utf-8")
            draft.replace(page)
