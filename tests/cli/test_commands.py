"""What all commands share: help, version, usage errors, colours, pipes."""

import argparse
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_upskill import __version__
from pytest_upskill.cli import main
from pytest_upskill.cli.command_table import BY_NAME, COMMANDS, Command, make_parser
from pytest_upskill.cli.output import has_colours
from support.kit import write_skill
from support.shell import COMMAND
from support.terminal import run_on_terminal, seen

SECRET = "sk-very-secret-value"


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser and all parsers below it."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from parsers(inner)


def run(*words: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, *words],
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_command_has_a_parser() -> None:
    names = [parser.prog for parser in parsers(make_parser())]
    whole = [name for name in names if name.count(" ") < 2]  # runs has some of its own
    assert whole == ["pytest-upskill", *(f"pytest-upskill {name}" for name in BY_NAME)]
    assert {"eval", "benchmark", "list", "lint", "models", "answers"} <= set(BY_NAME)


@pytest.mark.parametrize("parser", [*parsers(make_parser())], ids=lambda parser: parser.prog)
def test_the_help_ends_with_an_example_and_the_exit_status(
    parser: argparse.ArgumentParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = parser.format_help().splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.partition(": ")[0] for line in lines[-2:]] == ["example", "exit status"]
    unsaid = [
        action.dest for action in parser._actions if not action.help and action.option_strings
    ]
    assert not unsaid


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_example_in_the_help_is_valid(command: Command) -> None:
    example = re.sub(r" > .*|^source <\(|\)$", "", command.example).partition(" -- ")[0]
    words = shlex.split(example)
    assert words[:2] == ["pytest-upskill", command.name]
    assert make_parser().parse_args(words[1:]).command == command.name


def test_help_loads_no_slow_module() -> None:
    code = (
        "import sys; from pytest_upskill.cli import main\n"
        "try: main(['--help'])\n"
        "finally: print(sorted({'pydantic', 'pytest', 'yaml', 'tabulate', 'shtab', 'asyncio'}"
        " & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_a_terminal_gets_colours_and_a_pipe_does_not(tmp_path: Path) -> None:
    write_skill(tmp_path / "skills/gate")
    on_terminal = {**os.environ, "TERM": "xterm"}
    shown = run_on_terminal([COMMAND, "list", "skills"], tmp_path, on_terminal, 24)
    assert "\x1b[1mgate\x1b[0m" in shown
    plain = run_on_terminal(
        [COMMAND, "list", "skills"], tmp_path, {**on_terminal, "NO_COLOR": "1"}, 24
    )
    assert "\x1b" not in plain
    piped = run("list", "skills", cwd=tmp_path, TERM="xterm").stdout
    assert "\x1b" not in piped
    assert [line for line in seen(shown, 24) if line] == [
        line for line in piped.split("\n") if line
    ]


def test_dumb_terminals_get_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert has_colours(sys.stdout, {"TERM": "xterm", "NO_COLOR": "", "WT_SESSION": "1"})
    assert not has_colours(sys.stdout, {"TERM": "dumb", "WT_SESSION": "1"})


@pytest.mark.parametrize("arguments", [["list", "skills"], ["schema"], ["models"]])
def test_a_closed_pipe_is_no_traceback(tmp_path: Path, arguments: list[str]) -> None:
    write_skill(tmp_path / "skills/gate")
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [COMMAND, *arguments], cwd=tmp_path, stdout=theirs, stderr=subprocess.PIPE, check=False
    )
    os.close(theirs)
    assert (done.returncode, done.stderr) == (0, b"")


def test_ctrl_c_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("pytest_upskill.cli.commands.schema.schema_text", interrupted)
    assert main(["schema"]) == 130
    assert capsys.readouterr().err == "pytest-upskill: interrupted\n"


def test_an_ascii_output_gets_ascii(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "skills/gate")
    text = (folder / "SKILL.md").read_text()
    (folder / "SKILL.md").write_text(text.replace("About a gate", "Über ein Tor → 門"), "utf-8")
    done = run("list", "skills", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    first, second = done.stdout.splitlines()[1:3]
    assert first.startswith("`-- gate  ")
    assert second == "    ?ber ein Tor ? ?."


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "list models, and which" in capsys.readouterr().out


def test_the_version_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"pytest-upskill {__version__}\n"


@pytest.mark.parametrize("arguments", [["no-such-command"], ["models", "--no-such-option"]])
def test_bad_arguments_are_a_usage_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: pytest-upskill" in capsys.readouterr().err
