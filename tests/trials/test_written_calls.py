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
    "llama 4": '[read(path="cargo.csv"), bash(command="ls")]',
    "mistral": f"[TOOL_CALLS] [{LS}]",
    "mistral without its tokens": 'bash[ARGS]{"command": "ls"}',
    "mistral without any tag": 'bash{"command": "ls"}',
    "glm 4": 'bash\n{"command": "ls"}',
    "deepseek without its tokens": 'bash\n```json\n{"command": "ls"}\n```',
    "deepseek, cut": 'function<｜tool▁sep｜>bash\n```json\n{"command": "ls"}\n```',
    "qwen agent": '✿FUNCTION✿: bash\n✿ARGS✿: {"command": "ls"}',
    "apertus": '<|tools_prefix|>[{"bash": {"command": "ls"}}]<|tools_suffix|>',
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
    "gemma": '```tool_code\nprint(default_api.bash(command="ls"))\n```',
    "function gemma": "<start_function_call>call:bash{command:<escape>ls<escape>}",
    "react": "Thought: look first.\nAction: bash\nAction Input: ls",
    "bare": SKILL,
    "fenced": f"```json\n{LS}\n```",
    "fenced, the name only": f"```\n{SKILL}\n```",
    "fenced after prose": f"To begin, I open the skill:\n\n```json\n{SKILL}\n```",
    "fenced within prose": (
        f"Step 1:\n```json\n{LS}\n```\nThen I shall write the manifest."
    ),
    "several": f"{LS}\n{SKILL}",
    "a list": f"[{LS}, {SKILL}]",
    "arguments as text": '{"name": "bash", "arguments": "{\\"command\\": \\"ls\\"}"}',
    "keys sorted": '{"arguments": {"command": "ls"}, "name": "bash"}',
    "wrapped": f'{{"tool_calls": [{{"type": "function", "function": {LS}}}]}}',
    "other keys": '{"tool": "bash", "tool_input": {"command": "ls"}}',
    "an action": '{"action": "read", "action_input": "cargo.csv"}',
    "flat": '{"tool": "bash", "command": "ls"}',
    "by key": '{"bash": {"command": "ls"}}',
    "wrong arguments": '{"name": "bash", "arguments": {"cmd": "ls"}}',
    "single quotes": "{'name': 'bash', 'arguments': {'command': 'ls'}}",
    "broken JSON": (
        '{"name": "write", "arguments": {"path": "a", "content": "say "hi""}}'
    ),
    "a skill as a tool": '{"name": "harbour-manifest", "arguments": {}}',
    "a skill alone": '{"name": "harbour-manifest"}',
    "a skill by key": '{"skill": "harbour-manifest"}',
    "tags of the tool": "<bash>\n<command>ls</command>\n</bash>",
    "a tag of the tool": "<skill>harbour-manifest</skill>",
    "a tool that is not there": (
        '<tool_call>\n{"name": "open_file", "arguments": {}}\n</tool_call>'
    ),
    "pythonic": 'bash(command="ls")',
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
        "Give me the JSON of a call to bash.",
        "Write JSON with the name of the program and its arguments.",
        "Which XML does the bash tool take?",
        "Explain function calling.",
        f"What is wrong with this? <tool_call>{LS}</tool_call>",
    ],
)
@pytest.mark.parametrize("text", [LS, f"```json\n{LS}\n```"])
def test_a_task_may_ask_for_such_text(task: str, text: str) -> None:
    assert not writes_call(text, offer(), task)


@pytest.mark.parametrize(
    "task",
    [
        "Explain how Qwen calls tools.",
        "Which tools do you have? Show how each is used.",
        "Document the bash tool of our service.",
        "Write a fixture for our agent tests that runs ls.",
    ],
)
def test_a_task_about_tools_gets_examples_in_prose(task: str) -> None:
    tagged = f"<tool_call>\n{LS}\n</tool_call>"
    for example in (f"```json\n{LS}\n```", tagged):
        assert not writes_call(
            f"Like this:\n\n{example}\n\nIt lists the files.", offer(), task
        )
        assert writes_call(
            f"Like this:\n\n{example}\n\nIt lists the files.", offer(), TASK
        )
    assert writes_call(tagged, offer(), task)


def test_a_task_about_json_gets_examples_but_no_calls() -> None:
    task = "Explain JSON with an example."
    explained = f"JSON has objects, such as this one:\n\n```json\n{LS}\n```"
    assert not writes_call(explained, offer(), task)
    assert not writes_call(f"{explained}\nKeys are strings.", offer(), task)
    assert writes_call(LS, offer(), "Convert cargo.csv to JSON.")
    assert writes_call(
        f"Let me see.\n<tool_call>{LS}", offer(), "Convert cargo.csv to JSON."
    )


def test_after_parsed_calls_only_what_is_nothing_else_counts() -> None:
    explained = f"The config is:\n\n```json\n{LS}\n```"
    assert writes_call(explained, offer(), TASK)
    assert not writes_call(explained, offer(), TASK, has_called=True)
    assert not writes_call(
        f"<tool_call>{LS}</tool_call> is it.", offer(), TASK, has_called=True
    )
    assert writes_call(f"```json\n{LS}\n```", offer(), TASK, has_called=True)
    assert writes_call(
        f"Next:\n<tool_call>{LS}</tool_call>", offer(), TASK, has_called=True
    )
    assert not writes_call(
        '{"name": "bash", "args": {"x": 1}}', offer(), TASK, has_called=True
    )


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
