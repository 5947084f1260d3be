"""Every command and every example in the documentation works."""

import json
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pytest_upskill.cli.judge_labels import load_labels
from pytest_upskill.models.names import resolve
from pytest_upskill.models.port import ModelName
from pytest_upskill.models.prices import parse_prices
from pytest_upskill.models.scripted import load_script
from pytest_upskill.results.history import default_folder, keep
from pytest_upskill.results.to_json import results_bytes
from pytest_upskill.skills.case_loading import load_cases
from pytest_upskill.skills.triggers import load_triggers
from pytest_upskill.trials.trial import Arm
from support import wick_models
from support.clouds import login
from support.judges import judge_says
from support.kit import commit_all
from support.loopback import Asked, LoopbackServer, Reply
from support.made import made_run
from support.made_studies import write_neighbours
from support.sandboxes import require_bwrap
from support.shell import Shell

ROOT = Path(__file__).parents[2]
AGENTS = sorted(ROOT.glob("docs/agents/*.md"))  # tests/real_agents runs agents
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
TAUGHT = "skills/wick-deploys"


def blocks(language: str) -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for text in re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.S | re.M):
            yield page.name, text


COMMANDS = [
    pytest.param(
        line.removeprefix("$ "),
        id=f"{page}: {line.removeprefix('$ ')}",
        marks=[pytest.mark.xdist_group("embedded")] if "--model local" in line else [],
    )
    for page, text in blocks("console")
    for line in text.splitlines()
]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of the project."""
    copy = tmp_path_factory.mktemp("clone")
    for name in ("skills", "docs", "examples"):
        shutil.copytree(ROOT / name, copy / name)
    shutil.copytree(copy / "skills/wick", copy / TAUGHT)  # as docs/generate.md makes one
    text = (copy / TAUGHT / "SKILL.md").read_text()
    (copy / TAUGHT / "SKILL.md").write_text(text.replace("name: wick\n", "name: wick-deploys\n"))
    (copy / "tests").mkdir()
    (example,) = [text for page, text in blocks("python") if "test_deploys" in text]
    (copy / "tests/test_wick.py").write_text(example)
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, copy / name)
    if shutil.which("git"):
        commit_all(copy)
    return copy


def with_skill(_case: int, _model: str, arm: Arm, _run: int) -> bool:
    return arm == "skill"


def _expanded(folder: Path, word: str) -> list[str]:
    """Expand a pattern like a shell."""
    found = (
        sorted(str(path.relative_to(folder)) for path in folder.glob(word)) if "*" in word else []
    )
    return found or [word]


@pytest.mark.parametrize("command", COMMANDS)
def test_command_works(command: str, project: Path, tmp_path: Path, shell: Shell) -> None:
    words = shlex.split(command)
    if "--skill-against" in words and not shutil.which("git"):
        pytest.skip("needs git")
    if "--skill-agent" in words or "--eval-agent" in words or "doctor" in words:
        require_bwrap()
    match words:
        case ["make", *targets]:
            # These targets run this very test, so only check that they exist.
            shell.output(["make", "--dry-run", *targets], project)
        case ["pip", "install", requirement]:
            check_requirement(requirement)
        case ["dask", "scheduler" | "worker" as what, *args]:
            known = shell.run([sys.executable, "-m", "dask", what, "--help"], project).out
            assert all(word in known for word in args if word.startswith("--"))
        case ["pytest", *args] if "--skill-cluster" in args:
            check_cluster(shell, project, args)
        case ["export", setting]:
            assert setting.partition("=")[0] == "ANTHROPIC_API_KEY"
        case [".venv/bin/nox", "--list"] | [".venv/bin/nox", "--session", "oldest"]:
            shown = shell.run([sys.executable, "-m", "nox", "--list"], ROOT).out
            assert re.search(r"^\* oldest ", shown, re.M), shown
        case [".venv/bin/pytest", *args]:
            assert all((ROOT / arg).exists() for arg in args if arg.startswith("tests/"))
        case [".venv/bin/pytest-upskill", "schema", ">", file]:
            assert (ROOT / file).is_file()
        case ["pytest-upskill", "schema", ">", _]:
            assert '"$defs"' in shell.output(["pytest-upskill", "schema"], project)
        case ["pytest-upskill", "judge", *args]:
            with LoopbackServer(answer) as server:
                address = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": server.url}
                judge = ["pytest-upskill", "judge", *args]
                assert "Cohen's kappa" in shell.output(judge, project, address)
        case ["pytest-upskill", "ablate", *_]:
            shown = run_with_servers(shell, project, [*words, "--yes", "--runs", "1"])
            assert "Wick is the deploy tool" in shown
        case ["pytest-upskill", "generate" | "cases" | "refine" | "distill", *_]:
            check_teaching(shell, project, words)
        case ["pytest-upskill", "matrix", *_]:
            require_bwrap()
            write_neighbours(tmp_path, 1)
            shown = run_with_servers(shell, tmp_path, [*words, "--yes"])
            assert "shown to hurt or to help" in " ".join(shown.split())
        case ["pytest-upskill", "triggers" | "describe", *_]:
            check_triggers(shell, project, words)
        case ["pytest-upskill", "lint", *args]:
            shown = shell.output(["pytest-upskill", "lint", *args], project)
            json_wanted = "json" in args or "--json" in args
            assert '"few-cases"' in shown if json_wanted else "0 errors" in shown
        case ["pytest-upskill", "eval" | "benchmark", *_]:
            shown = run_with_servers(shell, project, words)
            assert shown.startswith("pytest --skill=skills/wick --model haiku --model sonnet")
            assert re.search(r"\d+ (passed|x?failed)", shown), shown
        case ["pytest-upskill", "init", *_]:
            check_init(shell, tmp_path, words)
        case ["pytest-upskill", "list", *args]:
            # Not in the project, where other commands leave results.
            shutil.copytree(ROOT / "skills", tmp_path / "skills")
            shown = shell.output(["pytest-upskill", "list", *args], tmp_path)
            page = (ROOT / "docs/commands.md").read_text()
            assert f"```text\n{shown}```" in page
        case ["pytest-upskill", "completion", name, ">", _]:
            assert "pytest-upskill" in shell.output(["pytest-upskill", "completion", name], project)
        case ["pytest-upskill", "report", *args]:
            for shard, model in enumerate(("haiku", "sonnet"), start=1):
                shutil.rmtree(project / f"shard-{shard}", ignore_errors=True)
                (project / f"shard-{shard}").mkdir()
                results = made_run(skills=("wick",), models=(model,), cases=12, passes=with_skill)
                (project / f"shard-{shard}/results.json").write_bytes(results_bytes(results))
            files = [name for arg in args for name in _expanded(project, arg)]
            shown = shell.output(["pytest-upskill", "report", *files], project)
            assert "haiku: helps" in shown
            assert "sonnet: helps" in shown
        case ["pytest-upskill", "runs", *args]:
            for minutes in range(3):
                started = datetime.now(UTC) + timedelta(minutes=minutes)  # after other runs
                keep(made_run(skills=("wick",), started=started), default_folder(project), 10**9)
            shown = shell.output(["pytest-upskill", "runs", *args], project)
            assert any(told in shown for told in ("wick", "lines")), shown
        case ["pytest-upskill", "install", *args]:
            home = {"HOME": str(project / "home"), "USERPROFILE": str(project / "home")}
            install = ["pytest-upskill", "install", *args]
            wanted = f".claude/skills/{Path(args[0]).name}: "
            assert wanted in shell.output(install, project, home)
        case ["pytest-upskill", "doctor"]:
            assert re.search("loop +1( +yes){8}", shell.output(words, project))
        case ["pytest-upskill", *args]:
            shown = shell.output(["pytest-upskill", *args], project)
            assert ("haiku" if args[0] == "models" else "answer") in shown
        case ["pytest"] | ["pytest", "--collect-only"]:
            check_init(shell, tmp_path, ["pytest-upskill", "init"])
            check_pytest(shell, tmp_path, words[1:])
        case ["pytest", *args]:
            check_pytest(shell, project, args)
        case _:
            pytest.fail(f"this test does not know how to run: {command}")


def test_the_scripted_example_ends_as_its_page_says(project: Path, shell: Shell) -> None:
    command = ["pytest", "--skill", "skills/wick", "--model", "scripted:docs/example-answers.json"]
    page = (ROOT / "docs/models.md").read_text()
    assert f"$ {shlex.join(command)}\n" in page
    shown = shell.output([*command, "-p", "no:cacheprovider"], project)
    assert " 10 passed in " in shown
    assert "helps: +100 points" in shown
    assert "helps: +100 points" in page
    rules = json.loads((ROOT / "docs/example-answers.json").read_text())
    fewer = [rule for rule in rules if rule.get("question") != "owns"]
    (project / "fewer.json").write_text(json.dumps(fewer))
    command[-1] = "scripted:fewer.json"
    shown = shell.output([*command, "-p", "no:cacheprovider"], project, statuses=(1,))
    assert " 1 failed, 9 passed in " in shown


def test_the_demo_of_an_agent_shows_the_way(project: Path, shell: Shell) -> None:
    require_bwrap()
    makefile = (ROOT / "Makefile").read_text()
    (command,) = re.findall(r"pytest (--skill examples/.*?)\n\t@echo", makefile, re.S)
    words = ["pytest", *shlex.split(command.replace("\\\n", "")), "-p", "no:cacheprovider"]
    shown = shell.output(words, project)
    assert " 3 passed in " in shown
    assert re.search(r" 3/3 ", shown), shown  # opened
    assert "measures nothing" in makefile


def check_requirement(requirement: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    name, _, extra = requirement.rstrip("]").partition("[")
    assert name == project["name"]
    assert not extra or extra in project["optional-dependencies"]


def check_pytest(shell: Shell, project: Path, args: list[str]) -> None:
    """Run pytest against a local server, with short answers of the embedded model."""
    if "--skill-replay" in args:
        recorded = ["--skill-record" if arg == "--skill-replay" else arg for arg in args]
        check_pytest(shell, project, recorded)
    if "--skill-agent claude" in " ".join(args):  # tests/real_agents has it carried out
        args = [*args, "--collect-only"]
    if "local" in args:
        args = [*args[: args.index("--skill-max-output")], "--skill-max-output", "8", "-k", "owner"]
    shown = run_with_servers(shell, project, ["pytest", *args, "-p", "no:cacheprovider"])
    if "--collect-only" in args:
        assert "a run would make" in shown
    else:
        counts = re.findall(r"(?m)^.*\d+ (?:passed|x?failed)\b.* in [\d.]+s\b.*$", shown)
        assert counts, shown
        assert " error" not in counts[-1], shown


def check_cluster(shell: Shell, project: Path, args: list[str]) -> None:
    """One worker on this machine stands for all."""
    address = args.index("--skill-cluster") + 1
    args = [*args[:address], "local:1", *args[address + 1 :], "-k", "one-good"]
    command = [sys.executable, "-m", "pytest", *args, "-p", "no:cacheprovider"]
    shown = run_with_servers(shell, project, command)
    assert "upskill: cluster local:1: 1 worker, " in shown
    assert " 1 failed" in shown  # the model knows nothing, and says so


def test_the_costs_of_many_trials_are_those_that_were_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from trial_costs import table

    assert table() in (ROOT / "docs/scale.md").read_text()


def run_with_servers(shell: Shell, project: Path, words: list[str]) -> str:
    with LoopbackServer(answer) as server:
        words = [f"{server.url}/v1" if w.startswith("http://localhost") else w for w in words]
        keys = {"ANTHROPIC_API_KEY": "key", "OPENAI_API_KEY": "key"}
        addresses = {
            "ANTHROPIC_BASE_URL": server.url,
            "OPENAI_BASE_URL": f"{server.url}/v1",
            "OLLAMA_HOST": server.url,
        }
        for word in words:
            if word.startswith(("bedrock:", "vertex:", "azure:")):
                keys |= login(word, server.url, project)
        # These answers are not good, so tests may fail.
        return shell.output(words, project, {**keys, **addresses}, statuses=(0, 1))


def check_init(shell: Shell, folder: Path, words: list[str]) -> None:
    """In a project with one skill that has no cases yet; the page shows what is printed."""
    (folder / "skills/wick").mkdir(parents=True)
    shutil.copy(ROOT / "skills/wick/SKILL.md", folder / "skills/wick")
    shown = shell.output(words, folder, {"ANTHROPIC_API_KEY": "key"})
    assert "skill_meta.schema.json" in shown
    if words[2:] == []:
        assert f"```text\n{shown}```" in (ROOT / "docs/commands.md").read_text()


def check_teaching(shell: Shell, project: Path, words: list[str]) -> None:
    """Run it in a copy, against a scripted teacher and students."""
    copy = project / f"taught-{words[1]}-{len(words)}"
    for name in ("skills", "examples"):
        shutil.copytree(project / name, copy / name, dirs_exist_ok=True)
    shutil.rmtree(copy / TAUGHT)
    with LoopbackServer(wick_models.answer) as server:
        args = [f"{server.url}/v1" if arg.startswith("http://local") else arg for arg in words[1:]]
        address = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": server.url, "COLUMNS": "80"}
        shown = shell.output(["pytest-upskill", *args], copy, address)
    if "--from" in words or words[1] == "distill":
        page = (
            ROOT / "docs" / ("parts.md" if words[1] == "distill" else "generate.md")
        ).read_text()
        # Prices change; the page need not.
        told, written = (re.sub(r"\$[\d.]+|(?<=Took )\d+", "…", text) for text in (shown, page))
        assert f"```text\n{told}```" in written, told
    else:
        assert "./skills/" in shown or "unchanged" in shown


def check_triggers(shell: Shell, project: Path, words: list[str]) -> None:
    """Run it in a copy, against a scripted teacher and students, and compare it with the page."""
    copy = project / f"taught-{words[1]}"
    shutil.copytree(project / "skills", copy / "skills", dirs_exist_ok=True)
    if words[1] == "describe":
        (copy / "skills/wick/evals").mkdir()
        written = json.dumps(wick_models.queries())
        (copy / "skills/wick/evals/triggers.json").write_text(written)
    with LoopbackServer(wick_models.answer) as server:
        address = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": server.url, "COLUMNS": "80"}
        shown = shell.output(words, copy, address)
    page = (ROOT / "docs/triggers.md").read_text()
    told, written = (re.sub(r"\$[\d.]+", "$…", text) for text in (shown, page))
    assert f"```text\n{told}```" in written, told


def test_python_example_of_generate_runs(tmp_path: Path, shell: Shell) -> None:
    (example,) = [text for _, text in blocks("python") if "generate_skill" in text]
    (tmp_path / "lesson.py").write_text(example)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    with LoopbackServer(wick_models.answer) as server:
        address = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": server.url}
        shown = shell.output([sys.executable, "lesson.py"], tmp_path, address)
    assert shown.startswith("2 True skills/wick-python\nhaiku helps +90 points")


def answer(asked: Asked) -> Reply:
    criteria = re.findall(r"^(\d+)\. ", asked.question.rpartition("The criteria:\n")[2], re.M)
    if criteria and '"mark"' in asked.question:
        said = {"quote": "", "reason": "so it is", "verdict": "fail"}
        rulings = [{"criterion": int(number), **said} for number in criteria]
        return Reply(judge_says(asked.question, rulings))
    return Reply(f"About: {asked.question}")


def test_json_examples_load(tmp_path: Path) -> None:
    seen = 0
    (tmp_path / "assets").mkdir()
    (tmp_path / "fixtures/march").mkdir(parents=True)
    (tmp_path / "assets/orders.csv").write_text("1042;late\n")
    for page, text in blocks("json"):
        file = tmp_path / "example.json"
        file.write_text(text)
        if page == "models.md":
            load_script(resolve(ModelName(f"scripted:{file}"), {}))
        elif '"passed"' in text:
            assert load_labels(file).examples
        elif '"should_trigger"' in text:
            set_file = tmp_path / "evals/triggers.json"
            set_file.parent.mkdir(exist_ok=True)
            set_file.write_text(text)
            assert len(load_triggers(tmp_path, set_file).triggers) == 2
        else:
            assert load_cases(file).whole()
        seen += 1
    assert seen >= 4


def test_lint_page_lists_every_code() -> None:
    package = ROOT / "src/pytest_upskill"
    files = [
        *package.glob("lint/*.py"),
        *(package / f"skills/{n}.py" for n in ("skill", "frontmatter")),
    ]
    source = "".join(file.read_text() for file in files)
    given = set(
        re.findall(
            r'"((?:skill|cases|reference|check|no|any|near|few|expected|baseline|tool|trigger)-[a-z-]+|leak|example)"',
            source,
        )
    )
    page = (ROOT / "docs/lint.md").read_text()
    assert given == set(re.findall(r"^\| `(\w[a-z-]+)` \|", page, re.M))


def test_example_prices_parse() -> None:
    written = [tomllib.loads(text)["tool"]["pytest"]["ini_options"] for _, text in blocks("toml")]
    assert [len(parse_prices(keys["skill_prices"])) for keys in written if "skill_prices" in keys]


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M), re.M
    )
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("file", [*PAGES, *AGENTS], ids=lambda file: str(file.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(file: Path) -> None:
    for name, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", file.read_text()):
        target = file.parent / name if name else file
        assert target.is_file(), name
        assert not anchor or anchor in anchors(target), f"{name}#{anchor}"


@pytest.mark.parametrize("file", [*PAGES, *AGENTS], ids=lambda file: str(file.relative_to(ROOT)))
def test_a_page_has_one_title_and_says_first_what_it_is_for(file: Path) -> None:
    text = re.sub(r"^```.*?^```", "", file.read_text(), flags=re.S | re.M)
    assert len(re.findall("^# ", text, re.M)) == 1
    title, first = file.read_text().split("\n\n")[:2]
    assert title.startswith("# ")
    assert re.match(r"[A-Za-z`\[][^|]*[.:?]", first), (
        "begin with a sentence, not with a table or code"
    )


@pytest.mark.parametrize("name", ["wick", "conventional-commits", "kernel-builder-cuda-kernels"])
def test_bundled_skills_ask_fair_questions(name: str) -> None:
    cases = load_cases(ROOT / "skills" / name / "skill_meta.json").whole()
    assert len(cases) >= 8
    for case in cases:
        asked = json.dumps([case.input, case.files], ensure_ascii=False).casefold()
        leaked = [text for text in case.expected["contains"] if text.casefold() in asked]
        assert not leaked, f"{case.id}: the question contains {leaked}"
