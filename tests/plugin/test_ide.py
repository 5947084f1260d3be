"""What VS Code and PyCharm need of the nodes, and the arguments they run cases with.

VS Code builds its tree from the items, and takes any with a ``callspec`` for a
Python function. It runs a case by the absolute path of its file. PyCharm
switches header and summary off.
"""

import json
from pathlib import Path

import pytest

from support.kit import case, write_script, write_skill
from support.runs import ending

INI = "[pytest]\nskill_paths = skills\nskill_models = scripted:answers.json\n"


class Collected:
    """A plugin that keeps the items, as an editor's does."""

    def __init__(self) -> None:
        self.items: list[pytest.Item] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.items = session.items


@pytest.fixture
def project(pytester: pytest.Pytester) -> Path:
    questions = [
        case("How does it open?", "gate up", id="open"),
        case("Who?", "nobody", id="who"),
    ]
    write_skill(pytester.path / "skills/gate", questions)
    write_skill(pytester.path / "skills/door", questions)
    for file in pytester.path.glob("skills/*/skill_meta.json"):
        file.write_text(json.dumps({"cases": questions}, indent=1))
    write_script(pytester.path / "answers.json")
    (pytester.path / "test_own.py").write_text("def test_own(): pass")
    (pytester.path / "pytest.ini").write_text(INI)
    return pytester.path


@pytest.mark.parametrize("given", [[], ["."]])
def test_an_item_says_what_the_tree_of_an_editor_shows(
    project: Path, pytester: pytest.Pytester, given: list[str]
) -> None:
    collected = Collected()
    args = ["--collect-only", f"--rootdir={project}", *given]
    assert pytester.inline_run(*args, plugins=[collected]).ret == 0
    found = {item.nodeid: item for item in collected.items}
    assert len(found) == 5
    item = found["skills/gate/skill_meta.json::who[scripted:answers.json]"]
    file = project / "skills/gate/skill_meta.json"
    assert item.path == file
    assert isinstance(item.parent, pytest.File)
    assert item.parent.path == file
    assert item.name == item.nodeid.partition("::")[2]
    assert not hasattr(item, "callspec")
    path, line, _ = item.location
    assert path == str(file.relative_to(project))
    # Where the second case starts
    assert line == file.read_text().splitlines().index("  {", 3)


def test_a_case_runs_by_the_absolute_path_of_its_file(
    project: Path, pytester: pytest.Pytester
) -> None:
    wanted = f"{project}/skills/gate/skill_meta.json::open[scripted:answers.json]"
    args = [f"--rootdir={project}", wanted, f"{project}/test_own.py::test_own"]
    result = pytester.runpytest_inprocess(*args, "--skill-json", "out.json")
    result.assert_outcomes(passed=2)
    tests = json.loads((project / "out.json").read_text())["tests"]
    assert [(test["skill"], test["case"]) for test in tests] == [("gate", "open")]


def test_a_failure_is_a_text_of_its_own(
    project: Path, pytester: pytest.Pytester
) -> None:
    wanted = f"{project}/skills/gate/skill_meta.json::who[scripted:answers.json]"
    run = pytester.inline_run(f"--rootdir={project}", wanted)
    (report,) = run.getreports("pytest_runtest_logreport")[1:2]
    assert report.failed
    assert report.longreprtext.startswith('"nobody" is not in the answer')
    assert "Question:" in report.longreprtext


@pytest.mark.usefixtures("project")
def test_without_header_and_summary_the_gate_is_told_all_the_same(
    pytester: pytest.Pytester,
) -> None:
    wanted = "skills/gate/skill_meta.json::who[scripted:answers.json]"
    quiet = ["--no-header", "--no-summary", "-q"]
    result = pytester.runpytest_inprocess(wanted, *quiet, "--skill-min-pass-rate", "1")
    assert result.ret == 1
    reason = "✘ gate failed: gate on scripted:answers.json"
    assert any(line.startswith(reason) for line in ending(result))
    assert "= skills =" not in result.stdout.str()
    pytester.runpytest_inprocess("--last-failed", *quiet).assert_outcomes(failed=1)
