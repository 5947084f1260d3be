"""Cline."""

import json
from collections.abc import Mapping
from typing import Final

from ...models.model import ProtocolName
from ..command_agent import AgentJob, CommandAgent, Launch

_PROVIDERS: Final[Mapping[ProtocolName, str]] = {
    "chat": "openai-compatible",
    "messages": "anthropic",
    "responses": "openai-native",
}
_LONGEST: Final = 90_000  # bytes of an argument; Linux takes some more


class Cline(CommandAgent):
    name = "cline"
    program = "cline"
    install = "npm install -g cline"
    protocols = ("chat", "messages", "responses")
    memory = 400

    def launch(self, job: AgentJob) -> Launch:
        provider = _PROVIDERS[job.protocol]
        connection = {
            "provider": provider,
            "apiKey": job.key,
            "model": job.model,
            "baseUrl": f"{job.url}/v1",
        }
        providers = {
            "version": 1,
            "lastUsedProvider": provider,
            "modes": {},
            "providers": {
                provider: {
                    "settings": connection,
                    "updatedAt": "2026-01-01T00:00:00.000Z",
                    "tokenSource": "manual",
                }
            },
        }
        settings = {
            "telemetryOptOut": True,
            "autoUpdateEnabled": False,
            "toolAutoApprove": True,
        }
        files = {
            ".cline/data/settings/providers.json": json.dumps(providers),
            ".cline/data/settings/global-settings.json": json.dumps(settings),
        }
        prompt = job.prompt  # it reads none from standard input
        if len(prompt.encode()) > _LONGEST:
            files["task.txt"] = prompt
            prompt = "Read all of ~/task.txt, and do what it says."
        elif len(prompt.split()) < 2:
            prompt = f"{prompt} ."  # a single word is taken for a command
        arguments = ["--json", "--auto-approve", "true", "--provider", provider]
        return Launch(
            [*arguments, "--model", job.model, "--", prompt],
            # Or it would leave a daemon behind
            {"CLINE_SESSION_BACKEND_MODE": "local"},
            files,
        )
