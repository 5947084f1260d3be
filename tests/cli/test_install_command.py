"""pytest-upskill install: a skill copied to where agents look, and to nowhere else."""

import os
from pathlib import Path

import pytest

from pytest_upskill.cli import main
from pytest_upskill.cli.commands.install import AGENTS
from pytest_upskill.skills.folder import COPY_DIGEST_NAME
from support.kit import write_skill


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))


@pytest.fixture
def skill() -> Path:
    """One with everything that goes, and everything that stays."""
    folder = write_skill(Path("skills/gate"))
    for name in (
        *("references/keys.md", "scripts/run.sh", "assets/logo.png", "LICENSE.txt"),
        *(
            "evals/evals.json",
            "skill_results.json",
            ".upskill/answers.db",
            ".env",
            "id_rsa",
        ),
        *("scripts/__pycache__/run.pyc", "scripts/old.pyc", "references/.DS_Store"),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode() + b"\xff\0")
    (folder / "scripts/run.sh").chmod(0o755)
    return folder


GOES = [
    "LICENSE.txt",
    "SKILL.md",
    "assets/logo.png",
    "references/keys.md",
    "scripts/run.sh",
]


def files(folder: Path) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file()
    )


def install(
    capsys: pytest.CaptureFixture[str], *words: str, status: int = 0
) -> list[str]:
    assert main(["install", *words]) == status
    return capsys.readouterr().out.splitlines()


def test_which_files_are_copied(
    skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files(skill)
    shown = install(capsys, "skills/gate", "--agent", "claude", "--agent", "codex")
    assert shown == [
        "claude  .claude/skills/gate: installed",
        "codex   .agents/skills/gate: installed",
    ]
    for folder in (Path(".claude/skills"), Path(".agents/skills")):
        copy = folder / "gate"
        assert files(copy) == sorted([*GOES, COPY_DIGEST_NAME])
        assert all(
            (copy / name).read_bytes() == (skill / name).read_bytes() for name in GOES
        )
        assert [path.name for path in folder.iterdir()] == ["gate"]
    assert files(skill) == before


@pytest.mark.skipif(os.name != "posix", reason="there are no such bits")
def test_executable_files_stay_executable(
    skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(capsys, str(skill), "--agent", "cursor")
    copy = Path(".cursor/skills/gate")
    assert os.access(copy / "scripts/run.sh", os.X_OK)
    assert not (copy / "SKILL.md").stat().st_mode & 0o111
    assert copy.stat().st_mode & 0o055 == 0o055 & ~_umask()


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("agent", AGENTS)
def test_every_agent_has_its_folders(
    agent: str, skill: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    in_project, in_home = AGENTS[agent]
    install(capsys, str(skill), "--agent", agent)
    assert (tmp_path / "project" / in_project / "gate/SKILL.md").is_file()
    assert files(tmp_path / "home") == []
    install(capsys, str(skill), "--agent", agent, "--user")
    assert files(tmp_path / "home") == sorted(
        f"{in_home}/gate/{name}" for name in [*GOES, COPY_DIGEST_NAME]
    )


def test_an_unchanged_copy_is_updated(
    skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = "claude  .claude/skills/gate:"
    words = ("skills/gate", "--agent", "claude")
    install(capsys, *words)
    assert install(capsys, *words) == [f"{place} already there"]
    (skill / "references/keys.md").unlink()
    (skill / "references/more.md").write_text("More.")
    assert install(capsys, *words, "--dry-run") == [f"{place} would be updated"]
    assert "references/keys.md" in files(Path(".claude/skills/gate"))
    assert install(capsys, *words) == [f"{place} updated"]
    assert "references/keys.md" not in files(Path(".claude/skills/gate"))
    assert "references/more.md" in files(Path(".claude/skills/gate"))


@pytest.mark.parametrize("change", ["edited", "added", "removed", "not ours"])
def test_a_changed_copy_is_left_alone(
    change: str, skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("skills/gate", "--agent", "claude")
    copy = Path(".claude/skills/gate")
    if change == "not ours":
        write_skill(copy, body="Another text.")
    else:
        install(capsys, *words)
    if change == "edited":
        (copy / "SKILL.md").write_text("mine")
    elif change == "added":
        (copy / "notes.md").write_text("mine")
    elif change == "removed":
        (copy / "LICENSE.txt").unlink()
    (skill / "references/keys.md").write_text("new")
    before = {name: (copy / name).read_bytes() for name in files(copy)}
    (line,) = install(capsys, *words, status=1)
    assert "not replaced, since it was edited" in line
    assert {name: (copy / name).read_bytes() for name in files(copy)} == before
    assert install(capsys, *words, "--force") == [
        "claude  .claude/skills/gate: replaced"
    ]
    assert files(copy) == sorted([*GOES, COPY_DIGEST_NAME])


@pytest.mark.parametrize(
    "name", ["evals/evals.json", "skill_meta.json", ".env", "sub/SKILL.md"]
)
def test_files_that_are_never_installed_are_not_deleted_from_a_copy(
    name: str, skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(capsys, str(skill), "--agent", "claude")
    mine = Path(".claude/skills/gate", name)
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    (line,) = install(capsys, str(skill), "--agent", "claude")
    assert line.endswith("already there")
    (skill / "LICENSE.txt").write_text("new")
    (line,) = install(capsys, str(skill), "--agent", "claude", status=1)
    assert "not replaced, since it was edited" in line
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("name", [".DS_Store", "scripts/__pycache__/run.pyc"])
def test_files_of_editors_and_python_are_no_change(
    name: str, skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(capsys, str(skill), "--agent", "claude")
    left_behind = Path(".claude/skills/gate", name)
    left_behind.parent.mkdir(exist_ok=True)
    left_behind.write_text("x")
    (line,) = install(capsys, str(skill), "--agent", "claude")
    assert line.endswith("already there")
    (skill / "LICENSE.txt").write_text("new")
    (line,) = install(capsys, str(skill), "--agent", "claude")
    assert line.endswith("updated")


def test_dry_run_writes_nothing(
    skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = install(capsys, str(skill), "--agent", "claude", "--dry-run")
    assert line.endswith("would be installed")
    assert not Path(".claude").exists()


def test_a_skill_without_text_is_not_installed(
    skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_skill(Path("skills/good"))
    (skill / "SKILL.md").write_text("---\nname: gate\n---\n")
    assert main(["install", "skills", "--agent", "claude", "--force"]) == 2
    assert "skills/gate/SKILL.md: no text after the front" in capsys.readouterr().err
    assert not Path(".claude").exists()


@pytest.mark.parametrize(
    ("name", "folder"), [("door", "door"), ("Big Door", "gate"), ("../door", "gate")]
)
def test_the_copy_is_named_like_the_skill_if_its_name_is_valid(
    skill: Path, capsys: pytest.CaptureFixture[str], name: str, folder: str
) -> None:
    text = (skill / "SKILL.md").read_text().replace("name: gate", f"name: {name}")
    (skill / "SKILL.md").write_text(text)
    install(capsys, str(skill), "--agent", "claude")
    assert files(Path(".claude/skills")) == sorted(
        f"{folder}/{f}" for f in [*GOES, COPY_DIGEST_NAME]
    )
    assert not Path(".claude/door").exists()


def test_two_skills_of_the_same_name_do_not_replace_each_other(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_skill(Path("skills/a/gate"), body="One.")
    write_skill(Path("skills/b/gate"), body="Two.")
    assert main(["install", "skills", "--agent", "claude"]) == 2
    problem = "skills/b/gate/SKILL.md: skills/a/gate/SKILL.md has the same name, 'gate'"
    assert problem in capsys.readouterr().err
    assert not Path(".claude").exists()


def test_skills_inside_a_skill_are_installed_on_their_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_skill(Path("skills/gate"))
    write_skill(Path("skills/gate/skills/door"))
    install(capsys, "skills/gate", "--agent", "claude")
    assert files(Path(".claude/skills/door")) == [COPY_DIGEST_NAME, "SKILL.md"]
    assert not Path(".claude/skills/gate/skills").exists()


def test_broken_cases_do_not_matter(
    skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (skill / "skill_meta.json").write_text("{")
    install(capsys, str(skill), "--agent", "claude")


def test_a_folder_of_skills_installs_all_of_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_skill(Path("skills/a"))
    write_skill(Path("skills/b"))
    assert install(capsys, "skills", "--agent", "claude") == [
        "claude  .claude/skills/a: installed",
        "claude  .claude/skills/b: installed",
    ]


@pytest.mark.usefixtures("skill")
@pytest.mark.parametrize(
    ("folders", "agents"),
    [
        ([".claude"], ["claude"]),
        ([".cursor/rules", ".agents", ".github/workflows"], ["codex", "cursor"]),
        ([".github/skills"], ["copilot"]),
    ],
)
def test_without_an_agent_those_with_a_folder_are_meant(
    capsys: pytest.CaptureFixture[str], folders: list[str], agents: list[str]
) -> None:
    for folder in folders:
        Path(folder).mkdir(parents=True)
    assert [line.split()[0] for line in install(capsys, "gate")] == agents


@pytest.mark.usefixtures("skill")
def test_without_any_folder_an_agent_that_is_installed_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(".claude").mkdir()  # of the project, not of the user
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/opencode").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert main(["install", "gate", "--user"]) == 2
    assert "Name one: --agent opencode" in capsys.readouterr().err


def test_copies_among_the_skills_are_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_skill(Path("skills/a"))
    Path("skills/a/.gitignore").write_text("hidden files are not copied")
    install(capsys, "skills", "--agent", "claude")
    shown = install(capsys, ".", "--agent", "claude")
    assert shown == [
        "claude  .claude/skills/a: already there",
        "left out (a copy of another skill here): .claude/skills/a",
    ]


def test_a_path_that_is_no_skill(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["install", "nowhere", "--agent", "claude"]) == 2
    assert capsys.readouterr().err.startswith("pytest-upskill: nowhere: no such file")
    with pytest.raises(SystemExit):
        main(["install", "nowhere", "--agent", "clippy"])


def test_links_out_of_the_skill_are_never_followed(
    skill: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "secret").write_text("x")
    (skill / "references/leak.md").symlink_to(tmp_path / "secret")
    install(capsys, str(skill), "--agent", "claude")
    assert files(Path(".claude/skills/gate")) == sorted([*GOES, COPY_DIGEST_NAME])
    (skill / "SKILL.md").unlink()
    (skill / "SKILL.md").symlink_to(tmp_path / "secret")
    assert main(["install", str(skill), "--agent", "claude", "--force"]) == 2
    assert "symbolic link out of the skill's folder" in capsys.readouterr().err


def test_nothing_is_written_through_a_link_out_of_the_project(
    skill: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "outside").mkdir()
    Path(".claude").symlink_to(tmp_path / "outside")
    assert main(["install", str(skill), "--agent", "claude", "--force"]) == 2
    assert "points outside" in capsys.readouterr().err
    assert files(tmp_path / "outside") == []


def test_a_copy_that_is_a_link_to_the_skill_is_already_there(
    skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(".claude/skills").mkdir(parents=True)
    Path(".claude/skills/gate").symlink_to(skill.resolve())
    (line,) = install(capsys, str(skill), "--agent", "claude")
    assert line.endswith("already there")
    assert Path(".claude/skills/gate").is_symlink()


def test_a_link_elsewhere_is_replaced_only_with_force(
    skill: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = write_skill(tmp_path / "gate", body="Another.")
    Path(".claude/skills").mkdir(parents=True)
    Path(".claude/skills/gate").symlink_to(other)
    install(capsys, str(skill), "--agent", "claude", status=1)
    install(capsys, str(skill), "--agent", "claude", "--force")
    assert not Path(".claude/skills/gate").is_symlink()
    assert "Another." in (other / "SKILL.md").read_text()


def test_a_failed_update_leaves_the_old_copy(
    skill: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(capsys, str(skill), "--agent", "claude")
    before = files(Path(".claude"))
    (skill / "LICENSE.txt").write_text("new")
    real = Path.rename

    def fails(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise OSError("the disk is full")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", fails)
    assert main(["install", str(skill), "--agent", "claude"]) == 2
    assert "the disk is full" in capsys.readouterr().err
    assert files(Path(".claude")) == before
    assert [path.name for path in Path(".claude/skills").iterdir()] == ["gate"]
