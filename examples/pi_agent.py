"""A conftest.py that adds the coding agent pi, for ``--skill-agent pi``.

npm install -g @earendil-works/pi-coding-agent
"""

import json

from pytest_upskill import AgentJob, CommandAgent, Launch

# What pi calls the protocols.
APIS = {
    "chat": "openai-completions",
    "responses": "openai-responses",
    "messages": "anthropic-messages",
}


class Pi(CommandAgent):
    program = "pi"
    install = "npm install -g @earendil-works/pi-coding-agent"
    protocols = ("chat", "responses", "messages")
    memory = 200

    def launch(self, job: AgentJob) -> Launch:
        # The Anthropic SDK adds /v1 itself.
        base_url = job.url if job.protocol == "messages" else f"{job.url}/v1"
        provider = {
            "baseUrl": base_url,
            "api": APIS[job.protocol],
            "apiKey": job.key,
            "models": [
                {
                    "id": job.model,
                    "contextWindow": 128_000,
                    "maxTokens": job.max_output,
                }
            ],
        }
        settings = {
            "defaultProvider": "upskill",
            "defaultModel": job.model,
            "defaultProjectTrust": "always",
            "cacheWarming": "off",
            # A request that failed is asked again by pytest-upskill.
            "retry": {"enabled": False, "provider": {"maxRetries": 0}},
        }
        models = {"providers": {"upskill": provider}}
        return Launch(
            ["--print", "--mode", "json", "--no-session"],
            env={"PI_OFFLINE": "1", "PI_TELEMETRY": "0"},
            files={
                ".pi/agent/models.json": json.dumps(models),
                ".pi/agent/settings.json": json.dumps(settings),
            },
            stdin=job.prompt.encode(),
        )


def pytest_upskill_agents() -> dict[str, type[Pi]]:
    return {"pi": Pi}
