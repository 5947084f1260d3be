"""The parts of a case for tasks: where it runs, its skills, its solution."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.settings import Settings
from pytest_upskill.skills.case import BuildContext, Case
from pytest_upskill.skills.suites.suite import Suite
from pytest_upskill.skills.task_environment import environment_of, places_in
from pytest_upskill.skills.task_files import verifier_files
from pytest_upskill.trials.arm import Arm
from pytest_upskill.trials.trial import start_files, task_of

Read = Callable[..., Case]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(files: dict[str, str] | None = None, **case: Any) -> Case:
        for name, text in (files or {}).items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        suite = Suite.of(tmp_path / "skill_meta.json", [{"input": "Light it.", **case}])
        (of_file,) = suite.files
        assert not of_file.broken, of_file.broken[0].message
        return of_file.cases[0]

    return read


def _is_broken(folder: Path, case: dict[str, Any]) -> bool:
    cases = [{"input": "good"}, {"input": "bad", **case}]
    (folder / "skill_meta.json").write_text(json.dumps(cases))
    (of_file,) = Suite.of(folder / "skill_meta.json", cases).files
    return len(of_file.broken) == 1


def _key(case: Case) -> str:
    return task_of(case, "loop", Arm("skill"), Settings()).content


def test_the_sandbox_has_what_the_case_says(read: Read) -> None:
    needs = read(
        sandbox={
            "workdir": "/app/",
            "places": ["/output"],
            "env": {"LANG": "C"},
            "image": "debian:12",
            "memory_mb": 2048,
            "cpus": 2,
        }
    ).sandbox
    assert (needs.workdir, needs.places, needs.env) == (
        "/app",
        ("/output",),
        (("LANG", "C"),),
    )
    assert (needs.image, needs.memory_mb) == ("debian:12", 2048)
    assert (needs.cpus, needs.storage_mb, needs.build) == (2, None, None)


@pytest.mark.parametrize(
    "sandbox",
    [
        {"workdir": "app"},
        {"workdir": "/"},
        {"places": ["/a/../b"]},
        {"env": {"A B": "1"}},
        {"memory_mb": 0},
        {"packages": ["poppler-utils"]},
        {"image": "--help"},
        {"image": "dir:/etc"},
        {"image": "debian\nUSER 0"},
    ],
    ids=json.dumps,
)
def test_a_sandbox_that_cannot_be(tmp_path: Path, sandbox: dict[str, Any]) -> None:
    assert _is_broken(tmp_path, {"sandbox": sandbox})


def test_an_absolute_path_is_in_the_workspace_or_makes_a_place(read: Read) -> None:
    files = {"/app/a.csv": "1", "/data/deep/b.csv": "2", "c.csv": "3"}
    case = read(sandbox={"workdir": "/app"}, context={"files": files})
    assert [file.path for file in start_files(case)] == [
        "/data/deep/b.csv",
        "a.csv",
        "c.csv",
    ]
    assert case.sandbox.places == ("/data/deep",)


def test_a_file_in_the_root_cannot_be_there(read: Read) -> None:
    with pytest.raises(ValueError, match="workspace"):
        start_files(read(context={"files": {"/a.csv": "1"}}))


def test_the_key_has_the_content_of_an_image_but_not_its_skills_or_its_path(
    read: Read,
) -> None:
    written = {"sandbox": {"dockerfile": "env/Dockerfile"}, "skills": "env/skills"}
    files = {
        "env/Dockerfile": "FROM scratch",
        "env/a.txt": "1",
        "env/skills/x/SKILL.md": "x",
    }
    case = read(files, **written)
    build = case.sandbox.build
    assert build
    assert (build.dockerfile, build.without) == ("Dockerfile", "skills")
    moved = case.sandbox._replace(build=replace(build, folder="/elsewhere"))
    assert _key(replace(case, sandbox=moved)) == _key(case)
    assert _key(read({"env/skills/x/SKILL.md": "y"}, **written)) == _key(case)
    assert _key(read({"env/a.txt": "2"}, **written)) != _key(case)


def test_a_reference_is_a_text_files_or_a_script_with_its_folder(read: Read) -> None:
    text = read(reference="lit").reference
    assert text
    assert text.text == "lit"
    files = read(reference={"files": {"a.txt": "lit"}}).reference
    assert files
    assert [(file.path, file.text) for file in files.files] == [("a.txt", "lit")]
    solution = {"solution/solve.sh": "cp x y", "solution/x": "1"}
    script = read(
        solution, reference={"run": "solution/solve.sh", "env": {"A": "1"}}
    ).reference
    assert script
    assert (script.run, script.env) == ("solve.sh", (("A", "1"),))
    assert [file.path for file in script.files] == ["solve.sh", "x"]


@pytest.mark.parametrize(
    "reference",
    [{}, {"run": "solve.sh"}, {"run": "a/b.sh", "text": "x"}, 3],
    ids=json.dumps,
)
def test_a_reference_that_cannot_be(tmp_path: Path, reference: object) -> None:
    (tmp_path / "solve.sh").write_text("true")
    assert _is_broken(tmp_path, {"reference": reference})


@pytest.mark.parametrize(
    "script", ["scripts/solve.sh", "assets/a/solve.sh", "tools/solve.sh"]
)
def test_a_folder_that_the_skill_uses_cannot_be_hidden_with_a_solution(
    tmp_path: Path, script: str
) -> None:
    top = tmp_path / script.partition("/")[0]
    (tmp_path / script).parent.mkdir(parents=True)
    (tmp_path / script).write_text("true")
    (top / "sum.sh").write_text("true")
    (tmp_path / "SKILL.md").write_text("Run `tools/sum.sh`, not solution/sum.sh.")
    assert _is_broken(tmp_path, {"reference": {"run": script}})
    with pytest.raises(ValueError, match="not installed"):
        verifier_files(tmp_path, script)
    top.rename(tmp_path / "solver")
    assert not _is_broken(
        tmp_path, {"reference": {"run": script.replace(top.name, "solver", 1)}}
    )


@pytest.fixture
def context(tmp_path: Path) -> Path:
    folder = tmp_path / "environment"
    (folder / "skills").mkdir(parents=True)
    (folder / "Dockerfile").write_text("FROM ubuntu:24.04\nWORKDIR /app\n")
    (folder / "run.sh").write_text("echo\n")
    (folder / "link").symlink_to("run.sh")
    return folder


def _built(context: Path, seconds: float | None = None) -> tuple[BuildContext, str]:
    file = "environment/Dockerfile"
    return environment_of(context.parent, file, "environment/skills", seconds)


def test_a_context_is_all_beside_a_dockerfile_but_the_skills(context: Path) -> None:
    build, workdir = _built(context, 5)
    assert (build.folder, build.dockerfile) == (str(context), "Dockerfile")
    assert (build.without, build.seconds, workdir) == ("skills", 5, "/app")
    assert _built(context)[0].seconds == 600
    with pytest.raises(ValueError, match="must be in a folder"):
        environment_of(context, "Dockerfile", "", None)


@pytest.mark.parametrize(
    ("lines", "workdir"),
    [
        ("", "/workspace"),
        ("WORKDIR /app/", "/app"),
        ("workdir '/srv/app'", "/srv/app"),
        ("WORKDIR /build\nFROM debian\nWORKDIR /app\nWORKDIR /", "/app"),
        ("# WORKDIR /app", "/workspace"),
    ],
)
def test_an_agent_works_in_the_last_workdir(
    context: Path, lines: str, workdir: str
) -> None:
    (context / "Dockerfile").write_text(f"FROM debian\n{lines}\n")
    assert _built(context)[1] == workdir


def test_the_digest_of_a_context_changes_with_what_a_build_can_copy(
    context: Path,
) -> None:
    digests = [_built(context)[0].digest]
    (context / "skills" / "SKILL.md").write_text("no part of it")
    assert _built(context)[0].digest == digests[0]

    def change_link() -> None:
        (context / "link").unlink()
        (context / "link").symlink_to("Dockerfile")

    for change in (
        lambda: (context / "run.sh").write_text("exit\n"),
        lambda: (context / "run.sh").chmod(0o755),
        lambda: (context / "run.sh").rename(context / "start.sh"),
        lambda: (context / "Dockerfile").write_text("FROM debian\n"),
        change_link,
    ):
        change()
        digests.append(_built(context)[0].digest)
    assert len(set(digests)) == len(digests)


def test_the_digest_of_a_context_does_not_depend_on_the_order_of_its_files(
    context: Path, tmp_path: Path
) -> None:
    for name in "abc":
        (context / name).write_text(name)
    copy = tmp_path / "copy" / "environment"
    copy.mkdir(parents=True)
    (copy / "skills").mkdir()
    for file in sorted(context.iterdir(), reverse=True):
        if not file.is_dir():
            shutil.copy(file, copy, follow_symlinks=False)
    assert _built(copy)[0].digest == _built(context)[0].digest


@pytest.mark.parametrize(
    ("instruction", "places"),
    [
        ("Write `/output/sum.csv` and /data/deep/b.csv.", ["/output", "/data"]),
        ("Read /app/a.csv, not /appendix/a.csv.", ["/appendix"]),
        ("Use /home/ann/x, /opt/x and /opt/x/.", ["/home/ann", "/opt/x"]),
        ("Not /etc/passwd, /tests/a.py, https://x.org/a/b or /sum.", []),
    ],
)
def test_folders_that_an_instruction_names(instruction: str, places: list[str]) -> None:
    assert places_in(instruction, "/app") == places
