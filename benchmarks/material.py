"""Projects for the benchmarks, in a temporary folder."""

import json
from pathlib import Path
from typing import Final

MODEL: Final = "m"
BASE_SYSTEM: Final = "You are a helpful assistant."
LINE: Final = (
    "Type `lamp on` at the prompt and wait until the lamp is lit before you go on.\n"
)
BODY: Final = LINE * 50  # 3.9 KB, a typical skill


def write_skill(folder: Path, cases: int) -> Path:
    """Write a skill whose cases all pass with serve.ANSWER."""
    folder.mkdir(parents=True)
    head = f"---\nname: {folder.name}\ndescription: How to light the lamp.\n---\n"
    (folder / "SKILL.md").write_text(f"{head}\n{BODY}", encoding="utf-8")
    listed = [
        {
            "id": f"case-{number}",
            "input": f"How do I light number {number}?",
            "expected": {"contains": ["lamp", "lit"]},
        }
        for number in range(cases)
    ]
    (folder / "skill_meta.json").write_text(
        json.dumps({"cases": listed}), encoding="utf-8"
    )
    return folder


def questions(folder: Path) -> list[tuple[str, str]]:
    """What both arms of all cases ask: system text and question."""
    skill = (
        (folder / "SKILL.md")
        .read_text(encoding="utf-8")
        .partition("\n---\n")[2]
        .strip()
    )
    cases = json.loads((folder / "skill_meta.json").read_bytes())["cases"]
    systems = (BASE_SYSTEM, f"{BASE_SYSTEM}\n\n{skill}")
    return [(system, case["input"]) for case in cases for system in systems]


def write_scripted(file: Path, answer: str) -> str:
    """Write a model that gives this answer at once; return its name."""
    file.write_text(json.dumps([{"answer": answer}]), encoding="utf-8")
    return f"scripted:{file}"


def write_empty_test(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "test_empty.py").write_text(
        "def test_empty():\n    pass\n", encoding="utf-8"
    )
    return folder


def write_empty_tests(folder: Path, number: int) -> Path:
    """As many tests as there are cases, which do nothing."""
    folder.mkdir(parents=True)
    test = f"""import pytest

@pytest.mark.parametrize("number", range({number}))
def test_empty(number):
    pass
"""
    (folder / "test_empty.py").write_text(test, encoding="utf-8")
    return folder
