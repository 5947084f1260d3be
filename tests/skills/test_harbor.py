"""Tasks of benchmarks are read in both layouts."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_upskill.skills.case import Case
from pytest_upskill.skills.loaded_cases import LoadedCases
from pytest_upskill.skills.suites.reading import read_suite

TOML = """\
version = "1.0"

[metadata]
difficulty = "hard"
tags = ["brass lamps", "csv"]

[agent]
timeout_sec = 120.0

[verifier]
timeout_sec = 30
env = { LEVEL = "3", KEY = "${SECRET_KEY}", MODE = "${MODE:-fast}" }

[environment]
cpus = 2
memory = "2G"
storage_mb = 512
unknown = true
"""
HARBOR = {
    "task.toml": TOML,
    "instruction.md": (
        "<!-- a canary GUID 1 -->\nLight the lamps into `/output/lamps.csv`.\n"
    ),
    "environment/Dockerfile": (
        "FROM python:3.13\nWORKDIR /app\nCOPY . /app\n"
        "COPY skills /root/.claude/skills\nRUN pip install wax==1.*\n"
    ),
    "environment/lamps.csv": "id\n1\n",
    "environment/skills/lamps/SKILL.md": (
        "---\nname: lamps\ndescription: Lamps.\n---\nLight.\n"
    ),
    "tests/test.sh": "echo 1 > /logs/verifier/reward.txt\n",
    "solution/solve.sh": "echo 1 > /output/lamps.csv\n",
}
DOCUMENT = """\
---
schema_version: "1.3"
metadata: {category: lamps}
agent: {timeout_sec: 60}
sandbox: {memory_mb: 1024, workdir: /srv/lamps, docker_image: "lamps:1"}
oracle: {env: {WICK: "2"}}
---
A preamble.

## prompt

Light them.

## role:reviewer

Look at it.
"""
NATIVE = {
    "task.md": DOCUMENT,
    "verifier/test.sh": "echo 1\n",
    "oracle/solve.sh": "echo 1\n",
}

Read = Callable[..., LoadedCases[Case]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(files: dict[str, str], **changed: str | None) -> LoadedCases[Case]:
        for name, text in {**files, **changed}.items():
            file = tmp_path / "lamps" / name.replace("__", "/")
            if text is None:
                continue
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        suite = read_suite(tmp_path, tmp_path)
        assert suite
        (of_file,) = suite.files
        return of_file

    return read


def _case(loaded: LoadedCases[Case]) -> Case:
    assert [case.message for case in loaded.broken] == []
    (case,) = loaded.cases
    return case


def test_a_task_of_harbor(read: Read) -> None:
    loaded = read(HARBOR)
    case, needs = _case(loaded), _case(loaded).sandbox
    assert (case.id, case.timeout, case.tags) == (
        "lamps",
        120,
        ("hard", "brass-lamps", "csv"),
    )
    assert case.input == "Light the lamps into `/output/lamps.csv`."
    assert (needs.workdir, needs.places) == ("/app", ("/output",))
    assert needs.build
    assert (needs.build.dockerfile, needs.build.without) == ("Dockerfile", "skills")
    assert (needs.memory_mb, needs.storage_mb, needs.cpus) == (2048, 512, 2)
    assert Path(case.skills).parts[-3:] == ("lamps", "environment", "skills")
    assert case.reference
    assert case.reference.run == "solve.sh"
    assert case.is_task
    assert case.needs_agent


def test_no_value_of_this_machine_gets_into_a_task(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "hidden")
    loaded = read(HARBOR)
    assert _case(loaded).expected == {
        "verifier": {
            "run": "tests/test.sh",
            "timeout": 30,
            "env": {"LEVEL": "3", "KEY": "", "MODE": "fast"},
        }
    }
    assert "KEY" in loaded.warnings[0][1]


def test_a_task_in_markdown(read: Read) -> None:
    case = _case(read(NATIVE))
    assert (case.input, case.timeout, case.tags) == ("Light them.", 60, ("lamps",))
    assert (case.sandbox.workdir, case.sandbox.image) == ("/srv/lamps", "lamps:1")
    assert case.expected["verifier"]["run"] == "verifier/test.sh"
    assert case.reference
    assert case.reference.env == (("WICK", "2"),)
    assert not case.skills


def test_a_document_without_sections_is_the_instruction(read: Read) -> None:
    text = "---\nschema_version: '1.0'\n---\nLight them.\n\n## How\n\nWith oil.\n"
    assert _case(read(NATIVE, **{"task.md": text})).input.endswith("With oil.")


@pytest.mark.parametrize(
    ("changed", "line", "word"),
    [
        ({"task.toml": 'version = "1.0"\n[agent\n'}, 2, "TOML"),
        ({"task.toml": "[verifier]\ntimeout_sec = 1e5\n"}, 2, "verifier.timeout_sec"),
        ({"task.toml": '[agent]\ntimeout_sec = "soon"\n'}, 2, "agent.timeout_sec"),
        (
            {"task.toml": "[environment]\ncpus = 1\nmemory = 'much'\n"},
            3,
            "environment.memory",
        ),
        ({"task.toml": "[environment]\nmemory_mb = -1\n"}, 2, "memory_mb"),
        ({"task.toml": "a = 1" + "1" * 5000}, 1, "TOML"),
        ({"task.toml": "a" + ".a" * 100_000}, 1, "characters"),
        ({"instruction.md": " \n"}, 1, "instruction"),
    ],
)
def test_broken_files_are_named_with_their_lines(
    read: Read, changed: dict[str, str], line: int, word: str
) -> None:
    (broken,) = read(HARBOR, **changed).broken
    assert broken.name == "lamps"
    assert f"{next(iter(changed))}:{line}: " in broken.message
    assert word in broken.message


@pytest.mark.parametrize("name", ["instruction.md", "tests/test.sh"])
def test_a_missing_part_is_named(read: Read, name: str) -> None:
    (broken,) = read({key: text for key, text in HARBOR.items() if key != name}).broken
    assert name in broken.message


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"task.toml": "[environment]\ngpus = 2\n"}, "2 GPU"),
        ({"task.toml": "[[steps]]\nname = 'a'\n"}, "steps"),
        ({"task.toml": "[[environment.mcp_servers]]\nname = 'a'\n"}, "MCP"),
        ({"task.toml": "[environment]\nos = 'windows'\n"}, "windows"),
        ({"task.toml": "[verifier.environment]\ncpus = 2\n"}, "verifier"),
        (
            {
                "environment__docker-compose.yaml": (
                    "services: {main: {build: .}, db: {image: x}}"
                )
            },
            "db",
        ),
        (
            {
                "environment__docker-compose.yaml": (
                    "services: {main: {privileged: true}}"
                )
            },
            "privileged",
        ),
        ({"environment__docker-compose.yaml": ": ["}, "can't be read"),
        ({"environment__compose.yml": "services: {main: {}, db: {image: x}}"}, "db"),
    ],
)
def test_what_can_not_run_here_is_skipped(
    read: Read, changed: dict[str, str], word: str
) -> None:
    assert word in (_case(read(HARBOR, **changed)).skip or "")


def test_a_compose_file_of_the_own_container_alone_is_no_obstacle(read: Read) -> None:
    compose = "services:\n  main:\n    build: {context: .}\n"
    assert (
        _case(read(HARBOR, **{"environment__docker-compose.yaml": compose})).skip
        is None
    )


def test_a_verifier_document_names_the_script(read: Read) -> None:
    document = (
        "---\nverifier:\n  default_strategy: s\n  strategies:\n"
        "    s: {type: script, command: ./check.sh}\n---\n"
    )
    files = {"verifier__verifier.md": document, "verifier__check.sh": "true"}
    assert (
        _case(read(NATIVE, **files)).expected["verifier"]["run"] == "verifier/check.sh"
    )
    judged = document.replace("script, command: ./check.sh", "llm-judge")
    assert "llm-judge" in (
        _case(read(NATIVE, **{"verifier__verifier.md": judged})).skip or ""
    )


def test_an_unknown_schema_is_read_with_a_warning(read: Read) -> None:
    loaded = read(HARBOR, **{"task.toml": 'schema_version = "9.9"\n'})
    assert _case(loaded).id == "lamps"
    assert "9.9" in loaded.warnings[0][1]


def test_tasks_are_found_below_folders_and_get_different_ids(tmp_path: Path) -> None:
    for name in ("easy/lamps", "hard/lamps", ".hidden/lamps", "node_modules/lamps"):
        for path, text in HARBOR.items():
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / path).write_text(text)
    suite = read_suite(tmp_path, tmp_path)
    assert suite
    assert [case.id for case in suite.cases] == ["lamps", "lamps-2"]


def test_a_folder_without_tasks_is_of_another_form(tmp_path: Path) -> None:
    (tmp_path / "task.md").write_text("A note.")
    assert read_suite(tmp_path, tmp_path) is None


@pytest.mark.parametrize(
    "name",
    [
        "instruction.md",
        "task.toml",
        "environment/skills",
        "environment/skills/lamps",
        "environment/skills/lamps/SKILL.md",
    ],
)
def test_a_link_out_of_a_task_is_not_followed(
    read: Read, tmp_path: Path, name: str
) -> None:
    read(HARBOR)
    link = tmp_path / "lamps" / name
    link.rename(tmp_path / "private")
    link.symlink_to(tmp_path / "private")
    (broken,) = read({}).broken
    assert "a link out of the task's folder" in broken.message


def test_links_that_lead_nowhere_hide_nothing(read: Read, tmp_path: Path) -> None:
    read(HARBOR)
    (tmp_path / "loop").symlink_to("loop")
    context = tmp_path / "lamps/environment"
    (context / "loop").symlink_to("loop")
    (context / "gone").symlink_to("nothing")
    assert _case(read({})).sandbox.build
