"""One small skill for every quirk that real skills have,
and what each of them must give.

The skills are about the words of a harbour. A scripted model answers with the words in
capitals that it sees, so it knows a skill's word only from its text; the scripted judge
looks for words in capitals too.
"""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_upskill.errors import SkillError
from pytest_upskill.lint import lint_skill
from pytest_upskill.skills.search import find_skills
from pytest_upskill.skills.skill import load_skill, name_of

CORPUS = Path(__file__).parent
CODES_OF_CASES = {"few-cases", "no-judge", "near-duplicate"}  # of no interest here
MODEL = """
import json, re

def answer(question):
    return " ".join(re.findall("[*]([A-Z]+)[*]", question.system)) or "No idea."

def judge(question):
    text = question.messages[-1][1]
    said = set(re.findall("[A-Z]{4,}", text.split("<answer ")[1].split("</answer ")[0]))
    criteria = text.split("The criteria:\\n")[1].split("\\n\\n")[0].split("\\n")
    verdicts = [
        {"criterion": number, "quote": "", "reason": "as I read it",
         "verdict": "pass" if said & set(re.findall("[A-Z]{4,}", one)) else "fail"}
        for number, one in enumerate(criteria, start=1)
    ]
    mark = re.findall('"mark": "(.+?)"', text)[-1]
    return json.dumps({"mark": mark, "verdicts": verdicts})
"""


OUTCOME = re.compile(
    r"(?P<outcome>PASSED|FAILED|ERROR) skills/(?P<folder>\S+?)/"
    r"(?:SKILL\.md|skill_meta\.json|evals/evals\.json)(?:::(?P<test>[^[\s]+))?"
)


@dataclass(frozen=True)
class Row:
    """What a skill of the corpus must give."""

    folder: str
    lint: str = ""  # the codes of its findings
    name: str = ""  # if it is not that of the folder
    refused: str = ""  # why, if it is
    tests: str = "word=passed"  # the outcome of each test


ROWS = [
    Row("plain"),
    # The form of SKILL.md.
    Row("other-folder", "skill-name", name="harbour-words"),
    Row("capitals", "skill-name", name="Harbour_Words"),
    Row("metadata-nested", "skill-metadata"),
    Row("metadata-list", "skill-metadata"),
    Row("description-long", "skill-description"),
    Row("colon", "skill-yaml"),
    Row("quote", "skill-yaml"),
    Row("tab", "skill-yaml"),
    Row("unknown-key", "skill-unknown-key"),
    Row("key-twice", "skill-yaml"),
    Row("no-name", "skill-name"),
    Row("no-description", "skill-description"),
    Row("no-frontmatter", "skill-frontmatter"),
    Row("frontmatter-open", "skill-frontmatter"),
    Row("crlf-bom", "skill-frontmatter"),
    Row("lower-case"),
    Row("large-picture"),
    # What can't be used.
    Row("refused-empty", "skill-invalid", refused="no text", tests="ERROR"),
    Row("refused-latin", "skill-invalid", refused="not UTF-8", tests="ERROR"),
    Row("refused-link", "skill-invalid", refused="link out of", tests="ERROR"),
    # Folders.
    Row("link-beside", "skill-link"),
    Row("nest"),
    Row("nest/skills/inner"),
    Row("twins/left/twin"),
    Row("twins/right/twin"),
    # Cases.
    Row("no-cases", "no-cases", tests=""),
    Row("case-bad", "check-unknown", tests="good=passed bad=failed also-good=passed"),
    Row("case-twice", "cases-invalid", tests="word=passed case-2=failed"),
    Row("case-typo", "cases-invalid", tests="good=passed typo=failed"),
    Row("file-broken", "cases-invalid", tests="ERROR"),
    Row("upskill-now", tests="which-word-does-the-harbour-use=passed"),
    Row("evals-keys", "cases-warning", tests="1=passed"),
    Row(
        "evals-files",
        "cases-invalid",
        tests="beside=passed object=passed binary=failed missing=failed",
    ),
    Row("evals-expected", tests="only=passed both=failed"),
    Row(
        "evals-triggers",
        "no-cases trigger-few",
        tests="trigger-what-is-2-2=passed trigger-what-is-the-harbour-s-word=failed",
    ),
    # Files that SKILL.md refers to.
    Row("reference-good"),
    Row("reference-case", "reference-broken"),
    Row("reference-chain", "reference-deep"),
    Row("reference-outside", "reference-outside"),
    Row("reference-missing", "reference-broken"),
    Row("reference-example"),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy, with a file that is too large to be kept."""
    folder = tmp_path_factory.mktemp("real") / "corpus"
    shutil.copytree(
        CORPUS, folder, symlinks=True, ignore=shutil.ignore_patterns("*.py", "__*")
    )
    large = folder / "large-picture"
    shutil.copytree(folder / "plain", large)
    text = (large / "SKILL.md").read_text().replace("plain", "large-picture")
    (large / "SKILL.md").write_text(text)
    (large / "picture.png").write_bytes(b"\x89PNG" + bytes(2_500_000))
    return folder


def test_every_skill_is_found_and_what_is_left_out_is_named(corpus: Path) -> None:
    found = find_skills(corpus)
    assert {file.parent.relative_to(corpus).as_posix() for file in found.files} == {
        row.folder for row in ROWS
    }
    assert {
        path.relative_to(corpus).as_posix(): reason for path, reason in found.left_out
    } == {
        "environment": "a virtual environment",
        "nest/.claude/skills/inner": "a copy of another skill here",
        "node_modules": "installed packages",
        "plain-workspace": "a workspace of skill-creator",
    }


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.folder)
def test_loading(corpus: Path, row: Row) -> None:
    file = next(file for file in find_skills(corpus / row.folder).files)
    wanted = row.name or row.folder.rpartition("/")[2]
    if not row.refused:
        skill = load_skill(file)
        assert skill.name == name_of(file) == wanted
        assert skill.description
        return
    with pytest.raises(SkillError, match=row.refused):
        load_skill(file)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.folder)
def test_lint(corpus: Path, row: Row) -> None:
    file = next(file for file in find_skills(corpus / row.folder).files)
    found = lint_skill(file, judge=True, lift=1)
    codes = [finding.code for finding in found if finding.code not in CODES_OF_CASES]
    assert codes == row.lint.split()


def test_running(corpus: Path, pytester: pytest.Pytester, workers: str) -> None:
    (pytester.path / "fake.py").write_text(MODEL)
    shutil.copytree(corpus, pytester.path / "skills", symlinks=True)
    options = (
        "--model",
        "scripted:fake.py:answer",
        "--skill-judge",
        "scripted:fake.py:judge",
    )
    result = pytester.runpytest_inprocess(
        "--skill", "skills", *options, "-n", workers, "-rA", "-Wdefault"
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    seen: dict[str, list[str]] = {}
    for line in result.outlines:
        if found := OUTCOME.match(line):
            seen.setdefault(found["folder"], []).append(outcome_of(found))
    assert {folder: sorted(tests) for folder, tests in seen.items()} == {
        row.folder: sorted(row.tests.split()) for row in ROWS if row.tests
    }
    shown = result.stdout.str()
    assert "Traceback" not in shown
    assert "LEAK" not in shown


def outcome_of(found: re.Match[str]) -> str:
    """As in the table, without the digest of an automatic id."""
    test = re.sub(r"-[0-9a-f]{6}$", "", found["test"] or "")
    return f"{test}={found['outcome'].lower()}" if test else found["outcome"]


@pytest.mark.nightly
def test_make_corpus_counts_what_was_loaded_and_refused(corpus: Path) -> None:
    (corpus.parent / "without-skills").mkdir()
    script = CORPUS.parent / "try_corpus.py"
    command = [sys.executable, str(script), "-v", str(corpus.parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    refused = [row for row in ROWS if row.refused]
    loaded = len(ROWS) - len(refused)
    first = done.stdout.splitlines()[0]
    assert first.startswith(f"corpus: {loaded} skills loaded, ")
    assert f"{len(refused)} refused, 4 left out" in first
    assert f"{sum(len(row.tests.split()) for row in ROWS)} tests" in first
    assert "       1  symbolic link out of the skill's folder" in done.stdout
    assert "; 0 crashes" in done.stdout
