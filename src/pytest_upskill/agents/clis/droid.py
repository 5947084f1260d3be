"""Droid, of Factory."""

import json
from collections.abc import Mapping
from typing import Final

from ...models.model import ProtocolName
from ..command_agent import AgentJob, CommandAgent, Launch
from ..sandboxes.sandbox import HOME

_PROVIDERS: Final[Mapping[ProtocolName, str]] = {
    "chat": "generic-chat-completion-api",
    "messages": "anthropic",
    "responses": "openai",
}


class Droid(CommandAgent):
    name = "droid"
    program = "droid"
    install = "npm install -g droid"
    protocols = ("chat", "messages", "responses")
    skills_folder = f"{HOME}/.factory/skills"
    memory = 450

    def launch(self, job: AgentJob) -> Launch:
        model = {
            "model": job.model,
            "displayName": job.model,
            "baseUrl": job.url if job.protocol == "messages" else f"{job.url}/v1",
            "apiKey": job.key,
            "provider": _PROVIDERS[job.protocol],
            "maxOutputTokens": job.max_output,
        }
        settings = {
            "customModels": [model],
            "enableDroidShield": False,
            "cloudSessionSync": False,
        }
        env = {
            # No login, no telemetry, nothing of Factory's
            "FACTORY_AIRGAP_ENABLED": "true",
            "FACTORY_DISABLE_KEYRING": "true",
            "FACTORY_DROID_AUTO_UPDATE_ENABLED": "false",
        }
        arguments = [
            *("exec", "--output-format", "json", "--skip-permissions-unsafe"),
            *("--disable-builtin-skills", "--model", f"custom:{job.model}"),
        ]
        return Launch(
            arguments,
            env,
            {".factory/settings.json": json.dumps(settings)},
            stdin=job.prompt.encode(),
        )
