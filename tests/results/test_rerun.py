"""The command that runs one test again."""

import shlex

import pytest

from pytest_upskill.results.run import Rerun

NODEID = "skills/my skill/skill_meta.json::it's $HOME[haiku]"


def test_a_shell_reads_the_node_id_as_one_word() -> None:
    command = Rerun(("--skill-runs", "3")).command(NODEID)
    assert shlex.split(command) == ["pytest", "-vv", NODEID, "--skill-runs", "3"]


@pytest.mark.parametrize(
    ("root", "place"),
    [
        ("", "a/b.json::c"),
        ("..", "../a/b.json::c"),
        ("../x", "../x/a/b.json::c"),
        ("s", "s/a/b.json::c"),
    ],
)
def test_the_path_starts_where_pytest_was_called(root: str, place: str) -> None:
    assert Rerun(root=root).command("a/b.json::c") == f"pytest -vv {place}"


def test_only_tests_in_python_need_their_model_named() -> None:
    rerun = Rerun(("--skill-runs", "3"), ("--model", "haiku"))
    assert "--model" not in rerun.command("skills/a/skill_meta.json::x[haiku]")
    assert rerun.command("tests/test_a.py::test_x[haiku]").endswith(
        "test_x[haiku]' --model haiku --skill-runs 3"
    )


def test_no_credential_and_no_control_character_is_shown() -> None:
    shown = Rerun(("--skill-base-url", "https://me:hunter22@host/v1")).command(
        "a.json::\x1b[31m\n"
    )
    assert "hunter22" not in shown
    assert "\x1b" not in shown
    assert "\n" not in shown
