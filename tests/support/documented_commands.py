"""How the commands of the documentation are run in a test, and what must come of
each.
"""

import json
import re
import shutil
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pytest_upskill.results.history import default_folder, keep
from pytest_upskill.results.run_file import results_bytes

from . import wick_models
from .clouds import login
from .documentation import ROOT, shows
from .judges import judge_says
from .loopback import Asked, LoopbackServer, Reply
from .made import made_run
from .made_studies import write_neighbours
from .shell import Shell

TAUGHT = "skills/wick-deploys"


@dataclass(frozen=True)
class Place:
    """Where a command is run."""

    shell: Shell
    project: Path
    empty: Path

    def output(self, words: list[str], **env: str) -> str:
        return self.shell.output(words, self.project, env)


Runner = Callable[[Place, list[str]], None]


def runner_of(words: list[str]) -> Runner | None:
    """The function that runs a command and looks at what comes of it."""
    match words:
        case [".venv/bin/nox", "--list"] | [".venv/bin/nox", "--session", "oldest"]:
            return run_nox
        case [".venv/bin/pytest", *_]:
            return run_tests_of_this_project
        case [".venv/bin/pytest-upskill", "schema", ">", _]:
            return write_own_schema
        case ["pytest", *args] if "--skill-cluster" in args:
            return run_cluster
        case ["git", "clone", _]:
            return clone
        case ["pip", "install", _]:
            return install_package
        case ["pytest-upskill", command, *_]:
            return RUNNERS_OF_COMMANDS.get(command)
        case [program, *_]:
            return RUNNERS_OF_PROGRAMS.get(program)
    return None


def run_make(place: Place, words: list[str]) -> None:
    """These targets run this very test, so only check that they exist."""
    place.output(["make", "--dry-run", *words[1:]])


def install_package(_: Place, words: list[str]) -> None:
    """These would install what is tested here, so only look at what they name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirement, _sep, address = words[2].rpartition(" @ ")
    assert address == f"git+{project['urls']['Source']}"
    extras = {f"{project['name']}[{name}]" for name in project["optional-dependencies"]}
    assert not requirement or requirement in extras


def clone(place: Place, words: list[str]) -> None:
    """Clone the project from here in place of its address."""
    source = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{place.project}.insteadOf",
        "GIT_CONFIG_VALUE_0": words[-1],
    }
    place.shell.output(words, place.empty, source)
    folder = place.empty / Path(words[-1]).name
    assert (folder / "Makefile").is_file()


def change_folder(_: Place, words: list[str]) -> None:
    """The folder is the one that the clone makes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert words[1:] == [Path(project["urls"]["Source"]).name]


def run_dask(place: Place, words: list[str]) -> None:
    assert words[1] in ("scheduler", "worker")
    known = place.output([sys.executable, "-m", "dask", words[1], "--help"])
    assert all(word in known for word in words[2:] if word.startswith("--"))


def set_variable(_: Place, words: list[str]) -> None:
    assert words[1].partition("=")[0] == "ANTHROPIC_API_KEY"


def run_nox(place: Place, _: list[str]) -> None:
    shown = place.shell.run([sys.executable, "-m", "nox", "--list"], ROOT).out
    assert re.search(r"^\* oldest ", shown, re.M), shown


def run_tests_of_this_project(_: Place, words: list[str]) -> None:
    assert all((ROOT / word).exists() for word in words if word.startswith("tests/"))


def write_own_schema(_: Place, words: list[str]) -> None:
    assert (ROOT / words[-1]).is_file()


def write_schema(place: Place, words: list[str]) -> None:
    assert '"$defs"' in place.output(words[:2])


def run_judge(place: Place, words: list[str]) -> None:
    with LoopbackServer(answer) as server:
        shown = place.output(
            words, ANTHROPIC_API_KEY="key", ANTHROPIC_BASE_URL=server.url
        )
    assert "kappa" in shown


def run_ablate(place: Place, words: list[str]) -> None:
    shown = run_with_servers(
        place.shell, place.project, [*words, "--yes", "--runs", "1"]
    )
    assert (
        "without berths" if "examples/saltmere" in words else "without Wick"
    ) in shown


def run_matrix(place: Place, words: list[str]) -> None:
    write_neighbours(place.empty, 1)
    shown = run_with_servers(place.shell, place.empty, [*words, "--yes"])
    assert "docs-writer" in shown


def run_drift(place: Place, words: list[str]) -> None:
    shown = run_with_servers(place.shell, place.project, [*words, "--yes"])
    assert "lift, old" in shown


def run_route(place: Place, words: list[str]) -> None:
    write_neighbours(place.empty, 1)
    routes = [{"query": "Fill in form 1.", "expected_skill": "pdf"}]
    file = place.empty / "skills/evals/routes.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(routes), encoding="utf-8")
    shown = run_with_servers(place.shell, place.empty, [*words, "--yes"])
    assert "Which skill each query opens" in shown


def run_lint(place: Place, words: list[str]) -> None:
    json_wanted = "json" in words or "--json" in words
    assert ('"few-cases"' if json_wanted else "0 errors") in place.output(words)


def run_eval(place: Place, words: list[str]) -> None:
    shown = run_with_servers(place.shell, place.project, words)
    assert shown.startswith("pytest --skill=skills/wick --model haiku --model sonnet")
    assert re.search(r"\d+ (passed|x?failed)", shown), shown


def run_try(place: Place, words: list[str]) -> None:
    place.shell.monkeypatch.setenv("XDG_CACHE_HOME", str(place.empty))
    shown = run_with_servers(place.shell, place.project, words)
    assert shown.startswith("Model: haiku, since ANTHROPIC_API_KEY is set.\n")
    assert shown.endswith("\n  pytest\n")


def run_init(place: Place, words: list[str]) -> None:
    """In a project with one skill that has no cases yet."""
    folder = place.empty
    (folder / "skills/wick").mkdir(parents=True)
    shutil.copy(ROOT / "skills/wick/SKILL.md", folder / "skills/wick")
    shown = place.shell.output(words, folder, {"ANTHROPIC_API_KEY": "key"})
    assert "skill_meta.schema.json" in shown


def run_list(place: Place, words: list[str]) -> None:
    shown = place.output(words)
    assert re.search(r"(?m)^skills/wick  \d+ \+ \d+ \+ 0 tokens, 10 cases$", shown), (
        shown
    )


def run_plan(place: Place, words: list[str]) -> None:
    """Without a run yet; a page shows what is printed."""
    shutil.copytree(ROOT / "skills", place.empty / "skills")
    shown = place.shell.output(words, place.empty)
    assert "cases needed" in shown
    if words[-1] == "20":
        assert shown.strip() in (ROOT / "docs/commands.md").read_text(encoding="utf-8")


def run_report(place: Place, words: list[str]) -> None:
    """Of shards for each model, or of a run of both, in which all tests pass."""
    project, models = place.project, ("haiku", "sonnet")
    runs = {
        f"shard-{number}/results.json": [of]
        for number, of in enumerate(models, start=1)
    }
    runs |= {
        word: [*models]
        for word in words[2:]
        if word.endswith(".json") and "*" not in word
    }
    for name, of_run in runs.items():
        (project / name).parent.mkdir(exist_ok=True)
        results = made_run(skills=("wick",), models=of_run, cases=12, passes=with_skill)
        (project / name).write_bytes(results_bytes(results))
    if "last" in words:
        last = made_run(
            skills=("wick",),
            models=models,
            cases=12,
            passes=with_skill,
            started=datetime.now(tz=UTC),
        )
        keep(last, project / ".upskill/runs", 10**9)
    files = [name for word in words[2:] for name in _expanded(project, word)]
    shown = place.output([*words[:2], *files])
    assert "haiku" in shown
    assert "sonnet" in shown


def with_skill(_case: int, _model: str, arm: str, _run: int) -> bool:
    return arm == "skill"


def _expanded(folder: Path, word: str) -> list[str]:
    """Expand a pattern like a shell."""
    found = (
        sorted(str(path.relative_to(folder)) for path in folder.glob(word))
        if "*" in word
        else []
    )
    return found or [word]


def run_runs(place: Place, words: list[str]) -> None:
    for minutes in range(3):
        started = datetime.now(UTC) + timedelta(minutes=minutes)  # after other runs
        keep(
            made_run(skills=("wick",), started=started),
            default_folder(place.project),
            10**9,
        )
    shown = place.output(words)
    assert any(text in shown for text in ("wick", "lines")), shown


def run_doctor(place: Place, words: list[str]) -> None:
    shown = place.output(words)
    expected = "dues +docker" if words[2:] else "loop +1( +yes){8}"
    assert re.search(expected, shown), shown


def list_models(place: Place, words: list[str]) -> None:
    assert "haiku" in place.output(words)


def list_answers(place: Place, words: list[str]) -> None:
    assert "answer" in place.output(words)


def run_pytest(place: Place, words: list[str]) -> None:
    # As init leaves it
    if words[1:] in ([], ["--collect-only"]) or words[1] == "--skill-runs":
        run_init(place, ["pytest-upskill", "init"])
        check_pytest(place.shell, place.empty, words[1:])
    else:
        check_pytest(place.shell, place.project, words[1:])


def check_pytest(shell: Shell, project: Path, args: list[str]) -> None:
    """Run pytest against a local server, with short answers of the embedded model."""
    if "--skill-replay" in args:
        recorded = [
            "--skill-record" if arg == "--skill-replay" else arg for arg in args
        ]
        check_pytest(shell, project, recorded)
    if "--skill-agent claude" in " ".join(args):  # tests/real_agents has it carried out
        args = [*args, "--collect-only"]
    if "local" in args:
        args = [*args, "--skill-max-output", "8", "-k", "owner"]
    shown = run_with_servers(
        shell, project, ["pytest", *args, "-p", "no:cacheprovider"]
    )
    if "--collect-only" in args:
        assert "a run would make" in shown
    else:
        counts = re.findall(
            r"(?m)^.*\d+ (?:passed|x?failed)\b.* in [\d.]+s\b.*$", shown
        )
        assert counts, shown
        assert " error" not in counts[-1], shown


def run_cluster(place: Place, words: list[str]) -> None:
    """One worker on this machine stands for all."""
    address = words.index("--skill-cluster") + 1
    args = [*words[1:address], "local:1", *words[address + 1 :], "-k", "one-good"]
    command = [sys.executable, "-m", "pytest", *args, "-p", "no:cacheprovider"]
    shown = run_with_servers(place.shell, place.project, command)
    assert "cluster local:1: 1 worker, " in shown
    assert " 1 failed" in shown  # the model knows nothing, and says so


def run_with_servers(shell: Shell, project: Path, words: list[str]) -> str:
    with LoopbackServer(answer) as server:
        words = [
            f"{server.url}/v1" if w.startswith("http://localhost") else w for w in words
        ]
        keys = {"ANTHROPIC_API_KEY": "key", "OPENAI_API_KEY": "key"}
        addresses = {
            "ANTHROPIC_BASE_URL": server.url,
            "OPENAI_BASE_URL": f"{server.url}/v1",
            "OLLAMA_HOST": server.url,
        }
        if "--skill-login" in words:
            keys, addresses = {}, {}
        for word in words:
            if word.startswith(("bedrock:", "vertex:", "azure:")):
                keys |= login(word, server.url, project)
        # These answers are not good, so tests may fail.
        return shell.output(words, project, {**keys, **addresses}, statuses=(0, 1))


def answer(asked: Asked) -> Reply:
    criteria = re.findall(
        r"^(\d+)\. ", asked.question.rpartition("The criteria:\n")[2], re.M
    )
    if criteria and '"mark"' in asked.question:
        ruling = {"quote": "", "reason": "so it is", "verdict": "fail"}
        rulings = [{"criterion": int(number), **ruling} for number in criteria]
        return Reply(judge_says(asked.question, rulings))
    return Reply(f"About: {asked.question}")


def run_teaching(place: Place, words: list[str]) -> None:
    """Run it in a copy, against a scripted teacher and students."""
    copy = place.project / f"taught-{words[1]}-{len(words)}"
    for name in ("skills", "examples"):
        shutil.copytree(place.project / name, copy / name, dirs_exist_ok=True)
    shutil.rmtree(copy / TAUGHT)
    with LoopbackServer(wick_models.answer) as server:
        args = [
            f"{server.url}/v1" if arg.startswith("http://local") else arg
            for arg in words[1:]
        ]
        address = {
            "ANTHROPIC_API_KEY": "key",
            "ANTHROPIC_BASE_URL": server.url,
            "COLUMNS": "80",
        }
        shown = place.shell.output(["pytest-upskill", *args], copy, address)
    if "--from" in words or "--max-tokens" in words:
        check_page("generate.md", shown)
    else:
        assert "./skills/" in shown or "unchanged" in shown


def run_triggers(place: Place, words: list[str]) -> None:
    """Run it in a copy, against a scripted teacher and students,
    and compare it with the page.
    """
    copy = place.project / f"taught-{words[1]}"
    shutil.copytree(place.project / "skills", copy / "skills", dirs_exist_ok=True)
    if words[1] == "describe":
        (copy / "skills/wick/evals").mkdir()
        written = json.dumps(wick_models.queries())
        (copy / "skills/wick/evals/triggers.json").write_text(written)
    with LoopbackServer(wick_models.answer) as server:
        address = {
            "ANTHROPIC_API_KEY": "key",
            "ANTHROPIC_BASE_URL": server.url,
            "COLUMNS": "80",
        }
        shown = place.shell.output(words, copy, address)
    check_page("triggers.md", shown)


def check_page(name: str, shown: str) -> None:
    """A page shows what was printed; prices and times change, and the page need not."""
    texts = (shown, (ROOT / "docs" / name).read_text())
    printed, page = (re.sub(r"\$[\d.]+|(?<=Took )[\d.]+", "…", text) for text in texts)
    assert shows(page, printed), printed


RUNNERS_OF_PROGRAMS: dict[str, Runner] = {
    "cd": change_folder,
    "make": run_make,
    "dask": run_dask,
    "export": set_variable,
    "pytest": run_pytest,
}
RUNNERS_OF_COMMANDS: dict[str, Runner] = {
    "ablate": run_ablate,
    "answers": list_answers,
    "benchmark": run_eval,
    "doctor": run_doctor,
    "drift": run_drift,
    "eval": run_eval,
    "init": run_init,
    "judge": run_judge,
    "lint": run_lint,
    "plan": run_plan,
    "list": run_list,
    "matrix": run_matrix,
    "models": list_models,
    "report": run_report,
    "route": run_route,
    "runs": run_runs,
    "schema": write_schema,
    "try": run_try,
    **dict.fromkeys(("cases", "generate", "refine"), run_teaching),
    **dict.fromkeys(("describe", "triggers"), run_triggers),
}
