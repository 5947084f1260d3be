"""pytest-upskill init: cases and settings to start from, and nothing lost."""

import json
import tomllib
from pathlib import Path

import pytest

from pytest_upskill.checks.skill_meta_schema import schema_of_cases, schema_text
from pytest_upskill.cli import main
from pytest_upskill.models import local
from pytest_upskill.models.providers import HOSTED

SKILL = "---\nname: {name}\ndescription: How to open a gate.\n---\n\n{body}\n"
BODY = (
    "The command to open a gate is `gate up`.\n\nThe log of all days is in"
    " `/var/log/gate`."
)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    for provider in HOSTED.values():
        for key in provider.key_envs:
            monkeypatch.delenv(key, raising=False)


def write_skill(folder: str, body: str = BODY) -> Path:
    path = Path(folder)
    path.mkdir(parents=True)
    (path / "SKILL.md").write_text(
        SKILL.format(name=path.name, body=body), encoding="utf-8"
    )
    return path


def init(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert main(["init", *words]) == status
    said = capsys.readouterr()
    return said.err if status == 2 else said.out


def files() -> dict[str, bytes]:
    return {
        path.as_posix(): path.read_bytes()
        for path in sorted(Path().rglob("*"))
        if path.is_file()
    }


def test_a_skill_gets_cases_their_schema_and_settings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_skill("skills/gate")
    said = init(capsys)
    made = files()
    assert list(made) == [
        "pytest.ini",
        "skill_meta.schema.json",
        "skills/gate/SKILL.md",
        "skills/gate/skill_meta.json",
    ]
    assert (
        made["pytest.ini"] == b"[pytest]\nskill_paths = skills\nskill_models = local\n"
    )
    assert made["skill_meta.schema.json"].decode() == schema_text()
    cases = json.loads(made["skills/gate/skill_meta.json"])
    assert cases["$schema"] == "../../skill_meta.schema.json"
    assert [case["expected"]["contains"] for case in cases["cases"]] == [
        "gate up",
        "/var/log/gate",
    ]
    assert "pytest skills/gate --collect-only" in said
    assert max(map(len, said.splitlines())) <= 80


def test_the_cases_fit_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    import jsonschema

    write_skill("skills/gate")
    write_skill("skills/plain", "Nothing is named here.")
    init(capsys)
    for file in Path("skills").rglob("skill_meta.json"):
        jsonschema.validate(json.loads(file.read_text()), schema_of_cases())


def test_the_second_time_nothing_changes(capsys: pytest.CaptureFixture[str]) -> None:
    write_skill("skills/gate")
    init(capsys)
    before = files()
    said = init(capsys)
    assert files() == before
    assert "Nothing to write." in said
    assert "written" not in said
    assert "\n  edit the cases" in said
    assert "\n  pytest skills/gate --collect-only" in said
    cases = Path("skills/gate/skill_meta.json")
    cases.write_text(cases.read_text().replace('"edit-me"', '"mine"'))
    assert "edit the cases" not in init(capsys)


def test_a_dry_run_shows_all_and_writes_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_skill("skills/gate")
    before = files()
    said = init(capsys, "--dry-run")
    assert files() == before
    assert '"contains": "gate up"' in said
    assert "    skill_paths = skills" in said
    assert "would be written" in said


def test_cases_that_exist_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    one, other = write_skill("skills/one"), write_skill("skills/other")
    (one / "skill_meta.json").write_text("{broken")
    (other / "evals").mkdir()
    (other / "evals/evals.json").write_text('{"evals": []}')
    init(capsys)
    assert (one / "skill_meta.json").read_text() == "{broken"
    assert not (other / "skill_meta.json").exists()
    assert not Path("skill_meta.schema.json").exists()
    assert Path("pytest.ini").exists()


@pytest.mark.parametrize("name", ["my-skill", "skills/my-skill", "tools/my-skill"])
def test_a_new_skill(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = init(capsys, name)
    folder = Path(name if "/" in name else f"skills/{name}")
    assert f"write {folder}/SKILL.md" in said
    assert main(["lint", "--json", str(folder)]) == 0
    assert {one["code"] for one in json.loads(capsys.readouterr().out)} <= {
        "few-cases",
        "example",
    }
    assert f"skill_paths = {folder.parent}\n" in Path("pytest.ini").read_text()
    before = files()
    init(capsys, name)
    assert files() == before


def test_a_new_skill_beside_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill("skills/gate-keeper")
    Path("pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir("skills")
    said = init(capsys, "gate-keepr")
    assert 'gate-keepr is a new skill (did you mean "gate-keeper"?).' in said
    assert Path("gate-keepr/SKILL.md").exists()


@pytest.mark.parametrize(
    "name", ["My Skill", "skills/gate/SKILL.md", "a_b", "", "x" * 300, "é"]
)
def test_no_skill_of_such_a_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "\n  " in init(capsys, name, status=2)
    assert not files()


def test_without_a_skill_it_says_how_to_start_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("docs").mkdir()
    for words in ([], ["docs"]):
        said = init(capsys, *words, status=2)
        assert "no SKILL.md in this folder or below" in said
        assert "pytest-upskill init my-skill" in said
    assert not files()


def test_inside_of_a_skill_it_means_that_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill("skills/gate")
    write_skill("skills/other")
    Path("skills/gate/references").mkdir()
    Path(".git").mkdir()
    Path(".git/HEAD").write_text("ref: refs/heads/main")
    monkeypatch.chdir("skills/gate/references")
    init(capsys)
    monkeypatch.chdir("../../..")
    assert Path("skills/gate/skill_meta.json").exists()
    assert not Path("skills/other/skill_meta.json").exists()
    assert "skill_paths = skills\n" in Path("pytest.ini").read_text()


def test_a_skill_that_is_the_whole_project(capsys: pytest.CaptureFixture[str]) -> None:
    Path("SKILL.md").write_text(SKILL.format(name="project", body=BODY))
    init(capsys)
    assert "skill_paths = .\n" in Path("pytest.ini").read_text()
    assert (
        json.loads(Path("skill_meta.json").read_text())["$schema"]
        == "skill_meta.schema.json"
    )


def test_settings_that_exist_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    write_skill("skills/gate")
    write_skill("more/door")
    text = '[tool.pytest.ini_options]\nskill_paths = ["skills"] # ours\n'
    Path("pyproject.toml").write_text(text)
    said = init(capsys)
    assert Path("pyproject.toml").read_text() == f'{text}skill_models = ["local"]\n'
    assert "skill_paths of pyproject.toml does not include more/door" in said
    assert "skills/gate:" not in said


@pytest.mark.parametrize(
    ("there", "text", "table"),
    [
        (
            "pyproject.toml",
            '[project]\nname = "x"\n',
            ("tool", "pytest", "ini_options"),
        ),
        ("pyproject.toml", "[tool.pytest]\n", ("tool", "pytest")),
        ("pytest.toml", "", ("pytest",)),
    ],
)
def test_a_file_of_settings_is_added_to(
    there: str, text: str, table: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    write_skill("skills/gate")
    Path(there).write_text(text)
    init(capsys)
    found = tomllib.loads(Path(there).read_text())
    for step in table:
        found = found[step]
    assert found == {"skill_paths": ["skills"], "skill_models": ["local"]}
    assert not Path("pytest.ini").exists()


def test_settings_above_the_repository_are_not_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    Path(".git").mkdir()
    Path(".git/HEAD").write_text("ref: refs/heads/main")
    write_skill("skills/gate")
    init(capsys)
    assert (tmp_path / "pytest.ini").read_text() == "[pytest]\n"
    assert Path("pytest.ini").exists()


@pytest.mark.parametrize(
    ("key", "model"),
    [
        ("ANTHROPIC_API_KEY", "haiku"),
        ("OPENAI_API_KEY", HOSTED["openai"].example),
        ("GEMINI_API_KEY", HOSTED["gemini"].example),
        ("OPENROUTER_API_KEY", HOSTED["openrouter"].example),
    ],
)
def test_the_model_is_one_with_a_key(
    key: str,
    model: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(key, "sk-very-secret-value")
    write_skill("skills/gate")
    said = init(capsys)
    assert f"skill_models = {model}\n" in Path("pytest.ini").read_text()
    assert f"{model}, since {key} is set" in said
    assert "very-secret" not in said


def test_the_model_of_upskills_settings_is_used(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("upskill.config.yaml").write_text("eval_model: sonnet\nskills_dir: made\n")
    said = init(capsys, "my-skill")
    assert Path("pytest.ini").read_text() == "[pytest]\nskill_paths = made\n"
    assert "sonnet, of upskill.config.yaml" in said


def test_it_says_what_the_embedded_model_needs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "installed", lambda: False)
    write_skill("skills/gate")
    assert 'pip install "pytest-upskill[local] @ ' in init(capsys)


def test_a_broken_skill_is_told_and_the_others_are_done(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_skill("skills/gate")
    (write_skill("skills/empty") / "SKILL.md").write_text("---\nname: empty\n---\n")
    (write_skill("skills/huge") / "SKILL.md").write_bytes(b"x" * 2_000_000)
    said = init(capsys, status=1)
    assert "skills/empty/SKILL.md: no text after the frontmatter" in said
    assert said.count("not done: ") == 2
    assert Path("skills/gate/skill_meta.json").exists()


@pytest.mark.parametrize(
    ("folders", "path"),
    [
        (["skills/a", "skills/b"], "skills"),
        (["skills/deep/a", "skills/b"], "skills"),
        (["a", "b"], "."),
        (["a"], "."),
        (["skills/a", "template"], "."),  # as in anthropics/skills
        (["plugins/x/skills/a", "plugins/y/skills/b"], "plugins"),
        (["plugins/x/skills/a", "plugins/x/skills/b"], "plugins"),
        ([".claude/skills/a"], ".claude/skills"),
        (["lib/named/skills/a"], "lib"),  # named is a plugin, see below
    ],
)
def test_one_path_is_the_common_folder(
    folders: list[str], path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in folders:
        write_skill(folder, f"The command of {folder} is `{folder} up`.")
    for plugin in (".", "lib/named"):
        if Path(plugin).is_dir():
            Path(plugin, ".claude-plugin").mkdir()
            Path(plugin, ".claude-plugin/plugin.json").write_text("{}")
    init(capsys)
    assert f"[pytest]\nskill_paths = {path}\n" in Path("pytest.ini").read_text()
    assert all(Path(folder, "skill_meta.json").is_file() for folder in folders)


def test_many_skills_get_cases_where_none_exist(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for number in range(41):
        folder = write_skill(
            f"plugins/p{number % 3}/skills/gate-{number}", f"Say `up {number}`."
        )
        if number < 10:
            (folder / "skill_meta.json").write_text('{"cases": []}')
    said = init(capsys)
    assert "cases of 31 skills " in said
    assert "cases of 10 skills " in said
    assert "pytest --skill plugins --collect-only" in said
    assert len(said.splitlines()) < 15
    assert max(map(len, said.splitlines())) <= 80
    assert "skill_paths = plugins\n" in Path("pytest.ini").read_text()
    written = [file.read_text() for file in Path().rglob("skill_meta.json")]
    assert len(written) == 41
    assert written.count('{"cases": []}') == 10


def test_a_plugin_that_is_added_later_is_found(pytester: pytest.Pytester) -> None:
    pytester.chdir()
    write_skill("plugins/x/skills/gate")
    assert main(["init"]) == 0
    write_skill("plugins/y/skills/door", "The door is opened by `door up`.")
    before = files()
    assert main(["init"]) == 0
    assert set(files()) - set(before) == {"plugins/y/skills/door/skill_meta.json"}
    output = pytester.runpytest_inprocess("--collect-only", "-q").stdout.str()
    assert "plugins/y/skills/door/skill_meta.json" in output
    assert "plugins/x/skills/gate/skill_meta.json" in output


def test_a_new_skill_goes_where_the_others_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_skill("plugins/x/skills/gate")
    init(capsys, "door")
    assert Path("plugins/x/skills/door/SKILL.md").is_file()
    write_skill("plugins/y/skills/wall", "The wall is opened by `wall up`.")
    before = files()
    assert "pytest-upskill init plugins/x/skills/bridge" in init(
        capsys, "bridge", status=2
    )
    # No skill, but a folder that somebody expects.
    assert "no such file or folder" in init(capsys, "skills", status=2)
    assert files() == before


def test_nothing_is_written_out_of_the_project(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = write_skill("../outside/door")
    write_skill("skills/gate")
    Path("skills/door").symlink_to(outside.resolve(), target_is_directory=True)
    Path(".git").mkdir()
    Path(".git/HEAD").write_text("ref: refs/heads/main")
    said = init(capsys, status=1)
    assert "skills/door is outside of this project" in said
    assert [path.name for path in outside.iterdir()] == ["SKILL.md"]
    init(capsys, str(outside.resolve()), status=1)
    init(capsys, "../outside/new", status=2)
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["door"]
    # A link in place of a file is not written through either.
    (tmp_path / "mine.ini").write_text("[pytest]\n")
    Path("pytest.ini").unlink()
    Path("pytest.ini").symlink_to(tmp_path / "mine.ini")
    init(capsys, "skills/gate", status=2)
    assert (tmp_path / "mine.ini").read_text() == "[pytest]\n"


def test_a_broken_link_is_no_place_for_cases(
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = write_skill("skills/gate")
    (folder / "skill_meta.json").symlink_to("/nowhere/at/all.json")
    assert "skills/gate/skill_meta.json" in init(capsys)
    assert (folder / "skill_meta.json").is_symlink()
    assert not (folder / "skill_meta.json").exists()


def test_all_or_nothing_in_a_folder_that_can_not_be_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill("skills/one")
    write_skill("skills/two")
    before = files()
    monkeypatch.setattr(  # as root may write everywhere
        "pytest_upskill.cli.commands.init.why_unwritable",
        lambda file: "not writable" if "two" in file.parts else "",
    )
    assert "Nothing was written" in init(capsys, status=2)
    assert files() == before


def test_a_broken_file_of_settings_is_told_before_anything_is_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_skill("skills/gate")
    Path("pyproject.toml").write_text("[tool\n")
    before = files()
    said = init(capsys, status=2)
    assert "pyproject.toml: not valid" in said
    assert files() == before


@pytest.mark.parametrize(
    "name", ['a"b', "a'b # x", "a\nskill_runs = 9", "a\x1b[2Jb", "ä ö"]
)
def test_odd_names_of_folders_do_no_harm(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(name) / "gate"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL.format(name='"x\\"\\e[2J"', body=BODY))
    Path("pyproject.toml").write_text("")
    said = init(capsys)
    assert "\x1b" not in said
    assert json.loads((folder / "skill_meta.json").read_text())["cases"]
    settings = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["pytest"][
        "ini_options"
    ]
    assert settings == {"skill_paths": [name], "skill_models": ["local"]}
    Path("pyproject.toml").unlink()
    if name != "ä ö":
        assert "no place in an ini file" in init(capsys, status=2)
        assert not Path("pytest.ini").exists()


def test_pytest_runs_what_was_written(pytester: pytest.Pytester) -> None:
    pytester.chdir()
    write_skill("skills/gate")
    Path("model.py").write_text(
        "def reply(question):\n    return 'gate up, /var/log/gate' if 'gate up' in"
        " question.system else 'no idea'\n"
    )
    assert main(["init"]) == 0
    ini = Path("pytest.ini")
    ini.write_text(ini.read_text().replace("local", "scripted:model.py:reply"))
    pytester.runpytest_inprocess("skills/gate").assert_outcomes(passed=2)
    # A new skill has nothing to ask yet.
    assert main(["init", "my-skill"]) == 0
    pytester.runpytest_inprocess("skills/my-skill").assert_outcomes(skipped=2)
