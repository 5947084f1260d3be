"""generate from end to end: the real command, the real SDKs, a server that is the school."""

import json
from pathlib import Path

from pytest_upskill.cases import load_cases
from pytest_upskill.skills import load_skill
from school import COLOURS, School, body, generate, in_session


def test_a_task_becomes_a_skill_with_cases_that_helps(tmp_path: Path) -> None:
    school = School()
    with in_session(school) as url:
        done = generate(tmp_path, url)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    folder = tmp_path / "skills/lamp-colours"
    skill = load_skill(folder / "SKILL.md")
    assert (skill.name, skill.body) == ("lamp-colours", body(*COLOURS))
    cases = load_cases(folder / "skill_meta.json")
    assert [case.tags[-1] for case in cases].count("holdout") == 4
    assert len(cases) == 12
    meta = json.loads((folder / "skill_meta.json").read_text())["metadata"]
    assert meta["version"] == "1.0"
    assert (meta["generated_by"], meta["test_pass_rate"]) == ("big", 1.0)
    assert meta["source_task"].startswith("answer questions")
