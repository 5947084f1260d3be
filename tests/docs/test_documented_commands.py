"""Every command in the documentation is a valid one, and does what it says.

The gate runs those of the README, the night all others.
"""

import argparse
import json
import re
import shlex
import shutil
import sys
from itertools import takewhile
from pathlib import Path

import pytest

from pytest_upskill.cli.command_table import make_parser
from pytest_upskill.plugin.pytest_options import FLAGS
from support import wick_models
from support.documentation import ROOT, blocks
from support.documented_commands import TAUGHT, Place, runner_of
from support.fake_docker import use_docker
from support.kit import commit_all
from support.loopback import LoopbackServer
from support.sandboxes import needs_docker, require_bwrap
from support.shell import Shell

COMMANDS = [
    (page, line.removeprefix("$ "))
    for page, text in blocks("console")
    for line in text.splitlines()
]


def test_every_command_is_one_that_the_test_below_can_run() -> None:
    unknown = [
        f"{page}: {one}" for page, one in COMMANDS if not runner_of(shlex.split(one))
    ]
    assert unknown == []


def test_every_argument_of_a_command_is_one_that_there_is() -> None:
    parser = make_parser()
    wrong = [
        f"{page}: {one}"
        for page, one in COMMANDS
        if not _is_valid(shlex.split(one), parser)
    ]
    assert wrong == []


def _is_valid(words: list[str], parser: argparse.ArgumentParser) -> bool:
    """Whether a command would be understood, without carrying it out."""
    match words:
        case ["make", *targets]:
            makefile = (ROOT / "Makefile").read_text()
            names = [target for target in targets if "=" not in target]
            return all(re.search(rf"^{name}:", makefile, re.M) for name in names)
        case ["pytest", *args]:
            flags = set(FLAGS.values())
            ours = {arg for arg in args if arg.startswith(("--skill", "--model"))}
            return {arg.partition("=")[0] for arg in ours} <= flags
        case ["pytest-upskill", *args]:
            try:
                parser.parse_args(
                    [*takewhile(lambda arg: arg not in (">", "--"), args)]
                )
            except SystemExit:
                return False
    return True


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of the project."""
    copy = tmp_path_factory.mktemp("clone")
    for name in ("skills", "docs", "examples"):
        shutil.copytree(ROOT / name, copy / name)
    # As docs/generate.md makes one
    shutil.copytree(copy / "skills/wick", copy / TAUGHT)
    text = (copy / TAUGHT / "SKILL.md").read_text()
    (copy / TAUGHT / "SKILL.md").write_text(
        text.replace("name: wick\n", "name: wick-deploys\n")
    )
    (copy / "tests").mkdir()
    (example,) = [text for page, text in blocks("python") if "test_deploys" in text]
    (copy / "tests/test_wick.py").write_text(example)
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, copy / name)
    if shutil.which("git"):
        commit_all(copy)
    return copy


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(
            command,
            id=f"{page}: {command}",
            marks=[] if page == "README.md" else pytest.mark.nightly,
        )
        for page, command in COMMANDS
    ],
)
def test_command_works(
    command: str, project: Path, tmp_path: Path, shell: Shell
) -> None:
    words = shlex.split(command)
    needs_git = "--skill-against" in words or words[0] == "git"
    if needs_git and not shutil.which("git"):
        pytest.skip("needs git")
    if {"--skill-agent", "--eval-agent", "doctor", "drift", "matrix"} & set(words):
        require_bwrap()
    if "examples/harbour-tasks" in words:
        use_docker(tmp_path / "docker", shell.monkeypatch)
    run = runner_of(words)
    assert run
    run(Place(shell, project, tmp_path), words)


@pytest.mark.nightly
def test_the_scripted_example_ends_as_its_page_says(
    project: Path, shell: Shell
) -> None:
    command = [
        "pytest",
        "--skill",
        "skills/wick",
        "--model",
        "scripted:docs/example-answers.json",
    ]
    page = (ROOT / "docs/models.md").read_text()
    assert f"$ {shlex.join(command)}\n" in page
    shown = shell.output([*command, "-p", "no:cacheprovider"], project)
    assert " 10 passed in " in shown
    for text in (shown, page):
        assert "+100 points" in text
    rules = json.loads((ROOT / "docs/example-answers.json").read_text())
    fewer = [rule for rule in rules if rule.get("question") != "owns"]
    (project / "fewer.json").write_text(json.dumps(fewer))
    command[-1] = "scripted:fewer.json"
    shown = shell.output([*command, "-p", "no:cacheprovider"], project, statuses=(1,))
    assert " 1 failed, 9 passed in " in shown


@pytest.mark.nightly
def test_the_demo_of_an_agent_shows_the_way(project: Path, shell: Shell) -> None:
    require_bwrap()
    makefile = (ROOT / "Makefile").read_text()
    (command,) = re.findall(r"pytest (--skill examples/.*?)\n\t@echo", makefile, re.S)
    words = [
        "pytest",
        *shlex.split(command.replace("\\\n", "")),
        "-p",
        "no:cacheprovider",
    ]
    shown = shell.output(words, project)
    assert " 3 passed in " in shown
    assert re.search(r" 3/3 ", shown), shown  # opened


@pytest.mark.nightly
@needs_docker
def test_the_example_tasks_need_their_skills(project: Path, shell: Shell) -> None:
    model = "scripted:examples/harbour_tasks_model.py:answer"
    words = [
        "pytest",
        "examples/harbour-tasks",
        "--skill-allow-code",
        "--skill-agent",
        "loop",
        "--model",
        model,
    ]
    shown = shell.output([*words, "-p", "no:cacheprovider"], project)
    assert " 2 passed in " in shown
    # rewards, opened
    assert re.search(r" 12% +100% .* 2/2 |\+88 .* 2/2 ", shown), shown


@pytest.mark.nightly
def test_python_example_of_generate_runs(tmp_path: Path, shell: Shell) -> None:
    (example,) = [text for _, text in blocks("python") if "generate_skill" in text]
    (tmp_path / "lesson.py").write_text(example)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    with LoopbackServer(wick_models.answer) as server:
        address = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": server.url}
        shown = shell.output([sys.executable, "lesson.py"], tmp_path, address)
    assert shown.startswith("2 True skills/wick-python\n")
