"""The workflows of docs/ci.md."""

import re
import shlex
from pathlib import Path

import yaml

from pytest_upskill.plugin.options import OPTIONS

PAGE = (Path(__file__).parents[2] / "docs/ci.md").read_text()


def test_the_workflows_are_yaml_and_their_commands_have_options_that_exist() -> None:
    texts = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.S | re.M)
    workflows = [yaml.safe_load(text) for text in texts]
    assert [set(flow) & {"jobs", "replay"} for flow in workflows] == [{"jobs"}, {"replay"}]
    flags = {option.flag for option in OPTIONS} | {"--junitxml"}
    commands = re.findall(r"^[ -]*(?:run: )?(pytest --.*)$", PAGE, re.M)
    assert len(commands) >= 4
    for command in commands:
        assert {word for word in shlex.split(command) if word.startswith("--")} <= flags
