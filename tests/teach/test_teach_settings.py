"""The table of teaching options: one entry for the commands, Python and limits."""

import argparse
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cli.commands.teach_commands import (
    add_teach_arguments,
    teach_settings,
)
from pytest_upskill.errors import SettingsError
from pytest_upskill.options import options_of
from pytest_upskill.skills.upskill_config import UpskillConfig
from pytest_upskill.teach.api import TeachOptions
from pytest_upskill.teach.teach_settings import (
    KINDS,
    TeachCommand,
    TeachSettings,
    check,
)

COMMANDS: tuple[TeachCommand, ...] = (
    *("generate", "refine", "cases"),
    *("triggers", "describe"),
)


def parsed(command: TeachCommand, *words: str, **config: object) -> TeachSettings:
    parser = argparse.ArgumentParser()
    add_teach_arguments(parser, command)
    given = parser.parse_args(
        ["x", *words], argparse.Namespace(origins={}, command=command)
    )
    settings = teach_settings(given, UpskillConfig(**config))  # type: ignore[arg-type]
    return replace(settings, task="x")


def with_value(name: str, value: float) -> TeachSettings:
    given: dict[str, Any] = {name: value}
    return TeachSettings("x", **given)


def test_every_setting_is_an_option_of_the_commands_and_a_parameter_in_python() -> None:
    names = {one.name for one in fields(TeachSettings)}
    assert names == {"task", *KINDS}
    assert {*TeachOptions.__annotations__} == {*KINDS, "folder", "prices", "tell"}
    by_command = [options_of(command, TeachSettings) for command in COMMANDS]
    assert {name for options in by_command for name in options} == set(KINDS)
    for options in by_command:
        flags = [flag for option in options.values() for flag in option.flags]
        assert len(flags) == len(set(flags))


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_has_every_option_with_its_default(command: TeachCommand) -> None:
    parser = argparse.ArgumentParser()
    add_teach_arguments(parser, command)
    shown = " ".join(parser.format_help().split())
    for option in options_of(command, TeachSettings).values():
        assert f"{option.flag} " in shown
        # Wrapped at hyphens, too
        assert "".join(option.help.split()) in shown.replace(" ", "")
    assert ("(default: 1500, plus " in shown) == (command == "generate")
    assert ("(default: 2048; " in shown) == (command not in ("triggers", "describe"))
    assert ("runs of each case or query (default: 3)" in shown) == (
        command == "describe"
    )


def test_options_come_before_the_configuration_and_the_defaults() -> None:
    assert parsed("generate") == TeachSettings("x")
    configured = parsed(
        "generate", eval_models=("small",), teacher="big", test_model="tester"
    )
    assert configured.students == ("small",)
    assert (configured.teacher, configured.author) == ("big", "tester")
    assert parsed("refine", attempts=5).attempts == 5
    assert parsed("refine", "--attempts", "2", attempts=5).attempts == 2
    assert parsed(
        "generate", "-m", "huge", "--cases", "5", teacher="big"
    ) == TeachSettings("x", teacher="huge", cases=5)
    assert parsed("generate", "--holdout", "0") == TeachSettings("x", holdout=0)
    assert parsed("cases").students == ()
    assert parsed("triggers", "--from", "a", "--from", "b").traces == (
        Path("a"),
        Path("b"),
    )


def test_the_types_and_repeats_of_options() -> None:
    words = [
        "-e",
        "a -> b",
        "-e",
        "c -> d",
        "--from",
        "trace.md",
        "--target",
        "0.5",
        "--force",
    ]
    assert parsed("generate", *words) == TeachSettings(
        "x",
        examples=("a -> b", "c -> d"),
        source=Path("trace.md"),
        target=0.5,
        force=True,
    )
    assert parsed("cases", "--test-model", "y").author == "y"


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("noise", 0, 10),
        ("cases", 0, 200),
        ("holdout", 0, 0.8),
        ("max_skill_tokens", 10, 100_000),
    ],
)
def test_numbers_have_limits(name: str, least: float, most: float) -> None:
    for value in (least, most):
        check(with_value(name, value))
    for value in (least - 1, float("nan"), *([] if name == "noise" else [most + 1])):
        with pytest.raises(SettingsError, match=f"^{name} .*: not a .*number "):
            check(with_value(name, value))


@pytest.mark.parametrize("name", ["target", "max_cost", "margin"])
def test_a_target_and_a_budget_of_0_make_no_sense(name: str) -> None:
    with pytest.raises(SettingsError, match=f"^{name} 0: not a number "):
        check(with_value(name, 0))
    check(with_value(name, 0.01))


@pytest.mark.parametrize(
    ("command", "words", "problem"),
    [
        ("generate", "-m ", "argument -m/--model: the value is empty"),
        ("generate", "--holdout 1", "'1' is not a number between 0 and 0.8"),
        ("refine", "--sandbox box", "'box' is not auto, bwrap, docker, podman or none"),
        ("refine", "--max-turns 0", "'0' is not a whole number from 1 to 1,000"),
    ],
)
def test_a_wrong_value_is_a_usage_error(
    command: TeachCommand, words: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parsed(command, *words.split(" "))
    assert problem in capsys.readouterr().err
