"""A plugin on disk: two skills, a command, a hook, an MCP server and cases of its
own.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from support.agents import write_files
from support.kit import case

GATE = "The command to open the gate is `gate up`."
BOAT = "The boat is rowed with two oars, and tied with a bowline."
CASES = (
    case("How do I open the gate?", "gate up", id="open-gate"),
    case("How do I tie the boat?", "bowline", id="tie-boat"),
)


def skill_text(name: str, body: str) -> str:
    return f"---\nname: {name}\ndescription: About a {name}.\n---\n\n{body}\n"


def write_plugin(
    folder: Path,
    *,
    cases: Sequence[Mapping[str, Any]] = CASES,
    files: Mapping[str, str] | None = None,
    **manifest: Any,
) -> Path:
    """The plugin ``garden``, with more files and more keys in its manifest."""
    hook = {
        "hooks": {
            "SessionStart": [{"hooks": [{"type": "command", "command": "echo Mia"}]}]
        }
    }
    write_files(
        folder,
        {
            ".claude-plugin/plugin.json": json.dumps(
                {"name": "garden", **manifest}, indent=1
            ),
            ".mcp.json": json.dumps({"mcpServers": {"weather": {"command": "cat"}}}),
            "skills/gate/SKILL.md": skill_text("gate", GATE),
            "skills/boat/SKILL.md": skill_text("boat", BOAT),
            "commands/water.md": (
                "---\ndescription: Waters the roses.\n---\n\nWater the roses.\n"
            ),
            "hooks/hooks.json": json.dumps(hook),
            **(
                {"skill_meta.json": json.dumps({"cases": list(cases)})} if cases else {}
            ),
            **(files or {}),
        },
    )
    return folder
