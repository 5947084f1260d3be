"""Other tests are collected exactly as without the plugin, whatever skills there are.

But for those inside a skill that the same run tests, unless its code is allowed.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from support.kit import write_script, write_skill

CONFTEST = """
import pytest

with open({log!r}, "a") as file:
    file.write("{name}\\n")

@pytest.fixture
def of_{word}():
    pass
"""
USING = "def test_{word}(of_{word}): pass\ndef test_more(): pass\n"
ROOT = "[pytest]\nskill_paths = .\nskill_models = haiku\n"
BELOW = "[pytest]\nskill_paths = skills\nskill_models = haiku\n"
HELPER = "skills/gate/scripts/test_helper.py"
INSIDE = ("skills/gate/", "skills/door/")


@pytest.fixture
def repository(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A skill at the root and two below, with tests and conftest
    files in and around them.

    No folder is called "tests": its conftest.py would be known already,
    as that of this project.
    """
    root = write_skill(pytester.path / "repo")
    write_skill(root / "skills/gate")
    write_skill(root / "skills/door")
    for folder, word in {
        ".": "root",
        "unit": "own",
        "skills": "skills",
        "skills/gate": "gate",
        "skills/gate/scripts": "helper",
        "skills/door/tests": "door",
        "pkg": "pkg",
    }.items():
        (root / folder).mkdir(exist_ok=True)
        text = CONFTEST.format(log=str(root / "conftests.txt"), name=folder, word=word)
        (root / folder / "conftest.py").write_text(text)
        (root / folder / f"test_{word}.py").write_text(USING.format(word=word))
    (root / "pkg/__init__.py").write_text("")
    monkeypatch.chdir(root)
    monkeypatch.syspath_prepend(root)
    return root


def run(
    pytester: pytest.Pytester, ini: str, *args: str
) -> tuple[list[str], list[str], int]:
    """The ordinary node ids that pytest collects, the conftest files it loads,
    its exit status.

    In which order conftest files of folders side by side are loaded is of no interest.
    """
    log = Path("conftests.txt")
    log.write_text("")
    Path("pytest.ini").write_text(ini)
    common = ["--import-mode=importlib", "-p", "no:cacheprovider"]
    result = pytester.runpytest_inprocess("--collect-only", "-q", *common, *args)
    ids = [line for line in result.outlines if ".py::" in line]
    return ids, sorted(log.read_text().split()), int(result.ret)


WITH_SKILLS = [
    [],
    ["skills"],
    ["skills/gate"],
    pytest.param(["-k", "own", "skills", "unit"], marks=pytest.mark.nightly),
    ["--deselect", HELPER],
    ["--ignore", "skills/gate"],
    pytest.param(["--rootdir", ".", "skills/gate", "unit"], marks=pytest.mark.nightly),
]
WITHOUT_SKILLS = [
    ["pkg", "unit/test_own.py"],
    ["skills/door/tests", HELPER],
    [f"{HELPER}::test_helper", "unit/test_own.py::test_more"],
    ["--pyargs", "pkg.test_pkg::test_pkg"],
    pytest.param(["--rootdir", "skills", HELPER], marks=pytest.mark.nightly),
    ["--rootdir", "skills/gate", "unit"],
    ["--noconftest", HELPER],
]
INI_FILES = [ROOT, pytest.param(BELOW, marks=pytest.mark.nightly)]


@pytest.mark.parametrize("ini", INI_FILES, ids=["root", "below"])
@pytest.mark.parametrize("args", WITHOUT_SKILLS, ids=" ".join)
@pytest.mark.usefixtures("repository")
def test_the_same_tests_and_conftest_files(
    pytester: pytest.Pytester, ini: str, args: Sequence[str]
) -> None:
    alone = run(pytester, "[pytest]\n", *args, "-p", "no:upskill")
    assert alone[0]
    assert alone[2] == 0
    assert run(pytester, ini, *args) == alone


@pytest.mark.parametrize("ini", INI_FILES, ids=["root", "below"])
@pytest.mark.parametrize("args", WITH_SKILLS, ids=" ".join)
@pytest.mark.usefixtures("repository")
def test_the_same_but_for_those_inside_the_skills_that_are_tested(
    pytester: pytest.Pytester, ini: str, args: Sequence[str]
) -> None:
    alone = run(pytester, "[pytest]\n", *args, "-p", "no:upskill")
    assert (
        any("skills/gate/" in name for name in (*alone[0], *alone[1]))
        or "--ignore" in args
    )
    outside = [name for name in alone[0] if not name.startswith(INSIDE)]
    conftests = [name for name in alone[1] if not f"{name}/".startswith(INSIDE)]
    if "skills/gate" in args and "--ignore" not in args:
        conftests.remove("skills")  # on the way to a skill that is named
    assert run(pytester, ini, *args) == (outside, conftests, 0)
    assert run(pytester, f"{ini}skill_allow_code = true\n", *args) == alone


@pytest.mark.parametrize("args", [[], [HELPER]], ids=["all", "named"])
@pytest.mark.usefixtures("repository")
def test_they_run_as_without_the_plugin(
    pytester: pytest.Pytester, args: Sequence[str], workers: str
) -> None:
    model = write_script(Path("answers.json"))
    ini = (
        f"[pytest]\nskill_paths = .\nskill_models = {model}\nskill_allow_code = true\n"
    )
    Path("pytest.ini").write_text(ini)
    common = [
        "-v",
        "-p",
        "no:cacheprovider",
        "--import-mode=importlib",
        *args,
        "-n",
        workers,
    ]
    alone = pytester.runpytest_inprocess(*common, "-p", "no:upskill")
    both = pytester.runpytest_inprocess(*common)
    assert both.ret == alone.ret == 0
    tests, with_skills = alone.parseoutcomes()["passed"], both.parseoutcomes()["passed"]
    assert with_skills == tests + (0 if args else 3) > 1


@pytest.mark.usefixtures("repository")
def test_the_failures_of_the_last_run_come_again_with_their_fixtures(
    pytester: pytest.Pytester,
) -> None:
    model = write_script(Path("answers.json"), knows="No idea.")
    ini = (
        f"[pytest]\nskill_paths = .\nskill_models = {model}\nskill_allow_code = true\n"
    )
    Path("pytest.ini").write_text(ini)
    Path(HELPER).write_text("def test_helper(of_gate, of_skills): assert 0\n")
    common = ["-v", "--import-mode=importlib"]
    first = pytester.runpytest_inprocess(*common)
    second = pytester.runpytest_inprocess(*common, "--lf")
    assert second.parseoutcomes()["failed"] == first.parseoutcomes()["failed"]
    assert not {"passed", "errors"} & set(second.parseoutcomes())
    second.stdout.fnmatch_lines_random(
        [f"{HELPER}::test_helper FAILED*", "skill_meta.json::open-gate* FAILED*"]
    )
