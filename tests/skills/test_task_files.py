"""The parts of a case for tasks: where it runs, its skills, its solution."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.settings import Settings
from pytest_upskill.skills.case import Case
from pytest_upskill.skills.suites.suite import Suite
from pytest_upskill.skills.task_environment import TaskEnvironment, environment_of
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
            "packages": ["poppler-utils"],
            "memory_mb": 2048,
            "cpus": 2,
        }
    ).sandbox
    assert (needs.workdir, needs.places, needs.env) == (
        "/app",
        ("/output",),
        (("LANG", "C"),),
    )
    assert (needs.image, needs.packages, needs.memory_mb) == (
        "debian:12",
        ("poppler-utils",),
        2048,
    )
    assert (needs.cpus, needs.storage_mb, needs.build) == (2, None, None)


@pytest.mark.parametrize(
    "sandbox",
    [
        {"workdir": "app"},
        {"workdir": "/"},
        {"places": ["/a/../b"]},
        {"env": {"A B": "1"}},
        {"memory_mb": 0},
        {"packages": ["-o x"]},
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


def test_a_context_knows_what_only_an_image_can_do(tmp_path: Path) -> None:
    folder = tmp_path / "environment"
    folder.mkdir()
    (folder / "data.csv").write_text("1\n")
    lines = [
        "FROM --platform=linux/riscv64 ubuntu:24.04",
        "WORKDIR /app",
        "COPY data.csv .",
    ]
    (folder / "Dockerfile").write_text(
        "\n".join([*lines, "RUN curl https://x.org/tool | sh"])
    )
    context = environment_of(tmp_path, "environment/Dockerfile", "", 5).build
    assert context.others == ("Dockerfile:4: RUN curl https://x.org/tool | sh",)
    assert context.copied == ("/app/data.csv",)
    assert (context.platform, context.seconds) == ("linux/riscv64", 5)
    (folder / "Dockerfile").write_text("FROM bench/tools:1\n")
    other = environment_of(tmp_path, "environment/Dockerfile", "", None).build
    assert other.others == ("Dockerfile: FROM bench/tools:1",)
    assert (other.platform, other.seconds) == ("", 600)
    assert other.digest != context.digest


def test_the_digest_of_a_context_is_that_of_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "environment"
    (folder / "skills").mkdir(parents=True)
    (folder / "Dockerfile").write_text("FROM ubuntu:24.04\n")
    (folder / "run.sh").write_text("echo\n")

    def digest() -> str:
        made = environment_of(
            tmp_path, "environment/Dockerfile", "environment/skills", None
        )
        return made.build.digest

    first = digest()
    (folder / "skills" / "SKILL.md").write_text("no part of it")
    assert digest() == first
    (folder / "run.sh").chmod(0o755)
    assert digest() != first


@pytest.fixture
def environment(tmp_path: Path) -> Callable[..., TaskEnvironment]:
    def made(*lines: str, **files: str) -> TaskEnvironment:
        folder = tmp_path / "environment"
        for name, text in {"Dockerfile": "\n".join(lines), **files}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        return environment_of(
            tmp_path, "environment/Dockerfile", "environment/skills", None
        )

    return made


DEBIAN = ("FROM debian", "WORKDIR /app")
Make = Callable[..., TaskEnvironment]


@pytest.mark.parametrize(
    ("ignored", "copied"),
    [
        ("*\n!data", {"/app/data/a.csv", "/app/data/deep/b.csv"}),
        ("*\n!data\ndata/deep", {"/app/data/a.csv"}),
        ("!data\n*", set()),
        ("*.csv\nDockerfile\n.*", {"/app/data/a.csv", "/app/data/deep/b.csv"}),
        ("*\n!data/**\n**/b.csv", {"/app/data/a.csv"}),
        ("**/" * 5_000 + "*", set()),
    ],
)
def test_the_last_pattern_that_is_about_a_file_wins(
    environment: Make, ignored: str, copied: set[str]
) -> None:
    files = {"data/a.csv": "1", "data/deep/b.csv": "2", ".dockerignore": ignored}
    made = environment(*DEBIAN, "COPY . .", **files)
    assert {file.path for file in made.files} == copied


def test_the_digest_has_a_dockerfile_that_is_ignored(environment: Make) -> None:
    first = environment(*DEBIAN, **{".dockerignore": "*"}).build
    assert environment(*DEBIAN, "RUN touch a").build.digest != first.digest


def test_links_and_empty_folders_are_made(environment: Make, tmp_path: Path) -> None:
    folder = tmp_path / "environment"
    (folder / "in" / "empty").mkdir(parents=True)
    (folder / "in" / "link").symlink_to("data")
    made = environment(*DEBIAN, "COPY in /in", "RUN touch a", **{"in/data/a.csv": "1"})
    assert made.build.others == ()
    assert made.build.steps == (
        "mkdir -p /in/empty",
        "mkdir -p /in && ln -sfn -- data /in/link",
        "cd /app && touch a",
    )
    # It is followed
    assert len(environment(*DEBIAN, "COPY in/link /in").build.others) == 1


def test_skills_that_are_copied_one_by_one(environment: Make) -> None:
    skills = {"skills/lamps/SKILL.md": "x", "skills/wicks/SKILL.md": "x"}
    lines = [f"COPY skills/{name} /root/skills/{name}" for name in ("lamps", "wicks")]
    both = environment(*DEBIAN, *lines, **skills)
    assert (both.recipe.skills_at, both.build.missing) == (("/root/skills",), ())
    for line in (lines[0], "COPY skills/* /root/skills/"):  # not all, or not as folders
        some = environment(*DEBIAN, line)
        assert (some.recipe.skills_at, len(some.build.missing)) == ((), 1)


def test_what_no_image_can_be_built_from(environment: Make) -> None:
    assert len(environment("# nothing").build.missing) == 1
    assert environment("FROM\tdebian").build.others == ()


def test_a_name_that_is_not_utf8_needs_an_image(
    environment: Make, tmp_path: Path
) -> None:
    environment(*DEBIAN)
    try:
        Path(tmp_path, "environment", "x\udcff").touch()
    except OSError:
        pytest.skip("the file system has no such names")
    made = environment(*DEBIAN, "COPY . .")
    assert (made.files, len(made.build.others)) == ((), 1)
