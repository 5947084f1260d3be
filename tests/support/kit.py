"""A skill on disk, and a model that knows what the skill says."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pytest_upskill.engine.store import Store
from pytest_upskill.errors import SkillError
from pytest_upskill.skills.skill import Skill, load_skill
from pytest_upskill.trials.answer import Answer

BODY = "The command to open the gate is `gate up`."


def case(question: str, *contains: str, **more: Any) -> dict[str, Any]:
    return {"input": question, "expected": {"contains": list(contains)}, **more}


def write_skill(
    folder: Path,
    cases: Sequence[Mapping[str, Any]] | None = None,
    *,
    body: str = BODY,
    frontmatter: str = "",
) -> Path:
    """Write a skill named like its folder, by default with one case about a gate."""
    folder.mkdir(parents=True, exist_ok=True)
    head = f"name: {folder.name}\ndescription: About a gate.\n{frontmatter}"
    (folder / "SKILL.md").write_text(f"---\n{head}---\n\n{body}\n", encoding="utf-8")
    if cases is None:
        cases = [case("How do I open the gate?", "gate up", id="open-gate")]
    (folder / "skill_meta.json").write_text(
        json.dumps({"cases": list(cases)}), encoding="utf-8"
    )
    return folder


def write_script(
    file: Path, *, knows: str = "Type gate up.", does_not: str = "No idea."
) -> str:
    """Write a scripted model that knows the answer only with the skill;
    return its name.
    """
    rules = [{"system": BODY, "answer": knows}, {"answer": does_not}]
    file.write_text(json.dumps(rules), encoding="utf-8")
    return f"scripted:{file.name}"


def commit_all(folder: Path) -> None:
    """Commit everything in a folder to the branch main of a new git repository."""
    person = [
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@example.org",
        "-c",
        "commit.gpgsign=false",
    ]
    for args in (
        ["init", "-q", "-b", "main"],
        ["add", "-A"],
        [*person, "commit", "-qm", "All"],
    ):
        subprocess.run(["git", *args], cwd=folder, check=True)


def skill_with_a_past(
    folder: Path,
    cases: Sequence[Mapping[str, Any]] | None = None,
    *,
    old: str,
    new: str = BODY,
) -> Path:
    """A skill in a git repository whose text has changed since the last commit."""
    write_skill(folder / "skills/gate", cases, body=old)
    commit_all(folder)
    return write_skill(folder / "skills/gate", cases, body=new)


def write_skill_md(folder: Path, text: str | bytes, name: str = "SKILL.md") -> Path:
    """Write exactly this text to SKILL.md in a folder ``gate``."""
    file = folder / "gate" / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return file


def refused(file: Path) -> SkillError:
    """The error that a SKILL.md gives."""
    with pytest.raises(SkillError) as caught:
        load_skill(file)
    return caught.value


def skill_or_error(file: Path) -> Skill | SkillError:
    try:
        return load_skill(file)
    except SkillError as error:
        return error


def write_damaged_store(file: Path) -> None:
    """A store of answers that opens without an error but can't be read."""
    store, random = Store(file), Random(1)
    for number in range(200):
        # Hardly compressible
        store.put(f"k{number}", "m", Answer(random.randbytes(200).hex()))
    store.close()
    data = bytearray(file.read_bytes())
    # Some of the answers; not what comes first, the indexes
    data[30_000:41_000] = b"x" * 11_000
    file.write_bytes(data)
