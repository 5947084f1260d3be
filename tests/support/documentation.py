"""The pages of the documentation, and the blocks of code in them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(ROOT.glob("docs/*.md")),
)


def blocks(language: str) -> Iterator[tuple[str, str]]:
    """The name of a page and the text of a block in it."""
    for page in PAGES:
        for text in re.findall(
            rf"^```{language}\n(.*?)^```", page.read_text(), re.S | re.M
        ):
            yield page.name, text


def without_blocks(page: Path) -> str:
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)


def shows(page: str, output: str) -> bool:
    """Whether a page has an output as a block; a line ``[…]``
    stands for lines left out.
    """
    for block in re.findall(r"^```text\n(.*?)^```", page, re.S | re.M):
        parts = re.split(r"^\[…\]\n", block, flags=re.M)
        if re.fullmatch(r"(?:.*\n)+?".join(map(re.escape, parts)), output):
            return True
    return False
