"""What generate works from: a skill, a trace, a tool, examples; and a judge."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.errors import InputError, SettingsError
from pytest_upskill.skills.skill import load_skill
from pytest_upskill.teach.sources import gather, read_tool
from pytest_upskill.teach.teach_settings import TeachSettings
from support.fake_models import (
    COLOURS,
    SECRETS,
    TASK,
    FakeModels,
    Project,
    body,
    case,
    draft,
    generate_words,
    knows,
    lines,
    served,
)
from support.judges import judge_says
from support.kit import write_skill
from support.loopback import Asked, LoopbackServer, Reply

COLOUR_CASES = [case(colour) for colour in COLOURS]
KEY = "sk-ant-api03-" + "Ab3" * 20


def improvable_skill(project: Project) -> Path:
    folder = write_skill(
        project.folder / "skills/gate",
        [],
        body=body("red"),
        frontmatter="license: MIT\n",
    )
    (folder / "skill_meta.json").unlink()
    (folder / "references").mkdir()
    (folder / "references/old.md").write_text("Old but good.\n")
    return folder


def test_a_skill_is_improved_in_place_with_permission_and_the_old_one_is_kept(
    project: Project,
) -> None:
    folder = improvable_skill(project)
    fake = FakeModels([draft(*COLOURS, name="another-name")])
    with served(fake) as url:
        words = generate_words(url)
        words.remove("--yes")
        status, _, error = project.run(*words, "--from", "skills/gate")
        assert status == 2
        assert "would change the skill in place\n  Allow it with --force" in error
        status, shown, _ = project.run(*words, "--from", "skills/gate", "--yes")
    assert status == 0
    assert [
        line for line in lines(shown) if line.startswith("current small 0% → 12% (+12)")
    ]
    text = (folder / "SKILL.md").read_text()
    assert "license: MIT" in text
    skill = load_skill(folder / "SKILL.md")
    assert (skill.name, skill.body) == ("gate", body(*COLOURS))
    assert (folder / "references/old.md").read_text() == "Old but good.\n"
    kept = project.folder / ".upskill/teach/gate/before/SKILL.md"
    assert body("red") in kept.read_text()
    asked = fake.of("teacher")[0].question
    assert body("red") in asked
    assert "Old but good." in asked
    assert TASK in asked


def test_an_improved_skill_can_be_saved_elsewhere_with_all_its_files(
    project: Project,
) -> None:
    folder = improvable_skill(project)
    before = sorted(folder.rglob("*"))
    status, _, _ = project.generate(
        FakeModels(), "--from", "skills/gate", "-o", "gate-two", "--no-eval"
    )
    assert status == 0
    assert sorted(folder.rglob("*")) == before
    assert load_skill(project.folder / "gate-two/SKILL.md").body == body(*COLOURS)
    assert (project.folder / "gate-two/references/old.md").is_file()


@pytest.mark.parametrize("command", ["generate", "refine", "cases"])
def test_only_files_of_the_skill_are_sent_and_listed_before(
    project: Project, command: str
) -> None:
    folder = write_skill(
        project.folder / "skills/gate", COLOUR_CASES[:4], body=body("red")
    )
    (project.folder / "outside.txt").write_text("FOREIGN text")
    texts = {
        ".env": "FOREIGN=1",
        ".hidden/a.md": "FOREIGN",
        ".git/config": "[remote] url = FOREIGN",
        ".venv/lib/a.py": "FOREIGN",
        "node_modules/x/a.js": "FOREIGN",
        "id_rsa": "FOREIGN",
        "conf/credentials.json": "FOREIGN",
        "notes.md~": "FOREIGN",
        "binary.dat": "FOREIGN\0",
        "notes.md": "Notes of the skill.",
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / ".venv/passwd").symlink_to(project.folder / "outside.txt")
    (folder / "link.md").symlink_to(project.folder / "outside.txt")
    (folder / "visible.md").symlink_to(".env")
    (folder / "below").symlink_to(project.folder)
    fake = FakeModels()
    with served(fake) as url:
        words = generate_words(url)
        if command == "generate":
            words += ["--from", "skills/gate", "-o", "gate-two", "--no-eval"]
        else:
            words[:2] = [
                command,
                "skills/gate",
                *(["--add", "8"] if command == "cases" else []),
            ]
        _, shown, error = project.run(*words)
    assert fake.asked, error
    assert not any("FOREIGN" in str(asked.body) for _, asked in fake.asked)
    listed = shown[: shown.index("This takes")]
    assert "  SKILL.md (" in listed
    if command == "generate":
        assert "  notes.md (19 bytes)" in listed
        assert "Notes of the skill." in fake.of("teacher")[0].question
        assert "link.md (a link out of the skill's folder)" in listed
        assert ".env (may hold secrets), .hidden/a.md (hidden), below (a link" in listed
        copied = {path.name for path in (project.folder / "gate-two").rglob("*")}
        assert "notes.md" in copied
        assert not copied & {".env", "visible.md", "link.md", "below"}


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_files_that_git_ignores_are_not_sent_unless_the_whole_skill_is_ignored(
    project: Project,
) -> None:
    folder = write_skill(project.folder / "skills/gate", [])
    (folder / "local").mkdir()
    (folder / "local/a.md").write_text("IGNORED")
    (folder / "b.md").write_text("Kept.")
    subprocess.run(["git", "init", "-q", str(project.folder)], check=True)
    ignore = project.folder / ".gitignore"
    ignore.write_text("local/\n")
    settings = TeachSettings("task", source=folder)
    material = gather(settings, "local")
    assert material.unsent == (("local/a.md", "ignored by git"),)
    assert "IGNORED" not in material.text
    assert "Kept." in material.text
    ignore.write_text("skills/\n")
    assert "IGNORED" in gather(settings, "local").text


def test_many_files_of_any_name_do_not_fill_the_screen(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "gate", [])
    for number in range(30):
        (folder / f".hidden-{number}\x1b[31m").write_text("x")
    *_, last = gather(TeachSettings("task", source=folder), "local").lines
    assert last.endswith("and 20 more")
    assert "\x1b" not in last


def chatty(asked: Asked) -> str:
    return f"{knows(asked)} My key is {KEY}."


def test_secrets_are_masked_in_all_that_is_sent_and_saved(project: Project) -> None:
    trace = project.folder / "trace.md"
    trace.write_text(
        f"# User\n\nDeploy with {KEY}\n\n# Assistant\n\nDone with {KEY}.\n"
    )
    leaky = draft("red", body=f"{body('red')}\nUse {KEY}.")
    fake = FakeModels([leaky, draft(*COLOURS)], student=chatty)
    with served(fake) as url:
        words = [*generate_words(url), "--from", "trace.md", "-e", f"in {KEY} -> out"]
        words[1] = f"{TASK} with {KEY}"
        status, shown, error = project.run(*words)
    assert status == 0, error
    sent = [json.dumps(asked.body) for _, asked in fake.asked]
    assert not [text for text in sent if KEY in text]
    assert KEY not in shown
    trace.unlink()
    for file in project.folder.rglob("*"):
        # What students said of themselves is theirs, and stays
        # where their answers are kept.
        if file.is_file() and file.name not in ("results.json", "answers.sqlite"):
            assert KEY.encode() not in file.read_bytes(), file


def test_with_a_trace_the_teacher_is_measured_in_three_arms(project: Project) -> None:
    told = "\n".join(f"{colour} is lamp {word}" for colour, word in SECRETS.items())
    filler = "\n".join(
        f"Line {number} of a log that says little." for number in range(200)
    )
    (project.folder / "trace.md").write_text(
        "# User\n\nSet the lamp.\n\n# Assistant\n\nThese are the"
        f" commands:\n{told}\n\n{filler}\n"
    )
    fake = FakeModels([draft(*COLOURS)])
    status, shown, error = project.generate(fake, "--from", "trace.md", "--json")
    assert status == 0, error
    data = json.loads(shown)
    [row] = data["teacher"]
    assert row["model"] == "big"
    rates = {name: arm["rate"] for name, arm in row["arms"].items()}
    assert rates == {"baseline": 0, "trace": 1, "skill": 1}
    assert data["trace_tokens"] > data["attempts"][0]["draft"]["tokens"]
    skill = f"100% with the skill ({data['attempts'][0]['draft']['tokens']:,} tokens)"
    trace = f"100% with the trace ({data['trace_tokens']:,} tokens)"
    assert (
        f"With big the skill is as good as the trace: {skill}, {trace}."
        in data["sentences"]
    )
    assert "Set the lamp." in fake.of("teacher")[0].question
    assert "Trace of " in error


def test_a_large_trace_is_condensed(project: Project) -> None:
    noise = "\n".join(f"line {number}: nothing to see here" for number in range(5_000))
    text = (
        f"# User\n\nSet the lamp.\n\n# Assistant\n\n```\n{noise}\n```\n\nType lamp zorp"
        " for red.\n"
    )
    (project.folder / "trace.md").write_text(text)
    assert len(text) > 150_000
    fake = FakeModels()
    status, shown, error = project.generate(fake, "--from", "trace.md", "--no-eval")
    assert (status, error) == (0, "")
    sent = fake.of("teacher")[0].question
    assert "lamp zorp" in sent
    assert len(sent) < 50_000
    assert [
        line for line in lines(shown) if line.startswith("Trace of ") and len(line) > 30
    ]


def test_the_teacher_gets_a_tool_and_examples(project: Project) -> None:
    tool = {
        "name": "set_lamp",
        "description": "Sets the lamp to a colour.",
        "inputSchema": {"type": "object", "properties": {"hue": {"type": "string"}}},
    }
    (project.folder / "tools.json").write_text(json.dumps({"tools": [tool]}))
    fake = FakeModels()
    words = [
        "--tool",
        "tools.json#set_lamp",
        "-e",
        "red -> lamp zorp",
        "-e",
        "blue -> lamp flen",
    ]
    words.append("--no-eval")
    status, _, error = project.generate(fake, *words)
    assert status == 0, error
    for asked in (fake.of("teacher")[0], fake.of("author")[0]):
        assert "set_lamp" in asked.question
        assert "hue" in asked.question
        assert "- red -> lamp zorp\n- blue -> lamp flen" in asked.question
    status, _, error = project.generate(fake, "--tool", "tools.json#other")
    assert status == 2
    assert "tools.json" in error


def test_a_judge_grades_cases(project: Project) -> None:
    written: list[dict[str, Any]] = [
        case(colour, expected={"judge": [f"It names {word}."]})
        for colour, word in SECRETS.items()
    ]
    fake = FakeModels(cases=[json.dumps({"cases": written})])

    def script(asked: Asked) -> Reply:
        if not asked.system.startswith("You grade"):
            return fake(asked)
        wanted = asked.question.rpartition("It names ")[2].partition(".")[0]
        answer = asked.question.partition("<answer")[2].partition("</answer")[0]
        verdict = "pass" if wanted in answer else "fail"
        one = {"criterion": 1, "quote": "", "reason": "so", "verdict": verdict}
        return Reply(judge_says(asked.question, [one]))

    with LoopbackServer(script) as server:
        words = [*generate_words(f"{server.url}/v1"), "--judge", "strict"]
        status, shown, error = project.run(*words)
    assert status == 0, error
    assert "held out small 0% → 100% (+100)" in lines(shown)


SCHEMA = {
    "type": "object",
    "properties": {"arch": {"type": "string"}},
    "required": ["arch"],
}
MCP = {"name": "build", "description": "Builds a kernel.", "inputSchema": SCHEMA}
OPENAI = {"name": "build", "description": "Builds a kernel.", "parameters": SCHEMA}
FORMS = [
    {"tools": [MCP, {"name": "clean"}]},
    {"jsonrpc": "2.0", "result": {"tools": [MCP, {"name": "clean"}]}},
    [{"type": "function", "function": OPENAI}],
    [MCP, {"name": "clean"}],
    MCP,
]


@pytest.mark.parametrize("form", FORMS)
def test_the_forms_of_a_tool(tmp_path: Path, form: Any) -> None:
    file = tmp_path / "a#b.json"
    file.write_text(json.dumps(form))
    assert json.loads(read_tool(f"{file}#build")) in (MCP, OPENAI)


def test_the_name_of_a_single_tool_is_optional(tmp_path: Path) -> None:
    file = tmp_path / "a#b.json"
    file.write_text(json.dumps(MCP))
    assert json.loads(read_tool(str(file))) == MCP
    file.write_text(json.dumps({"name": "x", "description": "long " * 20_000}))
    assert len(read_tool(str(file))) < 21_000


@pytest.mark.parametrize(
    ("text", "reference", "said"),
    [
        (json.dumps(FORMS[0]), "f.json", "has 2 tools"),
        (
            json.dumps(FORMS[0]),
            "f.json#bild",
            "no tool 'bild' (did you mean \"build\"?)",
        ),
        ("{}", "f.json#x", "no tool in"),
    ],
)
def test_bad_tool_references_are_reported(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    reference: str,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f.json").write_text(text)
    with pytest.raises(SettingsError) as caught:
        read_tool(reference)
    assert said in caught.value.problem
    assert caught.value.where == f"tool {reference}"
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "reference", "said"),
    [
        ("{\n,", "f.json#x", "f.json:2:1: invalid JSON"),
        ("[" * 100_000, "f.json#x", "f.json: invalid JSON: nested too deeply"),
        ("{}", "other.json#x", "other.json: no such file"),
    ],
)
def test_a_tool_file_that_is_no_json_is_rejected(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    reference: str,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f.json").write_text(text)
    with pytest.raises(InputError) as caught:
        read_tool(reference)
    assert str(caught.value).startswith(said)
    assert caught.value.hint
