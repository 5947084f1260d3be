"""Count habits that make lines dense and that no linter counts; no count may rise.

    count_style.py          fails if a count rose, or if one that fell is not written
    count_style.py --lower  writes the counts, unless one rose
    count_style.py --write  writes the counts as they are

The counts of src and of tests are the sums of those of their files. They are kept by
file, so that a message can show where to look, and branches seldom conflict.
"""

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "tests")
# Scripts of skills, as people write them
EXCLUDED = Path("tests/corpus")
COUNTS = Path("ci/style_counts.json")

MAX_POSITIONAL = 4
WALL_LINES = 20
# A comment that goes on with the name before it: `limit = 5  # of a run`
FRAGMENT = re.compile(
    r"\S  # (of|that|in|for|by|with|beside|on|to|from|until|at|per)\b"
)

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
# By habit, the lines of a file where it shows
Places = Mapping[str, list[int]]
# By file, then by habit
Counts = dict[str, dict[str, int]]

ADVICE = {
    "packing": "write one assignment a line in place of `a, b = x, y`",
    "nested comprehension": "write a loop",
    "starred literal": "append to a list under an `if`",
    "empty ternary": "append to a list under an `if`",
    "chained ternary": "write an `if` that returns early",
    "positional call": "name arguments from the third on",
    "bare tuple": "return a NamedTuple, whose values have names",
    "wall": f"put a blank line between the steps of {WALL_LINES} lines",
    "fragment comment": "say it in the name, or in a sentence above the line",
}


def main(args: list[str], root: Path = ROOT) -> int:
    file = root / COUNTS
    places = find_places(root)
    now = count(places)
    if "--write" in args:
        file.write_text(dump(now), encoding="utf-8")
        return 0

    before = json.loads(file.read_text(encoding="utf-8"))
    if rises := describe_rises(before, places):
        print(*rises, sep="\n")
        return 1
    if now == before:
        return 0
    if "--lower" in args:
        file.write_text(dump(now), encoding="utf-8")
        return 0
    print(f"{COUNTS}: counts fell or moved. Run `make format`, which writes them.")
    return 1


def find_places(root: Path) -> dict[str, Places]:
    """The places of each habit, by file."""
    places = {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            name = path.relative_to(root)
            if not name.is_relative_to(EXCLUDED):
                text = path.read_text(encoding="utf-8")
                places[name.as_posix()] = places_in(text)
    return places


def count(places: Mapping[str, Places]) -> Counts:
    """The numbers of places; files without any are left out."""
    counts: Counts = {}
    for name, by_habit in places.items():
        if by_habit:
            counts[name] = {habit: len(by_habit[habit]) for habit in sorted(by_habit)}
    return counts


def dump(counts: Counts) -> str:
    """JSON with a file a line, so that a change of one file changes one line."""
    lines = [
        f"{json.dumps(name)}: {json.dumps(numbers)}" for name, numbers in counts.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


# What is compared.


def describe_rises(before: Counts, places: Mapping[str, Places]) -> list[str]:
    """Lines that say which counts rose, and every place in the files where they did."""
    now = count(places)
    old = sum_by_folder(before)
    lines = []
    for (folder, habit), number in sum_by_folder(now).items():
        allowed = old[folder, habit]
        if number <= allowed:
            continue

        advice = ADVICE[habit]
        lines.append(f"{folder}: {habit}: {number}, and {allowed} before: {advice}.")
        for name, numbers in now.items():
            new = numbers.get(habit, 0) - before.get(name, {}).get(habit, 0)
            if new > 0 and name.startswith(f"{folder}/"):
                found = places[name][habit]
                if new < len(found):
                    lines.append(f"  {new} of these {len(found)} came with the change:")
                lines += [f"  {name}:{line}" for line in found]
    return lines


def sum_by_folder(counts: Counts) -> Counter[tuple[str, str]]:
    sums: Counter[tuple[str, str]] = Counter()
    for name, numbers in counts.items():
        folder = name.partition("/")[0]
        for habit, number in numbers.items():
            sums[folder, habit] += number
    return sums


# What is counted.


def places_in(text: str) -> Places:
    """The lines of a module where a habit shows, by habit."""
    places: dict[str, list[int]] = {}
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.expr | ast.stmt):
            for habit in habits_of(node, lines):
                places.setdefault(habit, []).append(node.lineno)
    for number, line in enumerate(lines, start=1):
        if FRAGMENT.search(line):
            places.setdefault("fragment comment", []).append(number)
    return {habit: sorted(numbers) for habit, numbers in places.items()}


def habits_of(node: ast.expr | ast.stmt, lines: list[str]) -> Iterator[str]:
    match node:
        case ast.Assign(targets=[ast.Tuple(), *_], value=ast.Tuple()):
            yield "packing"
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            if is_nested(node):
                yield "nested comprehension"
        case ast.Starred(value=value):
            if is_literal(value) or is_comprehension(value) or is_ternary(value):
                yield "starred literal"
        case ast.IfExp(body=body, orelse=orelse):
            if is_empty(body) or is_empty(orelse):
                yield "empty ternary"
            if is_ternary(body) or is_ternary(orelse):
                yield "chained ternary"
        case ast.Call(args=args) if len(args) > MAX_POSITIONAL:
            yield "positional call"
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from habits_of_function(node, lines)


def habits_of_function(
    function: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]
) -> Iterator[str]:
    if is_bare_tuple(function.returns):
        yield "bare tuple"
    if is_wall(function, lines):
        yield "wall"


def is_comprehension(node: ast.AST) -> bool:
    return isinstance(node, Comprehension)


def is_nested(comprehension: Comprehension) -> bool:
    if len(comprehension.generators) > 1:
        return True
    return any(map(is_comprehension, list(ast.walk(comprehension))[1:]))


def is_literal(node: ast.expr) -> bool:
    return isinstance(node, ast.List | ast.Tuple | ast.Set)


def is_empty(node: ast.expr) -> bool:
    return isinstance(node, ast.List | ast.Tuple) and not node.elts


def is_ternary(node: ast.expr) -> bool:
    return isinstance(node, ast.IfExp)


def is_bare_tuple(annotation: ast.expr | None) -> bool:
    """Whether an annotation is a tuple of several values, or that or something else."""
    match annotation:
        case ast.BinOp(left=left, right=right):
            return is_bare_tuple(left) or is_bare_tuple(right)
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=elts)):
            return not (isinstance(elts[-1], ast.Constant) and elts[-1].value is ...)
    return False


def is_wall(function: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> bool:
    """Whether so many lines follow each other without a blank one; a docstring is no
    line, and no break.
    """
    first = function.body[0]
    docstring = range(0)
    if ast.get_docstring(function, clean=False) is not None:
        docstring = range(first.lineno, (first.end_lineno or first.lineno) + 1)

    unbroken = 0
    for number in range(function.lineno, (function.end_lineno or 0) + 1):
        if number in docstring:
            continue
        unbroken = unbroken + 1 if lines[number - 1].strip() else 0
        if unbroken == WALL_LINES:
            return True
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
