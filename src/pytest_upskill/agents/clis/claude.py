"""Claude Code."""

import json
from typing import Final

from ..._util.keys import without_keys
from ..._util.texts import one_line
from ..command_agent import AgentJob, CommandAgent, Launch
from ..logins import CLAUDE
from ..part import ServerProgram
from ..sandboxes.sandbox import HOME
from ..staging import InstalledSkill

# Bundled skills that remain when the others are switched off.
_SETTINGS: Final = {"skillOverrides": {"plugin-authoring": "off", "doctor": "off"}}
# Background tasks never finish within a trial.
_NEVER: Final = "ScheduleWakeup,CronCreate,CronDelete,CronList"
_JUDGE: Final = (
    "--tools",
    "",
    "--system-prompt",
    "You grade answers, and do nothing else.",
)
_LEAST_THINKING: Final = 1024  # tokens that the API takes
_LONGEST_START: Final = 200_000  # bytes of its output, in which it lists what it has


def _is_ours(error: object) -> bool:
    """Whether it left out the plugin as a whole; a wrong path of it is only a
    warning.
    """
    return isinstance(error, dict) and error.get("type") == "generic-error"


class ClaudeCode(CommandAgent):
    name = "claude"
    program = "claude"
    install = "npm install -g @anthropic-ai/claude-code"
    protocols = ("messages",)
    skills_folder = f"{HOME}/.claude/skills"
    memory = 300
    login = CLAUDE
    mcp = True
    takes_answers = True

    def server_name(self, server: ServerProgram) -> str:
        return server.name_in_plugin

    def why_not_installed(self, output: bytes) -> str:
        for line in output[:_LONGEST_START].splitlines():
            if b'"plugin_errors"' in line and line.startswith(b"{"):
                try:
                    errors = json.loads(line)["plugin_errors"]
                    messages = [
                        str(error["message"]) for error in errors if _is_ours(error)
                    ]
                except (ValueError, KeyError, TypeError, RecursionError):
                    return ""
                return one_line(without_keys("; ".join(messages)), 500)
        return ""

    def launch(self, job: AgentJob) -> Launch:
        # Else models with a budget for thinking could use all of a reply for it.
        thinking = job.max_output // 2
        env = {
            "ANTHROPIC_BASE_URL": job.url,
            # The form of its requests follows from which of them is set.
            "CLAUDE_CODE_OAUTH_TOKEN" if job.login else "ANTHROPIC_API_KEY": job.key,
            "ANTHROPIC_MODEL": job.model,
            "ANTHROPIC_SMALL_FAST_MODEL": job.model,
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": job.model,
            "ANTHROPIC_DEFAULT_SONNET_MODEL": job.model,
            "ANTHROPIC_DEFAULT_OPUS_MODEL": job.model,
            "CLAUDE_CODE_SUBAGENT_MODEL": job.model,
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(job.max_output),
            "MAX_THINKING_TOKENS": str(thinking if thinking >= _LEAST_THINKING else 0),
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        }
        arguments = [
            *("-p", "--output-format", "stream-json", "--verbose"),
            *("--permission-mode", "bypassPermissions", "--model", job.model),
            *("--strict-mcp-config", "--disallowedTools", _NEVER),
        ]
        arguments += () if job.has_user else ("--no-session-persistence",)
        arguments += ("--continue",) if job.answer else ()
        arguments += _JUDGE if job.judges else ()
        arguments += ("--plugin-dir", job.plugin) if job.plugin else ()
        if job.mcp_servers:
            arguments += ["--mcp-config", json.dumps({"mcpServers": job.mcp_servers})]
            env["MCP_TIMEOUT"] = "60000"  # milliseconds, to start them
        files = {".claude/settings.json": json.dumps(_SETTINGS)}
        # A slash at the very start makes a command of it.
        is_command = job.command and not job.answer
        prompt = (
            f" {job.text}" if job.text.startswith("/") and not is_command else job.text
        )
        return Launch(arguments, env, files, prompt.encode())

    def command(self, skill: InstalledSkill, arguments: str) -> str:
        name = f"{skill.plugin}:{skill.name}" if skill.plugin else skill.name
        return f"/{name} {arguments}".strip()
