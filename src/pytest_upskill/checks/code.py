"""Checks of code in an answer, none of which runs it.

Code is looked for in the fenced blocks of its language. An answer without any fence is taken for
Python as a whole, if it parses as Python.
"""

import ast
import shutil
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, model_validator

from .._util.json_forms import Strict
from .._util.texts import one_line
from ..trials.answer import Answer
from .fences import blocks_of, language_name
from .kind import TEXTS, Given, Hold, Kind, Said, Text, one_or_more, quoted
from .parsers import PARSERS, BrokenError, parse_python, too_long

Names = Annotated[list[Text], *one_or_more]
NamesIn = Callable[[ast.Module], Iterable[str]]


def _code_in(answer: str, language: str) -> list[str]:
    blocks = list(blocks_of(answer))
    if not blocks and language == "python" and answer.strip():
        try:
            parse_python(answer)
        except BrokenError:
            return []
        return [answer]
    return [block.text for block in blocks if block.language == language]


def _has_code(answer: Answer, language: str, _: Given) -> Iterator[Said]:
    if long := too_long(answer.text):
        yield long
        return
    found = _code_in(answer.text, language)
    yield bool(found), f"the answer has {'' if found else 'no '}code of the language {language}"


def _parses(answer: Answer, language: str, given: Given) -> Iterator[Said]:
    """Every block of the language must parse."""
    for passed, reason in _has_code(answer, language, given):
        if not passed:
            yield passed, reason
            return
    try:
        for text in _code_in(answer.text, language):
            PARSERS[language](text)
    except BrokenError as error:
        yield False, str(error)
    else:
        yield True, f"the answer's code parses as {language}"


def _named(verb: str, names_in: NamesIn) -> Hold:
    """The names are looked for in all Python blocks that parse, together."""

    def hold(answer: Answer, names: list[str], given: Given) -> Iterator[Said]:
        for passed, reason in _has_code(answer, "python", given):
            if not passed:
                yield passed, reason
                return
        there, broken = set[str](), ""
        for text in _code_in(answer.text, "python"):
            try:
                there.update(names_in(parse_python(text)))
            except BrokenError as error:
                broken = f"; {error}"
        for name in names:
            found = name in there
            does = f"{verb}s" if found else f"does not {verb}"
            yield found, f"the answer's code {does} {quoted(name)}{'' if found else broken}"

    return hold


def _defined(tree: ast.Module) -> Iterator[str]:
    """Functions and classes, those inside of others with a dot; names assigned at the top."""
    todo: list[tuple[str, ast.AST]] = [("", tree)]
    while todo:
        prefix, node = todo.pop()
        for child in ast.iter_child_nodes(node):
            inside = prefix
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield prefix + child.name
                inside = f"{prefix}{child.name}."
            elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store) and not prefix:
                yield child.id
            todo.append((inside, child))


def _imported(tree: ast.Module) -> Iterator[str]:
    """Modules, the packages they are in, and what is imported from them."""
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
    """As written; as the imports spell it out; and as .method, whatever it is called on."""
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
            rest = "".join(f".{part}" for part in reversed(parts))
            yield callee.id + rest
            yield spelled.get(callee.id, callee.id) + rest


def _spelled_out(tree: ast.Module) -> dict[str, str]:
    """What a name stands for that an import made."""
    names = dict[str, str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            names |= {a.asname or a.name: _joined(module, a.name) for a in node.names}
    return names


_defines, _imports, _calls = (
    _named("define", _defined),
    _named("import", _imported),
    _named("call", _called),
)


def _parsed_language(written: str) -> str:
    name = language_name(written)
    if name not in PARSERS:
        known = ", ".join(PARSERS)
        raise ValueError(f"{one_line(written, 40)!r} can't be parsed here, only {known} can")
    if name == "shell" and not shutil.which("bash"):
        raise ValueError("bash is needed to parse shell, and is not installed here")
    return name


class CodeForm(Strict):
    language: Annotated[Text, AfterValidator(language_name)]
    parses: bool = False
    defines: Names | None = None
    imports: Names | None = None
    calls: Names | None = None

    @model_validator(mode="after")
    def _fits_the_language(self) -> "CodeForm":
        if self.parses:
            _parsed_language(self.language)
        wanted = [key for key in ("defines", "imports", "calls") if getattr(self, key)]
        if wanted and self.language != "python":
            raise ValueError(f"{wanted[0]!r} is for Python only")
        return self


def _code(answer: Answer, form: CodeForm, given: Given) -> Iterator[Said]:
    yield from (_parses if form.parses else _has_code)(answer, form.language, given)
    for hold, names in ((_defines, form.defines), (_imports, form.imports), (_calls, form.calls)):
        if names:
            yield from hold(answer, names, given)


def _as_code_form(value: Any) -> Any:
    return {"language": value} if isinstance(value, str) else value


_CODE: TypeAdapter[Any] = TypeAdapter(Annotated[CodeForm, BeforeValidator(_as_code_form)])
_LANGUAGE: TypeAdapter[Any] = TypeAdapter(
    Annotated[str, Field(strict=True), AfterValidator(_parsed_language)]
)

KINDS = (
    Kind("code", _CODE, _code),
    Kind("parses", _LANGUAGE, _parses),
    Kind("defines", TEXTS, _defines),
    Kind("imports", TEXTS, _imports),
    Kind("calls", TEXTS, _calls),
)
