"""Split a SKILL.md into frontmatter and body, read the frontmatter leniently,
and edit a field.

Agents differ in what they accept, so nothing here is refused: what some agent would not
accept is a fault. The client guide of agentskills.io asks for the same.
"""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice, takewhile
from typing import Any, Final, Literal, NamedTuple

import yaml

from .._util.texts import one_line

Level = Literal["error", "warning"]

_MAX_CHARS: Final = 20_000  # of frontmatter; YAML is read slowly
_MOST_TWICE: Final = 10  # keys
_BEFORE: Final = re.compile(r"(?:[\s\ufeff]|<!--.*?-->)*", re.DOTALL)
_RULE: Final = re.compile(r"-{3,}\s*")
_CLOSING: Final = re.compile(r"(?:-{3,}|\.{3})\s*")
_ENTRY: Final = re.compile(
    r"""(?P<quote>["']?)(?P<key>[A-Za-z_][\w.-]*)(?P=quote)"""
    r"""[ \t]*:(?:[ \t]+(?P<value>.*)|$)"""
    r"""|(?P<tight>name|description):(?P<rest>.*)"""  # the space is missing
)
_FIRST: Final = re.compile(r"(?:name|description)[ \t]*:")
_KNOWN: Final = re.compile(
    r"\s+(?:name|description|license|compatibility|metadata|allowed-tools):\s"
)
# The start of a value that ends with its line
_PLAIN: Final = re.compile(r"""[^\s|>"'\[{&*!]""")
_LIKE_YAML: Final = re.compile(r"[ \t]|-[ \t]|#|$")
_BLOCK: Final = re.compile(r"[|>][-+0-9]*[ \t]*(?:#.*)?")
_QUOTED: Final = re.compile(r"""(["'])(.*)\1""", re.DOTALL)
_START: Final = "Start with the lines '---', 'name: …', 'description: …' and '---'."
_QUOTE: Final = "Put the value in quotes."
_INDENT: Final = "Indent with spaces, and quote values that contain ':' or '#'."


class Fault(NamedTuple):
    """Something in a SKILL.md that the specification forbids;
    an error if an agent rejects it.
    """

    line: int
    message: str
    code: str
    level: Level
    hint: str = ""


class Parsed(NamedTuple):
    """A SKILL.md: the fields of its frontmatter, every scalar as a string,
    and its body.
    """

    fields: dict[str, Any]
    lines: dict[str, int]  # of the keys
    body: str
    body_line: int
    faults: tuple[Fault, ...]
    has_frontmatter: bool = True


class _Head(NamedTuple):
    """Frontmatter as written; ``first`` and ``end`` count the lines
    before it and up to its end.
    """

    text: str
    first: int
    end: int
    faults: tuple[Fault, ...]


class _Fields(NamedTuple):
    fields: dict[str, Any]
    lines: dict[str, int]
    faults: tuple[Fault, ...]


def parse(text: str) -> Parsed:
    lines = text.split("\n")
    for head in _heads(text, lines):
        read = _read(head, lines)
        if read is not None:
            body = "\n".join(lines[head.end :]).strip()
            faults = (*head.faults, *read.faults)
            return Parsed(read.fields, read.lines, body, head.end + 1, faults)
    missing = _frontmatter_fault(1, "no frontmatter", _START)
    return Parsed(
        {}, {}, text.lstrip("\ufeff").strip(), 1, (missing,), has_frontmatter=False
    )


def _heads(text: str, lines: Sequence[str]) -> Iterator[_Head]:
    """Where the frontmatter may be, the likeliest place first."""
    before = _BEFORE.match(text)
    opening = text.count("\n", 0, before.end()) if before else 0
    faults = list[Fault]()
    if opening or lines[0].startswith("\ufeff"):
        problem, hint = "text", "Start the file with the line '---'."
        if not opening:
            problem, hint = "a byte order mark", "Save the file without one."
        problem += " before the frontmatter, so that some agents don't find it"
        faults.append(_frontmatter_fault(1, problem, hint))
    first = opening + 1
    if not _RULE.fullmatch(lines[opening].strip(" \t\ufeff")):
        if not _FIRST.match(lines[opening]):
            return
        faults.append(
            _frontmatter_fault(first, "no '---' before the frontmatter", _START)
        )
        first = opening
    elif lines[opening].strip(" \t\ufeff") != "---":
        problem = "the frontmatter must start with '---'"
        faults.append(_frontmatter_fault(first, problem, "Write three hyphens."))
    end = _closing(lines, first)
    if end is not None:
        closing_faults = list[Fault]()
        if lines[end].rstrip() != "---":
            problem = "the frontmatter must end with '---'"
            closing_faults.append(
                _frontmatter_fault(end + 1, problem, "Write three hyphens.")
            )
        head = _Head(
            "\n".join(lines[first:end]), first, end + 1, (*faults, *closing_faults)
        )
        if not _swallowed_body(lines[first:end]) or _is_yaml(head.text):
            yield head
    run = list(
        takewhile(lambda line: line.strip() and _is_like_yaml(line), lines[first:])
    )
    if first > opening and any(map(_ENTRY.match, run)):
        problem = "frontmatter not closed"
        faults.append(
            _frontmatter_fault(opening + 1, problem, "End it with a line '---'.")
        )
        yield _Head("\n".join(run), first, first + len(run), tuple(faults))


def _closing(lines: Sequence[str], first: int) -> int | None:
    """The index of the line that ends the frontmatter."""
    for number in range(first, len(lines)):
        if _CLOSING.fullmatch(lines[number]):
            return number
    # An indented '---' may be part of a value.
    return next(
        (n for n in range(first, len(lines)) if lines[n].strip() == "---"), None
    )


def _is_like_yaml(line: str) -> bool:
    return bool(_LIKE_YAML.match(line) or _ENTRY.match(line))


def _swallowed_body(lines: Sequence[str]) -> bool:
    """Whether the next '---' is a rule in the body: prose follows after an empty
    line.
    """
    number = next(
        (number for number, line in enumerate(lines) if not line.strip()), len(lines)
    )
    return not all(_is_like_yaml(line) for line in lines[number:])


def _read(head: _Head, lines: Sequence[str]) -> _Fields | None:
    """The fields of the frontmatter; None if there are none."""
    faults = list[Fault]()
    text = head.text
    if len(text) > _MAX_CHARS:
        problem = f"{len(text):,} characters of frontmatter (limit {_MAX_CHARS:,})"
        faults.append(
            Fault(head.first + 1, problem, "skill-yaml", "error", "Shorten it.")
        )
        text = text[:_MAX_CHARS]
    try:
        node, value = read_yaml(text, only_texts=True)
    except YAML_ERRORS as error:
        faults.append(_yaml_fault(error, text, head.first + 1, lines))
        node, value = None, ""
    if isinstance(node, yaml.MappingNode) and isinstance(value, dict):
        key_lines = _lines_of(node, head.first + 1)
        return _Fields(value, key_lines.lines, (*faults, *key_lines.faults))
    if value is None:  # nothing but comments
        return _Fields({}, {}, tuple(faults))
    fields, numbers = _entry_by_entry(text, head.first + 1)
    if not fields:
        return None
    if not faults:
        problem = "the frontmatter must have a 'key: value' on each line"
        faults.append(_frontmatter_fault(head.first + 1, problem, _START))
    return _Fields(fields, numbers, tuple(faults))


def _is_yaml(text: str) -> bool:
    try:
        return len(text) <= _MAX_CHARS and isinstance(
            read_yaml(text, only_texts=True)[1], dict
        )
    except YAML_ERRORS:
        return False


def _lines_of(node: yaml.MappingNode, first: int) -> _Fields:
    """The lines of the keys; the last one counts if a key is there twice, as in
    PyYAML.
    """
    lines: dict[str, int] = {}
    twice: dict[str, Fault] = {}
    for key, _ in node.value:
        line = key.start_mark.line + first
        if key.value in lines:
            problem = f"duplicate key {one_line(key.value, 60)!r}"
            twice[key.value] = Fault(
                line, problem, "skill-yaml", "error", "Remove one."
            )
        lines[str(key.value)] = line
    return _Fields({}, lines, tuple(islice(twice.values(), _MOST_TWICE)))


def _yaml_fault(error: Exception, text: str, first: int, lines: Sequence[str]) -> Fault:
    mark = None
    if isinstance(error, yaml.MarkedYAMLError):
        # Report an unclosed quote or bracket where it starts, not where the text ends.
        is_open = re.search("quoted scalar|flow", error.context or "")
        mark = error.context_mark if is_open else error.problem_mark
    position = getattr(error, "position", None)  # of a character that YAML forbids
    line = first
    if mark is not None:
        line += min(mark.line, text.count("\n"))
    elif isinstance(position, int):
        line += text.count("\n", 0, position)
    reason = (
        getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    )
    problem, hint = one_line(str(reason) or "nested too deeply", 200), _INDENT
    entry = _ENTRY.match(lines[line - 1])
    if "mapping values are not allowed" in problem and entry:
        problem = (
            f"the value of {entry['key'] or entry['tight']!r} has a ':' and no quotes"
        )
        hint = _QUOTE
    return Fault(
        line, f"invalid YAML in the frontmatter: {problem}", "skill-yaml", "error", hint
    )


def _entry_by_entry(text: str, first: int) -> tuple[dict[str, Any], dict[str, int]]:
    """The fields of a text that is not valid YAML: each key with
    its lines up to the next.
    """
    fields: dict[str, Any] = {}
    numbers: dict[str, int] = {}
    entries = list[tuple[int, re.Match[str], list[str]]]()
    for number, line in enumerate(text.split("\n"), start=first):
        # A key that is indented by mistake doesn't belong to the text above.
        after_text = entries and _PLAIN.match(entries[-1][1]["value"] or "")
        bare = line.lstrip() if after_text and _KNOWN.match(line) else line
        if entry := _ENTRY.match(bare):
            entries.append((number, entry, [bare]))
        elif entries:
            entries[-1][2].append(line)
    for number, entry, lines in entries:
        key = entry["key"] or entry["tight"]
        fields[key], numbers[key] = _value(entry, lines), number
    return fields, numbers


def _value(entry: re.Match[str], lines: Sequence[str]) -> Any:
    """The value as YAML if it is valid, else as one line of text."""
    if entry["key"]:
        spaced = "\n".join(line.replace("\t", "  ") for line in lines)
        try:
            value = read_yaml(spaced, only_texts=True)[1]
        except YAML_ERRORS:
            value = None
        if isinstance(value, dict) and len(value) == 1:
            return next(iter(value.values()))
    start = (entry["value"] if entry["key"] else entry["rest"]) or ""
    continuation = [line.strip() for line in lines[1:] if not line.startswith("#")]
    text = " ".join(
        filter(None, ["" if _BLOCK.fullmatch(start) else start.strip(), *continuation])
    )
    if quoted := _QUOTED.fullmatch(text):
        return quoted[2]
    is_open = text.startswith(("'", '"')) and text.count(text[0]) == 1
    return text[1:] if is_open else text


def _frontmatter_fault(line: int, message: str, hint: str) -> Fault:
    return Fault(line, message, "skill-frontmatter", "error", hint)


_NO_PROSE: Final = re.compile(r"\s*(?:#{1,6}\s|<|!\[|\[!\[|\||[-*_=~]{3,}\s*$|`{3})")
_MARK: Final = re.compile(r"\s*(?:#{1,6}|[->*+])\s+")  # of a heading, a quote or a list


def first_paragraph(body: str, limit: int) -> str:
    """The first lines of prose, on one line: no heading, table, picture or code."""
    prose = list[str]()
    in_fence = False
    for line in re.sub(r"<!--.*?(?:-->|\Z)", "", body, flags=re.DOTALL).split("\n"):
        fence = line.lstrip().startswith(("```", "~~~"))
        in_fence ^= fence
        if in_fence or fence or not line.strip() or _NO_PROSE.match(line):
            if prose:
                break
        else:
            prose.append(line)
    text = " ".join(prose) or next(
        (line for line in body.split("\n") if line.strip()), ""
    )
    return one_line(_MARK.sub("", text, count=1), limit)


_KEY: Final = "description"


def with_description(text: str, description: str) -> str | None:
    """The SKILL.md with another description; None if more than that would change."""
    return with_field(text, _KEY, description)


def with_field(text: str, key: str, value: str) -> str | None:
    """The SKILL.md with another one-line value; None if more than that would change."""
    for start, end in _spans(text, key):
        old = text[start:end]
        line_breaks = old[len(old.rstrip()) :]  # a block ends with its line breaks
        space = " " if text[:start].endswith(":") else ""
        for written in (_plain(value), json.dumps(value, ensure_ascii=False)):
            new = f"{text[:start]}{space}{written}{line_breaks}{text[end:]}"
            if _differs_only(text, new, key, value):
                return new
    return None


def _spans(text: str, key: str) -> Iterator[tuple[int, int]]:
    """Where the value of a field may be: its YAML node, or the rest of its line."""
    parsed = parse(text)
    if key not in parsed.lines:
        return
    lines = text.split("\n")
    begins = [0, *accumulate(len(line) + 1 for line in lines)]
    first = next(
        (n for n, line in enumerate(lines) if line.strip(" \t\r\ufeff") == "---"), None
    )
    if first is not None:
        span = _in_yaml("\n".join(lines[first + 1 : parsed.body_line - 2]), key)
        if span:
            yield begins[first + 1] + span[0], begins[first + 1] + span[1]
    number = parsed.lines[key] - 1
    name, colon, value = lines[number].partition(":")
    if colon and name.strip(" \t\"'") == key and value.strip():
        start = begins[number] + len(name) + 1 + len(value) - len(value.lstrip())
        yield start, start + len(value.strip())


def _in_yaml(head: str, key: str) -> tuple[int, int] | None:
    try:
        root, _ = read_yaml(head, only_texts=True)
    except YAML_ERRORS:
        return None
    values = root.value if isinstance(root, yaml.MappingNode) else []
    matches = [value for name, value in values if name.value == key]
    if len(matches) != 1 or not isinstance(matches[0], yaml.ScalarNode):
        return None
    return matches[0].start_mark.index, matches[0].end_mark.index


def _plain(value: str) -> str:
    """A value as YAML writes it, with quotes only where needed."""
    dumped: str = yaml.safe_dump({_KEY: value}, allow_unicode=True, width=1_000_000)
    return dumped.removeprefix(f"{_KEY}: ").rstrip("\n")


def _differs_only(old: str, new: str, key: str, value: str) -> bool:
    """Whether only this value has changed."""
    before, after = parse(old), parse(new)
    unchanged = [
        {name: parsed.fields[name] for name in parsed.fields if name != key}
        for parsed in (before, after)
    ]
    return (
        after.fields.get(key) == value
        and unchanged[0] == unchanged[1]
        and before.body == after.body
        and len(after.faults) <= len(before.faults)
    )


# YAML that strangers write: aliases and merges can turn a few lines into millions.

_DEEPEST: Final = 100  # levels, and brackets on a line: PyYAML takes quadratic time
_MOST_NODES: Final = 10_000  # with every alias written out

# What reading can raise.
YAML_ERRORS: Final = (yaml.YAMLError, RecursionError, ValueError, OverflowError)


class _Shallow:
    """Makes a loader reject deep nesting."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise yaml.YAMLError(f"more than {_DEEPEST} levels")
        node: yaml.Node | None = super().compose_node(parent, index)  # type: ignore[misc]
        self._depth -= 1
        return node


class _Texts(_Shallow, yaml.BaseLoader):
    """Every scalar is a string."""


class _Values(_Shallow, yaml.SafeLoader):
    pass


def read_yaml(text: str, *, only_texts: bool = False) -> tuple[yaml.Node | None, Any]:
    """The root and the value of a document, which may be None;
    one of YAML_ERRORS if it is bad.
    """
    if any(line.count("[") + line.count("{") > _DEEPEST for line in text.split("\n")):
        raise yaml.YAMLError("too many brackets on a line")
    loader = _Texts(text) if only_texts else _Values(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, None
        _nodes_in(node, {})
        return node, loader.construct_document(node)
    finally:
        loader.dispose()


def _nodes_in(node: yaml.Node, sizes: dict[int, int]) -> int:
    """How many nodes there are if each alias is written out."""
    if id(node) not in sizes:
        sizes[id(node)] = _MOST_NODES  # a node inside itself has no end
        inside = node.value if isinstance(node, yaml.CollectionNode) else []
        children = [
            child
            for item in inside
            for child in (item if isinstance(item, tuple) else (item,))
        ]
        sizes[id(node)] = 1 + sum(_nodes_in(child, sizes) for child in children)
    if sizes[id(node)] >= _MOST_NODES:
        raise yaml.YAMLError(f"more than {_MOST_NODES:,} values, counting each alias")
    return sizes[id(node)]
