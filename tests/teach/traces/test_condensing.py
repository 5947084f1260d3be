"""A trace condensed to what teaches: in order of worth, within any budget."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_upskill.skills.skill import estimated_tokens
from pytest_upskill.teach.traces import Condensed, condensed, read_trace
from pytest_upskill.teach.traces.condensing import allotted, fitted
from pytest_upskill.trials.transcript import Turn
from support import sessions
from support.sessions import DONE, ERROR, PLAN, STORY


def shown(turns: list[Turn] | tuple[Turn, ...], budget: int = 10_000) -> Condensed:
    return condensed(tuple(turns), budget)


def test_a_trace_that_fits_is_shown_whole_in_numbered_steps() -> None:
    told = shown(STORY)
    assert told.left_out == ""
    assert told.tokens == estimated_tokens(told.text)
    assert told.text.startswith(
        "1. user: Make a build.toml for H100 and check it.\n2. assistant: "
    )
    assert (
        f"3. call Bash: python check.py\n   FAILED: Exit code 127\n   {ERROR}\n"
        in told.text
    )
    assert "4. call Bash: python3 check.py\n   result: ok\n" in told.text
    assert (
        "5. call Write: file_path: build.toml\n   content: capability = '8.0'\n"
        in told.text
    )


def long(word: str, lines: int = 2000) -> str:
    return "\n".join(f"{word} {number}" for number in range(lines))


def test_what_teaches_is_kept_first() -> None:
    """Some reading of files between all that matters, and a budget of a fiftieth."""
    reading = [
        turn
        for number in range(200)
        for turn in (
            Turn("call", f"file_path: f{number}.py", "Read"),
            Turn("result", long(f"code {number}", 100), "Read"),
            Turn("thinking", long(f"hm {number}", 100)),
        )
    ]
    told = shown([*STORY[:2], *reading, *STORY[2:6], *reading[:30], *STORY[6:]], 2000)
    assert told.tokens <= 2000
    for kept in (sessions.ASKED, PLAN, "python check.py", ERROR, "python3 check.py"):
        assert kept in told.text
    assert "capability = '9.0'" in told.text
    assert all(line in told.text for line in DONE.splitlines())
    assert " of 611 turns, " in told.left_out
    assert told.left_out.endswith(" characters")


def test_the_last_version_of_a_file_is_whole_and_earlier_ones_are_one_line() -> None:
    versions = [
        turn
        for version in ("first", "second", "third")
        for turn in (
            Turn("call", f"file_path: a.py\ncontent:\n{long(version)}", "Write"),
            Turn("result", "written", "Write"),
        )
    ]
    told = shown(versions, 6000)
    assert told.text.count("third ") > 500
    assert 0 < told.text.count("first ") < 60
    edits = [
        Turn(
            "call",
            f"*** Begin Patch\n*** Update File: a.py\n+{long(word)}",
            "apply_patch",
        )
        for word in ("one", "two")
    ]
    told = shown(edits, 4000)
    assert told.text.count("two ") > 400
    assert told.text.count("one ") < 60


def test_a_failed_write_is_not_the_last_version() -> None:
    turns = [
        Turn("call", f"file_path: a.py\ncontent:\n{long('good')}", "Write"),
        Turn("result", "written", "Write"),
        Turn("call", f"file_path: a.py\ncontent:\n{long('bad')}", "Write"),
        Turn("result", "File has not been read", "Write", failed=True),
    ]
    assert shown(turns, 5000).text.count("good ") > 500


@pytest.mark.parametrize(
    ("failed", "fix"),
    [
        ("pip install x", "cd /tmp && PIP_NO_INPUT=1 pip install x==2"),
        ("python a.py", "python3 a.py"),
        ("/usr/bin/make", "sudo make all"),
    ],
)
def test_a_fix_is_kept_with_the_call_that_failed(failed: str, fix: str) -> None:
    noise = [
        Turn("call" if number % 2 == 0 else "result", f"{number} {'x' * 900}", "Grep")
        for number in range(100)
    ]
    turns = [Turn("call", failed, "Bash"), Turn("result", "no", "Bash", failed=True)]
    between = [] if failed.startswith("python") else noise
    told = shown([*noise, *turns, *between, Turn("call", fix, "Bash"), *noise], 400)
    assert f"call Bash: {failed}\n   FAILED: no\n" in told.text
    assert f"call Bash: {fix}" in told.text


def test_repeated_steps_are_shown_once() -> None:
    again = [Turn("call", "ls", "Bash"), Turn("result", "a b", "Bash")] * 14
    told = shown([Turn("user", "Go."), *again, *[Turn("assistant", "Hm.")] * 3])
    assert (
        told.text
        == "1. user: Go.\n2. call Bash ×14: ls\n   result ×14: a b\n16. assistant"
        " ×3: Hm."
    )
    assert told.left_out == ""


def test_the_same_call_with_another_result_is_another_step() -> None:
    turns = [
        Turn("call", "make", "Bash"),
        Turn("result", "error", "Bash", failed=True),
        Turn("call", "make", "Bash"),
        Turn("result", "fine", "Bash"),
    ]
    assert shown(turns).text.count("call Bash: make") == 2


def test_no_single_turn_uses_up_the_budget() -> None:
    turns = [Turn("user", long("paste")), *STORY]
    told = shown(turns, 1000)
    assert told.text.count("paste ") > 20
    for kept in (sessions.ASKED, ERROR, "python3 check.py", "capability = '9.0'"):
        assert kept in told.text
    assert "characters left out …]" in told.text


def test_secrets_are_masked_before_anything_is_cut() -> None:
    secret = "a1b2c3d4e5f6" * 3
    turns = [
        Turn("user", f"API_TOKEN={secret}"),
        Turn("call", f"curl -d {secret} /home/bob/x", "Bash"),
        Turn("result", f"{'x ' * 3000}{secret}", "Bash"),
        Turn("result", f"me@example.org {secret}", secret),
    ]
    for budget in (5, 20, 60, 200, 5000):
        text = shown(turns, budget).text
        assert "a1b2c3" not in text
        assert "bob" not in text
        assert "me@" not in text


def test_controls_and_surrogates_are_removed() -> None:
    told = shown([Turn("user", "a\x1b[31mred\x1b[0m\x00 \ud83d\ude00 \ud800 z\r\n")])
    assert told.text == "1. user: ared 😀 � z"
    told.text.encode()


def test_an_empty_trace() -> None:
    assert shown([]) == Condensed("", 0, "")
    assert shown(STORY, 0).text == ""
    assert shown(STORY, 0).left_out.startswith("left out: 11 of 11 turns, ")
    assert shown(STORY, -5).tokens == 0


TURNS = st.builds(
    Turn,
    st.sampled_from(["user", "assistant", "thinking", "call", "result"]),
    st.text(max_size=60) | st.text(max_size=3).map(lambda text: text * 400),
    st.sampled_from(["", "Bash", "Write", "x" * 300, "é"]),
    st.booleans(),
)


@settings(deadline=None)
@given(st.lists(TURNS, max_size=30), st.integers(-1, 2000))
def test_any_trace_stays_within_any_budget(turns: list[Turn], budget: int) -> None:
    told = shown(turns, budget)
    assert told.tokens <= max(0, budget)
    told.text.encode()
    assert told == shown(turns, budget)
    if (
        budget == 2000
        and sum(len(turn.text.encode("utf-8", "replace")) for turn in turns) < 2000
    ):
        assert told.left_out == ""


@given(st.text(max_size=300), st.integers(0, 400))
def test_a_text_is_shortened_to_its_limit(text: str, room: int) -> None:
    cut = fitted(text, room)
    size = len(text.encode("utf-8", "replace"))
    assert len(cut.encode("utf-8", "replace")) <= room
    assert (cut == text) == (size <= room) or not text


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=12),
    st.integers(0, 200),
)
def test_space_is_shared_out_fairly(wishes: list[tuple[int, int]], room: int) -> None:
    wanted, least = [want for want, _ in wishes], [low for _, low in wishes]
    given_out = allotted(wanted, least, room)
    assert sum(given_out) <= room
    assert all(got <= want for got, want in zip(given_out, wanted, strict=True))
    if sum(wanted) <= room:
        assert given_out == wanted


@pytest.mark.parametrize(
    "size", [100_000, pytest.param(5_000_000, marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize("form", ["claude", "codex", "openai", "text"])
def test_a_large_trace(tmp_path: Path, form: str, size: int) -> None:
    """In every format it is read, masked and condensed, and what teaches is kept."""
    noise = "\n".join(
        f"/home/bob/src/file{n}.py: value_{n} = compute({n})" for n in range(100)
    )
    many = size // len(noise) + 1
    if form == "claude":
        entries = sessions.claude_code()
        extra = [
            {"type": "user", "message": {"role": "user", "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": f"n{n}",
                    "content": f"{n}\n{noise}",
                }
            ]}}
            for n in range(many)
        ]  # fmt: skip
        text = sessions.lines([*entries[:5], *extra, *entries[5:]])
    elif form == "codex":
        entries = sessions.codex()
        extra = [
            {"type": "response_item", "payload": {
                "type": "function_call_output",
                "call_id": f"n{n}",
                "output": f"{n}\n{noise}",
            }}
            for n in range(many)
        ]  # fmt: skip
        text = sessions.lines([*entries[:8], *extra, *entries[8:]])
    elif form == "openai":
        entries = sessions.openai_messages()
        extra = [
            {"role": "tool", "tool_call_id": f"n{n}", "content": f"{n}\n{noise}"}
            for n in range(many)
        ]
        text = json.dumps([*entries[:3], *extra, *entries[3:]])
    else:
        text = sessions.LABELLED.replace("Then I'll", f"{noise}\n" * many + "Then I'll")
    file = tmp_path / "trace"
    file.write_text(text, "utf-8")
    assert file.stat().st_size > size
    told = condensed(read_trace(file), 8000)
    assert 4000 < told.tokens <= 8000
    assert "/home/bob" not in told.text
    assert "<HOME>/src/file" in told.text
    for kept in (sessions.ASKED, PLAN, "Capability is 9.0, not 8.0"):
        assert kept in told.text
    assert told.left_out.startswith("left out: ")
