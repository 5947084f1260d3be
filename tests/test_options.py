"""A setting is one field of a dataclass; options of pytest and
of commands follow from it.
"""

import argparse
from dataclasses import dataclass, fields
from pathlib import Path
from typing import get_args

import pytest

from pytest_upskill.cli.command_table import BY_NAME, add_options
from pytest_upskill.options import (
    AGE,
    FOREVER,
    NAMES,
    OFF_SWITCH,
    PATH,
    PYTEST,
    SHARE,
    Group,
    Kind,
    age_words,
    at,
    choice,
    lift,
    number,
    options_of,
    setting,
    whole,
)
from pytest_upskill.settings import Gates, Settings
from pytest_upskill.teach.teach_settings import TeachSettings


@dataclass(frozen=True)
class Lamps:
    """Settings of nothing real."""

    colour: str | None = None
    watts: int = setting(
        whole(1, 100),
        "budget",
        "power of a lamp",
        "--lamp-watts",
        at("buy", "-w --watts", default=60),
        at("sell", "--watts"),
        default=40,
    )
    shades: tuple[str, ...] = setting(
        NAMES, "models", "a shade", at("buy", "--shade"), default_text="none"
    )


def test_pytest_has_a_flag_and_an_ini_key() -> None:
    (option,) = options_of(PYTEST, Lamps).values()
    assert (option.setting, option.flag, option.ini) == (
        "watts",
        "--lamp-watts",
        "lamp_watts",
    )
    assert option.help_text() == "power of a lamp (default: 40)"


def test_commands_have_flags_and_defaults_of_their_own() -> None:
    options = options_of("buy", Lamps)
    assert list(options) == ["shades", "watts"]  # in the order of their groups
    assert options["shades"].help_text() == "a shade (repeatable; default: none)"
    assert (options["watts"].flags, options["watts"].default) == (("-w", "--watts"), 60)
    assert options_of("sell", Lamps)["watts"].default == 40
    parser = argparse.ArgumentParser()
    assert list(add_options(parser, "buy", Lamps)) == ["models", "budget"]
    args = parser.parse_args(["-w", "7", "--shade", "a", "--shade", "b"])
    assert (args.watts, args.shades) == (7, ["a", "b"])
    assert parser.parse_args([]).watts is None


def test_the_value_has_its_default() -> None:
    assert Lamps() == Lamps(None, 40, ())


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (whole(1), " 12 ", 12),
        (number("a number"), "-0.5", -0.5),
        (SHARE, "1", 1.0),
        (choice("a", "b"), " b", "b"),
        (PATH, "a/b", Path("a/b")),
    ],
)
def test_a_text_is_parsed(kind: Kind, text: str, value: object) -> None:
    assert kind.parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text", "problem"),
    [
        (whole(1), "1.5", "'1.5' is not a whole number of 1 or more"),
        (whole(1, 2000), "2001", "'2001' is not a whole number from 1 to 2,000"),
        (SHARE, "0", "'0' is not a number above 0 and up to 1"),
        (number("a number"), "nan", "'nan' is not a number"),
        (lift(), "200", "'200' is not a lift such as 20 (points) or 0.2"),
        (lift(above_zero=True), "-5", "'-5' is not a lift above 0"),
        (choice("a", "b", "c"), "d", "'d' is not a, b or c"),
        (PATH, " ", "the value is empty"),
    ],
)
def test_a_wrong_text_is_refused(kind: Kind, text: str, problem: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        kind.parse(text)
    assert str(caught.value).startswith(problem)


def test_an_option_is_written_as_on_the_command_line() -> None:
    options = options_of(PYTEST, Settings)
    assert options["models"].words(("a", "b")) == ["--model", "a", "--model", "b"]
    assert options["runs"].words(4) == ["--skill-runs", "4"]
    assert options["timeout"].words(0.1) == ["--skill-timeout", "0.1"]
    assert options["baseline"].kind == OFF_SWITCH
    assert options["baseline"].words(value=False) == ["--skill-no-baseline"]


@pytest.mark.parametrize("table", [Settings, Gates, TeachSettings])
def test_every_setting_belongs_to_a_group_and_to_commands_that_there_are(
    table: type,
) -> None:
    declared = [entry.metadata for entry in fields(table) if entry.metadata]
    assert {entry["group"] for entry in declared} <= set(get_args(Group))
    places = {place for entry in declared for place in entry["options"]}
    assert places <= {PYTEST, *BY_NAME}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1.5h", 5_400),
        ("12h", 43_200),
        ("1d", 86_400),
        ("1.5d", 129_600),
        (" 2w ", 1_209_600),
        ("forever", FOREVER),
    ],
)
def test_ages_are_written_with_a_unit(text: str, seconds: float) -> None:
    assert AGE.parse(text) == seconds
    assert AGE.parse(age_words(seconds)) == seconds


@pytest.mark.parametrize(
    "text", ["", "1", "d", "0d", "-1d", "nand", "infd", "1 day", "1e99w"]
)
def test_what_is_no_age_is_an_error_that_shows_how(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="12h, 1d or 2w"):
        AGE.parse(text)


@pytest.mark.parametrize(
    ("text", "share"),
    [("0.2", 0.2), ("20", 0.2), ("1", 1.0), ("-30", -0.3), ("100", 1.0)],
)
def test_a_lift_is_a_share_or_points(text: str, share: float) -> None:
    assert lift().parse(text) == share
