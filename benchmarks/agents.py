"""Agents: a model that has them run commands, and the yardstick,
a loop without a sandbox.

python benchmarks/agents.py serve LATENCY COMMANDS    prints its address, serves until
stdin ends python benchmarks/agents.py bare URL TRIALS AT_ONCE   the same trials,
written by hand with the SDK
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from material import MODEL
from peak import note_peak

COMMAND: Final = "echo one more >> lamp.txt; wc -l < lamp.txt"
TOOL: Final[dict[str, Any]] = {
    "name": "bash",
    "description": "Run a command.",
    "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
}


@contextmanager
def served(latency: float, commands: int) -> Iterator[str]:
    """Run a server in its own process, so that it shares no GIL; yields its base
    URL.
    """
    command = [sys.executable, __file__, "serve", str(latency), str(commands)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        yield process.stdout.readline().strip() + "/v1"
        process.communicate()


def serve(latency: float, commands: int) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from support.loopback import Asked, LoopbackServer, Reply

    def script(asked: Asked) -> Reply:
        if len(asked.results) < commands:
            return Reply("", calls=(("bash", {"command": COMMAND}),), delay=latency)
        return Reply("The lamp is lit.", delay=latency)

    with LoopbackServer(script) as loopback:
        print(loopback.url, flush=True)
        sys.stdin.read()


async def bare(url: str, trials: int, at_once: int) -> None:
    import openai

    gate = asyncio.Semaphore(at_once)
    tools: Any = [{"type": "function", "function": TOOL}]

    async with openai.AsyncOpenAI(
        api_key="none", base_url=url, max_retries=0
    ) as client:

        async def trial(number: int) -> None:
            messages: list[Any] = [
                {"role": "system", "content": "You are an agent with tools."},
                {"role": "user", "content": f"How do I light number {number}?"},
            ]
            async with gate:
                with TemporaryDirectory() as workspace:
                    while True:
                        completion = await client.chat.completions.create(
                            model=MODEL, messages=messages, tools=tools, max_tokens=2048
                        )
                        said = completion.choices[0].message
                        if not said.tool_calls:
                            assert "lit" in (said.content or "")
                            return
                        messages.append(said.model_dump(exclude_none=True))
                        for call in said.tool_calls:
                            output = await run(call.function.arguments, workspace)  # type: ignore[union-attr]
                            result = {
                                "role": "tool",
                                "tool_call_id": call.id,
                                "content": output,
                            }
                            messages.append(result)

        await asyncio.gather(*map(trial, range(trials)))


async def run(arguments: str, workspace: str) -> str:
    process = await asyncio.create_subprocess_shell(
        json.loads(arguments)["command"],
        cwd=workspace,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return (await process.communicate())[0].decode()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", latency, commands]:
            serve(float(latency), int(commands))
        case ["bare", url, trials, at_once]:
            asyncio.run(bare(url, int(trials), int(at_once)))
            note_peak("main")
