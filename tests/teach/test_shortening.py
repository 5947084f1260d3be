"""Shorter versions of a skill: the sizes on the way, and what a teacher may write."""

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_upskill.skills.skill import fields_of, load_skill
from pytest_upskill.teach.drafts import Draft, draft_of
from pytest_upskill.teach.replies import NotUsable
from pytest_upskill.teach.shortening import read_version, sizes_toward
from support.kit import write_skill

LONG = "\n\n".join(["# Gate", "Open it with `gate up`.", "See references/keys.md.", "Words. " * 60])


@pytest.fixture
def whole(tmp_path: Path) -> Draft:
    folder = write_skill(tmp_path / "gate", body=LONG, frontmatter="license: MIT\n")
    (folder / "references").mkdir()
    (folder / "references/keys.md").write_text("Keys.")
    (folder / "references/more.md").write_text("More.")
    file = folder / "SKILL.md"
    return draft_of(load_skill(file), fields_of(file))


def reply(body: str, **more: object) -> str:
    return json.dumps({"body": body, **more})


@given(st.integers(1, 5_000), st.integers(2, 100_000), st.integers(1, 6))
def test_sizes_go_down_to_the_limit(limit: int, tokens: int, most: int) -> None:
    limit = min(limit, tokens - 1)
    sizes = sizes_toward(limit, tokens, most)
    assert sizes == sorted(set(sizes), reverse=True)
    assert sizes[-1] == limit
    assert sizes[0] < tokens
    assert 1 <= len(sizes) <= most


def test_sizes_are_steps_of_the_same_ratio() -> None:
    assert sizes_toward(100, 800) == [400, 200, 100]
    assert sizes_toward(700, 800) == [700]


def test_only_the_body_changes(whole: Draft, tmp_path: Path) -> None:
    text = reply("Type `gate up`.", name="other", description="Another one.")
    version = read_version(text, whole, 50, tmp_path)
    assert version.body == "Type `gate up`."
    assert (version.name, version.description) == (whole.name, whole.description)
    written = version.write(tmp_path / "new")
    assert "license: MIT" in written.read_text()
    assert (tmp_path / "new/references/keys.md").is_file()


def test_a_whole_skill_md_is_taken_for_its_body(whole: Draft, tmp_path: Path) -> None:
    text = "```markdown\n---\nname: x\ndescription: y\n---\nType `gate up`.\n```"
    assert read_version(text, whole, 50, tmp_path).body == "Type `gate up`."


@pytest.mark.parametrize(
    ("body", "more", "problem"),
    [
        ("Words. " * 60, {}, "about 105 tokens, 55 too many: at most 50 are allowed, 200 bytes"),
        ("", {}, "the body is empty"),
        ("See `references/other.md`.", {}, "names files that are not there: 'references/other.md'"),
        ("Run scripts/open.py first.", {}, "not there: 'scripts/open.py'"),
        ("```sh\npython scripts/open.py\n```", {}, "not there: 'scripts/open.py'"),
        ("[keys](keys-of-all.md)", {}, "'keys-of-all.md' not found in the skill"),
        ("Short.", {"files": [{"path": "references/a.md", "text": "A"}]}, "no new files"),
    ],
)
def test_what_a_version_must_not_be(
    whole: Draft, tmp_path: Path, body: str, more: dict[str, object], problem: str
) -> None:
    with pytest.raises(NotUsable) as error:
        read_version(reply(body, **more), whole, 50, tmp_path)
    assert problem in str(error.value)


def test_files_that_are_there_may_be_named(whole: Draft, tmp_path: Path) -> None:
    body = "`gate up`; references/keys.md, `references/more.md`, your `src/main.py`"
    assert read_version(reply(body), whole, 50, tmp_path).body == body


def test_faults_of_the_whole_skill_are_not_those_of_a_version(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "gate", body=f"[gone](gone.md)\n\n{LONG}")
    text = (folder / "SKILL.md").read_text()
    (folder / "SKILL.md").write_text(text.replace("About a gate.", "x" * 1100))
    file = folder / "SKILL.md"
    whole = draft_of(load_skill(file), fields_of(file))
    assert (
        read_version(reply("See [gone](gone.md)."), whole, 50, tmp_path).description == "x" * 1100
    )


@given(st.text(max_size=300))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_any_body_is_taken_as_it_is_or_refused(whole: Draft, tmp_path: Path, body: str) -> None:
    with suppress(NotUsable):
        version = read_version(reply(body), whole, 20, tmp_path)
        assert 0 < version.tokens <= 20
        with suppress(FileExistsError):
            assert load_skill(version.write(tmp_path / "any")).name == whole.name
