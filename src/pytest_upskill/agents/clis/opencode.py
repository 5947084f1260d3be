"""OpenCode."""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ...models.model import ProtocolName
from ..command_agent import CONTEXT, AgentJob, CommandAgent, Launch
from ..program import Program

# They are part of the program: nothing is downloaded.
_PACKAGES: Final[Mapping[ProtocolName, str]] = {
    "chat": "@ai-sdk/openai-compatible",
    "messages": "@ai-sdk/anthropic",
    "responses": "@ai-sdk/openai",
}


class OpenCode(CommandAgent):
    name = "opencode"
    program = "opencode"
    install = "npm install -g @vscode/ripgrep opencode-ai"
    protocols = ("chat", "messages", "responses")
    memory = 700

    def with_needs(self, program: Program) -> Program:
        """Without ripgrep it would try to download one whenever a skill is opened."""
        above = [
            path for path in Path(program.host).parents if path.name == "node_modules"
        ]
        packages = (
            file for path in above for file in path.glob("@vscode/ripgrep-*/bin/rg")
        )
        cache = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
        downloaded = Path(cache, "opencode/bin/rg")  # which it downloaded once
        ripgrep = shutil.which("rg") or next(
            (path for path in (*packages, downloaded) if path.is_file()), ""
        )
        if not ripgrep:
            hint = (
                "Install it beside it: npm install -g @vscode/ripgrep, or your system's"
                " ripgrep."
            )
            raise self.error(
                "opencode opens skills with ripgrep (rg), which is missing", hint
            )
        return program.beside(str(ripgrep))

    def launch(self, job: AgentJob) -> Launch:
        provider = {
            "npm": _PACKAGES[job.protocol],
            "options": {"baseURL": f"{job.url}/v1", "apiKey": job.key},
            "models": {
                job.model: {"limit": {"context": CONTEXT, "output": job.max_output}}
            },
        }
        config = {
            "model": f"door/{job.model}",
            "small_model": f"door/{job.model}",
            "provider": {"door": provider},
            "enabled_providers": ["door"],
            # The last rule that fits counts. The one skill of its
            # own is about its settings.
            "permission": {
                "*": "allow",
                "skill": {"*": "allow", "customize-opencode": "deny"},
            },
            "share": "disabled",
            "autoupdate": False,
            "snapshot": False,
        }
        env = {
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        }
        arguments = ["run", "--pure", "--format", "json", "--title", "task"]
        files = {".config/opencode/opencode.json": json.dumps(config)}
        return Launch(arguments, env, files, job.prompt.encode())
