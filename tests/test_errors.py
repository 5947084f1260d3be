"""Errors name settings; each edge writes its own flag, ini key or parameter."""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest_upskill
from pytest_upskill.errors import (
    InputError,
    ModelError,
    Setting,
    SettingsError,
    TeachError,
    spelling,
)
from pytest_upskill.plugin.pytest_options import FLAGS
from pytest_upskill.settings import Gates, Settings
from pytest_upskill.teach.teach_settings import TeachSettings

SOURCE = Path(pytest_upskill.__file__).parent
# The tables from which pytest and the commands get their options, names of tools, and
# commands that are written down.
TABLES = {"settings.py", "teach/teach_settings.py", "features/queries/results.py"}
TABLES |= {
    f"features/{name}/__init__.py"
    for name in ("ablate", "drift", "judge", "matrix", "queries")
}
TABLES |= {"features/judge/command.py", "reports/publish.py"}
NAMES = {
    field.name for kind in (Settings, Gates, TeachSettings) for field in fields(kind)
}

spell = spelling({"max_cost": "--max-cost", "models": "--model"})


def test_a_message_is_spelled_by_who_shows_it() -> None:
    error = InputError(
        "a.json", ("no ", Setting("max_cost")), ("Raise ", Setting("timeout"))
    )
    assert str(error) == "a.json: no max_cost\n  Raise timeout"
    assert error.message(spell) == "a.json: no --max-cost\n  Raise the timeout"


def test_a_text_that_looks_like_a_setting_is_left_alone() -> None:
    assert (
        InputError("max_cost", "models", "{models}").message(spell)
        == "max_cost: models\n  {models}"
    )
    assert (
        TeachError(("{models} ", Setting("models"))).message(spell)
        == "{models} --model"
    )


def test_a_setting_is_shown_with_its_value_or_its_file() -> None:
    error = SettingsError("models", "unknown", value="x")
    assert str(error) == "models x: unknown"
    assert error.message(spell) == "--model x: unknown"
    assert (
        error.message(spell, lambda name: f"a.ini: my_{name}")
        == "a.ini: my_models: x: unknown"
    )
    error = SettingsError("models", "unknown", value="x", origin="a.yaml: eval_model")
    assert (
        error.message(spell, lambda _: "a.ini: m")
        == str(error)
        == "a.yaml: eval_model: x: unknown"
    )
    assert SettingsError("max_cost", "wrong").message(spell) == "--max-cost: wrong"
    assert (
        SettingsError("max_cost", "wrong").message(spell, lambda _: "a.ini: m")
        == "a.ini: m: wrong"
    )


def test_a_model_error_has_its_attempts_before_its_hint() -> None:
    error = ModelError("no answer", ("Raise ", Setting("max_cost")))
    assert (
        error.message(spell, " (2 attempts)")
        == "no answer (2 attempts). Raise --max-cost"
    )
    assert str(error) == f"no answer. {error.hint}" == "no answer. Raise max_cost"
    assert ModelError("no answer").message(spell) == "no answer"


def below_the_edges(with_text: str) -> Iterator[tuple[str, ast.Module]]:
    """The modules below the edges that have this text."""
    for file in sorted(SOURCE.rglob("*.py")):
        name, text = file.relative_to(SOURCE).as_posix(), file.read_text("utf-8")
        if with_text in text and not name.startswith(("plugin/", "cli/")):
            yield name, ast.parse(text)


def texts(tree: ast.Module) -> Iterator[str]:
    """The string literals of a module, but for docstrings."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = {id(node.body[0]) for node in ast.walk(tree) if isinstance(node, documented)}
    parts = [
        node
        for node in ast.walk(tree)
        if not (isinstance(node, ast.Expr) and id(node) in docs)
    ]
    for node in parts:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Constant) and isinstance(child.value, str):
                yield child.value


def test_no_flag_is_written_below_the_edges() -> None:
    """Programs that are called have options of their own."""
    ours = re.compile("--(skill|judge|eval-|base-url|max-cost|max-turns)")
    flags = {
        name: found
        for name, tree in below_the_edges("--")
        if (found := [text for text in texts(tree) if ours.search(text)])
    }
    assert {name: flags[name] for name in flags if name not in TABLES} == {}
    assert set(flags) == TABLES


def named(tree: ast.Module) -> Iterator[str]:
    """The settings that the errors of a module name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            first = node.args[0]
            is_name = node.func.id in ("Setting", "SettingsError", "NamedBy")
            if is_name and isinstance(first, ast.Constant):
                yield str(first.value)


def test_errors_name_settings_that_there_are() -> None:
    found = {name for _, tree in below_the_edges("Setting") for name in named(tree)}
    assert {"max_cost", "base_url", "judge", "source"} <= found
    # Options of the commands of features.
    assert found - NAMES == {"apply", "recorded", "to_model"}


def test_every_option_of_pytest_is_a_setting_and_is_spelled() -> None:
    assert set(FLAGS) - NAMES == set()
    # Of others
    apart = {"models_folder", "models_file", "gates", "model_outputs"}
    apart |= {"logins", "judge_agent"}  # follow from other settings
    # Of pytest-upskill report
    apart |= {"transcripts_folder", "badge_folder", "benchmark_md"}
    assert NAMES - {field.name for field in fields(TeachSettings)} - set(FLAGS) == apart
