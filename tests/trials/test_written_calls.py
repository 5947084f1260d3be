"""Tool calls that a server returned as text, and answers that only look like them."""

import json

import pytest

from pytest_upskill.trials.transcript import Tool
from pytest_upskill.trials.written_calls import Offer, is_called, writes_call

TASK = "Declare the cargo in cargo.csv at Saltmere: write manifest.txt."
LS = '{"name": "bash", "arguments": {"command": "ls"}}'
SKILL = '{"name": "skill", "arguments": {"name": "harbour-manifest"}}'


def tool(name: str, *arguments: str) -> Tool:
    return Tool(
        name, "", json.dumps({"type": "object", "properties": dict.fromkeys(arguments)})
    )


def offer(*skills: str) -> Offer:
    offered = Offer()
    offered.add_tools(
        [
            tool("bash", "command", "timeout"),
            tool("read", "path", "offset"),
            tool("write", "path", "content"),
            tool("list", "path"),
            tool("skill", "name"),
        ]
    )
    offered.add_skills(skills or ["harbour-manifest"])
    return offered


FORMS = {
    "hermes": f"<tool_call>\n{LS}\n</tool_call>",
    "hermes after prose": (
        f"I look at the files first.\n\n<tool_call>\n{SKILL}\n</tool_call>"
    ),
    "hermes and an invented result": (
        f"<tool_call>\n{LS}\n</tool_call>\nThe folder has 3 files."
    ),
    "cut off": (
        '<tool_call>\n{"name": "write", "arguments": {"path": "a.txt", "content": "SM-2'
    ),
    "after reasoning": (
        f"<think>First the files.</think>\n<tool_call>\n{LS}\n</tool_call>"
    ),
    "within reasoning": f"<think>First the files.\n<tool_call>\n{LS}\n</tool_call>",
    "with an id": (
        '<tool_call>{"id": "call_1", "type": "function", "name": "bash", "x": 1, '
        '"arguments": {}}</tool_call>'
    ),
    "qwen coder": (
        "<tool_call>\n<function=bash>\n<parameter=command>\nls\n</parameter>\n"
        "</function>\n</tool_call>"
    ),
    "llama 3.1 tags": '<function=read>{"path": "cargo.csv"}</function>',
    "llama 3": '{"name": "read", "parameters": {"path": "cargo.csv"}}',
    "llama 3 python tag": (
        '<|python_tag|>{"name": "read", "parameters": {"path": "cargo.csv"}}'
    ),
    "mistral": f"[TOOL_CALLS] [{LS}]",
    "deepseek, cut": 'function<｜tool▁sep｜>bash\n```json\n{"command": "ls"}\n```',
    "longcat": f"<longcat_tool_call>{LS}</longcat_tool_call>",
    "a name in the tag": '<tool_call name="bash"><command>ls</command></tool_call>',
    "last in a line": f"Sure! {LS}",
    "mistral, newer": '[TOOL_CALLS]bash[ARGS]{"command": "ls"}',
    "deepseek": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>bash\n"
        '```json\n{"command": "ls"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
    ),
    "deepseek 3.2": (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="bash">\n'
        '<｜DSML｜parameter name="command" string="true">ls</｜DSML｜parameter>'
    ),
    "kimi": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0"
        '<|tool_call_argument_begin|>{"command": "ls"}<|tool_call_end|>'
    ),
    "glm": (
        "<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n</tool_call>"
    ),
    "minimax": (
        '<minimax:tool_call>\n<invoke name="bash">\n<parameter name="command">ls'
    ),
    "anthropic": (
        '<function_calls>\n<invoke name="read">\n<parameter name="path">a</parameter>'
    ),
    "granite": f"<|tool_call|>[{LS}]",
    "phi": f"functools[{LS}]",
    "command r": (
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "bash", '
        '"parameters": {"command": "ls"}}]<|END_ACTION|>'
    ),
    "internlm": f"<|action_start|><|plugin|>{LS}<|action_end|>",
    "lfm": '<|tool_call_start|>[bash(command="ls")]<|tool_call_end|>',
    "gpt-oss": (
        "<|channel|>commentary to=functions.bash"
        ' <|constrain|>json<|message|>{"command": 1}'
    ),
    "function gemma": "<start_function_call>call:bash{command:<escape>ls<escape>}",
    "bare": SKILL,
    "fenced": f"```json\n{LS}\n```",
    "fenced, the name only": f"```\n{SKILL}\n```",
    "fenced after prose": f"To begin, I open the skill:\n\n```json\n{SKILL}\n```",
    "a list": f"[{LS}, {SKILL}]",
    "arguments as text": '{"name": "bash", "arguments": "{\\"command\\": \\"ls\\"}"}',
    "keys sorted": '{"arguments": {"command": "ls"}, "name": "bash"}',
    "wrong arguments": '{"name": "bash", "arguments": {"cmd": "ls"}}',
    "a skill as a tool": '{"name": "harbour-manifest", "arguments": {}}',
    "prefixed": '{"name": "functions.bash", "arguments": {"command": "ls"}}',
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_calls_are_recognised_in_the_forms_of_open_models(text: str) -> None:
    assert writes_call(text, offer(), TASK)


NO_CALLS = {
    "an answer": (
        "Done. The seal is 4711. I used bash to read cargo.csv, and wrote manifest.txt."
    ),
    "empty": "",
    "a command": "Run this:\n\n```bash\nls -l\n```\n\nThen read cargo.csv.",
    "JSON of a person": (
        'Like this:\n```json\n{"name": "Ann", "arguments": {"age": 3}}\n```'
    ),
    "a package": (
        '```json\n{"name": "harbour-manifest", "version": "1.0", "main": "a.js"}\n```'
    ),
    "a name in prose": (
        'The file says {"name": "harbour-manifest"}, which is the package.'
    ),
    "a definition": (
        '{"name": "bash", "description": "Run.", "parameters": {"type": "object"}}'
    ),
    "a schema": (
        '{"name": "read", "parameters": {"type": "object", "properties": {"path": {}}}}'
    ),
    "another tool": (
        'Like this:\n<tool_call>{"name": "get_weather", "arguments": {}}</tool_call>'
    ),
    "another tool in JSON": '{"name": "get_weather", "arguments": {"city": "Rome"}}',
    "a tag in prose": "<tool_call> is the tag; the name follows as {...}",
    "within a sentence": f"Agents write {LS} to list files, and get the names back.",
    "between backquotes": (
        f"The tag is `<tool_call>{LS}</tool_call>`, which servers parse."
    ),
    "a tag and a word": (
        "A <tool_call> tag tells the server to list, read or write something."
    ),
    "python": (
        'import json\n\nwith open("a") as file:\n    data = file.read()\n    list(data)'
    ),
    "calls in code": (
        'In Python:\n```python\nread(path="a.txt")\nlist(path="b")\n```\nThat is all.'
    ),
    "an address": "See https://example.org/?to=list&from=bash for it.",
    "a call in code": "```python\nresult = shell.read(1)\nbash = 3\n```",
    "XML of a task": "<manifest><list>SM-204 7</list></manifest>",
    "rows": '[{"name": "list", "crates": 3}, {"name": "rope", "crates": 4}]',
    "rules of a scripted model": (
        f'Write:\n```json\n[\n  {LS},\n  {{"answer": "Yes"}}\n]\n```\nSo.'
    ),
    "steps": '{"steps": [{"action": "write", "input": {"path": "a"}}]}',
}


@pytest.mark.parametrize("text", NO_CALLS.values(), ids=NO_CALLS)
def test_answers_are_no_calls(text: str) -> None:
    assert not writes_call(text, offer(), TASK)


@pytest.mark.parametrize(
    "task",
    [
        "Write the tool call that lists the files, as Hermes models do.",
        "Explain function calling.",
        f"What is wrong with this? <tool_call>{LS}</tool_call>",
    ],
)
@pytest.mark.parametrize("text", [LS, f"```json\n{LS}\n```"])
def test_a_task_may_ask_for_such_text(task: str, text: str) -> None:
    assert not writes_call(text, offer(), task)


def test_a_tool_without_a_name_is_no_tool() -> None:
    nameless = offer("")
    nameless.add_tools([tool(""), tool("!")])
    assert not writes_call("<tool_call> is a tag.", nameless, TASK)
    assert not nameless.has_tool("")


def test_without_tools_a_text_is_a_text() -> None:
    nothing = Offer()
    nothing.add_skills(["harbour-manifest"])
    assert not writes_call(FORMS["hermes"], nothing, TASK)


@pytest.mark.parametrize(
    "text",
    [
        *("<tool_call>" * 20_000, "{" * 200_000, '{"name": "bash", ' * 20_000),
        *("<tool_call>" + " [" * 90_000, "[TOOL_CALLS]" + "function" * 20_000),
    ],
)
def test_hostile_texts_end(text: str) -> None:
    many = offer(*(f"skill-{number}" for number in range(300)))
    many.add_tools([tool(f"tool-{number}", "path") for number in range(300)])
    assert not writes_call(text, many, "json " * 10_000)


@pytest.mark.parametrize(
    "name", ["harbour-manifest", "harbour_manifest", "skill:Harbour-Manifest"]
)
def test_a_skill_called_as_if_it_were_a_tool(name: str) -> None:
    assert is_called("harbour-manifest", name)
    assert not is_called("harbour-manifest", "skill")
    assert not is_called("", "")
