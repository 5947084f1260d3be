"""A tiny but real agent, as a command in a sandbox: from its question to its answer."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.agents.command_agent import last_error
from pytest_upskill.agents.sandboxes.sandbox import HOME
from pytest_upskill.engine.budget import Budget
from pytest_upskill.trials.answer import Answer, NoAnswer, Usage
from pytest_upskill.trials.arm import SkillCopy
from pytest_upskill.trials.written_calls import ADVICE, PROBLEM
from support import loopback
from support.endpoints import KEY
from support.kit import write_skill
from support.loopback import Asked, Fault, LoopbackServer
from support.sandboxes import needs_bwrap
from support.tiny_trials import BARE, BODY, EACH_WAY, TinyAgent, carried_out, steps
from support.trials import end_time_once


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, KEY)


@needs_bwrap
@EACH_WAY
def test_a_trial_from_question_to_answer(tmp_path: Path, way: str) -> None:
    folder = write_skill(tmp_path / "gate", body=BODY)
    skill = SkillCopy.of("gate", folder)
    script = steps("cat /skills/gate/SKILL.md", "echo open > gate.txt; env; ls -a ~ /")
    with LoopbackServer(script) as server:
        answer = carried_out(server.url, way, skills=(skill,), tested=("gate",))
    assert isinstance(answer, Answer)
    assert (answer.text, answer.stop) == ("The gate is open.", "end")
    assert answer.usage == Usage(130, 18, 0)
    kinds = [turn.kind for turn in answer.transcript]
    assert kinds == [
        *("system", "user", "thinking", "call", "result", "thinking", "call", "result"),
        "assistant",
    ]
    assert [(file.path, file.text) for file in answer.files] == [("gate.txt", "open\n")]
    activity = answer.activity
    assert activity is not None
    assert activity.activated is True
    assert (activity.turns, activity.tool_calls) == (3, 2)
    assert activity.findings == ("model calls beside the conversation: 1 (103 tokens)",)
    told = "\n".join(turn.text for turn in answer.transcript)
    assert "then pull" in told
    assert KEY not in told
    assert "ANTHROPIC_API_KEY=***" in told  # the token of its door
    assert all(
        asked.headers["authorization"] == f"Bearer {KEY}" for asked in server.asked
    )


@pytest.mark.parametrize(
    ("name", "names_it"),
    [("latch-work", True), ("la\u00e7o", True), ("latch-work", False)],
)
def test_an_agent_that_never_names_the_skill_is_told_so(
    tmp_path: Path, name: str, names_it: bool
) -> None:
    skill = SkillCopy.of(name, write_skill(tmp_path / "latch", body=BODY))
    script = steps(f"echo {name}" if names_it else "echo nothing")
    with LoopbackServer(script) as server:
        answer = carried_out(
            server.url,
            "messages",
            script=BARE,
            sandbox="none",
            skills=(skill,),
            tested=(skill.name,),
        )
    assert isinstance(answer, Answer)
    assert answer.activity
    assert answer.activity.activated is False
    assert answer.activity.untold is not names_it


def test_without_a_sandbox_a_skill_is_where_its_agent_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TinyAgent, "skills_folder", f"{HOME}/.agents/skills")
    skill = SkillCopy.of("gate", write_skill(tmp_path / "gate", body=BODY))
    script = steps("cat ~/.agents/skills/gate/SKILL.md")
    with LoopbackServer(script) as server:
        answer = carried_out(
            server.url,
            "messages",
            script=BARE,
            sandbox="none",
            skills=(skill,),
            tested=(skill.name,),
        )
    assert isinstance(answer, Answer)
    assert answer.activity
    assert answer.activity.activated is True


def test_without_a_sandbox() -> None:
    with LoopbackServer(steps("echo open > gate.txt")) as server:
        answer = carried_out(server.url, "messages", script=BARE, sandbox="none")
    assert isinstance(answer, Answer)
    assert answer.text == "The gate is open."
    assert [file.path for file in answer.files] == ["gate.txt"]


CALL = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>'


@pytest.mark.parametrize(
    ("prompt", "commands", "final", "is_call"),
    [
        ("Open the gate.", (), CALL, True),
        ("Open the gate.", ("true",), CALL, True),
        ("Open the gate.", (), CALL.replace("bash", "gate"), True),
        ("Open the gate.", (), "Done.", False),
        ("Which tool call lists files?", (), CALL, False),
    ],
)
def test_a_call_that_the_server_returned_as_text_is_no_answer(
    tmp_path: Path, prompt: str, commands: tuple[str, ...], final: str, is_call: bool
) -> None:
    skill = SkillCopy.of("gate", write_skill(tmp_path / "gate", body=BODY))
    task: dict[str, Any] = {"skills": (skill,), "tested": "gate"}
    with LoopbackServer(steps(*commands, final=final)) as server:
        answer = carried_out(
            server.url, "messages", script=BARE, sandbox="none", prompt=prompt, **task
        )
    if is_call:
        assert answer == NoAnswer(f"m: {PROBLEM}. {ADVICE}")
    else:
        assert isinstance(answer, Answer)
        assert answer.text == final


@needs_bwrap
def test_inside_there_is_no_key_and_no_other_host() -> None:
    with LoopbackServer(lambda _: loopback.Reply("Done.")) as server:
        port = server.url.rpartition(":")[2]
        script = f"""
import json, os, pathlib, socket, urllib.request
found = dict(os.environ)
for path in pathlib.Path("/proc").glob("*/environ"):
    try: found[str(path)] = path.read_bytes().decode("latin-1")
    except OSError: pass
for host in (("127.0.0.1", {port}), ("192.0.2.1", 443), ("api.anthropic.com", 443)):
    try:
        socket.create_connection(host, 3).close()
        found["reached"] = host
    except OSError: pass
said = [{{"role": "user", "content": "hi"}}]
body = {{"model": "model-1", "max_tokens": 9, "messages": said}}
request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
    json.dumps(body).encode(), {{"x-api-key": os.environ["ANTHROPIC_API_KEY"]}})
with urllib.request.urlopen(request) as reply:
    found["headers"], found["reply"] = str(reply.headers), reply.read().decode()
pathlib.Path("found.json").write_text(json.dumps(found))
"""
        answer = carried_out(server.url, "messages", script=script.encode())
    assert isinstance(answer, Answer)
    found = json.loads(answer.files[0].text or "")
    assert "Done." in found["reply"]
    assert KEY not in json.dumps(found)
    assert "reached" not in found
    assert not [name for name in found if name in os.environ and found[name] == KEY]


@needs_bwrap
def test_an_agent_that_never_ends_has_a_turn_limit() -> None:
    with LoopbackServer(steps(*["true"] * 9)) as server:
        answer = carried_out(server.url, "messages", script=BARE, max_turns=3)
    assert isinstance(answer, Answer)
    assert answer.stop == "max_turns"
    assert answer.activity is not None
    assert (answer.activity.turns, answer.activity.tool_calls) == (3, 3)


@needs_bwrap
def test_when_its_time_is_up_there_is_what_it_did(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with LoopbackServer(steps("echo begun > gate.txt", "sleep 600")) as server:
        end_time_once(monkeypatch, lambda: len(server.asked) == 2)
        answer = carried_out(server.url, "messages", script=BARE)
    assert isinstance(answer, Answer)
    assert answer.stop == "time"
    assert [file.path for file in answer.files] == ["gate.txt"]
    assert "call" in [turn.kind for turn in answer.transcript]


@needs_bwrap
@pytest.mark.parametrize(
    ("status", "reason"),
    [(401, "Check ANTHROPIC_API_KEY"), (400, "told to fail")],
)
def test_a_model_that_gives_no_answer_is_an_error(status: int, reason: str) -> None:
    with LoopbackServer(lambda _: Fault("status", status)) as server:
        reply = carried_out(server.url, "messages", script=BARE)
    assert isinstance(reply, NoAnswer)
    assert reason in reply.reason


@needs_bwrap
def test_the_budget_of_the_run_holds() -> None:
    def script(asked: Asked) -> loopback.Reply:
        return replace(
            steps(*["true"] * 20)(asked), input_tokens=600, output_tokens=400
        )

    with LoopbackServer(script) as server:
        budget = Budget(most_tokens=6000)
        reply = carried_out(server.url, "messages", script=BARE, budget=budget)
    assert isinstance(reply, NoAnswer)
    assert "budget" in reply.reason
    assert 0 < len(server.asked) < 20


@needs_bwrap
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (
            b"print('no key'); raise SystemExit(0)",
            "asked its model nothing (exit 0: no key)",
        ),
        (b"import os; os.kill(os.getpid(), 9)", "asked its model nothing (signal 9)"),
        (b"import nothing_like_it", "exit 1: ModuleNotFoundError"),
        (
            b"print('sh: my-claude: not found'); raise SystemExit(127)",
            "folder of that program",
        ),
        (
            BARE.replace(b"sys.argv[2]", b"'other'"),
            "404: Not Found; asked for model other)",
        ),
    ],
)
def test_an_agent_that_breaks_is_an_error(script: bytes, reason: str) -> None:
    with LoopbackServer(lambda _: loopback.Reply("Done.")) as server:
        reply = carried_out(server.url, "messages", script=script)
    assert isinstance(reply, NoAnswer)
    assert reason in reply.reason


@needs_bwrap
@pytest.mark.parametrize("status", [0, 7])
def test_an_agent_that_ends_after_a_tool_call_gave_no_answer(status: int) -> None:
    event = '{"type": "result", "is_error": true, "result": "Reached the limit."}'
    end = f"(print('{event}'), sys.exit({status}))".encode()
    script = BARE.replace(b'subprocess.getoutput(one["input"]["command"])', end)
    with LoopbackServer(steps("true")) as server:
        reply = carried_out(server.url, "messages", script=script)
    assert isinstance(reply, NoAnswer)
    told = f"(exit {status}: Reached the limit.)"
    assert reply.reason == f"tiny ended after a tool call, without an answer {told}"


def test_an_agent_that_ends_while_its_model_answers_gave_no_answer(
    tmp_path: Path,
) -> None:
    hang_up = f"""
def hang_up(request):
    threading.Thread(target=urllib.request.urlopen, args=[request], daemon=True).start()
    while not os.path.exists({str(tmp_path / "asked")!r}):
        time.sleep(0.01)
    os._exit(0)
"""
    script = BARE.replace(
        b"json.load(urllib.request.urlopen(request))", b"hang_up(request)"
    )

    def model(_: Asked) -> Fault:
        (tmp_path / "asked").touch()
        return Fault("hang")

    with LoopbackServer(model) as server:
        agent = b"import threading, time" + hang_up.encode() + script
        reply = carried_out(server.url, "messages", script=agent, sandbox="none")
    assert isinstance(reply, NoAnswer)
    assert reply.reason == "tiny ended before its model answered (exit 0)"


@pytest.fixture
def long_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents are ended for what they ask, not because a moment is over."""
    monkeypatch.setattr("pytest_upskill.agents.gateway.endpoint._GRACE", 600.0)


# It never gives up.
STUBBORN = BARE.replace(
    b'content = json.load(urllib.request.urlopen(request))["content"]',
    b"""
    while True:
        try:
            content = json.load(urllib.request.urlopen(request))["content"]
            break
        except OSError:
            pass
""",
)


@needs_bwrap
@pytest.mark.parametrize(("status", "asked"), [(401, 1), (400, 3)])
@pytest.mark.usefixtures("long_grace")
def test_an_agent_that_asks_again_in_vain_is_ended(status: int, asked: int) -> None:
    with LoopbackServer(lambda _: Fault("status", status, message="no luck")) as server:
        reply = carried_out(server.url, "messages", script=STUBBORN)
    assert isinstance(reply, NoAnswer)
    assert "no luck" in reply.reason
    assert len(server.asked) == asked


@needs_bwrap
@pytest.mark.parametrize("sandbox", ["bwrap", "none"])
@pytest.mark.usefixtures("long_grace")
def test_an_agent_that_goes_on_after_its_last_turn_is_ended(sandbox: str) -> None:
    commands = ["echo begun > gate.txt", *["true"] * 9]
    with LoopbackServer(steps(*commands)) as server:
        answer = carried_out(
            server.url, "messages", script=STUBBORN, sandbox=sandbox, max_turns=2
        )
    assert isinstance(answer, Answer)
    assert answer.stop == "max_turns"
    assert [file.path for file in answer.files] == ["gate.txt"]
    assert len(server.asked) == 2
    assert answer.activity
    assert any(
        "sent a request after the end of the trial" in one
        for one in answer.activity.findings
    )


@needs_bwrap
def test_a_model_that_hangs_is_an_error_and_not_a_slow_agent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with LoopbackServer(lambda _: Fault("hang")) as server:
        end_time_once(monkeypatch, lambda: bool(server.asked))
        reply = carried_out(server.url, "messages", script=STUBBORN, timeout=1)
    assert isinstance(reply, NoAnswer)
    assert "no answer" in reply.reason


@needs_bwrap
def test_an_agent_that_never_asks_is_an_error() -> None:
    with LoopbackServer(lambda _: loopback.Reply("Done.")) as server:
        reply = carried_out(
            server.url, "messages", script=b"import time; time.sleep(600)", timeout=0.2
        )
    assert reply == NoAnswer("tiny asked its model nothing in all its time")


UUID = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("", ""),
        ("\n \n", ""),
        ("Error: no key\n", "Error: no key"),
        ("starting\nError: no key\nBye.\n", "Error: no key"),
        ("one\ntwo\n", "two"),
        ("\x1b[31mError:\x1b[0m no \x1b]0;title\x07key\x1b[K\n", "Error: no key"),
        (
            "node: error while loading shared libraries: libatomic.so.1: cannot open\n",
            "node: error while loading shared libraries: libatomic.so.1: cannot open",
        ),
        (
            (
                "file:///x.js:5\n    throw new Error('x')\n    ^\n\n"
                "Error: acme needs node 22\n    at main (x.js:5:3)\n\nNode.js v20.1.0\n"
            ),
            "Error: acme needs node 22",
        ),
        (
            (
                "Out of memory\n[The sandbox stopped the command: it used more than"
                " 4096 MB of memory.]\n"
            ),
            "[The sandbox stopped the command: it used more than 4096 MB of memory.]",
        ),
        (f"Error: session {UUID} is lost\n", "Error: session … is lost"),
        (
            "2026-11-16T03:12:35.123Z Error: fetch http://127.0.0.1:43617/v1 failed\n",
            "Error: fetch http://127.0.0.1/v1 failed",
        ),
        (
            "Error: process 12345 died, request req_011CUabcdEFGH12345\n",
            "Error: process … died, request …",
        ),
        (
            "Error: trialkey-abcdefghijklmnopqrstuvwxyz123456 is wrong\n",
            "Error: *** is wrong",
        ),
        ('{"type": "assistant", "message": {"text": "hello"}}\n', ""),
        ('{"cut": "in the mid\n', '{"cut": "in the mid'),
    ],
)
def test_the_line_that_says_most(output: str, words: str) -> None:
    assert last_error(output.encode()) == words


@pytest.mark.parametrize(
    "event",
    [
        {
            "type": "result",
            "subtype": "success",
            "is_error": True,
            "result": "API Error: refused",
        },
        {"type": "error", "message": "API Error: refused"},
        {"type": "turn.failed", "error": {"message": "API Error: refused"}},
        {
            "type": "session.error",
            "data": {"errorType": "x", "message": "API Error: refused"},
        },
        {
            "type": "error",
            "error": {"name": "X", "data": {"message": "API Error: refused"}},
        },
        {
            "type": "result",
            "status": "error",
            "error": {"message": "API Error:\nrefused"},
        },
        {"error": "API Error: refused"},
        {
            "type": "message_end",
            "message": {"errorMessage": "API Error: refused"},
            "error": True,
        },
    ],
)
def test_an_error_is_found_in_an_event(event: object) -> None:
    lines = [
        {"type": "system"},
        event,
        {"type": "usage", "message": "Total error: none"},
    ]
    assert (
        last_error("\n".join(map(json.dumps, lines)).encode()) == "API Error: refused"
    )


def test_whatever_it_says_is_one_short_line() -> None:
    deep = '{"error":' * 5000 + "1" + "}" * 5000
    for output in (
        b"\xff\xfe\0" * 9000,
        b"error " * 10**6,
        deep.encode(),
        b"\x1b[" * 10**5,
    ):
        words = last_error(output)
        assert len(words) <= 250
        assert words.isprintable()


@pytest.mark.parametrize(
    "line", ["a-" * 10_000, "1" * 19_999 + "a", "1." * 10_000, "A1" * 10_000]
)
def test_no_line_keeps_it_busy(line: str) -> None:
    """The engine's loop waits for it: one such line once took half a minute."""
    assert len(last_error("\n".join([line] * 50).encode())) <= 250
