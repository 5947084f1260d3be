"""Testing a skill runs no code that lies between the project and the skill."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cli import main
from support.kit import write_script, write_skill

META = "demo/skill_meta.json"
LOGGED = "with open({log!r}, 'a') as file: file.write({name!r} + ' ')\n"


@pytest.fixture
def project(pytester: pytest.Pytester) -> Path:
    """A project, and a checkout of someone else's with a skill;
    its code leaves its name.
    """
    root = pytester.path / "own"
    pack = pytester.path / "checkout"
    write_skill(pack / "demo")
    log = str(pytester.path / "log.txt")
    for name in ("conftest", "__init__", "evil"):
        (pack / f"{name}.py").write_text(LOGGED.format(log=log, name=name))
    root.mkdir()
    write_script(root / "answers.json")
    (root / "conftest.py").write_text(
        "def pytest_runtest_setup(item): print('own saw', item.name)"
    )
    return root


def ran(project: Path) -> list[str]:
    log = project.parent / "log.txt"
    return log.read_text().split() if log.exists() else []


def link(project: Path, name: str = "sk") -> None:
    (project / name).symlink_to(project.parent / "checkout")


def unpack(project: Path, name: str = "sk") -> None:
    shutil.copytree(project.parent / "checkout", project / name)


def run(
    pytester: pytest.Pytester, project: Path, *args: str, model: bool = True
) -> pytest.RunResult:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        models = ["--model=scripted:answers.json"] if model else []
        return pytester.runpytest_inprocess(*args, *models, "-s")


ARGUMENTS = [
    ("sk", ["--skill=sk/demo"]),
    ("sk", ["--skill", "sk/demo"]),
    ("sk", ["--skill=sk"]),
    ("sk", ["--skill=."]),
    ("sk", [f"sk/{META}"]),
    ("sk", [f"sk/{META}::open-gate[scripted:answers.json]"]),
    ("sk", ["sk/demo/SKILL.md"]),
    ("sk", ["sk/demo", "-o", "skill_paths=sk"]),
    ("sk", ["-o", "skill_paths=sk", "-o", "testpaths=unit"]),
    ("sk", ["unit", "--skill=sk/demo"]),
    ("sk", ["--skill=sk/demo", "--rootdir=sk"]),
    ("sk", ["--skill=sk/demo", "--confcutdir=sk"]),
    # pytest itself loads the conftest.py of folders with such a name.
    ("test_sk", ["--skill=test_sk/demo"]),
    ("test_sk", ["--skill=test_sk/demo", "-o", "testpaths=."]),
    ("test_sk", ["--skill=."]),
    ("test_sk", [f"test_sk/{META}"]),
    ("test_sk", ["test_sk/demo", "-o", "skill_paths=test_sk"]),
]
WAYS = (link, unpack)


def in_the_gate_and_nightly() -> Iterator[Any]:
    """Arguments for a folder that is linked and for one that is a copy, in turn;
    nightly both.
    """
    for number, (name, args) in enumerate(ARGUMENTS):
        for way in WAYS:
            marks = [] if way is WAYS[number % 2] else [pytest.mark.nightly]
            yield pytest.param(
                way, name, args, marks=marks, id=f"{way.__name__} {' '.join(args)}"
            )


@pytest.mark.parametrize(("arrive", "name", "args"), [*in_the_gate_and_nightly()])
def test_a_conftest_on_the_way_is_not_loaded(
    pytester: pytest.Pytester,
    project: Path,
    arrive: object,
    name: str,
    args: Sequence[str],
) -> None:
    assert callable(arrive)
    arrive(project, name)
    (project / "unit").mkdir()
    (project / "unit/test_unit.py").write_text("def test_unit(): pass\n")
    result = run(pytester, project, *args)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*demo on scripted:answers.json*"])
    assert ran(project) == []
    line = (
        f"upskill: not loaded, on the way to a skill: {name}/conftest.py (add"
        " --skill-allow-code)"
    )
    assert line in result.outlines


@pytest.mark.parametrize(
    "path", [pytest.param("../checkout/demo", marks=pytest.mark.nightly), "sk/demo"]
)
def test_nor_under_another_name(
    pytester: pytest.Pytester, project: Path, path: str
) -> None:
    link(project, "test_link")
    (project / "sk").symlink_to("test_link")
    assert run(pytester, project, f"--skill={path}").ret == 0
    assert ran(project) == []


def test_nor_by_a_worker(pytester: pytest.Pytester, project: Path) -> None:
    link(project, "test_sk")
    named = write_skill(project / "skills/gate")
    (named / "conftest.py").write_text("raise SystemExit(9)")
    result = run(pytester, project, "--skill=test_sk/demo", "--skill=gate", "-n1")
    result.assert_outcomes(passed=2)
    assert ran(project) == []


@pytest.mark.nightly
def test_nor_by_eval(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link(project, "test_sk")
    monkeypatch.chdir(project)
    assert main(["eval", "test_sk/demo", "-m", "scripted:answers.json"]) == 0
    assert ran(project) == []


def test_nor_above_a_skill_in_which_pytest_runs(
    pytester: pytest.Pytester, project: Path
) -> None:
    (project / "pytest.ini").write_text(
        "[pytest]\nskill_models = scripted:answers.json\n"
    )
    unpack(project)
    result = run(pytester, project / "sk/demo", "--skill=.", model=False)
    result.stdout.fnmatch_lines(["*own saw open-gate*"])
    assert ran(project) == []


def test_it_is_loaded_if_allowed(pytester: pytest.Pytester, project: Path) -> None:
    link(project)
    conftest = project / "sk/conftest.py"
    hook = "def pytest_runtest_setup(item): print('other saw', item.name)"
    conftest.write_text(conftest.read_text() + hook)
    result = run(pytester, project, "--skill=sk/demo", "--skill-allow-code")
    result.stdout.fnmatch_lines_random(["*own saw open-gate*", "*other saw open-gate*"])
    assert "conftest" in ran(project)
    result.stdout.no_fnmatch_line("upskill: not loaded*")


@pytest.mark.parametrize(
    "args",
    [
        ["-o", "skill_paths=skills"],
        pytest.param(["skills", "-o", "skill_paths=skills"], marks=pytest.mark.nightly),
        pytest.param([".", "--skill=skills/gate"], marks=pytest.mark.nightly),
        ["skills/unit", "--skill=skills"],
    ],
    ids=" ".join,
)
def test_what_pytest_loads_anyway_stays_and_sees_the_cases(
    pytester: pytest.Pytester, project: Path, args: Sequence[str]
) -> None:
    write_skill(project / "skills/gate")
    (project / "skills/unit").mkdir()
    (project / "skills/unit/test_unit.py").write_text("def test_unit(): pass\n")
    (project / "skills/conftest.py").write_text(
        "def pytest_runtest_setup(item): print('second saw', item.name)"
    )
    result = run(pytester, project, *args)
    result.assert_outcomes(passed=2)
    result.stdout.no_fnmatch_line("upskill: not loaded*")
    assert "second saw test_unit" in result.stdout.str()
    if "skills/unit" not in args:
        assert "second saw open-gate" in result.stdout.str()


@pytest.mark.parametrize(
    ("marker", "args"),
    [
        ("setup.py", ["--skill", "../checkout/demo"]),
        ("pyproject.toml", [f"../checkout/{META}"]),
        pytest.param("setup.py", [f"../checkout/{META}"], marks=pytest.mark.nightly),
        pytest.param(
            "pyproject.toml", ["--skill", "../checkout/demo"], marks=pytest.mark.nightly
        ),
    ],
)
def test_a_skill_does_not_decide_the_rootdir(
    pytester: pytest.Pytester, project: Path, marker: str, args: Sequence[str]
) -> None:
    """Stored answers are read there, and upskill.config.yaml, which names models."""
    checkout = project.parent / "checkout"
    (checkout / marker).write_text("")
    (checkout / "upskill.config.yaml").write_text("eval_model: opus\n")
    result = run(pytester, project, *args)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([f"rootdir: {project}", "*own saw open-gate*"])
    assert not (checkout / ".upskill").exists()
    assert (project / ".upskill").exists()
    assert ran(project) == []


def test_a_folder_above_both_is_not_the_rootdir(
    pytester: pytest.Pytester, project: Path
) -> None:
    (project.parent / "conftest.py").write_text("raise SystemExit('ran code')")
    result = run(pytester, project, "--skill", "../checkout/demo")
    result.stdout.fnmatch_lines([f"rootdir: {project}"])
    result.assert_outcomes(passed=1)


def test_ini_files_around_a_skill_that_an_argument_names_are_refused(
    pytester: pytest.Pytester, project: Path
) -> None:
    (project / "pytest.ini").write_text("[pytest]\nskill_paths = sk\n")
    link(project)
    (project / "sk/pytest.ini").write_text("[pytest]\npython_files = *.py\n")
    for args in (["sk/demo"], [f"sk/{META}"], ["--skill", "sk/demo"]):
        result = run(pytester, project, *args)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(
            ["ERROR: sk/pytest.ini: ini file around the skill*"]
        )
    assert run(pytester, project, "--skill=sk/demo").ret == 0
    assert ran(project) == []
