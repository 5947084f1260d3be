"""Where agents look for skills: below a project, and below a user's home."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True)
class Agent:
    """An agent's folders of skills, as its own documentation has them."""

    name: str
    project: str  # below the project's folder
    user: str  # below the home folder
    signs: tuple[str, ...]  # what a project has that is used with it
    moved_by: tuple[str, str] = ("", "")  # a variable, and what of ``user`` it stands for

    def folder(self, root: Path, *, user: bool, env: Mapping[str, str]) -> Path:
        if not user:
            return root / self.project
        variable, part = self.moved_by
        if variable and (moved := env.get(variable, "").strip()):
            return Path(moved) / Path(self.user).relative_to(part)
        return root / self.user

    def is_used(self, root: Path, *, user: bool, env: Mapping[str, str]) -> bool:
        if user:
            return self.folder(root, user=True, env=env).parent.is_dir()
        return any((root / sign).exists() for sign in self.signs)


AGENTS: Final = (
    # code.claude.com/docs/en/skills; CLAUDE_CONFIG_DIR: code.claude.com/docs/en/settings
    Agent(
        "claude",
        ".claude/skills",
        ".claude/skills",
        (".claude",),
        ("CLAUDE_CONFIG_DIR", ".claude"),
    ),
    # developers.openai.com/codex/skills; .codex/skills is where it looked at first
    Agent("codex", ".agents/skills", ".agents/skills", (".codex", ".agents")),
    # cursor.com/docs/context/skills
    Agent("cursor", ".cursor/skills", ".cursor/skills", (".cursor",)),
    # opencode.ai/docs/skills
    Agent(
        "opencode",
        ".opencode/skills",
        ".config/opencode/skills",
        (".opencode", "opencode.json", "opencode.jsonc"),
        ("XDG_CONFIG_HOME", ".config"),
    ),
    # geminicli.com/docs/cli/skills
    Agent("gemini", ".gemini/skills", ".gemini/skills", (".gemini",)),
    # docs.github.com/en/copilot/concepts/agents/about-agent-skills
    Agent(
        "copilot",
        ".github/skills",
        ".copilot/skills",
        (".github/skills", ".github/copilot-instructions.md"),
    ),
)
BY_NAME: Final = {agent.name: agent for agent in AGENTS}
