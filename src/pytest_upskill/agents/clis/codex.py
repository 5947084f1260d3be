"""Codex."""

import json
from typing import Final

from ..command_agent import CommandAgent, Job, Launch

_CONFIG: Final = """\
model = {model}
model_provider = "door"
check_for_update_on_startup = false
web_search = "disabled"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.door]
name = "door"
base_url = {url}
env_key = "DOOR_TOKEN"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0

[shell_environment_policy]
exclude = ["DOOR_TOKEN"]

[skills.bundled]
enabled = false

[analytics]
enabled = false
"""
_OFF: Final = (
    *("apps", "plugins", "remote_plugin", "skill_mcp_dependency_install", "daemon_auto_start"),
    *("enable_request_compression", "unbounded_connection_retries"),
)


class Codex(CommandAgent):
    name = "codex"
    program = "codex"
    install = "npm install -g @openai/codex"
    protocols = ("responses",)
    memory = 200

    def launch(self, job: Job) -> Launch:
        model = json.dumps(job.model, ensure_ascii=False)  # as TOML has it, too
        config = _CONFIG.format(model=model, url=json.dumps(f"{job.url}/v1"))
        arguments = [
            *("exec", "--json", "--skip-git-repo-check", "--ignore-rules"),
            "--dangerously-bypass-approvals-and-sandbox",
        ]
        for feature in _OFF:
            arguments += ["--disable", feature]
        return Launch(
            [*arguments, "-"],
            {"DOOR_TOKEN": job.key},
            {".codex/config.toml": config},
            stdin=job.prompt.encode(),
        )
