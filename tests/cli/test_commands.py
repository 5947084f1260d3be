"""What all commands share: help, version, usage errors, colours, pipes."""

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from pytest_upskill import __version__
from pytest_upskill.cli import main
from pytest_upskill.cli.command_table import BY_NAME, COMMANDS, make_parser
from pytest_upskill.cli.output import has_colours
from support.kit import write_skill
from support.shell import COMMAND
from support.terminal import run_on_terminal, seen


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser and all parsers below it."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from parsers(inner)


def test_every_command_has_a_parser() -> None:
    names = [parser.prog for parser in parsers(make_parser())]
    whole = [name for name in names if name.count(" ") < 2]  # runs has some of its own
    assert whole == ["pytest-upskill", *(f"pytest-upskill {name}" for name in BY_NAME)]
    assert {"eval", "benchmark", "list", "lint", "models", "answers"} <= set(BY_NAME)


def test_the_help_lists_commands_in_groups(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    listing = capsys.readouterr().out.partition("\n\n")[2].partition("options:")[0]
    groups = {
        part.split(":")[0].split()[-1]: re.findall(r"^  (\w+) ", part, re.M)
        for part in re.split(r"\n\n(?=\w+:\n)", listing)[1:]
    }
    assert [*groups] == ["test", "write", "study", "look"]
    assert [name for names in groups.values() for name in names] == [*BY_NAME]
    assert groups["study"] == ["matrix", "ablate", "judge", "drift", "route"]


def test_the_help_ends_with_an_example_and_the_exit_status(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for parser in parsers(make_parser()):
        lines = parser.format_help().splitlines()
        assert max(map(len, lines)) <= 80, parser.prog
        ends = [line.partition(": ")[0] for line in lines[-2:]]
        assert ends == ["example", "exit status"], parser.prog
        options = [action for action in parser._actions if action.option_strings]
        assert all(action.help for action in options), parser.prog


def test_the_example_in_the_help_is_valid() -> None:
    parser = make_parser()
    for command in COMMANDS:
        example = re.sub(r" > .*|^source <\(|\)$", "", command.example).partition(
            " -- "
        )[0]
        words = shlex.split(example)
        assert words[:2] == ["pytest-upskill", command.name]
        assert parser.parse_args(words[1:]).command == command.name


def test_help_loads_no_slow_module() -> None:
    code = (
        "import sys; from pytest_upskill.cli import main\n"
        "try: main(['--help'])\n"
        "finally: print(sorted({'pydantic', 'pytest', 'yaml', 'asyncio'}"
        " & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_a_terminal_gets_colours_and_a_pipe_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_skill(tmp_path / "skills/gate")
    monkeypatch.setenv("COLUMNS", "80")
    on_terminal = {**os.environ, "TERM": "xterm"}
    shown = run_on_terminal([COMMAND, "list", "skills"], tmp_path, on_terminal, 24)
    assert "\x1b[1mskills/gate\x1b[0m" in shown
    monkeypatch.chdir(tmp_path)
    assert main(["list", "skills"]) == 0
    piped = capsys.readouterr().out
    assert "\x1b" not in piped
    assert [line for line in seen(shown, 24) if line] == [
        line for line in piped.split("\n") if line
    ]


@pytest.mark.parametrize(
    ("env", "coloured"),
    [
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
    ],
)
def test_who_gets_colours(
    monkeypatch: pytest.MonkeyPatch, env: dict[str, str], coloured: bool
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert has_colours(sys.stdout, {**env, "WT_SESSION": "1"}) is coloured


@pytest.mark.parametrize(
    "arguments", [["schema"], pytest.param(["models"], marks=pytest.mark.nightly)]
)
def test_a_closed_pipe_is_no_traceback(tmp_path: Path, arguments: list[str]) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [COMMAND, *arguments],
        cwd=tmp_path,
        stdout=theirs,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(theirs)
    assert (done.returncode, done.stderr) == (0, b"")


def test_ctrl_c_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("pytest_upskill.cli.commands.init.schema_text", interrupted)
    assert main(["schema"]) == 130
    assert capsys.readouterr().err == "pytest-upskill: interrupted\n"


def test_sigterm_is_ctrl_c(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def terminated() -> str:
        signal.raise_signal(signal.SIGTERM)
        return ""

    monkeypatch.setattr("pytest_upskill.cli.commands.init.schema_text", terminated)
    assert main(["schema"]) == 130
    assert capsys.readouterr().err == "pytest-upskill: interrupted\nSIGTERM\n"
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_an_ascii_output_gets_ascii(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_skill(tmp_path / "skills/gate")
    text = (folder / "SKILL.md").read_text()
    (folder / "SKILL.md").write_text(
        text.replace("About a gate", "Über ein Tor → 門"), "utf-8"
    )
    monkeypatch.chdir(tmp_path)
    written = BytesIO()
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(written, encoding="ascii"))
    assert main(["list", "skills"]) == 0
    first, second, *_ = written.getvalue().decode("ascii").splitlines()
    assert first.startswith("skills/gate  ")
    assert second == "  ?ber ein Tor ? ?."


def test_without_a_command_the_help_is_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 2
    assert "list models, and which" in capsys.readouterr().out


def test_the_version_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"pytest-upskill {__version__}\n"


@pytest.mark.parametrize(
    ("words", "usage", "message"),
    [
        (
            "models --no-such-option",
            "models ",
            "unrecognized argument: --no-such-option\n",
        ),
        ("try gate --modle x", "try ", "--modle (did you mean --model?)"),
        ("eval gate --skill-runs=3", "eval ", "--skill-runs=3 (did you mean --runs?)"),
        ("eval gate --lf", "eval ", "--lf (options of pytest come after --)"),
        ("plan gate \033[31mwall", "plan ", "unrecognized argument: \\x1b[31mwall\n"),
        ("--nope", "[-h] ", "unrecognized argument: --nope\n"),
    ],
)
def test_an_unknown_argument_shows_the_usage_of_its_command(
    words: str, usage: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words.split())
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith(f"usage: pytest-upskill {usage}")
    assert message in error


def test_the_package_can_be_run() -> None:
    words = [sys.executable, "-m", "pytest_upskill", "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == f"pytest-upskill {__version__}\n"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "run",
            "run: no such command\n  Run tests: pytest --skill PATH --model NAME, or ",
        ),
        ("tri", 'tri: no such command (did you mean "try"?)'),
        ("ablat", 'ablat: no such command (did you mean "ablate"?)'),
        ("\033[31mx", "x: no such command\n  List them: pytest-upskill --help"),
    ],
)
def test_an_unknown_command_names_the_right_one(
    name: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name, "skills"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "\033" not in error
