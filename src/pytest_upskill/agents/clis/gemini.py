"""Gemini CLI."""

import json
from typing import Any, Final

from ..command_agent import AgentJob, CommandAgent, Launch

_SETTINGS: Final[dict[str, Any]] = {
    "security": {
        "auth": {"selectedType": "gemini-api-key"},
        "folderTrust": {"enabled": False},
    },
    "general": {
        "enableAutoUpdate": False,
        "enableAutoUpdateNotification": False,
        "checkpointing": {"enabled": False},
        "sessionRetention": {"enabled": False},
        "retryFetchErrors": False,
        "maxAttempts": 1,
    },
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "ide": {"enabled": False},
    "tools": {"disableLLMCorrection": True, "shell": {"enableInteractiveShell": False}},
    "skills": {"enabled": True, "disabled": ["skill-creator", "antigravity-support"]},
    "advanced": {"autoConfigureMemory": False},
}
# What it calls its other models, for summaries and the like;
# all others come from "base".
_OTHERS: Final = (
    *("base", "chat-compression-default", "agent-history-provider-summarizer"),
    *(
        "chat-compression-3-pro",
        "chat-compression-3-flash",
        "chat-compression-3.1-flash-lite",
    ),
    *(
        "chat-compression-2.5-pro",
        "chat-compression-2.5-flash",
        "chat-compression-2.5-flash-lite",
    ),
)


class GeminiCLI(CommandAgent):
    name = "gemini"
    program = "gemini"
    install = "npm install -g @google/gemini-cli"
    protocols = ("gemini",)
    mcp = True
    memory = 800  # with Node 24; 300 with Node 20

    def launch(self, job: AgentJob) -> Launch:
        model_config = {
            "model": job.model,
            "generateContentConfig": {"maxOutputTokens": job.max_output},
        }
        overrides = [
            {"match": {"model": name}, "modelConfig": model_config} for name in _OTHERS
        ]
        settings = {
            **_SETTINGS,
            "model": {"name": job.model, "disableLoopDetection": True},
            "modelConfigs": {"customOverrides": overrides},
            "mcpServers": job.mcp_servers,
        }
        env = {
            "GEMINI_API_KEY": job.key,
            "GOOGLE_GEMINI_BASE_URL": job.url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_CLI_NO_RELAUNCH": "true",
            "NO_BROWSER": "true",
        }
        arguments = ["--output-format", "stream-json", "--yolo", "--model", job.model]
        files = {".gemini/settings.json": json.dumps(settings)}
        return Launch(arguments, env, files, stdin=job.prompt.encode())
