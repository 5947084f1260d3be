"""Checks of code in an answer; none runs it.

Code is looked for in the fenced blocks of its language. An answer without fences is
Python as a whole if it parses as Python.
"""

import ast
import keyword
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    TypeAdapter,
    model_validator,
)

from .._util.json_forms import Strict
from .._util.texts import one_line
from .check import CheckContext, CheckKind, Evaluate, Result, Text, one_or_more, quoted
from .languages import (
    PARSERS,
    BrokenError,
    blocks_of,
    language_name,
    parse_python,
    too_long,
)

_NAME: Final = r"[^\W\d]\w*"
_DOTTED: Final = re.compile(rf"{_NAME}(\.{_NAME})*")


def _dotted(written: str, leading: str) -> str:
    """Names that Python can't have would never be found;
    dots may stand before ``leading``.
    """
    bare_name = written.lstrip(".") if leading else written
    words = bare_name.split(".")
    fits = bool(_DOTTED.fullmatch(bare_name)) or (leading == "module" and not bare_name)
    if not fits or any(map(keyword.iskeyword, words)):
        example = {"": "Queue.put", "module": "os.path", "function": "json.dumps"}[
            leading
        ]
        raise ValueError(
            f"{one_line(written, 40)!r} can't be a name in Python, so no answer would"
            f" pass; write one like {example!r}"
        )
    return written


_Definition = Annotated[Text, AfterValidator(partial(_dotted, leading=""))]
_Module = Annotated[Text, AfterValidator(partial(_dotted, leading="module"))]
_Function = Annotated[Text, AfterValidator(partial(_dotted, leading="function"))]
Defined = Annotated[list[_Definition], *one_or_more]
Imported = Annotated[list[_Module], *one_or_more]
Called = Annotated[list[_Function], *one_or_more]


def _code_in(answer: str, language: str) -> list[str]:
    blocks = list(blocks_of(answer))
    if not blocks and language == "python" and answer.strip():
        try:
            parse_python(answer)
        except BrokenError:
            return []
        return [answer]
    return [block.text for block in blocks if block.language == language]


def _has_code(answer: str, language: str) -> Result:
    if long := too_long(answer):
        return long
    blocks = _code_in(answer, language)
    return bool(blocks), f"the answer has {'' if blocks else 'no '}{language} code"


def _parses(answer: str, language: str) -> Result:
    """Every block of the language must parse."""
    passed, reason = _has_code(answer, language)
    if not passed:
        return passed, reason
    try:
        for text in _code_in(answer, language):
            PARSERS[language](text)
    except BrokenError as error:
        return False, str(error)
    return True, f"the code parses as {language}"


def _named(answer: str, verb: str, names: Iterable[str]) -> Iterator[Result]:
    """Names are looked for in all Python blocks that parse, together."""
    passed, reason = _has_code(answer, "python")
    if not passed:
        yield passed, reason
        return
    there, broken = set[str](), ""
    for text in _code_in(answer, "python"):
        try:
            there.update(_NAMES_IN[verb](parse_python(text)))
        except BrokenError as error:
            broken = f"; {error}"
    for name in names:
        is_there = name in there
        does = f"{verb}s" if is_there else f"does not {verb}"
        yield is_there, f"the code {does} {quoted(name)}{'' if is_there else broken}"


def _defined(tree: ast.Module) -> Iterator[str]:
    """Functions and classes, with dots if nested, and names assigned at the top."""
    todo: list[tuple[str, ast.AST]] = [("", tree)]
    while todo:
        prefix, node = todo.pop()
        for child in ast.iter_child_nodes(node):
            inside = prefix
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield prefix + child.name
                inside = f"{prefix}{child.name}."
            elif (
                isinstance(child, ast.Name)
                and isinstance(child.ctx, ast.Store)
                and not prefix
            ):
                yield child.id
            todo.append((inside, child))


def _imported(tree: ast.Module) -> Iterator[str]:
    """Modules, their packages, and the names imported from them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            names = [module, *(_joined(module, alias.name) for alias in node.names)]
        else:
            continue
        for name in names:
            parts = name.split(".")
            yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))


def _joined(module: str, name: str) -> str:
    return module + name if module.endswith(".") else f"{module}.{name}"


def _called(tree: ast.Module) -> Iterator[str]:
    """As written, as spelled out by the imports, and as .method of anything."""
    spelled = _spelled_out(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        parts, callee = list[str](), node.func
        while isinstance(callee, ast.Attribute):
            parts.append(callee.attr)
            callee = callee.value
        if parts:
            yield f".{parts[0]}"
        if isinstance(callee, ast.Name):
            attributes = "".join(f".{part}" for part in reversed(parts))
            yield callee.id + attributes
            yield spelled.get(callee.id, callee.id) + attributes


def _spelled_out(tree: ast.Module) -> dict[str, str]:
    """The full names of what imports bind."""
    names = dict[str, str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            names |= {a.asname or a.name: _joined(module, a.name) for a in node.names}
    return names


_NAMES_IN: Final[Mapping[str, Callable[[ast.Module], Iterable[str]]]] = {
    "define": _defined,
    "import": _imported,
    "call": _called,
}


def _parsed_language(written: str) -> str:
    name = language_name(written)
    if name not in PARSERS:
        languages = ", ".join(PARSERS)
        raise ValueError(f"can't parse {one_line(written, 40)!r}, only {languages}")
    if name == "shell" and not shutil.which("bash"):
        raise ValueError("parsing shell needs bash, which is not installed")
    return name


class CodeForm(Strict):
    """A block of code in a language; the last three are for Python."""

    language: Annotated[Text, AfterValidator(language_name)] = Field(
        description="As written behind the fence: python, toml, sh, …"
    )
    parses: bool = Field(
        default=False,
        description=(
            "Whether the block must parse; for python, json, toml, yaml and shell."
        ),
    )
    # These are described as the checks of the same names
    defines: Defined | None = None
    imports: Imported | None = None
    calls: Called | None = None

    @model_validator(mode="after")
    def _fits_the_language(self) -> "CodeForm":
        if self.parses:
            _parsed_language(self.language)
        python_only = [
            key for key in ("defines", "imports", "calls") if getattr(self, key)
        ]
        if python_only and self.language != "python":
            raise ValueError(f"{python_only[0]!r} is for Python only")
        return self


def _code(context: CheckContext) -> Iterator[Result]:
    form: CodeForm = context.value
    yield (_parses if form.parses else _has_code)(context.answer.text, form.language)
    names_by_verb = {"define": form.defines, "import": form.imports, "call": form.calls}
    for verb, names in names_by_verb.items():
        if names:
            yield from _named(context.answer.text, verb, names)


def _parses_all(context: CheckContext) -> Iterator[Result]:
    yield _parses(context.answer.text, context.value)


def _has_names(verb: str) -> Evaluate:
    return lambda context: _named(context.answer.text, verb, context.value)


def _as_code_form(value: Any) -> Any:
    return {"language": value} if isinstance(value, str) else value


_CODE: TypeAdapter[Any] = TypeAdapter(
    Annotated[CodeForm, BeforeValidator(_as_code_form)]
)
_LANGUAGE: TypeAdapter[Any] = TypeAdapter(
    Annotated[str, Field(strict=True), AfterValidator(_parsed_language)]
)

KINDS = (
    CheckKind("code", _CODE, _code),
    CheckKind("parses", _LANGUAGE, _parses_all),
    CheckKind("defines", TypeAdapter(Defined), _has_names("define")),
    CheckKind("imports", TypeAdapter(Imported), _has_names("import")),
    CheckKind("calls", TypeAdapter(Called), _has_names("call")),
)
