"""Transcripts as text: labels, headings and marks say who speaks."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_upskill.errors import TraceError
from pytest_upskill.trials.transcript import Turn
from support import sessions
from support.sessions import ASKED, DONE, PLAN, read


def test_a_markdown_transcript(tmp_path: Path) -> None:
    trace = read(tmp_path, sessions.MARKDOWN)
    assert [turn.kind for turn in trace] == [
        *("user", "assistant", "call", "result", "assistant")
    ]
    assert trace[:2] == (Turn("user", ASKED), Turn("assistant", PLAN))
    assert trace[2] == Turn("call", "python check.py", "Bash")
    assert trace[3].failed
    assert "not a turn" in trace[4].text


@pytest.mark.parametrize(
    "pair",
    [
        ("**User:** ", "**Assistant:** "),
        ("**You**: ", "**ChatGPT**: "),
        ("### Human\n\n", "### Claude\n\n"),
        ("**Human (10:02)**\n", "**🤖 Claude (opus)**\n"),
        ("  ## 👤 User\n\n", "  ## 🤖 Claude\n\n"),
    ],
)
def test_the_labels_of_markdown(tmp_path: Path, pair: tuple[str, str]) -> None:
    text = f"# Log\n\n{pair[0]}{ASKED}\n\n## User interface\n\n{pair[1]}{DONE}\n"
    trace = read(tmp_path, text)
    assert trace == (
        Turn("user", f"{ASKED}\n\n## User interface"),
        Turn("assistant", DONE),
    )


def test_a_call_under_the_heading_of_the_assistant(tmp_path: Path) -> None:
    use = (
        '🔧 Using tool: Bash\nInput: {\n  "command": "ls",\n  "description": "List"\n}'
    )
    trace = read(
        tmp_path,
        f"## User\n\nHi.\n\n---\n\n## Claude\n\n{use}\n\n---\n\n## Claude\n\nYes.",
    )
    assert trace[1:] == (Turn("call", "ls", "Bash"), Turn("assistant", "Yes."))


def test_an_unclosed_fence_hides_nothing(tmp_path: Path) -> None:
    trace = read(tmp_path, f"## User\n```\n{ASKED}\n## Assistant\n{PLAN}\n")
    assert [turn.kind for turn in trace] == ["user", "assistant"]


def test_a_labelled_text(tmp_path: Path) -> None:
    trace = read(tmp_path, sessions.LABELLED)
    assert [turn.kind for turn in trace] == ["user", "assistant", "user", "assistant"]
    assert trace[1].text == f"{PLAN}\nThen I'll go on."
    assert trace[2].text == "Thanks: that is all."


def test_exports_of_claude_code(tmp_path: Path) -> None:
    trace = read(tmp_path, sessions.EXPORT)
    assert trace == (
        Turn("user", f"{ASKED}\nWith a second line."),
        Turn("assistant", f"{PLAN}\nIt is short."),
        Turn("call", "python check.py\n--all", "Bash"),
        Turn("result", f"Error: Exit code 127\n{sessions.ERROR}", "Bash", failed=True),
        Turn("call", "python3 check.py", "Bash"),
        Turn("result", "ok", "Bash"),
        Turn("assistant", "Done."),
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    parts=st.lists(
        st.sampled_from(
            ["User:", "## User", "**AI**", "⏺ ", "> ", "  ⎿ ", "Bash(", "```", "\n"]
        )
        | st.text(max_size=5)
    )
)
def test_any_text_is_a_trace_or_an_error(tmp_path: Path, parts: list[str]) -> None:
    text = "".join(parts).encode("utf-8", "replace")
    try:
        assert read(tmp_path, text)
    except TraceError:
        return
