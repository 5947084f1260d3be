"""What a model sees of a skill."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.settings import MOST_REFERENCE_TOKENS, Settings
from pytest_upskill.skills.case import Case
from pytest_upskill.skills.context import load_for_run, require_ref
from pytest_upskill.skills.skill import Skill, UnseenFile
from pytest_upskill.trials.arm import arms_of
from pytest_upskill.trials.subject import CHAT, Subject
from pytest_upskill.trials.trial import trials_of
from support.kit import commit_all, write_skill

BODY = (
    "Read [keys](references/keys.md), then run `scripts/open.py`. Look at"
    " assets/gate.png."
)
KEYS = "The key is under the mat.\n"
CASE = Case("open-gate", "How do I open it?")


def write_all(folder: Path, body: str = BODY, **files: str | bytes) -> Path:
    write_skill(folder, body=body)
    for name, content in {
        "references/keys.md": KEYS,
        "references/other.md": "Nobody refers to this.",
        "scripts/open.py": "print('gate up')\n",
        "assets/gate.png": b"\x89PNG\0\xff",
        **files,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        data = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(data)
    return folder


def loaded(folder: Path, **settings: Any) -> Skill:
    return load_for_run(folder / "SKILL.md", Settings(**settings))


def test_a_plain_run_sees_the_body_and_tells_what_it_does_not_see(
    tmp_path: Path,
) -> None:
    skill = loaded(write_all(tmp_path / "gate"))
    assert skill.text == skill.body == BODY
    names = ["references/keys.md", "scripts/open.py", "assets/gate.png"]
    assert skill.unseen == tuple(UnseenFile(name) for name in names)


def test_references_are_put_in_context_in_the_order_of_the_text(tmp_path: Path) -> None:
    skill = loaded(write_all(tmp_path / "gate"), references=True)
    assert [path for path, _ in skill.references] == [
        "references/keys.md",
        "scripts/open.py",
    ]
    assert skill.unseen == (UnseenFile("assets/gate.png", "not UTF-8 text"),)
    keys = "references/keys.md:\n```\nThe key is under the mat.\n```"
    script = "scripts/open.py:\n```\nprint('gate up')\n```"
    assert skill.text == f"{BODY}\n\n{keys}\n\n{script}"
    assert skill.tokens > loaded(tmp_path / "gate").tokens


def test_the_arms_differ_by_that_text_only(tmp_path: Path) -> None:
    """Byte for byte, in every part of a question."""
    folder = write_all(tmp_path / "gate")
    subject, settings = Subject(CHAT, "haiku"), Settings(references=True)
    plain = trials_of(
        "gate", CASE, subject, arms_of(loaded(folder), Settings()), settings=Settings()
    )
    skill = loaded(folder, references=True)
    baseline, full = trials_of(
        "gate", CASE, subject, arms_of(skill, settings), settings=settings
    )
    assert baseline.question == plain[0].question
    assert full.question.system == plain[1].question.system.replace(BODY, skill.text)
    assert full.question.system.count(KEYS.strip()) == 1
    for name in ("model", "messages", "max_output", "run", "schema"):
        assert getattr(full.question, name) == getattr(baseline.question, name)
    assert full.question.key != plain[1].question.key


def test_a_file_can_not_close_its_own_fence(tmp_path: Path) -> None:
    folder = write_all(
        tmp_path / "gate", **{"references/keys.md": "```\nx\n```\n````\n"}
    )
    assert "references/keys.md:\n`````\n" in loaded(folder, references=True).text


def test_what_does_not_fit_is_left_out_and_later_files_are_tried(
    tmp_path: Path,
) -> None:
    files = {f"{name}.md": name * 4 * 9_000 for name in "abc"}
    folder = write_all(
        tmp_path / "gate", "a.md b.md c.md d.md", **files, **{"d.md": "short"}
    )
    skill = loaded(folder, references=True)
    assert [path for path, _ in skill.references] == ["a.md", "b.md", "d.md"]
    assert skill.unseen == (UnseenFile("c.md", "no room in 20,000 tokens"),)
    assert skill.tokens < MOST_REFERENCE_TOKENS + 100


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"x" * 1_001, "1,001 bytes (limit 1,000)"),
        (b"a\0b", "not a text"),
        (b"\xff", "not UTF-8 text"),
    ],
)
def test_a_file_that_is_no_text_has_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, reason: str
) -> None:
    monkeypatch.setattr("pytest_upskill.skills.context.MAX_FILE_BYTES", 1000)
    folder = write_all(tmp_path / "gate", "big.md", **{"big.md": content})
    assert loaded(folder, references=True).unseen == (UnseenFile("big.md", reason),)


def test_an_empty_file_is_neither_seen_nor_missed(tmp_path: Path) -> None:
    skill = loaded(
        write_all(tmp_path / "gate", "`x.md`", **{"x.md": "\n"}), references=True
    )
    assert (skill.references, skill.unseen) == ((), ())


def test_references_of_references_are_not_followed(tmp_path: Path) -> None:
    folder = write_all(
        tmp_path / "gate", "a.md", **{"a.md": "See b.md", "b.md": "Far."}
    )
    assert "Far." not in loaded(folder, references=True).text


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_the_previous_arm_has_the_files_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_upskill.skills.context.MAX_FILE_BYTES", 1000)
    require_ref.cache_clear()
    folder = tmp_path / "skills/gate"
    old = {"a.md": "Old a.", "gone.md": "Gone.", "big.md": "x" * 1_001, "bin.md": "\0"}
    write_all(
        folder, "Old: a.md, gone.md, new.md, BIG.md, bin.md, link.md, out.md", **old
    )
    (folder / "link.md").symlink_to("references/keys.md")
    (folder / "out.md").symlink_to("../out.md")
    commit_all(tmp_path)
    (folder / "gone.md").unlink()
    write_all(folder, "New: a.md, new.md", **{"a.md": "New a.", "new.md": "New."})
    skill = loaded(folder, references=True, against="main")
    assert skill.previous is not None
    assert skill.previous.startswith("Old: a.md")
    assert "a.md:\n```\nOld a.\n```\n\ngone.md:\n```\nGone.\n```" in skill.previous
    assert skill.previous.endswith(f"link.md:\n```\n{KEYS}```")
    assert "New" not in skill.previous
    assert "a.md:\n```\nNew a.\n```\n\nnew.md:\n```\nNew.\n```" in skill.text
    plain = loaded(folder, against="main").previous
    assert plain == "Old: a.md, gone.md, new.md, BIG.md, bin.md, link.md, out.md"


def test_a_link_out_of_the_folder_and_what_is_no_file_are_not_read(
    tmp_path: Path,
) -> None:
    folder = write_all(
        tmp_path / "gate", "See out.md, far/away.md, pipe.md and loop.md."
    )
    (tmp_path / "out.md").write_text("secret")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/away.md").write_text("secret")
    (folder / "out.md").symlink_to(tmp_path / "out.md")
    (folder / "far").symlink_to(tmp_path / "other")
    (folder / "loop.md").symlink_to("loop.md")
    os.mkfifo(folder / "pipe.md")
    skill = loaded(folder, references=True)
    assert skill.references == ()
    assert [(file.path, file.reason) for file in skill.unseen] == [
        ("out.md", "a link out of the skill's folder"),
        ("far/away.md", "a link out of the skill's folder"),
        ("pipe.md", "not a regular file"),
        ("loop.md", "too many levels of symbolic links"),
    ]


def test_a_hidden_or_private_file_is_put_in_no_context(tmp_path: Path) -> None:
    names = (
        "See [a](.env), [b](.hidden/a.md), [c](conf/id_rsa), [d](visible.md) and"
        " [e](env.py)."
    )
    texts = {".env": "x", ".hidden/a.md": "x", "conf/id_rsa": "x", "env.py": "fine"}
    folder = write_all(tmp_path / "gate", names, **texts)
    (folder / "visible.md").symlink_to(".env")
    commit_all(tmp_path)
    skill = loaded(folder, references=True, against="main")
    assert skill.references == (("env.py", "fine"),)
    assert {file.path: file.reason for file in skill.unseen} == {
        ".env": "may hold secrets",
        ".hidden/a.md": "hidden",
        "conf/id_rsa": "may hold secrets",
        "visible.md": "may hold secrets",
    }
    assert skill.previous == skill.text
