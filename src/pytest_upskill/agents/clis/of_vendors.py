"""Agents of those who make models: how each is started, and where its skills go."""

import json
from typing import Any, Final

from ..command_agent import CONTEXT, AgentJob, CommandAgent, Launch
from ..sandboxes.sandbox import HOME

# Bundled skills that remain when the others are switched off.
_CLAUDE_SETTINGS: Final = {"skillOverrides": {"plugin-authoring": "off", "doctor": "off"}}
# Background tasks never finish within a trial.
_CLAUDE_NEVER: Final = "ScheduleWakeup,CronCreate,CronDelete,CronList"
_CLAUDE_LEAST_THINKING: Final = 1024  # tokens that the API takes


class ClaudeCode(CommandAgent):
    name = "claude"
    program = "claude"
    install = "npm install -g @anthropic-ai/claude-code"
    protocols = ("messages",)
    skills_folder = f"{HOME}/.claude/skills"
    memory = 300

    def launch(self, job: AgentJob) -> Launch:
        # Else models with a budget for thinking could use all of a reply for it.
        thinking = job.max_output // 2
        env = {
            "ANTHROPIC_BASE_URL": job.url,
            "ANTHROPIC_API_KEY": job.key,
            "ANTHROPIC_MODEL": job.model,
            "ANTHROPIC_SMALL_FAST_MODEL": job.model,
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": job.model,
            "ANTHROPIC_DEFAULT_SONNET_MODEL": job.model,
            "ANTHROPIC_DEFAULT_OPUS_MODEL": job.model,
            "CLAUDE_CODE_SUBAGENT_MODEL": job.model,
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(job.max_output),
            "MAX_THINKING_TOKENS": str(thinking if thinking >= _CLAUDE_LEAST_THINKING else 0),
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        }
        arguments = [
            *("-p", "--output-format", "stream-json", "--verbose", "--no-session-persistence"),
            *("--permission-mode", "bypassPermissions", "--model", job.model),
            *("--strict-mcp-config", "--disallowedTools", _CLAUDE_NEVER),
        ]
        files = {".claude/settings.json": json.dumps(_CLAUDE_SETTINGS)}
        # A slash at the very start would make a command of it.
        prompt = f" {job.prompt}" if job.prompt.startswith("/") else job.prompt
        return Launch(arguments, env, files, prompt.encode())


_CODEX_CONFIG: Final = """\
model = {model}
model_provider = "door"
check_for_update_on_startup = false
web_search = "disabled"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.door]
name = "door"
base_url = {url}
env_key = "DOOR_TOKEN"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0

[shell_environment_policy]
exclude = ["DOOR_TOKEN"]

[skills.bundled]
enabled = false

[analytics]
enabled = false

[features]  # those that a version does not know do no harm here
apps = false
daemon_auto_start = false
enable_request_compression = false
plugins = false
remote_plugin = false
skill_mcp_dependency_install = false
unbounded_connection_retries = false
"""


class Codex(CommandAgent):
    name = "codex"
    program = "codex"
    install = "npm install -g @openai/codex"
    protocols = ("responses",)
    memory = 200

    def launch(self, job: AgentJob) -> Launch:
        model = json.dumps(job.model, ensure_ascii=False)  # as TOML has it, too
        config = _CODEX_CONFIG.format(model=model, url=json.dumps(f"{job.url}/v1"))
        arguments = [
            *("exec", "--json", "--skip-git-repo-check"),
            *("--dangerously-bypass-approvals-and-sandbox", "-"),
        ]
        return Launch(
            arguments,
            {"DOOR_TOKEN": job.key},
            {".codex/config.toml": config},
            stdin=job.prompt.encode(),
        )


_GEMINI_SETTINGS: Final[dict[str, Any]] = {
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
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
# What it calls its other models, for summaries and the like; all others come from "base".
_GEMINI_NAMES: Final = (
    *("base", "chat-compression-default", "agent-history-provider-summarizer"),
    *("chat-compression-3-pro", "chat-compression-3-flash", "chat-compression-3.1-flash-lite"),
    *("chat-compression-2.5-pro", "chat-compression-2.5-flash", "chat-compression-2.5-flash-lite"),
)


class GeminiCLI(CommandAgent):
    name = "gemini"
    program = "gemini"
    install = "npm install -g @google/gemini-cli"
    protocols = ("gemini",)
    memory = 800  # with Node 24; 300 with Node 20

    def launch(self, job: AgentJob) -> Launch:
        model_config = {
            "model": job.model,
            "generateContentConfig": {"maxOutputTokens": job.max_output},
        }
        overrides = [
            {"match": {"model": name}, "modelConfig": model_config} for name in _GEMINI_NAMES
        ]
        settings = {
            **_GEMINI_SETTINGS,
            "model": {"name": job.model, "disableLoopDetection": True},
            "modelConfigs": {"customOverrides": overrides},
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


_GROK_CONFIG: Final = """\
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
        config = _GROK_CONFIG.format(
            model=json.dumps(job.model, ensure_ascii=False),  # as TOML has it, too
            url=json.dumps(f"{job.url}/v1"),
            backend=json.dumps("chat_completions" if job.protocol == "chat" else job.protocol),
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
            *("--prompt-file", f"{HOME}/.grok-prompt", "--verbatim", "--always-approve"),
            *("--output-format", "streaming-json", "--model", "trial", "--disable-web-search"),
        ]
        files = {".grok/config.toml": config, ".grok-prompt": job.prompt}
        return Launch(arguments, env, files)


_KIMI_PROMPT: Final = ".kimi-prompt"
# It takes its prompt as an argument only, whose length has a limit.
_KIMI_PRELOADED: Final = f"""
const fs = require("fs");
process.argv.push("--prompt", fs.readFileSync("{HOME}/{_KIMI_PROMPT}", "utf8"));
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
        kinds = {"chat": "openai", "messages": "anthropic", "responses": "openai_responses"}
        config = f"""
default_model = "trial"
telemetry = false

[providers.door]
type = "{kinds[job.protocol]}"
base_url = "{job.sdk_url}"
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
            ".kimi-preload.cjs": _KIMI_PRELOADED,
            _KIMI_PROMPT: job.prompt,
        }
        return Launch(["--output-format", "stream-json", "--model", "trial"], env, files)


class QwenCode(CommandAgent):
    name = "qwen"
    program = "qwen"
    install = "npm install -g @qwen-code/qwen-code"
    protocols = ("chat", "messages", "responses")
    memory = 1800  # with Node 24; 300 with Node 20

    def launch(self, job: AgentJob) -> Launch:
        kinds = {"chat": "openai", "messages": "anthropic", "responses": "openai-responses"}
        kind = kinds[job.protocol]
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
            "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False},
            "general": {"enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
        }
        names = "ANTHROPIC" if job.protocol == "messages" else "OPENAI"
        env = {
            f"{names}_BASE_URL": job.sdk_url,
            f"{names}_API_KEY": job.key,
            f"{names}_MODEL": job.model,
            "QWEN_CODE_NO_RELAUNCH": "true",  # for more memory than a trial needs
        }
        arguments = ["--output-format", "stream-json", "--yolo", "--auth-type", kind]
        files = {".qwen/settings.json": json.dumps(settings)}
        return Launch(arguments, env, files, job.prompt.encode())
