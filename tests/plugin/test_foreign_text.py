"""Text of others is no command to a terminal or a CI system, wherever it stands."""

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_upskill.cli import main
from support.kit import write_skill
from support.loopback import Fault, LoopbackServer

# At its start, behind a line break, in the middle,
# and where a line of 80 columns is wrapped.
EVIL = (
    "::stop-commands::t\n::error title=t::forged\r\n "
    " ::warning::w\r::notice::n\u2028::group::g\x85\x1b[31m\x1b]8;;http://evil.example\x07link\x1b]8;;\x07\x9b2J\x7f\u202eltr\u2066\u200b\ufeff##[error]e"
    f" ##vso[task.setvariable]v <img src=//evil.example/p.png> @team | `c` {'x' * 70}"
    f" ::error::wrapped {'y' * 79}::error::cut"
)
FOLDER = "::error::folder\n::error::line\x1b[31m\u202e##[error]"
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|##\\w*\\["
)
COMMAND = re.compile(r"^\s*::", re.M)


def assert_harmless(text: str, where: str) -> None:
    for pattern in (FORBIDDEN, COMMAND):
        if found := pattern.search(text):
            start = max(found.start() - 60, 0)
            pytest.fail(
                f"{where}: {found.group()!r} in {text[start : found.end() + 60]!r}"
            )


def evil_cases() -> list[dict[str, object]]:
    return [
        {
            "id": "fails",
            "input": EVIL,
            "expected": {"contains": [f"nothing such {EVIL}"]},
        },
        {"id": "falls", "input": "l", "expected": {"contains": ["forged"]}},
        {"id": "skipped", "input": "a", "expected": {"contains": ["x"]}, "skip": EVIL},
        {"id": "xfails", "input": "b", "expected": {"contains": ["zz"]}, "xfail": EVIL},
        {"id": "judged", "input": "c", "expected": {"judge": [EVIL]}},
        {"id": "errs", "input": "server error", "expected": {"contains": ["x"]}},
        {"id": EVIL, "input": "d", "expected": {"contains": ["x"]}},
        {"id": "typo", "input": "e", "expected": {"contians": ["x"]}, EVIL: 1},
        {"id": "tagged", "input": "f", "expected": {"contains": ["x"]}, "tags": [EVIL]},
        {
            "id": "tag",
            "input": "g",
            "expected": {"contains": ["x"]},
            "tags": ["::error::t"],
        },
        {"id": "::error::id", "input": "h", "expected": {"contains": ["x"]}},
        {"id": "regex", "input": "i", "expected": {"regex": [EVIL]}},
        {"id": "schema", "input": "j", "expected": {"json_schema": {"const": EVIL}}},
        {
            "id": "file",
            "input": "k",
            "expected": {"contains": ["x"]},
            "context": {"files": [EVIL]},
        },
    ]


def evil_skill(folder: Path) -> None:
    write_skill(folder, evil_cases())
    text = f"---\nname: {json.dumps(EVIL)}\ndescription: {json.dumps(EVIL)}\n"
    text += (
        f"::stop-commands::frontmatter\n{json.dumps(EVIL)}: 1\n---\nSay x."
        " [link](::error::l)\n"
    )
    (folder / "SKILL.md").write_text(
        text + f"[gone]({FOLDER}.md)\n{EVIL}", encoding="utf-8"
    )


@pytest.fixture
def args(pytester: pytest.Pytester) -> list[str]:
    evil_skill(pytester.path / FOLDER)
    # Its folder is harmless, so pytest finds and shows the line that it warns about.
    lines = "::stop-commands::t ##[error]: a: b\n"
    write_skill(pytester.path / "plain", evil_cases()[:3], frontmatter=lines)
    broken = write_skill(pytester.path / "broken")
    (broken / "skill_meta.json").write_text(json.dumps({EVIL: EVIL}))
    (pytester.path / "a.json").write_text(json.dumps([{"answer": EVIL}]))
    common = ["--skill=.", "-W", "default", "--color=no"]
    return [*common, "--model=scripted:a.json", "--skill-judge=scripted:a.json"]


NIGHTLY = (
    *(["--tb=short"], ["--collect-only", "-q"], ["--setup-plan"]),
    *(["-W", "error", "--tb=line", "-q"], ["-vv", "-n2"]),
)


@pytest.mark.parametrize(
    "more",
    [
        *(["-vv", "-rA"], ["--collect-only"]),
        *(pytest.param(args, marks=pytest.mark.nightly) for args in NIGHTLY),
    ],
    ids=" ".join,
)
def test_the_output_of_pytest(
    pytester: pytest.Pytester, args: list[str], more: Sequence[str]
) -> None:
    result = pytester.runpytest_inprocess(*args, *more)
    assert_harmless(result.stdout.str(), "stdout")
    assert_harmless(result.stderr.str(), "stderr")


def test_what_servers_say(pytester: pytest.Pytester, args: list[str]) -> None:
    fault = Fault("status", 400, message=EVIL, error_type=EVIL)
    with LoopbackServer(lambda _: fault) as server:
        where = [
            "--model=any",
            f"--skill-base-url={server.url}/v1",
            "-rA",
            "--skill-json=r.json",
        ]
        result = pytester.runpytest_inprocess(*args[:4], *where)
    assert "400 from http" in result.stdout.str()
    assert_harmless(result.stdout.str(), "stdout")
    assert main(["report", "r.json"]) == 1


def test_what_a_run_writes(
    pytester: pytest.Pytester, args: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path / "job.md"))
    runs = ["--skill-runs=5", "--skill-no-baseline"]
    pytester.runpytest_inprocess(*args, *runs, "--skill-accept")
    answer = EVIL.replace("forged", "gone")
    (pytester.path / "a.json").write_text(json.dumps([{"answer": answer}]))
    files = ["--skill-markdown=c.md", "--skill-html=p.html", "--junitxml=j.xml"]
    result = pytester.runpytest_inprocess(
        *args, *runs, *files, "--skill-min-pass-rate=1"
    )
    own = [line for line in result.outlines if line.startswith("::error ")]
    assert any("title=skill regression" in one for one in own)
    assert all(
        re.match(r"::error (file=[^:]*,line=\d+,)?title=skill(s| \w+)::", one)
        for one in own
    )
    assert_harmless("\n".join(one[2:] for one in own), "annotations")
    assert_harmless(
        "\n".join(one for one in result.outlines if one not in own), "stdout"
    )
    for name in ("c.md", "job.md"):
        text = Path(name).read_text()
        assert_harmless(text, name)
        outside = re.sub(r"^(`{3,})text\n.*?\n\1$", "", text, flags=re.M | re.S)
        assert not re.search(r"<img|@team|[^\\]`c|://evil", outside)
    without_scripts = re.sub(
        r"<script.*?</script>", "", Path("p.html").read_text(), flags=re.S
    )
    assert_harmless(without_scripts, "p.html")
    ElementTree.parse("j.xml")


TEACHING = ["--model", "scripted:a.json", "--yes"]
TRYING = [*TEACHING, "--eval-model", "scripted:a.json"]


@pytest.mark.parametrize(
    "words",
    [
        *(
            ["lint", "."],
            ["lint", ".", "--json"],
        ),
        *(["answers"], ["models"], ["eval", EVIL], ["cases", FOLDER, *TEACHING]),
        *(
            pytest.param(words, marks=pytest.mark.nightly)
            for words in (
                ["eval", FOLDER, "-m", "scripted:a.json"],
                ["refine", FOLDER, *TRYING],
                ["generate", EVIL, *TRYING],
            )
        ),
    ],
    ids=lambda words: " ".join(words[:2])[:20].encode("unicode_escape").decode(),
)
@pytest.mark.usefixtures("args")
def test_the_output_of_commands(
    capfd: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert_harmless_command(words, capfd)


def test_the_output_of_commands_about_runs(
    pytester: pytest.Pytester, args: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    pytester.runpytest_inprocess(*args, "--skill-json=r.json")
    capfd.readouterr()
    main(["runs", "--json"])
    run = json.loads(capfd.readouterr().out)["rows"][0]["run"]
    for words in (
        *(
            ["runs"],
            ["runs", "--json"],
            ["runs", "show", run],
            ["runs", "compare", run, run],
        ),
        *(["report", "r.json"], ["list", "."], ["list", ".", "--json"]),
    ):
        assert_harmless_command(words, capfd)


def assert_harmless_command(
    words: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    main(words)
    done = capfd.readouterr()
    assert done.out or done.err
    assert_harmless(done.out, "stdout")
    assert_harmless(done.err, "stderr")
