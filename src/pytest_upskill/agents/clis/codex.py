"""Codex."""

import json
from typing import Final

from ..command_agent import AgentJob, CommandAgent, Launch
from ..logins import CODEX
from ..staging import InstalledSkill

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

[features]  # those that a version does not know do no harm here
apps = false
daemon_auto_start = false
enable_request_compression = false
plugins = false
remote_plugin = false
skill_mcp_dependency_install = false
unbounded_connection_retries = false
"""


class Codex(CommandAgent):
    name = "codex"
    program = "codex"
    install = "npm install -g @openai/codex"
    protocols = ("responses",)
    memory = 200
    login = CODEX
    mcp = True
    takes_answers = True

    def launch(self, job: AgentJob) -> Launch:
        model = json.dumps(job.model, ensure_ascii=False)  # as TOML has it, too
        config = _CONFIG.format(model=model, url=json.dumps(f"{job.url}/v1"))
        for name, server in job.mcp_servers.items():
            # Unless it is required, the first request does not wait for its tools.
            settings = {**server, "required": True, "startup_timeout_sec": 60}
            values = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
            config += "\n".join(["", f"[mcp_servers.{name}]", *values, ""])
        arguments = [
            *("exec", "--json", "--skip-git-repo-check"),
            "--dangerously-bypass-approvals-and-sandbox",
            *(("resume", "--last") if job.answer else ()),
            "-",
        ]
        return Launch(
            arguments,
            {"DOOR_TOKEN": job.key},
            {".codex/config.toml": config},
            stdin=job.text.encode(),
        )

    def command(self, skill: InstalledSkill, arguments: str) -> str:
        return f"${skill.name} {arguments}".strip()
