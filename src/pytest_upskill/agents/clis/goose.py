"""goose."""

from collections.abc import Mapping
from typing import Final

from ...models.model import ProtocolName
from ..command_agent import CONTEXT, AgentJob, CommandAgent, Launch

# By itself it would choose between the last two by the model's name.
_PROVIDERS: Final[Mapping[ProtocolName, tuple[str, str]]] = {
    "messages": ("anthropic", ""),
    "chat": ("openai", "chat/completions"),
    "responses": ("openai", "v1/responses"),
}


class Goose(CommandAgent):
    name = "goose"
    program = "goose"
    install = "npm install -g @aaif/goose"
    protocols = ("chat", "responses", "messages")
    memory = 150
    bundled = ("goose-doc-guide",)

    def how_to_install(self, version: str) -> str:  # noqa: ARG002
        return ""  # its packages have other version numbers

    def launch(self, job: AgentJob) -> Launch:
        provider, path = _PROVIDERS[job.protocol]
        env = {
            "GOOSE_PROVIDER": provider,
            "GOOSE_MODEL": job.model,
            "GOOSE_MODE": "auto",
            "GOOSE_MAX_TOKENS": str(job.max_output),
            "GOOSE_CONTEXT_LIMIT": str(CONTEXT),
            "GOOSE_DISABLE_KEYRING": "1",
            "GOOSE_DISABLE_SESSION_NAMING": "true",
            "GOOSE_TELEMETRY_ENABLED": "false",
            f"{provider.upper()}_HOST": job.url,
            f"{provider.upper()}_API_KEY": job.key,
        }
        if path:
            env["OPENAI_BASE_PATH"] = path
        arguments = [
            *(
                "run",
                "--instructions",
                "-",
                "--no-session",
                "--output-format",
                "stream-json",
            ),
            *("--with-builtin", "developer"),
        ]
        return Launch(arguments, env, stdin=job.prompt.encode())
