"""Fake CLIs of agents on PATH; by default Claude Code, which speaks Messages and has
one tool, bash.
"""

import sys
from pathlib import Path

VERSION = "2.1.0"
_PYTHON = f"{sys.base_prefix}/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
_AGENT = r"""
import json, os, pathlib, subprocess, sys, urllib.request
skills = pathlib.Path.home().glob(".claude/skills/*/SKILL.md")
listed = [f"{one.parent}/SKILL.md {one.read_text().split('---')[1]}" for one in skills]
system = "\n".join(listed)
said = [{"role": "user", "content": sys.stdin.read()}]
form = {"type": "object", "properties": {"command": {"type": "string"}}}
tools = [{"name": "bash", "description": "run", "input_schema": form}]
calls = [None]
while calls:
    body = {"model": os.environ["ANTHROPIC_MODEL"], "max_tokens": 1000,
        "system": system or "none", "messages": said, "tools": tools}
    login = os.environ.get("CLAUDE_CODE_OAUTH_TOKEN")
    if login:
        head = {"Authorization": "Bearer " + login,
            "anthropic-beta": "oauth-2025-04-20"}
    else:
        head = {"x-api-key": os.environ["ANTHROPIC_API_KEY"]}
    request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
        json.dumps(body).encode(), {**head, "User-Agent": "claude-cli/2.1.0 (made up)"})
    content = json.load(urllib.request.urlopen(request))["content"]
    calls = [one for one in content if one["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": one["id"], "content":
        subprocess.getoutput(one["input"]["command"])} for one in calls]
    said.append({"role": "assistant", "content": content})
    said.append({"role": "user", "content": results})
"""


def fake_cli(
    folder: Path,
    name: str = "claude",
    *,
    version: str = f"echo {VERSION}",
    breaks: str = "",
    agent: str = _AGENT,
) -> Path:
    """A folder for PATH. ``version`` is what it does to tell that,
    ``breaks`` what comes first, ``agent`` what it is in Python.
    """
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *--version*) {version}; exit;; esac\n{breaks}\n'
        f"exec {_PYTHON} -c '{_quoted(agent)}'\n"
    )
    program.chmod(0o755)
    return folder


def _quoted(script: str) -> str:
    return script.replace("'", "'\\''")
