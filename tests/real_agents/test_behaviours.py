"""What each real agent does with a skill, and with a model that misbehaves:
one cell each.

`expected.md` has the table. A cell that differs fails here; if the new one is right,
accept it with `pytest tests/real_agents --accept`.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from pytest_upskill.agents.probe import ScriptStep
from pytest_upskill.agents.roster import AGENTS
from pytest_upskill.agents.sandboxes.sandbox import WORKSPACE
from pytest_upskill.engine.budget import Budget
from pytest_upskill.models.providers import PROVIDERS
from real_agents.packages import FOLDER, HOW, PACKAGES, is_there, path_for
from real_agents.table import Cells, Row, differences, expected
from real_agents.trying import (
    DESCRIPTION,
    MODELS,
    OTHER,
    PROMPT,
    SKILL,
    Script,
    Tried,
    agent_named,
    environment,
    plays,
    server_for,
    tried,
    write_gate,
    write_shed,
)
from support import loopback
from support.loopback import Asked, Fault, LoopbackServer
from support.sandboxes import needs_bwrap
from support.shell import started

if not FOLDER.is_dir():
    pytest.skip(HOW, allow_module_level=True)
pytestmark = needs_bwrap
Came = tuple[Mapping[str, str], str]  # the cells, and what to tell if they are wrong
FINAL: Final = "The gate is open, and the visitors are in."
SAY: Final = ScriptStep("say", FINAL)


def task(row: Row, skill: Path) -> Came:
    """Opens the skill, does what it says, and ends."""
    done = tried(
        *(row.agent, row.protocol),
        plays(
            ScriptStep("skill", SKILL),
            ScriptStep("read", "{skill}/references/codes.md"),
            ScriptStep("shell", "sh {skill}/scripts/open.sh Walrus-4711"),
            ScriptStep("write", f"{WORKSPACE}/gate.txt", "The gate is open.\n"),
            SAY,
        ),
        skill=skill,
    )
    answer = done.answer
    if answer is None or answer.activity is None:
        return (
            dict.fromkeys(("opened", "reference", "script", "file", "final"), "no"),
            done.told,
        )
    activity = answer.activity
    by = next((turn.tool for turn in answer.transcript if turn.kind == "call"), "")
    files = {file.path: file.text for file in answer.files}
    return {
        "opened": by if activity.activated else "no",
        "reference": yes("references/codes.md" in activity.read),
        "script": yes("scripts/open.sh" in activity.scripts),
        "file": yes("The gate is open." in (files.get("gate.txt") or "")),
        "final": yes((answer.text, answer.stop) == (FINAL, "end")),
    }, done.told


def listed(row: Row, skill: Path) -> Came:
    """Is told of the skill, and answers without it."""
    done = tried(row.agent, row.protocol, plays(SAY), skill=skill)
    said = "\n".join(json.dumps(one.body) for one in done.asked)
    activity = done.answer.activity if done.answer else None
    cell = "name only" if SKILL in said else "no"
    if activity is None:
        cell = "error"
    elif activity.activated:
        cell = "opened"
    elif DESCRIPTION in said:
        cell = "yes"
    return {"listed": cell}, done.told


def baseline(row: Row, skill: Path) -> Came:  # noqa: ARG001
    """Without the skill there is no trace of it."""
    looks = ScriptStep(
        "shell", "ls -aR ~ . 2>/dev/null | head -c 20000; env | cut -d= -f1"
    )
    done = tried(row.agent, row.protocol, plays(looks, SAY))
    said = "\n".join(json.dumps(one.body) for one in done.asked)
    traces = [
        trace for trace in (SKILL, DESCRIPTION, "Walrus", "motor") if trace in said
    ]
    ended = done.answer is not None and done.answer.text == FINAL
    clean = "clean" if ended else "error"
    return {"baseline": f"trace {traces[0]}" if traces else clean}, done.told


def fails(
    script: Script, reason: str, row: Row, skill: Path, call_timeout: float = 60
) -> tuple[str, Tried]:
    """How a trial ends if the model does, and how often the model was asked."""
    done = tried(
        row.agent, row.protocol, script, skill=skill, call_timeout=call_timeout
    )
    asked = sum(1 for one in done.asked if one.tools)
    how = done.answer.stop if done.answer else "error"
    if done.answer is None and reason not in done.told:
        how = "other error"
    return f"{how} ×{asked}", done


def status_401(row: Row, skill: Path) -> Came:
    """A wrong key: an error that names it."""
    key = PROVIDERS[MODELS[row.protocol][0]].key_envs[0]
    cell, done = fails(lambda _: Fault("status", 401), key, row, skill)
    return {"401": cell}, done.told


def status_500(row: Row, skill: Path) -> Came:
    """A server that is broken: an error, after the engine's own retries."""
    cell, done = fails(lambda _: Fault("status", 500), "500", row, skill)
    return {"500": cell}, done.told


def status_429(row: Row, skill: Path) -> Came:
    """A server that is busy for a moment: an answer."""
    refused = list[bool]()

    def script(asked: Asked) -> loopback.Reply | Fault:
        if asked.tools and not refused:
            refused.append(True)
            return Fault("status", 429, retry_after="1")
        return plays(SAY)(asked)

    cell, done = fails(script, "429", row, skill)
    return {"429": cell}, done.told


def hang(row: Row, skill: Path) -> Came:
    """A server that never answers: an error, when the time of a call is over."""
    cell, done = fails(
        lambda _: Fault("hang"), "within 3 s", row, skill, call_timeout=3
    )
    return {"hang": cell}, done.told


def turns(row: Row, skill: Path) -> Came:
    """Never ends by itself."""
    script = plays(ScriptStep("shell", "echo again"))
    done = tried(row.agent, row.protocol, script, skill=skill, max_turns=3)
    activity = done.answer.activity if done.answer else None
    stop = done.answer.stop if done.answer else "error"
    return {"turns": f"{stop} {activity.turns if activity else 0}"}, done.told


def budget(row: Row, skill: Path) -> Came:
    """The budget of a run is used up by its calls."""
    play = plays(ScriptStep("shell", "echo again"))

    def script(asked: Asked) -> loopback.Reply | Fault:
        reply = play(asked)
        assert isinstance(reply, loopback.Reply)
        tokens = {"input_tokens": 100_000, "output_tokens": 100}
        return loopback.Reply(reply.text, calls=reply.calls, **tokens)  # type: ignore[arg-type]

    most = Budget(most_tokens=350_000)
    done = tried(row.agent, row.protocol, script, skill=skill, budget=most)
    reason = done.answer.stop if done.answer else done.told
    return {"budget": yes("budget" in reason and 0 < len(done.asked) < 8)}, done.told


def trigger(row: Row, skill: Path) -> Came:
    """Is ended once it is decided whether the skill is opened;
    how often its model was asked.
    """
    other = write_shed(skill.parent)
    ways = {
        "opens": [ScriptStep("skill", SKILL)],
        "answers": [],
        "opens another": [
            ScriptStep("skill", OTHER),
            ScriptStep("shell", "echo on another way"),
        ],
        "corrects itself": [ScriptStep("skill", OTHER), ScriptStep("skill", SKILL)],
    }
    cells, told = dict[str, str](), list[str]()
    for way, steps in ways.items():
        script = plays(*steps, SAY)
        more = {"other": other, "max_turns": 5, "until_opened": True}
        done = tried(row.agent, row.protocol, script, skill=skill, **more)  # type: ignore[arg-type]
        told.append(f"{way}: {done.told}")
        asked = sum(1 for one in done.asked if one.tools)
        cells[way] = f"error ×{asked}"
        if done.answer and (activity := done.answer.activity):
            what = "opened" if activity.activated else "not opened"
            # After its answer, an agent may ask for more, and hang up.
            only = done.answer.stop != "decided" or asked == activity.turns
            cells[way] = f"{what} ×{activity.turns}" + (
                "" if only else f", asked ×{asked}"
            )
    return cells, "\n\n".join(told)


def kill(row: Row, skill: Path) -> Came:
    """Ctrl-C ends a run, and all that the agent started."""
    file = f"waits-{os.getpid()}-{time.monotonic_ns()}"  # by which the process is known
    case = {"id": "in", "input": PROMPT, "expected": {"contains": "open"}}
    (skill / "skill_meta.json").write_text(
        json.dumps({"cases": [case]}), encoding="utf-8"
    )
    output = skill.parent / "output.txt"
    with (
        LoopbackServer(
            plays(ScriptStep("shell", f"touch {file}; tail -f {file}"), SAY)
        ) as server,
        output.open("w") as out,
        environment(row.protocol),
    ):
        spec = server_for(row.protocol, server.url)
        provider = PROVIDERS[MODELS[row.protocol][0]]
        address = {provider.base_url_envs[0]: spec.base_url}  # type: ignore[attr-defined]
        command = [
            sys.executable,
            "-m",
            "pytest",
            "--skill",
            str(skill),
            "--skill-agent",
        ]
        command += [
            row.agent,
            "--skill-no-baseline",
            "--model",
            f"{provider.name}:{spec.model_id}",
            "-o",
            "skill_history=false",
        ]
        env = {**os.environ, **address}
        with started(command, cwd=skill.parent, env=env, stdout=out, stderr=out) as run:
            while not (waiting := with_word(file)) and run.poll() is None:
                time.sleep(0.2)
            spaces = {space_of(pid) for pid in waiting}
            run.send_signal(signal.SIGINT)
            run.wait(60)
        # The kernel takes a moment to end large processes.
        until = time.monotonic() + 60
        while left := [pid for pid in every_process() if space_of(pid) in spaces]:
            if time.monotonic() > until:
                break
            time.sleep(0.2)
    shown = output.read_text()
    cell = f"{len(left)} left" if left else "clean"
    if not spaces:
        cell = "not begun"
    return {"kill": "traceback" if "Traceback" in shown else cell}, shown[-3000:]


def every_process() -> list[int]:
    return [
        int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()
    ]


def with_word(word: str) -> list[int]:
    """The processes that have this word on their command line."""
    found = []
    for pid in every_process():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if word.encode() in words:
            found.append(pid)
    return found


def space_of(pid: int) -> str:
    """The pid namespace of a process, which everything in its sandbox shares."""
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return ""


def yes(it_is: bool) -> str:
    return "yes" if it_is else "no"


BEHAVIOURS: Final[dict[str, Callable[[Row, Path], Came]]] = {
    "task": task,
    "listed": listed,
    "baseline": baseline,
    "401": status_401,
    "500": status_500,
    "429": status_429,
    "hang": hang,
    "turns": turns,
    "budget": budget,
    "trigger": trigger,
    "kill": kill,
}


def all_rows() -> list[tuple[Row, str]]:
    """Every agent that is a program, with the behaviours to try."""
    rows = list[tuple[Row, str]]()
    for name in PACKAGES:
        if name not in AGENTS:
            continue
        for number, protocol in enumerate(agent_named(name).protocols):
            row = Row(name, protocol, own=number == 0)
            rows += [(row, one) for one in (("task",) if number else BEHAVIOURS)]
    return rows


@pytest.mark.parametrize(
    ("row", "behaviour"),
    [pytest.param(row, one, id=f"{row.name}-{one}") for row, one in all_rows()],
)
@pytest.mark.usefixtures("short_pauses")
def test_an_agent_does_as_expected(
    row: Row,
    behaviour: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
    pytestconfig: pytest.Config,
) -> None:
    if not is_there(row.agent, PACKAGES[row.agent]["npm"]):
        pytest.skip(f"{row.agent} is not installed. {HOW}")
    monkeypatch.setenv("PATH", path_for(row.agent))
    accepts = pytestconfig.getoption("--accept", default=False)
    differ, told, version = list[str](), "", agent_named(row.agent).version()
    for attempt in ("first", "second"):  # where programs end late, once is no proof
        cells, told = BEHAVIOURS[behaviour](row, write_gate(tmp_path / attempt))
        record_property("cells", (row.name, version, dict(cells)))
        differ = differences(expected(), row.name, Cells(version, dict(cells)))
        if accepts or not differ:
            return
    pytest.fail("\n".join([*differ, "", told]), pytrace=False)
