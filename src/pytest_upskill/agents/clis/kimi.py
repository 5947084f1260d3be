"""Kimi Code."""

import json
from typing import Final

from ...models.model import ProtocolName
from ..command_agent import CONTEXT, AgentJob, CommandAgent, Launch
from ..sandboxes.sandbox import HOME

_TYPES: Final[dict[ProtocolName, str]] = {
    "chat": "openai",
    "messages": "anthropic",
    "responses": "openai_responses",
}
_PROMPT: Final = ".kimi-prompt"
# It takes its prompt as an argument only, whose length has a limit.
_PRELOADED: Final = f"""
const fs = require("fs");
process.argv.push("--prompt", fs.readFileSync("{HOME}/{_PROMPT}", "utf8"));
delete process.env.NODE_OPTIONS;
"""


class KimiCode(CommandAgent):
    name = "kimi"
    program = "kimi"
    install = "npm install -g @moonshot-ai/kimi-code"
    protocols = ("chat", "messages", "responses")
    memory = 500
    bundled = ("write-goal",)

    def launch(self, job: AgentJob) -> Launch:
        url = job.url if job.protocol == "messages" else f"{job.url}/v1"
        config = f"""
default_model = "trial"
telemetry = false

[providers.door]
type = "{_TYPES[job.protocol]}"
base_url = "{url}"
api_key = "{job.key}"

[models.trial]
provider = "door"
model = {json.dumps(job.model, ensure_ascii=False)}
max_context_size = {CONTEXT}
max_output_size = {job.max_output}

[thinking]
enabled = false
"""
        env = {
            "NODE_OPTIONS": f"--require={HOME}/.kimi-preload.cjs",
            "KIMI_DISABLE_TELEMETRY": "1",
            "KIMI_DISABLE_CRON": "1",
            "KIMI_CODE_NO_AUTO_UPDATE": "1",
            "KIMI_CODE_BUILTIN_PRODUCT_SKILLS": "0",
            "KIMI_CODE_MODEL_CATALOG_REFRESH_ON_START": "0",
            "KIMI_LOOP_MAX_RETRIES_PER_STEP": "0",
        }
        files = {
            ".kimi-code/config.toml": config,
            ".kimi-preload.cjs": _PRELOADED,
            _PROMPT: job.prompt,
        }
        return Launch(
            ["--output-format", "stream-json", "--model", "trial"], env, files
        )
