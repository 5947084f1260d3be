"""GitHub Copilot CLI."""

import json
from pathlib import Path
from typing import Final

from ..command_agent import CONTEXT, AgentJob, CommandAgent, Launch
from ..run_folder import run_folder
from ..sandboxes.sandbox import HOME, Mount

_BUNDLED: Final = ("customize-cloud-agent", "discover-resources", "github-pr-media")
_UNPACKED: Final = "copilot/pkg"


class Copilot(CommandAgent):
    name = "copilot"
    program = "copilot"
    install = "npm install -g @github/copilot"
    protocols = ("chat", "messages", "responses")
    memory = 500
    mcp = True

    def cache(self) -> str:
        return str(run_folder() / "copilot")

    def mounts(self) -> tuple[Mount, ...]:
        """With the 235 MB that it would unpack in every new home."""
        self.version()
        unpacked = Path(self.cache(), _UNPACKED)
        mounts = (
            [Mount(str(unpacked), f"{HOME}/.cache/{_UNPACKED}")]
            if unpacked.is_dir()
            else []
        )
        return (*super().mounts(), *mounts)

    def launch(self, job: AgentJob) -> Launch:
        is_messages = job.protocol == "messages"
        # Of Claude it asks for no less, and refuses to start if that is too much.
        most = max(job.max_output, 32_000) if is_messages else job.max_output
        env = {
            "COPILOT_PROVIDER_TYPE": "anthropic" if is_messages else "openai",
            "COPILOT_PROVIDER_BASE_URL": job.url if is_messages else f"{job.url}/v1",
            "COPILOT_PROVIDER_WIRE_API": (
                "responses" if job.protocol == "responses" else "completions"
            ),
            "COPILOT_PROVIDER_API_KEY": job.key,
            "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": str(CONTEXT),
            "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS": str(most),
            "COPILOT_MODEL": job.model,
            # Also trusts the workspace; older versions have no option
            "COPILOT_ALLOW_ALL": "true",
            "COPILOT_OFFLINE": "true",  # no login, telemetry or remote control either
            "COPILOT_AUTO_UPDATE": "false",
        }
        arguments = [
            *("--output-format", "json", "--allow-all-tools", "--allow-all-paths"),
            *("--no-ask-user", "--disable-builtin-mcps"),
        ]
        settings = {"disabledSkills": _BUNDLED, "memory": False, "autoUpdate": False}
        servers = {
            name: {**server, "tools": ["*"]} for name, server in job.mcp_servers.items()
        }
        files = {
            ".copilot/settings.json": json.dumps(settings),
            ".copilot/mcp-config.json": json.dumps({"mcpServers": servers}),
        }
        return Launch(arguments, env, files, job.prompt.encode())
