"""Workspaces: a folder of the skill's folder that agents start in,
and other files of a case.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.errors import CasesError
from pytest_upskill.results.planned_cases import case_digest
from pytest_upskill.skills import case_files
from pytest_upskill.skills.case import Case, SandboxNeeds, WorkspaceFile
from pytest_upskill.skills.case_files import is_path, workspace_files
from pytest_upskill.skills.suites.json_suites import load_cases
from pytest_upskill.trials.trial import sample_of, start_files, user_text

PNG = b"\x89PNG\r\n\0"


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    folder = tmp_path / "gate"
    (folder / "fixtures/in/sub").mkdir(parents=True)
    (folder / "SKILL.md").write_text("Open it.")
    (folder / "fixtures/in/a.csv").write_bytes(b"a;b\r\n")
    (folder / "fixtures/in/sub/run.sh").write_text("echo")
    (folder / "fixtures/in/sub/run.sh").chmod(0o755)
    return folder


def load(skill: Path, *cases: dict[str, Any], **more: Any) -> list[Case]:
    written = [{"input": "q", "expected": {"contains": "x"}, **case} for case in cases]
    file = skill / "skill_meta.json"
    file.write_text(json.dumps({"cases": written, **more}))
    return load_cases(file).require_all()


def test_a_folder_is_copied_as_it_is(skill: Path) -> None:
    (skill / "fixtures/in/logo.png").write_bytes(PNG)
    (skill / "fixtures/in/.hidden").write_text("h")
    (skill / "fixtures/in/same.csv").symlink_to("a.csv")
    (skill / "fixtures/in/__pycache__").mkdir()
    (skill / "fixtures/in/__pycache__/x.pyc").write_text("")
    assert workspace_files(skill, "fixtures/in") == (
        WorkspaceFile(".hidden", b"h"),
        WorkspaceFile("a.csv", b"a;b\r\n"),
        WorkspaceFile("logo.png", PNG),
        WorkspaceFile("same.csv", b"a;b\r\n"),
        WorkspaceFile("sub/run.sh", b"echo", 0o755),
    )


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("none", "'none' not found; name a folder, relative to "),
        ("SKILL.md", "'SKILL.md' is a file; name a folder"),
        ("..", "'..' is outside of "),
        ("/etc", "'/etc' is outside of "),
        ("out", "'out' is outside of "),
        (".", "'.' is the skill itself, which the baseline must not see"),
        ("fixtures/..", "is the skill itself"),
        (".git", "'.git' may hold secrets"),
        ("a\0b", "invalid folder name 'a\\x00b'"),
        ("a" * 5000, "file name too long"),
        ("with-link", "'x' is a link out of the workspace; copy the file"),
        ("with-folder", "'y' is a link to a folder; copy it"),
        ("with-secret", "'sub/.env' may hold secrets, so it is not read"),
        ("with-pipe", "can't read 'p': not a regular file"),
    ],
)
def test_an_unusable_folder_is_told(skill: Path, name: str, problem: str) -> None:
    (skill / "out").symlink_to("/etc")
    (skill / ".git").mkdir()
    for folder in ("with-link", "with-folder/z", "with-secret/sub", "with-pipe"):
        (skill / folder).mkdir(parents=True)
    (skill / "with-link/x").symlink_to("../SKILL.md")
    (skill / "with-folder/y").symlink_to("z")
    (skill / "with-secret/sub/.env").write_text("A=1")
    os.mkfifo(skill / "with-pipe/p")
    with pytest.raises(CasesError) as caught:
        load(skill, {"workspace": name})
    assert "cases[0].workspace: " in str(caught.value)
    assert problem in str(caught.value)


@pytest.mark.parametrize(("limit", "value"), [("MOST_FILES", 1), ("MOST_BYTES", 6)])
def test_a_workspace_has_limits(
    skill: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(case_files, limit, value)
    with pytest.raises(ValueError, match="'fixtures/in' has more than"):
        workspace_files(skill, "fixtures/in")


def test_files_of_the_case_win_over_those_of_its_workspace(skill: Path) -> None:
    (skill / "more.png").write_bytes(PNG)
    files = {"a.csv": "own", "new/b.txt": "b", "pic.png": {"file": "more.png"}}
    (case,) = load(skill, {"workspace": "fixtures/in", "context": {"files": files}})
    assert start_files(case) == (
        WorkspaceFile("a.csv", b"own"),
        WorkspaceFile("new/b.txt", b"b"),
        WorkspaceFile("pic.png", PNG),
        WorkspaceFile("sub/run.sh", b"echo", 0o755),
    )
    assert (
        case.needs_agent == "'more.png' is not UTF-8 text (byte 0): "
        "a plain question can't have such a file, an agent can"
    )


def test_an_agent_gets_the_bytes_of_a_file(skill: Path) -> None:
    (skill / "crlf.txt").write_bytes(b"\xef\xbb\xbfa\r\nb")
    (case,) = load(skill, {"context": {"files": ["crlf.txt"]}})
    assert case.files == (("crlf.txt", "a\nb"),)
    assert start_files(case) == (WorkspaceFile("crlf.txt", b"\xef\xbb\xbfa\r\nb"),)


def test_a_plain_question_shows_the_texts_of_a_workspace(skill: Path) -> None:
    (case,) = load(skill, {"workspace": "fixtures/in"})
    assert not case.needs_agent
    assert "a.csv" in user_text(case)
    assert "a;b" in user_text(case)
    (skill / "fixtures/in/logo.png").write_bytes(PNG)
    assert load(skill, {"workspace": "fixtures/in"})[0].needs_agent.startswith(
        "'logo.png' is not"
    )


@pytest.mark.parametrize(
    "name", ["../x", "/etc/x", "", "a/../../x", "a\\b", "a/", "x\0"]
)
def test_some_names_are_no_paths_in_a_workspace(name: str) -> None:
    assert not is_path(name)
    with pytest.raises(ValueError, match="can't be a file in a workspace"):
        start_files(Case("c", "q", files=((name, "text"),)))


def test_a_file_can_not_be_inside_of_another() -> None:
    with pytest.raises(ValueError, match="'a/b' can't be in 'a', which is a file"):
        start_files(Case("c", "q", files=(("a", ""), ("a/b", ""))))


@pytest.mark.parametrize(
    ("names", "paths"),
    [
        (["evals/files/a.csv", "b.csv"], ["a.csv", "b.csv"]),
        (["skills/gate/evals/files/d/a.csv", "evals/b.csv"], ["b.csv", "d/a.csv"]),
        (["evals/a.csv", "evals/files/a.csv"], ["evals/a.csv", "evals/files/a.csv"]),
    ],
)
def test_files_of_evals_are_found_by_the_names_that_prompts_use(
    names: list[str], paths: list[str]
) -> None:
    case = Case("c", "q", files=tuple((name, "") for name in names), is_eval=True)
    assert [file.path for file in start_files(case)] == paths


@pytest.mark.parametrize(
    ("prompt", "path"),
    [
        ("Sum up evals/files/d/a.csv.", "evals/files/d/a.csv"),
        ("Sum up files/d/a.csv, please.", "files/d/a.csv"),
        ("Sum up `a.csv`.", "a.csv"),
        ("Sum up /home/me/a.csv.", "a.csv"),
        ("Sum up data.csv.", "d/a.csv"),  # which is another file
        ("Sum up a.csv.bak", "a.csv"),
        ("Sum up the file.", "d/a.csv"),
    ],
)
def test_a_file_of_an_eval_has_the_name_that_the_prompt_uses(
    prompt: str, path: str
) -> None:
    case = Case("c", prompt, files=(("evals/files/d/a.csv", ""),), is_eval=True)
    assert [file.path for file in start_files(case)] == [path]


def test_what_scripts_need_is_for_all_cases_or_for_one(skill: Path) -> None:
    more = {"sandbox": {"python": ["pypdf==5.*"], "paths": ["/opt/tool"]}}
    other = {"id": "b", "sandbox": {"python": [], "network": True}, "setup": "make"}
    cases = load(skill, {}, other, **more)
    assert cases[0].sandbox == SandboxNeeds(("pypdf==5.*",), ("/opt/tool",))
    assert cases[1].sandbox == SandboxNeeds((), ("/opt/tool",), network=True)
    assert cases[1].setup == "make"


@pytest.mark.parametrize(
    ("sandbox", "problem"),
    [
        (
            {"python": ["-r x.txt"]},
            "sandbox.python[0]: '-r x.txt' is not a package like",
        ),
        ({"python": ["a @ https://x"]}, "is not a package"),
        ({"python": ["../x"]}, "is not a package"),
        ({"paths": ["opt"]}, "sandbox.paths[0]: 'opt' is not an absolute path"),
        ({"paths": ["/opt/../root"]}, "is not an absolute path"),
        ({"net": True}, "sandbox.net"),
    ],
)
def test_needs_that_make_no_sense_are_told(
    skill: Path, sandbox: dict[str, Any], problem: str
) -> None:
    for case, more in (({"sandbox": sandbox}, {}), ({}, {"sandbox": sandbox})):
        with pytest.raises(CasesError) as caught:
            load(skill, case, **more)
        assert problem in str(caught.value)


@pytest.mark.parametrize(
    "good", ["pypdf", "pypdf==5.*", "a.b-c[x,y] >=1,<2", "x~=1.0", "x!=2"]
)
def test_packages_may_have_versions(skill: Path, good: str) -> None:
    (case,) = load(skill, {"sandbox": {"python": [good]}})
    assert case.sandbox.python == (good,)


def test_accepted_results_belong_to_what_a_case_starts_from(skill: Path) -> None:
    made = [load(skill, {"workspace": "fixtures/in"})[0]]
    made += load(skill, {"workspace": "fixtures/in", "setup": "make"})
    (skill / "fixtures/in/sub/run.sh").chmod(0o644)
    made += load(skill, {"workspace": "fixtures/in"})
    (skill / "fixtures/in/logo.png").write_bytes(PNG)
    made += load(skill, {"workspace": "fixtures/in"})
    assert len({case_digest(case) for case in made}) == 4
    assert len({sample_of(case) for case in made}) == 4


def test_a_scaffold_has_the_files_around_it_but_not_those_of_other_cases(
    skill: Path,
) -> None:
    for path in (
        *(
            "evals/lib.sh",
            "evals/late/setup.sh",
            "evals/late/data.csv",
            "evals/late/prompt.md",
        ),
        *("evals/late/graders/a.md", "evals/soon/setup.sh", "evals/soon/case.yaml"),
        *("evals/results/a.json", "evals/mocks/db/find.md"),
    ):
        (skill / path).parent.mkdir(parents=True, exist_ok=True)
        (skill / path).write_text("x")
    (case,) = load(
        skill, {"scaffold": "evals/late/setup.sh", "setup": "make", "max_turns": 7}
    )
    paths = {file.path.removeprefix(".upskill-scaffold/evals/") for file in case.exact}
    assert paths == {"lib.sh", "late/setup.sh", "late/data.csv"}
    assert case.setup.startswith("bash .upskill-scaffold/evals/late/setup.sh;")
    assert case.setup.endswith("; make")
    assert case.needs_agent
    assert case.max_turns == 7


@pytest.mark.parametrize("script", ["evals/none.sh", "../x.sh", "setup.sh"])
def test_a_scaffold_that_is_not_there(skill: Path, script: str) -> None:
    (skill / "setup.sh").write_text("x")
    with pytest.raises(CasesError, match="scaffold"):
        load(skill, {"scaffold": script})
