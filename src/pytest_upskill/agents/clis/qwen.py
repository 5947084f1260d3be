"""Qwen Code."""

import json
from collections.abc import Mapping
from typing import Final

from ...models.model import ProtocolName
from ..command_agent import CONTEXT, AgentJob, CommandAgent, Launch

_TYPES: Final[Mapping[ProtocolName, str]] = {
    "chat": "openai",
    "messages": "anthropic",
    "responses": "openai-responses",
}


class QwenCode(CommandAgent):
    name = "qwen"
    program = "qwen"
    install = "npm install -g @qwen-code/qwen-code"
    protocols = ("chat", "messages", "responses")
    mcp = True
    memory = 1800  # with Node 24; 300 with Node 20

    def launch(self, job: AgentJob) -> Launch:
        kind = _TYPES[job.protocol]
        settings = {
            "security": {"auth": {"selectedType": kind}},
            "model": {
                "name": job.model,
                "generationConfig": {
                    "maxRetries": 0,
                    "contextWindowSize": CONTEXT,
                    "samplingParams": {"max_tokens": job.max_output},
                },
            },
            "skills": {"disabledLevels": ["bundled", "extension"]},
            "memory": {
                "enableManagedAutoMemory": False,
                "enableManagedAutoDream": False,
            },
            "general": {"enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "mcpServers": job.mcp_servers,
        }
        names = "ANTHROPIC" if job.protocol == "messages" else "OPENAI"
        env = {
            f"{names}_BASE_URL": (
                job.url if job.protocol == "messages" else f"{job.url}/v1"
            ),
            f"{names}_API_KEY": job.key,
            f"{names}_MODEL": job.model,
            "QWEN_CODE_NO_RELAUNCH": "true",  # for more memory than a trial needs
        }
        arguments = ["--output-format", "stream-json", "--yolo", "--auth-type", kind]
        files = {".qwen/settings.json": json.dumps(settings)}
        return Launch(arguments, env, files, job.prompt.encode())
