"""Checks of code in an answer."""

from pathlib import Path
from typing import Any

import pytest

from support.checking import graded, passes, reason, refused

CODE = """
import os.path
import numpy as np
from torch.nn import Linear as Lin, functional
from . import helper

LIMIT: int = 5
first, second = 1, 2

class Model(Base):
    def forward(self, x):
        y = self.layer(x)
        return np.zeros(3) + Lin(2)(y) + open("x").read().strip()

async def main():
    def inner(): ...
    await functional.relu()
    print(os.path.join("a"))
"""
ANSWER = f"So:\n```py\n{CODE}\n```\nand\n```python\ndef other(): pass\n```\n"


@pytest.mark.parametrize(
    ("name", "there", "not_there"),
    [
        (
            "defines",
            "Model Model.forward main main.inner other LIMIT first second",
            "forward inner y x self Base np",
        ),
        (
            "imports",
            "os os.path numpy torch torch.nn torch.nn.Linear .helper",
            "np Lin torch.nn.functional.relu join helper",
        ),
        (
            "calls",
            (
                "self.layer np.zeros numpy.zeros Lin torch.nn.Linear .read .strip open"
                " print functional.relu torch.nn.functional.relu os.path.join .zeros"
            ),
            "zeros layer read main helper",
        ),
    ],
)
def test_names_are_found_in_python(name: str, there: str, not_there: str) -> None:
    for one in there.split():
        assert passes(ANSWER, **{name: one}), one
        assert passes(ANSWER, code={"language": "python", name: one}), one
    for one in not_there.split():
        assert not passes(ANSWER, **{name: one}), one
    assert len(graded({name: there.split()}, ANSWER)) == len(there.split())


@pytest.mark.parametrize(
    ("written", "fence"),
    [
        ("python", "py"),
        ("py", "Python3"),
        ("bash", "sh"),
        ("shell", "bash"),
        ("yaml", "yml"),
        ("C++", "cpp"),
        ("zig", "zig"),
    ],
)
def test_language_aliases(written: str, fence: str) -> None:
    answer = f"```{fence}\nx\n```"
    assert passes(answer, code=written)
    assert not passes(answer, code="fortran")
    assert not passes("x", code="zig")


@pytest.mark.parametrize(
    "answer", ["x = 1\nprint(x)", "```python\nx = 1\nprint(x)\n```"]
)
def test_answer_without_fences_may_be_python(answer: str) -> None:
    assert passes(answer, code="python", parses="python", calls="print")


@pytest.mark.parametrize(
    "answer",
    ["Use print.", "```\nprint()\n```", "```js\nprint()\n```", "\ud800.", "\x00."],
)
def test_missing_code_has_no_names(answer: str) -> None:
    expected: dict[str, Any] = {"code": "python", "parses": "python", "calls": "print"}
    for name, argument in expected.items():
        message = reason(answer, **{name: argument})
        assert message == "the answer has no python code"


@pytest.mark.parametrize(
    ("language", "right", "wrong", "message"),
    [
        (
            "python",
            "x = '\\d'",
            "x = (",
            "invalid Python: '(' was never closed (line 1)",
        ),
        (
            "json",
            "[1]",
            "[1",
            "invalid JSON: expecting ',' delimiter (line 1, column 3)",
        ),
        ("toml", "a = 1", "a", "invalid TOML: expected '='"),
        ("yaml", "a: 1", "a: [", "invalid YAML: did not find expected"),
        ("shell", "if x; then y; fi", "if x; then", "invalid shell: bash: line"),
    ],
)
def test_every_block_of_a_language_must_parse(
    language: str, right: str, wrong: str, message: str
) -> None:
    good, bad = f"```{language}\n{right}\n```\n", f"```{language}\n{wrong}\n```\n"
    assert passes(good + "```\n(((\n```\n", parses=language)
    assert not passes(good + bad, parses=language)
    assert reason(good + bad, code={"language": language, "parses": True}).startswith(
        message
    )


def test_names_are_looked_up_in_the_blocks_that_parse() -> None:
    answer = "```python\nimport os\n```\n```python\nimport (\n```"
    assert passes(answer, imports="os")
    assert 'does not import "re"; invalid Python' in reason(answer, imports="re")


def test_shell_is_parsed_but_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "run"
    env = tmp_path / "env.sh"
    env.write_text(f"touch {mark}")
    monkeypatch.setenv("BASH_ENV", str(env))
    script = f"touch {mark}\nx=$(touch {mark})\nset +n\ntouch {mark}\n"
    assert passes(f"```bash\n{script}```", parses="shell")
    assert not mark.exists()


def test_missing_bash_is_reported_at_collection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    message = "parsing shell needs bash, which is not installed"
    assert message in refused({"parses": "bash"})
    assert message in refused({"code": {"language": "sh", "parses": True}})


@pytest.mark.parametrize(
    "text",
    [
        "-" * 100_000 + "1",
        "(" * 100_000,
        "1" + "+1" * 90_000,
        "a" + ".b" * 90_000,
        "a" + "()" * 90_000,
        "f'" + "{" * 1_000,
        "9" * 100_000,
    ],
)
def test_hostile_python_fails(text: str) -> None:
    answer = f"```python\n{text}\n```"
    assert not passes(answer, parses="python")
    assert not passes(answer, calls="print")


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"parses": "ruby"}, "parses: can't parse 'ruby', only python, json, toml"),
        ({"parses": True}, "parses: must be a string"),
        ({"code": {"language": "ruby", "parses": True}}, "code: can't parse 'ruby'"),
        (
            {"code": {"language": "js", "calls": "x"}},
            "code: 'calls' is for Python only",
        ),
        ({"code": {"parses": True}}, "code.language: missing"),
        (
            {"code": {"language": "py", "import": "x"}},
            "import: unknown key (did you mean",
        ),
        ({"code": {"language": ""}}, "code.language: must not be empty"),
        ({"code": 1}, "code: must be an object"),
        ({"defines": [""]}, "defines[0]: must not be empty"),
    ],
)
def test_invalid_argument_is_reported_with_its_path(
    expected: dict[str, Any], message: str
) -> None:
    assert message in refused(expected)


@pytest.mark.parametrize(
    ("check", "name"),
    [
        ("imports", "a b"),
        ("imports", "import os"),
        ("imports", "os."),
        ("imports", "class"),
        ("imports", "scikit-learn"),
        ("defines", "f()"),
        ("defines", ".f"),
        ("calls", "print()"),
        ("calls", "a b"),
        ("calls", "."),
    ],
)
def test_names_that_python_can_not_have_are_refused(check: str, name: str) -> None:
    message = f"{name!r} can't be a name in Python, so no answer would pass"
    assert message in refused({check: ["os", name]})
    assert message in refused({"code": {"language": "python", check: name}})


def test_names_with_dots_are_found() -> None:
    code = (
        "from . import a\nfrom .b import c\nimport os.path as"
        " p\np.join()\nc()\nx.y.append()"
    )
    for name in (".", ".a", ".b", ".b.c", "os", "os.path"):
        assert passes(f"```python\n{code}\n```", imports=name)
    for name in (".append", ".b.c", "os.path.join", "c", "x.y.append"):
        assert passes(f"```python\n{code}\n```", calls=name)
    assert passes("```python\nclass Q:\n  def é(self): pass\n```", defines=["Q.é"])
