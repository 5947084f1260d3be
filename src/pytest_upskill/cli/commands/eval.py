"""``pytest-upskill eval``: run pytest with the flags of upskill."""

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from ..._util.credentials import shown_command
from ...skills.upskill_config import read_config
from ..output import forget_output, write
from ..project import find_skill, require_ini_outside
from ..upskill_flags import FLAGS_OF_EVAL, add_flags, refuse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_shared_arguments(parser, models_required=False, runs=None)
    parser.add_argument(
        "--runs-dir", metavar="DIR", help="folder of the run history (default: .upskill/runs)"
    )
    parser.add_argument(
        "--no-log-runs", dest="log_runs", action="store_false", help="do not keep this run"
    )
    parser.add_argument("--log-runs", action="store_true", default=True, help=argparse.SUPPRESS)


def add_shared_arguments(
    parser: argparse.ArgumentParser, *, models_required: bool, runs: str | None
) -> None:
    """The arguments that eval and benchmark share."""
    parser.usage = (
        f"%(prog)s SKILL {'-m NAME' if models_required else '[-m NAME]'} ... [-- PYTEST ARGS]"
    )
    parser.add_argument(
        "skill",
        metavar="SKILL",
        help="a skill: its folder, its SKILL.md, or its name in skills_dir",
    )
    parser.add_argument(
        *("-m", "--model"),
        dest="models",
        action="append",
        default=[],
        required=models_required,
        metavar="NAME",
        help="a model to ask (repeatable)",
    )
    parser.add_argument("--runs", metavar="N", help=f"runs of each case (default: {runs or 1})")
    parser.set_defaults(default_runs=runs)
    parser.add_argument(
        "--skill-agent",
        dest="agents",
        action="append",
        default=[],
        metavar="NAME",
        help="who carries out the cases: chat, loop, claude, … (repeatable; default: chat)",
    )
    parser.add_argument("-t", "--tests", metavar="FILE", help="take the cases from another file")
    parser.add_argument("--no-baseline", action="store_true", help="ask only with the skill")
    parser.add_argument("--base-url", metavar="URL", help="an OpenAI-compatible server")
    parser.add_argument("-v", "--verbose", action="store_true", help="print a line for every case")
    parser.add_argument("--max-parallel", metavar="N", help="maximum calls in flight")
    add_flags(parser, FLAGS_OF_EVAL)


def run(given: argparse.Namespace) -> tuple[str, int]:
    return "", run_pytest(pytest_arguments(given, os.environ))


def pytest_arguments(given: argparse.Namespace, env: Mapping[str, str]) -> list[str]:
    """The same as arguments of pytest."""
    refuse(given, FLAGS_OF_EVAL)
    here = Path.cwd()
    config = read_config(here, env)
    skill = find_skill(given.skill, env)
    if "--skill-allow-code" not in given.for_pytest:
        require_ini_outside(here, skill)
    # With a space pytest would take its settings from the skill's folder, and run what they name.
    words = [f"--skill={skill.relative_to(here) if skill.is_relative_to(here) else skill}"]
    for model in given.models:
        words += ["--model", model]
    for agent in given.agents:
        words += ["--skill-agent", agent]
    for flag, value in (
        ("--skill-runs", given.runs or config.runs or given.default_runs),
        ("--skill-tests", given.tests),
        ("--skill-base-url", given.base_url),
        ("--skill-concurrency", given.max_parallel or config.max_parallel),
        ("--skill-runs-dir", given.runs_dir),
    ):
        words += [flag, str(value)] if value is not None else []
    words += ["--skill-no-baseline"] if given.no_baseline else []
    words += [] if given.log_runs else ["--skill-no-history"]
    words += ["-v"] if given.verbose else []
    return [*words, *given.for_pytest]


def run_pytest(arguments: list[str]) -> int:
    """Print the command first, so that users of upskill learn it, and run it."""
    write(shown_command(["pytest", *arguments]))
    import pytest  # takes a quarter of a second

    try:
        status = int(pytest.main(arguments))
        sys.stdout.flush()
    except BrokenPipeError:  # as pytest itself does
        forget_output()
        status = int(pytest.ExitCode.TESTS_FAILED)
    return status
