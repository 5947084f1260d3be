"""Skills that get in each other's way, and a model that lets them."""

from pathlib import Path

from .kit import case, write_skill

MODEL = "scripted:model.py:answer"
_MODEL = '''
from pytest_upskill import Answer, ToolCall, Usage


def answer(question):
    """Opens docs-writer for most forms, if it is there, and then gets them wrong."""
    asked, told = question.messages[-1][1], [r.text for s in question.steps for r in s.results]
    tokens = Usage(len(question.system) // 4, 5, 0)
    if told:
        words = [word for word in ("portable", "commas", "prose") if word in told[-1]]
        return Answer(words[0] if words else "No idea.", tokens)
    wanted = ["pdf"] if "form" in asked else ["csv"]
    if "form" in asked and int(asked[:-1].split()[-1]) % 4 != 3:
        wanted.insert(0, "docs-writer")
    for name in wanted:
        if f"<name>{name}</name>" in question.system:
            call = ToolCall("1", "skill", '{"name": "%s"}' % name)
            return Answer("", tokens, "tool_use", calls=(call,))
    return Answer("No idea.", tokens)
'''


def write_neighbours(folder: Path, cases: int = 12) -> None:
    """``pdf`` and ``csv`` with cases, and ``docs-writer``, which spoils the cases of ``pdf``."""
    forms = [case(f"Fill in form {n}.", "portable", id=f"form-{n}") for n in range(cases)]
    tables = [case(f"Sum table {n}.", "commas", id=f"table-{n}") for n in range(cases)]
    texts = {
        "pdf": ("Read and fill in PDF forms.", "Answer with the word portable.", forms),
        "csv": ("Work with tables of values.", "Answer with the word commas.", tables),
        "docs-writer": ("Write any document, form or text.", "Answer with the word prose.", []),
    }
    for name, (description, body, own) in texts.items():
        file = write_skill(folder / "skills" / name, own, body=body) / "SKILL.md"
        file.write_text(file.read_text().replace("About a gate.", description))
    (folder / "model.py").write_text(_MODEL, encoding="utf-8")
