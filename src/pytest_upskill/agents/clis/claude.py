"""Claude Code."""

from ..command_agent import CommandAgent, Job, Launch
from ..port import HOME


class ClaudeCode(CommandAgent):
    name = "claude"
    program = "claude"
    install = "npm install -g @anthropic-ai/claude-code"
    protocols = ("messages",)
    skills_folder = f"{HOME}/.claude/skills"
    memory = 300

    def launch(self, job: Job) -> Launch:
        env = {
            "ANTHROPIC_BASE_URL": job.url,
            "ANTHROPIC_API_KEY": job.key,
            "ANTHROPIC_MODEL": job.model,
            "ANTHROPIC_SMALL_FAST_MODEL": job.model,
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": job.model,
            "CLAUDE_CODE_SUBAGENT_MODEL": job.model,
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(job.max_output),
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        }
        arguments = [
            *("-p", "--output-format", "stream-json", "--verbose", "--no-session-persistence"),
            *("--permission-mode", "bypassPermissions", "--model", job.model),
        ]
        return Launch(arguments, env, stdin=job.prompt.encode())
