"""Agents for the models of others: how each is started, and where its skills go."""

import json
import os
import shutil
from pathlib import Path
from typing import Final

from ..command_agent import CONTEXT, AgentJob, CommandAgent, Launch
from ..program import Program
from ..run_folder import run_folder
from ..sandboxes.sandbox import HOME, Mount

_CLINE_LONGEST: Final = 90_000  # bytes of an argument; Linux takes some more


class Cline(CommandAgent):
    name = "cline"
    program = "cline"
    install = "npm install -g cline"
    protocols = ("chat", "messages", "responses")
    memory = 400

    def launch(self, job: AgentJob) -> Launch:
        providers = {
            "chat": "openai-compatible",
            "messages": "anthropic",
            "responses": "openai-native",
        }
        provider = providers[job.protocol]
        connection = {
            "provider": provider,
            "apiKey": job.key,
            "model": job.model,
            "baseUrl": f"{job.url}/v1",
        }
        logins = {
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
        settings = {"telemetryOptOut": True, "autoUpdateEnabled": False, "toolAutoApprove": True}
        files = {
            ".cline/data/settings/providers.json": json.dumps(logins),
            ".cline/data/settings/global-settings.json": json.dumps(settings),
        }
        prompt = job.prompt  # it reads none from standard input
        if len(prompt.encode()) > _CLINE_LONGEST:
            files["task.txt"] = prompt
            prompt = "Read all of ~/task.txt, and do what it says."
        elif len(prompt.split()) < 2:
            prompt = f"{prompt} ."  # a single word is taken for a command
        arguments = ["--json", "--auto-approve", "true", "--provider", provider]
        return Launch(
            [*arguments, "--model", job.model, "--", prompt],
            {"CLINE_SESSION_BACKEND_MODE": "local"},  # or it would leave a daemon behind
            files,
        )


_COPILOT_BUNDLED: Final = ("customize-cloud-agent", "discover-resources", "github-pr-media")
_COPILOT_UNPACKED: Final = "copilot/pkg"


class Copilot(CommandAgent):
    name = "copilot"
    program = "copilot"
    install = "npm install -g @github/copilot"
    protocols = ("chat", "messages", "responses")
    memory = 500

    def cache(self) -> str:
        return str(run_folder() / "copilot")

    def mounts(self) -> tuple[Mount, ...]:
        """With the 235 MB that it would unpack in every new home."""
        self.version()
        unpacked = Path(self.cache(), _COPILOT_UNPACKED)
        if not unpacked.is_dir():
            return super().mounts()
        return (*super().mounts(), Mount(str(unpacked), f"{HOME}/.cache/{_COPILOT_UNPACKED}"))

    def launch(self, job: AgentJob) -> Launch:
        is_messages = job.protocol == "messages"
        # Of Claude it asks for no less, and refuses to start if that is too much.
        most = max(job.max_output, 32_000) if is_messages else job.max_output
        env = {
            "COPILOT_PROVIDER_TYPE": "anthropic" if is_messages else "openai",
            "COPILOT_PROVIDER_BASE_URL": job.sdk_url,
            "COPILOT_PROVIDER_WIRE_API": "responses"
            if job.protocol == "responses"
            else "completions",
            "COPILOT_PROVIDER_API_KEY": job.key,
            "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": str(CONTEXT),
            "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS": str(most),
            "COPILOT_MODEL": job.model,
            "COPILOT_ALLOW_ALL": "true",  # also trusts the workspace; older versions have no option
            "COPILOT_OFFLINE": "true",  # no login, telemetry or remote control either
            "COPILOT_AUTO_UPDATE": "false",
        }
        arguments = [
            *("--output-format", "json", "--allow-all-tools", "--allow-all-paths"),
            *("--no-ask-user", "--disable-builtin-mcps"),
        ]
        settings = {"disabledSkills": _COPILOT_BUNDLED, "memory": False, "autoUpdate": False}
        files = {".copilot/settings.json": json.dumps(settings)}
        return Launch(arguments, env, files, job.prompt.encode())


class Droid(CommandAgent):
    name = "droid"
    program = "droid"
    install = "npm install -g droid"
    protocols = ("chat", "messages", "responses")
    skills_folder = f"{HOME}/.factory/skills"
    memory = 450

    def launch(self, job: AgentJob) -> Launch:
        providers = {
            "chat": "generic-chat-completion-api",
            "messages": "anthropic",
            "responses": "openai",
        }
        model = {
            "model": job.model,
            "displayName": job.model,
            "baseUrl": job.sdk_url,
            "apiKey": job.key,
            "provider": providers[job.protocol],
            "maxOutputTokens": job.max_output,
        }
        settings = {"customModels": [model], "enableDroidShield": False, "cloudSessionSync": False}
        env = {
            "FACTORY_AIRGAP_ENABLED": "true",  # no login, no telemetry, nothing of Factory's
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
        provider = "anthropic" if job.protocol == "messages" else "openai"
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
        if provider == "openai":  # or it would choose by the name of the model
            path = "chat/completions" if job.protocol == "chat" else "v1/responses"
            env["OPENAI_BASE_PATH"] = path
        arguments = [
            *("run", "--instructions", "-", "--no-session", "--output-format", "stream-json"),
            *("--with-builtin", "developer"),
        ]
        return Launch(arguments, env, stdin=job.prompt.encode())


class OpenCode(CommandAgent):
    name = "opencode"
    program = "opencode"
    install = "npm install -g @vscode/ripgrep opencode-ai"
    protocols = ("chat", "messages", "responses")
    memory = 700

    def with_needs(self, program: Program) -> Program:
        """Without ripgrep it would try to download one whenever a skill is opened."""
        above = [path for path in Path(program.host).parents if path.name == "node_modules"]
        packages = (file for path in above for file in path.glob("@vscode/ripgrep-*/bin/rg"))
        cache = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
        downloaded = Path(cache, "opencode/bin/rg")  # which it downloaded once
        ripgrep = shutil.which("rg") or next(
            (path for path in (*packages, downloaded) if path.is_file()), ""
        )
        if not ripgrep:
            hint = "Install it beside it: npm install -g @vscode/ripgrep, or your system's ripgrep."
            raise self.error("opencode opens skills with ripgrep (rg), which is missing", hint)
        return program.beside(str(ripgrep))

    def launch(self, job: AgentJob) -> Launch:
        packages = {  # parts of the program: nothing is downloaded
            "chat": "@ai-sdk/openai-compatible",
            "messages": "@ai-sdk/anthropic",
            "responses": "@ai-sdk/openai",
        }
        provider = {
            "npm": packages[job.protocol],
            "options": {"baseURL": f"{job.url}/v1", "apiKey": job.key},
            "models": {job.model: {"limit": {"context": CONTEXT, "output": job.max_output}}},
        }
        config = {
            "model": f"door/{job.model}",
            "small_model": f"door/{job.model}",
            "provider": {"door": provider},
            "enabled_providers": ["door"],
            # The last rule that fits counts. The one skill of its own is about its settings.
            "permission": {"*": "allow", "skill": {"*": "allow", "customize-opencode": "deny"}},
            "share": "disabled",
            "autoupdate": False,
            "snapshot": False,
        }
        env = {
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        }
        arguments = ["run", "--pure", "--format", "json", "--title", "task"]
        files = {".config/opencode/opencode.json": json.dumps(config)}
        return Launch(arguments, env, files, job.prompt.encode())


class Pi(CommandAgent):
    name = "pi"
    program = "pi"
    install = "npm install -g @earendil-works/pi-coding-agent"
    protocols = ("chat", "responses", "messages")
    memory = 200

    def launch(self, job: AgentJob) -> Launch:
        model = {"id": job.model, "contextWindow": CONTEXT, "maxTokens": job.max_output}
        apis = {
            "chat": "openai-completions",
            "responses": "openai-responses",
            "messages": "anthropic-messages",
        }
        provider = {
            "baseUrl": job.sdk_url,
            "api": apis[job.protocol],
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
