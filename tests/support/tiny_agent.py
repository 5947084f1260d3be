"""A tiny agent as a command: it runs inside a sandbox, with an SDK and its own tools.

    tiny_agent.py PROTOCOL MODEL PROMPT

It finds its server and key where all such agents do, in the environment. As real ones
do, it first asks for a title of the session, without tools.
"""

import json
import subprocess
import sys
from typing import Any

SCHEMA: Any = {
    "type": "object",
    "properties": {"command": {"type": "string"}},
    "required": ["command"],
}
SYSTEM = "You are tiny. Skills are in /skills."
TITLE = "Write a title for this session."


def bash(command: str) -> str:
    run = subprocess.run(
        command, shell=True, capture_output=True, text=True, check=False
    )
    return f"{run.stdout}{run.stderr}".strip()


def messages(model: str, prompt: str) -> str:
    import anthropic

    client: Any = anthropic.Anthropic()
    said: list[Any] = [{"role": "user", "content": prompt}]
    client.messages.create(model=model, max_tokens=32, system=TITLE, messages=said)
    tools = [{"name": "bash", "description": "Run a command.", "input_schema": SCHEMA}]
    while True:
        with client.messages.stream(
            model=model, max_tokens=1000, system=SYSTEM, messages=said, tools=tools
        ) as stream:
            reply = stream.get_final_message()
        said.append({"role": "assistant", "content": reply.content})
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            return "".join(
                block.text for block in reply.content if block.type == "text"
            )
        results = [
            {
                "type": "tool_result",
                "tool_use_id": call.id,
                "content": bash(call.input["command"]),
            }
            for call in calls
        ]
        said.append({"role": "user", "content": results})


def chat(model: str, prompt: str) -> str:
    import openai

    client: Any = openai.OpenAI()
    said: list[Any] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": prompt},
    ]
    title = [{"role": "system", "content": TITLE}, said[1]]
    client.chat.completions.create(model=model, messages=title)
    function = {"name": "bash", "description": "Run a command.", "parameters": SCHEMA}
    tools = [{"type": "function", "function": function}]
    while True:
        with client.chat.completions.stream(
            model=model, messages=said, tools=tools
        ) as stream:
            reply = stream.get_final_completion().choices[0].message
        if not reply.tool_calls:
            return reply.content or ""
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.function.name,
                    "arguments": call.function.arguments,
                },
            }
            for call in reply.tool_calls
        ]
        said.append(
            {"role": "assistant", "content": reply.content, "tool_calls": calls}
        )
        for call in reply.tool_calls:
            told = bash(json.loads(call.function.arguments)["command"])
            said.append({"role": "tool", "tool_call_id": call.id, "content": told})


def responses(model: str, prompt: str) -> str:
    import openai

    client: Any = openai.OpenAI()
    client.responses.create(model=model, instructions=TITLE, input=prompt)
    said: list[Any] = [{"role": "user", "content": prompt}]
    tools = [{"type": "function", "name": "bash", "parameters": SCHEMA, "strict": True}]
    while True:
        with client.responses.stream(
            model=model, instructions=SYSTEM, input=said, tools=tools, store=False
        ) as stream:
            reply = stream.get_final_response()
        calls = [item for item in reply.output if item.type == "function_call"]
        if not calls:
            return str(reply.output_text)
        for call in calls:
            made = {"type": "function_call", "call_id": call.call_id, "name": call.name}
            said.append({**made, "arguments": call.arguments})
            told = bash(json.loads(call.arguments)["command"])
            done = {"type": "function_call_output", "call_id": call.call_id}
            said.append({**done, "output": told})


def main() -> None:
    protocol, model, prompt = sys.argv[1:]
    ways = {"messages": messages, "chat": chat, "responses": responses}
    sys.stdout.write(ways[protocol](model, prompt))


if __name__ == "__main__":
    main()
