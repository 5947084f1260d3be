"""Grok."""

import json
from typing import Final

from ...models.model import ProtocolName
from ..command_agent import CONTEXT, AgentJob, CommandAgent, Launch
from ..sandboxes.sandbox import HOME

_BACKENDS: Final[dict[ProtocolName, str]] = {
    "chat": "chat_completions",
    "responses": "responses",
    "messages": "messages",
}
_CONFIG: Final = """\
[cli]
auto_update = false

[models]
default = "trial"
max_retries = 0

[model.trial]
name = "trial"
model = {model}
base_url = {url}
env_key = "DOOR_TOKEN"
api_backend = {backend}
max_completion_tokens = {output}
context_window = {context}

[features]
telemetry = false
feedback = false

[telemetry]
trace_upload = false

[memory]
enabled = false

[compat.cursor]
skills = false

[compat.claude]
skills = false
"""


class Grok(CommandAgent):
    name = "grok"
    program = "grok"
    install = "npm install -g @xai-official/grok"
    protocols = ("chat", "responses", "messages")
    memory = 200

    def launch(self, job: AgentJob) -> Launch:
        config = _CONFIG.format(
            model=json.dumps(job.model, ensure_ascii=False),  # as TOML has it, too
            url=json.dumps(f"{job.url}/v1"),
            backend=json.dumps(_BACKENDS[job.protocol]),
            output=job.max_output,
            context=CONTEXT,
        )
        env = {
            "DOOR_TOKEN": job.key,
            "GROK_DISABLE_AUTOUPDATER": "1",
            "GROK_TELEMETRY_ENABLED": "0",
            "GROK_MAX_RETRIES": "0",
            "GROK_MANAGED_MCPS_ENABLED": "0",
            "GROK_SESSION_RECAP": "0",
            "GROK_PROMPT_SUGGESTIONS": "0",
            "GROK_FEEDBACK_ENABLED": "0",
        }
        arguments = [
            *(
                "--prompt-file",
                f"{HOME}/.grok-prompt",
                "--verbatim",
                "--always-approve",
            ),
            *(
                "--output-format",
                "streaming-json",
                "--model",
                "trial",
                "--disable-web-search",
            ),
        ]
        files = {".grok/config.toml": config, ".grok-prompt": job.prompt}
        return Launch(arguments, env, files)
