"""Every command and flag that upskill has, or had in 0.1 and 0.2, has an answer here."""

import argparse
from pathlib import Path

import pytest

from pytest_upskill.cli import main
from pytest_upskill.cli.command_table import make_parser

# As on its command line.
TODAY = [
    "generate task -e in->out --example in->out --tool file#name",
    "generate task -f SKILLS --from SKILLS -m opus --model opus --test-gen-model sonnet",
    "generate task -o out --output out --no-eval --eval-model haiku",
    "generate task --runs-dir runs --log-runs",
    "generate task --no-log-runs",
    "eval SKILLS -t tests.json --tests tests.json -m haiku -m sonnet --model opus --runs 5",
    "eval SKILLS --no-baseline -v --verbose --log-runs --runs-dir runs --test-gen-model opus",
    "eval SKILLS --no-log-runs",
    "benchmark SKILLS -m haiku --model sonnet --runs 3 -t tests.json --test-gen-model opus",
    "benchmark SKILLS -m haiku -o out --output out -v --verbose",
    "runs -d SKILLS --dir SKILLS -s gate --skill gate -m haiku --model haiku --csv out.csv",
    "runs --metric success",
    "runs --metric tokens",
    "list -d SKILLS --dir SKILLS -v --verbose",
]
EARLIER = [
    "generate task --trace trace.md --eval-provider openai --eval-base-url http://here/v1",
    "eval SKILLS --provider openai --base-url http://here/v1",
]


@pytest.mark.parametrize("written", [*TODAY, *EARLIER])
def test_its_flags_are_known(written: str, tmp_path: Path) -> None:
    words = [str(tmp_path) if word == "SKILLS" else word for word in written.split()]
    assert isinstance(make_parser().parse_args(words), argparse.Namespace)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("eval SKILLS --provider openai", "--provider: not supported by pytest-upskill"),
        ("eval SKILLS --test-gen-model opus", "pytest-upskill cases SKILL"),
        ("generate task --eval-provider openai", "--eval-model openai:ID"),
    ],
)
def test_what_has_no_counterpart_says_what_to_use(
    written: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(tmp_path) if word == "SKILLS" else word for word in written.split()]
    assert main(words) == 2
    shown = capsys.readouterr()
    assert (shown.out, told in shown.err) == ("", True)


def test_a_trace_is_a_source() -> None:
    given = make_parser().parse_args(["generate", "task", "--trace", "trace.md"])
    assert given.source == Path("trace.md")
