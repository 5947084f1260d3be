"""Testing a skill runs none of its code, unless --skill-allow-code is given."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_upskill.cli import main
from support.kit import write_skill

RUN = "with open({log!r}, 'a') as file: file.write({name!r} + ' ')\n"
DOCTEST = ">>> open({log!r}, 'a').write('doctest ')\n"
NIGHTLY = pytest.mark.nightly
# A package with a conftest.py. Whatever else this process has imported under the same
# name would be taken for it, so no other test has a skill or a module called like that.
SKILL = Path("skills/portcullis")
INSIDE = (
    f"skills/portcullis/pytest.ini: ini file inside the skill {SKILL}: its settings can"
    " run code"
)


@pytest.fixture
def project(pytester: pytest.Pytester) -> Path:
    """A project as in the README, and a skill that writes a
    file wherever its code runs.
    """
    assert SKILL.name not in sys.modules
    log, skill = str(pytester.path / "log.txt"), pytester.path / SKILL
    write_skill(
        skill,
        body=f"The command to open the gate is `gate up`.\n{DOCTEST.format(log=log)}",
    )
    (skill / "tests").mkdir()
    for name in ("conftest", "__init__", "tests/conftest", "tests/test_own", "evil"):
        text = f'"""\n{DOCTEST.format(log=log)}"""\n' + RUN.format(log=log, name=name)
        (skill / f"{name}.py").write_text(text + "def test_it(): pass\n")
    (skill / "notes.md").write_text(DOCTEST.format(log=log))
    (pytester.path / "answers.json").write_text('[{"answer": "gate up"}]')
    ini = "[pytest]\nskill_paths = skills\nskill_models = scripted:answers.json\n"
    (pytester.path / "pytest.ini").write_text(ini)
    (pytester.path / "tests").mkdir()
    (pytester.path / "tests/test_other.py").write_text("def test_other(): pass\n")
    return pytester.path


def ran(project: Path) -> str:
    log = project / "log.txt"
    return log.read_text() if log.exists() else ""


@pytest.mark.parametrize(
    ("folder", "args"),
    [
        (".", []),
        (".", ["skills/portcullis"]),
        (".", ["skills/portcullis/skill_meta.json::open-gate", "tests"]),
        (".", ["--skill=skills"]),
        pytest.param(
            ".", ["--skill", "skills/portcullis/SKILL.md", "."], marks=NIGHTLY
        ),
        pytest.param(
            ".", ["--skill", "skills", "-o", "testpaths=skills"], marks=NIGHTLY
        ),
        (".", ["--doctest-glob=*.md", "--doctest-modules", "-o", "python_files=*.py"]),
        (".", ["--rootdir=skills/portcullis", "--skill=skills"]),
        ("skills", []),
        ("skills/portcullis", []),
        pytest.param(
            "skills/portcullis", ["--skill=../portcullis", "../../tests"], marks=NIGHTLY
        ),
        ("skills/portcullis/tests", ["--skill", ".."]),
        ("skills/portcullis", ["--skill", ".", "--pyargs"]),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_no_code_of_a_tested_skill_runs(
    pytester: pytest.Pytester,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    folder: str,
    args: Sequence[str],
) -> None:
    monkeypatch.chdir(project / folder)
    result = pytester.runpytest_inprocess(*args)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*portcullis on scripted:*"])
    assert ran(project) == ""


@pytest.mark.parametrize(
    "args",
    [
        ["--skill=skills/portcullis/more/inner"],
        ["skills/portcullis/more/inner"],
        ["skills/portcullis/more/inner/SKILL.md", "-o", "skill_paths="],
    ],
    ids=" ".join,
)
def test_a_skill_around_the_tested_one_runs_no_code_either(
    pytester: pytest.Pytester, project: Path, args: Sequence[str]
) -> None:
    write_skill(project / SKILL / "more/inner")
    result = pytester.runpytest_inprocess(*args)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*inner on scripted:*"])
    assert ran(project) == ""


def test_it_runs_if_allowed_and_the_header_says_how(
    pytester: pytest.Pytester, project: Path
) -> None:
    closed = pytester.runpytest_inprocess()
    closed.assert_outcomes(passed=2)
    closed.stdout.fnmatch_lines(
        ["upskill: 1 test file inside skills not run (add --skill-allow-c*"]
    )
    allowed = pytester.runpytest_inprocess("--skill-allow-code")
    allowed.assert_outcomes(passed=3)
    assert "not run" not in allowed.stdout.str()
    assert ran(project).split() == [
        "__init__",
        "conftest",
        "tests/conftest",
        "tests/test_own",
    ]


@pytest.mark.parametrize(
    "folder", [pytest.param(".", marks=pytest.mark.nightly), "skills/portcullis"]
)
def test_workers_run_none_of_it_either(project: Path, folder: str) -> None:
    """They are started with the current folder in sys.path,
    where a module may hide the usual.
    """
    for name in ("struct", "threading", "queue"):
        text = RUN.format(log=str(project / "log.txt"), name=name)
        (project / SKILL / f"{name}.py").write_text(text)
    # Neither python -m pytest nor pytester, which put the current
    # folder there themselves.
    script = Path(sys.executable).with_name("pytest")
    skill = os.path.relpath(project / SKILL, project / folder)
    command = [str(script), f"--skill={skill}", "-n", "1"]
    done = subprocess.run(command, cwd=project / folder, capture_output=True, text=True)
    assert "1 passed" in done.stdout
    assert ran(project) == ""


def test_links_lead_to_no_code(pytester: pytest.Pytester, project: Path) -> None:
    shutil.move(project / SKILL, project / "kept")
    (project / SKILL).symlink_to(project / "kept")
    (project / "tests/linked").symlink_to(project / "kept/tests")
    (project / "tests/test_link.py").symlink_to(project / "kept/tests/test_own.py")
    pytester.runpytest_inprocess().assert_outcomes(passed=2)
    assert ran(project) == ""


@pytest.mark.parametrize(
    "inside",
    ["skills/portcullis/tests", "skills/portcullis/tests/test_own.py::test_it"],
)
def test_a_path_inside_a_tested_skill_is_a_usage_error(
    pytester: pytest.Pytester, project: Path, inside: str
) -> None:
    result = pytester.runpytest_inprocess("--skill=skills", inside)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    path = inside.partition("::")[0]
    result.stderr.fnmatch_lines(
        [f"ERROR: {path}: inside the skill {SKILL}, which this run tests"]
    )
    by_ini = pytester.runpytest_inprocess("-o", "testpaths=skills/portcullis/tests")
    by_ini.stderr.fnmatch_lines(
        [f"ERROR: skills/portcullis/tests: inside the skill {SKILL}, *"]
    )
    assert ran(project) == ""
    pytester.runpytest_inprocess(inside).assert_outcomes(passed=1)  # no skill is tested


BYPASS = "addopts = --skill-allow-code -c pytest.ini"


@pytest.mark.parametrize(
    ("folder", "args", "settings"),
    [
        (".", ["--skill", "skills/portcullis"], BYPASS),
        (".", ["skills/portcullis"], BYPASS),
        (".", ["skills/portcullis/skill_meta.json::open-gate[haiku]"], BYPASS),
        ("skills/portcullis", ["--skill", "."], BYPASS),
        ("skills/portcullis", ["--skill", "."], "skill_paths = ."),
    ],
    ids=["--skill", "path", "node id", "inside", "owned"],
)
def test_the_ini_file_of_a_skill_is_refused(
    pytester: pytest.Pytester,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    folder: str,
    args: Sequence[str],
    settings: str,
) -> None:
    (project / SKILL / "pytest.ini").write_text(f"[pytest]\n{settings}\n")
    monkeypatch.chdir(project / folder)
    result = pytester.runpytest_inprocess(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *pytest.ini: ini file inside the skill *"])
    assert ran(project) == ""


def test_with_an_equals_sign_the_projects_own_ini_file_counts(
    pytester: pytest.Pytester, project: Path
) -> None:
    (project / SKILL / "pytest.ini").write_text(
        "[pytest]\naddopts = -p evil\npythonpath = .\n"
    )
    pytester.runpytest_inprocess("--skill=skills/portcullis").assert_outcomes(passed=1)
    assert ran(project) == ""


def test_an_ini_file_that_the_command_line_names_counts(
    pytester: pytest.Pytester, project: Path
) -> None:
    (project / SKILL / "pytest.ini").write_text("[pytest]\nskill_runs = 2\n")
    args = [
        "--skill=skills/portcullis",
        "-c",
        "skills/portcullis/pytest.ini",
        "--model=scripted:answers.json",
    ]
    result = pytester.runpytest_inprocess(*args)
    result.stdout.fnmatch_lines(["* × 2 runs, with and without the skill"])
    assert ran(project) == ""


def test_another_repository_below_the_project_runs_no_code(
    pytester: pytest.Pytester, project: Path
) -> None:
    clone = project / "clone"
    write_skill(clone / "skills/door")
    (clone / ".git").mkdir()
    for folder in (clone, clone / "skills"):
        (folder / "conftest.py").write_text(
            RUN.format(log=str(project / "log.txt"), name="clone")
        )
    pytester.runpytest_inprocess("--skill", "clone/skills/door").assert_outcomes(
        passed=1
    )
    (clone / "pytest.ini").write_text(
        "[pytest]\nskill_models = scripted:skills/conftest.py:f\n"
    )
    refused = pytester.runpytest_inprocess("--skill", "clone/skills/door")
    refused.stderr.fnmatch_lines(
        ["ERROR: clone/pytest.ini: ini file around the skill, not *"]
    )
    pytester.runpytest_inprocess("--skill=clone/skills/door").assert_outcomes(passed=1)
    assert ran(project) == ""


def test_a_project_that_is_a_skill_runs_its_own_tests(
    pytester: pytest.Pytester, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project / SKILL
    monkeypatch.chdir(root)
    (root / "pytest.ini").write_text(
        "[pytest]\nskill_paths = .\nskill_models = scripted:../../answers.json\n"
    )
    pytester.runpytest_inprocess("--import-mode=importlib").assert_outcomes(passed=2)
    assert "conftest" in ran(project)
    pytester.runpytest_inprocess("skill_meta.json::open-gate").assert_outcomes(passed=1)


def test_a_skill_does_not_choose_its_models(
    pytester: pytest.Pytester, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "pytest.ini").unlink()
    monkeypatch.chdir(project / SKILL)
    Path("upskill.config.yaml").write_text("eval_model: opus\n")
    result = pytester.runpytest_inprocess("--skill=.")
    result.stderr.fnmatch_lines(
        ["ERROR: upskill.config.yaml: is inside the skill, which does *"]
    )


def test_eval_starts_pytest_with_no_settings_of_a_skill(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / SKILL / "pytest.ini").write_text(
        "[pytest]\naddopts = -p evil\npythonpath = .\n"
    )
    monkeypatch.chdir(project / SKILL)
    assert main(["eval", ".", "-m", "haiku"]) == 2
    assert "pytest.ini: ini file inside the skill ." in capsys.readouterr().err
    assert ran(project) == ""
