"""Where answers are kept; keys are added to pytest's ini file,
and nothing else changes there.
"""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.cli.project import CannotEdit, root_of_run, with_keys

KEYS = {"skill_paths": "skills", "skill_models": "haiku"}
TOML = 'skill_paths = ["skills"]\nskill_models = ["haiku"]\n'
INI = "skill_paths = skills\nskill_models = haiku\n"


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("pytest.ini", "", f"[pytest]\n{INI}"),
        ("pytest.ini", "[pytest]", f"[pytest]\n{INI}"),
        ("pytest.ini", "[pytest]\naddopts = -q", f"[pytest]\n{INI}addopts = -q"),
        (
            "tox.ini",
            (
                "# of tox\n[tox]\nenvlist = py\n\n[pytest] ; here\naddopts =\n    -q\n "
                "   -ra\n\n# the environments\n[testenv]\nx = 1\n"
            ),
            (
                f"# of tox\n[tox]\nenvlist = py\n\n[pytest] ; here\n{INI}addopts =\n   "
                " -q\n    -ra\n\n# the environments\n[testenv]\nx = 1\n"
            ),
        ),
        (
            "setup.cfg",
            "[metadata]\nname = x\n[tool:pytest]\n",
            f"[metadata]\nname = x\n[tool:pytest]\n{INI}",
        ),
        ("pyproject.toml", "", f"[tool.pytest.ini_options]\n{TOML}"),
        (
            "pyproject.toml",
            '# ours\n[project]\nname = "x"\n',
            f'# ours\n[project]\nname = "x"\n\n[tool.pytest.ini_options]\n{TOML}',
        ),
        (
            "pyproject.toml",
            (
                "[tool.pytest.ini_options] # run\naddopts = '-q'  # quiet\n\n#"
                " style\n[tool.ruff]\n"
            ),
            (
                f"[tool.pytest.ini_options] # run\naddopts = '-q'  # quiet\n{TOML}\n#"
                " style\n[tool.ruff]\n"
            ),
        ),
        (
            "pyproject.toml",
            '[tool.pytest]\naddopts = ["-q"]\n[tool.x]\n',
            f'[tool.pytest]\naddopts = ["-q"]\n{TOML}[tool.x]\n',
        ),
        (
            "pyproject.toml",
            "[tool]\npytest.ini_options.addopts = '-q'\n",
            (
                "[tool]\npytest.ini_options.addopts = '-q'\n"
                'pytest.ini_options.skill_paths = ["skills"]\n'
                'pytest.ini_options.skill_models = ["haiku"]\n'
            ),
        ),
        (
            "pytest.toml",
            "[pytest]\nstrict = true\n",
            f"[pytest]\nstrict = true\n{TOML}",
        ),
        (
            "pyproject.toml",  # a line of a list that looks like a table
            "[tool.pytest.ini_options]\naddopts = [\n['x'],\n]\n",
            f"[tool.pytest.ini_options]\naddopts = [\n['x'],\n]\n{TOML}",
        ),
        (
            "pyproject.toml",
            '[tool."pytest".ini_options]\r\nx = """\r\n[a]\r\n"""\r\n',
            (
                '[tool."pytest".ini_options]\r\nx = """\r\n[a]\r\n"""\r\n'
                f"{TOML.replace(chr(10), chr(13) + chr(10))}"
            ),
        ),
    ],
)
def test_keys_are_added_where_pytest_reads_them(
    name: str, before: str, after: str
) -> None:
    assert with_keys(name, before, KEYS) == after


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("pyproject.toml", "[tool", "not valid"),
        ("tox.ini", "[pytest]\n[pytest]\n", "not valid"),
        ("pytest.ini", "addopts = -q\n", "not valid"),
    ],
)
def test_what_can_not_be_edited_is_told(name: str, text: str, problem: str) -> None:
    with pytest.raises(CannotEdit, match=problem):
        with_keys(name, text, KEYS)


@pytest.mark.parametrize(
    "path", ["a\nskill_models = x", "a'b", "a # b", "a;b", 'q"', "$HOME", "%x"]
)
def test_a_name_that_means_something_in_an_ini_file_is_refused(path: str) -> None:
    with pytest.raises(CannotEdit, match="no place in an ini file"):
        with_keys("pytest.ini", "", {"skill_paths": path})


def test_pytest_reads_names_with_blanks_and_colons(pytester: pytest.Pytester) -> None:
    keys = {"skill_paths": "skills/a b", "skill_models": "ollama:qwen3:8b"}
    Path("pytest.ini").write_text(with_keys("pytest.ini", "", keys))
    config = pytester.parseconfig()
    assert config.getini("skill_paths") == [pytester.path / "skills/a b"]
    assert config.getini("skill_models") == ["ollama:qwen3:8b"]


@given(st.text(max_size=20))
def test_toml_keeps_any_name(name: str) -> None:
    try:
        text = with_keys("pyproject.toml", "[tool.x]\n", {"skill_paths": name})
    except CannotEdit:
        assert any("\ud800" <= char <= "\udfff" for char in name)
        return
    assert tomllib.loads(text)["tool"]["pytest"]["ini_options"] == {
        "skill_paths": [name]
    }


@given(st.text(alphabet="[]=#'\"\n\r\\ ab.tolpyesini_", max_size=80))
def test_no_text_loses_anything(text: str) -> None:
    for name in ("pyproject.toml", "tox.ini"):
        try:
            new = with_keys(name, text, KEYS)
        except CannotEdit:
            continue
        added = TOML if name.endswith(".toml") else INI
        lines = [line for line in new.splitlines() if line not in added.splitlines()]
        kept = [line for line in text.splitlines() if line.strip()]
        assert [line for line in lines if line in kept] == kept


def test_answers_are_kept_in_the_project_or_right_here(tmp_path: Path) -> None:
    inside = tmp_path / "project/skills"
    inside.mkdir(parents=True)
    assert root_of_run(inside) == inside  # never in the root of the file system
    (tmp_path / "project/pytest.ini").touch()
    assert root_of_run(inside) == tmp_path / "project"
