"""Nothing of the user's home, settings or environment gets to a real agent."""

import json
from pathlib import Path
from typing import Final

import pytest

from pytest_upskill.agents.probe import ScriptStep
from pytest_upskill.agents.roster import AGENTS
from real_agents.packages import HOW, PACKAGES, is_there, path_for
from real_agents.trying import agent_named, plays, tried
from support.agents import write_files

TRAP: Final = "Xyzzy-of-the-user"
_HOOK: Final = {"type": "command", "command": f"echo {TRAP}"}
_SERVERS: Final = {"mcpServers": {TRAP: {"command": "echo", "args": [TRAP]}}}
_SKILL: Final = f"---\nname: trap\ndescription: {TRAP}\n---\n\n{TRAP}\n"
_FOLDERS: Final = (
    ".claude",
    ".codex",
    ".agents",
    ".gemini",
    ".copilot",
    ".config/opencode",
    ".config/agents",
)
_MEMORIES: Final = ("AGENTS.md", "CLAUDE.md", "GEMINI.md")
# What agents read in a home, in any of their folders.
HOME_FILES: Final = {
    ".claude.json": json.dumps(_SERVERS),
    ".claude/settings.json": json.dumps(
        {"hooks": {"SessionStart": [{"hooks": [_HOOK]}]}}
    ),
    ".gemini/settings.json": json.dumps(_SERVERS),
    ".codex/config.toml": f'developer_instructions = "{TRAP}"\n',
    ".gitconfig": f"[user]\n\tname = {TRAP}\n",
    ".npmrc": f"//registry.example/:_authToken={TRAP}\n",
    ".bashrc": f"export TRAP={TRAP}\n",
    **{f"{one}/skills/trap/SKILL.md": _SKILL for one in _FOLDERS},
    **{f"{folder}/{name}": f"{TRAP}\n" for folder in _FOLDERS for name in _MEMORIES},
    **dict.fromkeys(_MEMORIES, f"{TRAP}\n"),
}
LOOK: Final = (
    "env; ls -aR ~ 2>/dev/null | head -c 20000; cat ~/.npmrc ~/.bashrc; git config"
    " --list"
)


@pytest.mark.parametrize("name", [name for name in PACKAGES if name in AGENTS])
def test_nothing_of_the_user_reaches_an_agent(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_there(name, PACKAGES[name]["npm"]):
        pytest.skip(f"{name} is not installed. {HOW}")
    write_files(tmp_path, HOME_FILES)
    monkeypatch.setenv("PATH", path_for(name))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))
    for folder in (
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "COPILOT_HOME",
        "GEMINI_CLI_HOME",
    ):
        monkeypatch.setenv(folder, str(tmp_path / ".claude"))
    for variable in (
        "TRAP",
        "CLAUDE_CODE_EXTRA_BODY",
        "GEMINI_SYSTEM_MD",
    ):
        monkeypatch.setenv(variable, f'{{"trap": "{TRAP}"}}')
    script = plays(ScriptStep("shell", LOOK), ScriptStep("say", "Done."))
    done = tried(name, agent_named(name).protocols[0], script)
    assert done.answer, done.told
    assert done.answer.text == "Done."
    assert len(done.asked) > 1
    for one in done.asked:
        assert TRAP not in json.dumps(one.body)
        assert TRAP not in str(one.headers)
