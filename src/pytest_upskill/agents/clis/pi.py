"""pi."""

import json
from collections.abc import Mapping
from typing import Final

from ...models.model import ProtocolName
from ..command_agent import CONTEXT, AgentJob, CommandAgent, Launch

_APIS: Final[Mapping[ProtocolName, str]] = {
    "chat": "openai-completions",
    "responses": "openai-responses",
    "messages": "anthropic-messages",
}


class Pi(CommandAgent):
    name = "pi"
    program = "pi"
    install = "npm install -g @earendil-works/pi-coding-agent"
    protocols = ("chat", "responses", "messages")
    memory = 200

    def launch(self, job: AgentJob) -> Launch:
        model = {"id": job.model, "contextWindow": CONTEXT, "maxTokens": job.max_output}
        provider = {
            "baseUrl": job.url if job.protocol == "messages" else f"{job.url}/v1",
            "api": _APIS[job.protocol],
            "apiKey": job.key,
            "models": [model],
        }
        settings = {
            "defaultProvider": "door",
            "defaultModel": job.model,
            "defaultProjectTrust": "always",
            "cacheWarming": "off",
            "retry": {"enabled": False, "provider": {"maxRetries": 0}},
        }
        return Launch(
            ["--print", "--mode", "json", "--no-session"],
            {"PI_OFFLINE": "1", "PI_TELEMETRY": "0"},
            {
                ".pi/agent/models.json": json.dumps({"providers": {"door": provider}}),
                ".pi/agent/settings.json": json.dumps(settings),
            },
            stdin=job.prompt.encode(),
        )
