"""How many files it takes to extend the program: one of each is added, and used."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.kit import write_script, write_skill
from support.pages import page_words

pytestmark = pytest.mark.nightly  # each test starts several processes
SOURCE = Path(__file__).parents[1] / "src/pytest_upskill"


class Project:
    """A folder to work in, with a copy of the program in it that may be changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.package = folder / "src/pytest_upskill"
        self.touched: set[str] = set()
        write_skill(folder / "skills/gate")
        self.model = write_script(folder / "answers.json")

    def add(self, name: str, text: str) -> None:
        """Write a new file, or more at the end of one."""
        with (self.folder / name).open("a", encoding="utf-8") as file:
            file.write(text)
        self.touched.add(name)

    def test_skill(self, *args: str) -> str:
        return self._run(
            "import pytest; sys.exit(pytest.main(sys.argv[1:]))",
            "--skill",
            "skills",
            *args,
        )

    def command(self, *args: str) -> str:
        return self._run("from pytest_upskill.cli import main; sys.exit(main())", *args)

    def _run(self, code: str, *args: str) -> str:
        env = {**os.environ, "PYTHONPATH": "src", "COLUMNS": "160"}
        command = [sys.executable, "-c", f"import sys; {code}", *args]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def changed(project: Project) -> Project:
    shutil.copytree(
        SOURCE, project.package, ignore=shutil.ignore_patterns("__pycache__")
    )
    return project


def test_a_check_takes_one_file(project: Project) -> None:
    project.add(
        "conftest.py", "def pytest_upskill_checks():\n    return {'polite': polite}\n"
    )
    project.add(
        "conftest.py", "def polite(context): return 'please' not in context.answer.text"
    )
    case = {"id": "a", "input": "How?", "expected": {"polite": True}}
    write_skill(project.folder / "skills/gate", [case])
    project.test_skill("--model", project.model, "--skill-json", "r.json")
    records = json.loads((project.folder / "r.json").read_text())["records"]
    assert [grade["check"] for record in records for grade in record["checks"]] == [
        "polite"
    ] * 2
    assert project.touched == {"conftest.py"}


def test_a_provider_of_models_takes_one_file(project: Project) -> None:
    project.add(
        "conftest.py",
        "from pytest_upskill import Answer, Model\n\n"
        "class Sage(Model):\n"
        "    async def ask(self, question): return Answer('gate up')\n\n"
        "def pytest_upskill_models(): return {'sage': lambda name: Sage()}\n",
    )
    assert "1 passed" in project.test_skill("--model", "sage:old")
    assert project.touched == {"conftest.py"}


def test_a_column_of_all_tables_takes_one_file(changed: Project) -> None:
    changed.add(
        "src/pytest_upskill/reports/numbers.py",
        "NUMBERS.append(Number('pace', 'pace', ('skill_tokens',)))\n",
    )
    files = ("--skill-markdown", "r.md", "--skill-html", "r.html")
    shown = changed.test_skill("--model", changed.model, *files)
    for table in (shown, changed.command("runs")):
        (head,) = [
            line for line in table.splitlines() if "without" in line and "lift" in line
        ]
        assert "pace" in head
    assert "| pace |" in (changed.folder / "r.md").read_text()
    assert '["pace", "pace"]' in page_words(
        (changed.folder / "r.html").read_text("utf-8")
    )
    assert changed.touched == {"src/pytest_upskill/reports/numbers.py"}


def test_a_command_takes_a_module_and_an_entry(changed: Project) -> None:
    changed.add(
        "src/pytest_upskill/cli/commands/hello.py",
        "def add_hello_arguments(parser): parser.add_argument('name')\n\n"
        "def run_hello(args): return f'Hello, {args.name}.', 0\n",
    )
    table = changed.package / "cli/command_table.py"
    hello = 'Command("hello", "look", "greet", "pytest-upskill hello you", "0")'
    entry = f"_CORE: Final = (\n    {hello},"
    table.write_text(table.read_text().replace("_CORE: Final = (", entry))
    changed.touched.add("src/pytest_upskill/cli/command_table.py")
    assert changed.command("hello", "you") == "Hello, you.\n"
    assert "greet" in changed.command("--help")
    assert len(changed.touched) == 2


def test_a_teaching_option_takes_one_entry(changed: Project) -> None:
    table = changed.package / "teach/teach_settings.py"
    place = 'at(_ALL, "--tone"), default="calm"'
    entry = f'    tone: str = setting(TEXT, "output", "how to write", {place})\n'
    last = "    anyway: bool = setting("
    table.write_text(table.read_text().replace(last, f"{entry}{last}"))
    for command in ("generate", "refine", "cases"):
        shown = " ".join(changed.command(command, "--help").split())
        assert "--tone TEXT how to write (default: calm)" in shown
