"""Users import from ``pytest_upskill`` alone; this is all there is."""

import ast
import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_upskill

PUBLIC = [
    *("Activity", "Agent", "AgentJob", "Answer", "AnswerFile", "Case", "CheckContext"),
    *("CheckFunction", "CommandAgent", "Grade", "InputError", "Launch"),
    *(
        "Model",
        "ModelError",
        "ModelSource",
        "ModelSpec",
        "NextStep",
        "Provider",
        "Question",
        "Record",
    ),
    *(
        "Row",
        "RunResults",
        "Standing",
        "Suite",
        "Taught",
        "ToolCall",
        "Turn",
        "UpskillError",
    ),
    *("Usage", "Verdict", "__version__", "describe", "describe_async", "evaluate"),
    *("evaluate_async", "generate_cases", "generate_cases_async", "generate_skill"),
    *("generate_skill_async", "generate_triggers", "generate_triggers_async", "refine"),
    "refine_async",
]
ROOT = Path(__file__).parents[1]


def test_the_list_of_public_names() -> None:
    assert pytest_upskill.__all__ == PUBLIC
    assert dir(pytest_upskill) == PUBLIC


def test_every_public_name_resolves() -> None:
    assert [name for name in PUBLIC if not hasattr(pytest_upskill, name)] == []


def test_type_checkers_see_every_public_name() -> None:
    tree = ast.parse((ROOT / "src/pytest_upskill/__init__.py").read_text())
    imports = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    seen = {alias.name for node in imports for alias in node.names}
    assert seen == set(PUBLIC) - {"__version__"}


class Echo(pytest_upskill.Model):
    """Also type-checked: nothing but ``ask`` is abstract."""

    async def ask(self, question: pytest_upskill.Question) -> pytest_upskill.Answer:
        return pytest_upskill.Answer(question.messages[-1][1])


def test_a_model_needs_nothing_but_ask() -> None:
    async def use(model: pytest_upskill.Model) -> str:
        question = pytest_upskill.Question("echo", "", (("user", "How?"),), 10, 1)
        answer = await model.ask(question)
        await model.close()
        return answer.text

    one, other = Echo(), Echo()
    assert asyncio.run(use(one)) == "How?"
    assert (one.address, one.most_in_flight) == ("", None)
    assert one.endpoint != other.endpoint


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        getattr(pytest_upskill, "Nothing")  # noqa: B009


def test_importing_the_package_imports_nothing_else() -> None:
    code = (
        "import sys, pytest_upskill; print(*[m for m in sys.modules if '.' not in m])"
    )
    out = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, 'src'); {code}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert not {"pydantic", "pytest", "anthropic", "openai", "asyncio"} & set(out)


def test_pytest_does_not_rewrite_the_package() -> None:
    assert "PYTEST_DONT_REWRITE" in (pytest_upskill.__doc__ or "")


def test_the_page_on_extending_names_every_public_name() -> None:
    page = (ROOT / "docs/extend.md").read_text()
    table = page[page.index("## Public names") :]
    for name in set(PUBLIC) - {"__version__"}:
        assert f"`{name.removesuffix('_async')}`" in table


def test_the_documentation_imports_from_the_package_alone() -> None:
    for page in [ROOT / "README.md", *ROOT.glob("docs/*.md")]:
        found = re.findall(r"(?:from|import) pytest_upskill\.\S+", page.read_text())
        assert not found, f"{page.name}: {found}"
