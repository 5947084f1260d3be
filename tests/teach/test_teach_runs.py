"""How lessons are run: budget, consent, kill and resume, improving, refining, secrets, traces."""

import json
import os
import re
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.results.from_json import read_run
from pytest_upskill.skills.cases import load_cases
from pytest_upskill.skills.skill import load_skill
from support.kit import write_skill
from support.loopback import Asked, Fault, LoopbackServer, Reply
from support.school import (
    COLOURS,
    COMMAND,
    SECRETS,
    TASK,
    Project,
    School,
    body,
    case,
    draft,
    generate_words,
    in_session,
    knows,
    lines,
    make_project,
)
from support.shell import started
from support.terminal import run_on_terminal

KEY = "sk-ant-api03-" + "Ab3" * 20


@pytest.fixture
def project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Project:
    return make_project(tmp_path, monkeypatch, capsys)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills by signal")
def test_a_killed_lesson_goes_on_and_asks_nothing_twice(project: Project) -> None:
    school = School([draft("red"), draft(*COLOURS[:6]), draft(*COLOURS)])
    process: list[subprocess.Popen[str]] = []

    def script(asked: Asked) -> Reply | Fault:
        # At the second version of the skill, when all students have been heard.
        if process and School.role(asked) == "teacher" and len(school.of("teacher")) == 1:
            process.pop().kill()
            return Fault("hang")
        return school(asked)

    with LoopbackServer(script) as server:
        words = generate_words(f"{server.url}/v1")
        with started([COMMAND, *words], stdout=subprocess.PIPE, cwd=project.folder) as killed:
            process.append(killed)
            shown, _ = killed.communicate()
        assert killed.returncode == -signal.SIGKILL, shown
        assert project.files() == []
        before = len(school.asked)
        assert before > 20
        status, shown, _ = project.run(*words, "--resume")
    assert status == 0
    assert max(Counter(school.keys()).values()) == 1
    assert "attempt 3 small 0% → 100% (+100) best" in lines(shown)
    assert load_skill(project.skill / "SKILL.md").body == body(*COLOURS)
    assert not list(project.workspace.glob("tmp-*"))


def test_a_lesson_that_is_interrupted_says_how_to_go_on(project: Project) -> None:
    process: list[subprocess.Popen[str]] = []

    def script(_: Asked) -> Fault:
        process[0].send_signal(signal.SIGINT)
        return Fault("hang")

    with LoopbackServer(script) as server:
        command = [COMMAND, *generate_words(f"{server.url}/v1")]
        with started(command, stderr=subprocess.PIPE) as lesson:
            process.append(lesson)
            _, error = lesson.communicate()
    assert lesson.returncode == 130
    assert error == (
        "pytest-upskill: interrupted\nNothing was saved. Run it again with "
        "--resume to continue; nothing is asked twice.\n"
    )
    assert project.files() == []


def test_a_lesson_begun_anew_asks_the_teacher_again_and_loses_nothing(project: Project) -> None:
    school = School()
    with in_session(school) as url:
        assert project.run(*generate_words(url))[0] == 0
        asked = len(school.of("student"))
        status, shown, _ = project.run(*generate_words(url))
    assert status == 0
    assert lines(shown)[-1] == "Saved to ./skills/lamp-colours-2"
    assert load_skill(project.folder / "skills/lamp-colours-2/SKILL.md").name == "lamp-colours-2"
    assert (len(school.of("teacher")), len(school.of("author"))) == (2, 2)
    assert len(school.of("student")) == asked
    kept = sorted(path.name for path in project.workspace.parent.iterdir())
    assert kept == ["lamp-colours", "lamp-colours-2"]


def priced(project: Project, school: School, *words: str) -> tuple[int, str, str]:
    """With models whose price is known, at the school's address."""
    with in_session(school) as url, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", url)
        patch.setenv("OPENAI_API_KEY", "none")
        models = ["--model", "openai:gpt-4o", "--eval-model", "openai:gpt-4o-mini"]
        return project.run("generate", TASK, *models, *words)


def test_the_budget_ends_it_in_good_order_with_the_best_so_far(project: Project) -> None:
    # Each reply of the teacher costs $0.08, so that a third one could pass the budget.
    school = School([draft(*COLOURS[:6]), draft(*COLOURS)], output_tokens=8000)
    status, shown, _ = priced(project, school, "--yes", "--max-cost", "0.2")
    assert status == 0
    told = "Stopped after one attempt: another version could pass the budget ($0.16 of $0.2 spent)."
    assert told in " ".join(lines(shown))
    assert lines(shown)[-1] == "Saved to ./skills/lamp-colours (cost $0.16)"
    assert load_skill(project.skill / "SKILL.md").body == body(*COLOURS[:6])
    assert (project.skill / "skill_meta.json").is_file()
    assert len(school.of("teacher")) == 1


def test_what_there_was_no_money_for_at_the_end_is_said(project: Project) -> None:
    # Two replies cost $0.16. Each answer of the student can cost $0.0012 at the most, and does not.
    school = School(output_tokens=8000)
    (project.folder / "trace.md").write_text("# User\n\nlamp\n\n# Assistant\n\nlamp zorp\n")
    words = ("--yes", "--max-cost", "0.18", "--from", "trace.md")
    status, shown, _ = priced(project, school, *words)
    told = " ".join(lines(shown))
    assert status == 0
    assert "Stopped after one attempt: every student reached 100%." in told
    assert "Not all of the last step was measured: it could pass the budget ($0.16 of $0.18" in told


def test_prices_of_the_ini_file_hold_for_a_server_of_ones_own(project: Project) -> None:
    prices = "skill_prices =\n    big 2.50 10\n    small 0.15 0.60"
    (project.folder / "pytest.ini").write_text(f"[pytest]\n{prices}\n")
    school = School([draft(*COLOURS[:6]), draft(*COLOURS)], output_tokens=8000)
    status, shown, error = project.generate(school, "--max-cost", "0.2")
    assert (status, error) == (0, "")
    assert re.match(r"This takes about \d+ calls, [\d,]+ tokens, about \$0\.\d+\.", shown)
    assert lines(shown)[-1] == "Saved to ./skills/lamp-colours (cost $0.16)"
    (project.folder / "pytest.ini").write_text("[pytest]\nskill_prices = big much\n")
    status, _, error = project.generate(school)
    assert (status, "skill_prices 'big much': this is not a name with two" in error) == (2, True)
    (project.folder / "pytest.ini").write_text("[pytest]\nskill_prices = big 1 1\n")
    status, _, error = project.generate(school, "--max-cost", "1")
    assert (status, "the price of small is not known" in error) == (2, True)


def test_a_skill_that_there_was_no_money_to_measure_is_saved_and_that_is_said(
    project: Project,
) -> None:
    school = School([draft("red")], output_tokens=8000)
    status, shown, _ = priced(project, school, "--yes", "--max-cost", "0.1645", "--runs", "90")
    assert status == 1
    assert "The skill was not measured" in shown
    assert load_skill(project.skill / "SKILL.md").body == body("red")


def test_a_budget_that_does_not_even_pay_for_a_draft_is_told(project: Project) -> None:
    status, _, error = priced(project, School(), "--yes", "--max-cost", "0.000001")
    assert status == 1
    assert "budget reached ($0 of $0.000001): raise --max-cost" in error
    assert project.files() == []


def test_without_a_terminal_nothing_is_spent_unless_one_says_so(project: Project) -> None:
    school = School()
    with in_session(school) as url:
        words = [word for word in generate_words(url) if word != "--yes"]
        status, shown, error = project.run(*words)
    assert status == 2
    assert shown.startswith("This takes about ")
    assert "cost not known" in shown
    assert re.search(r"not a terminal: add --yes to make about \d+ calls \(cost not known\)", error)
    assert school.asked == []


def test_on_a_terminal_it_asks_and_the_lines_are_live(project: Project) -> None:
    school = School()
    environ = {**os.environ, "TERM": "xterm"}
    with in_session(school) as url:
        words = [COMMAND, *(word for word in generate_words(url) if word != "--yes")]
        written = run_on_terminal(words, project.folder, environ, 24, typed=b"n\n")
        assert "Continue? [y/N]" in written
        assert school.asked == []
        written = run_on_terminal(words, project.folder, environ, 24, typed=b"y\n")
    assert "Generating skill with big…\r\x1b[KGenerating skill with big…  " in written
    assert "Saved to ./skills/lamp-colours" in written


def write_scripts(folder: Path) -> tuple[str, str]:
    """A teacher and a student that are free."""
    (folder / "teacher.py").write_text(
        "import re\n"
        f"DRAFT = {draft(*COLOURS)!r}\n"
        f"CASES = {json.dumps({'cases': [case(c) for c in COLOURS]})!r}\n"
        "def teacher(question):\n"
        "    return DRAFT if question.system.startswith('You write Agent') else CASES\n"
        f"SECRETS = {SECRETS!r}\n"
        "def student(question):\n"
        "    asked = question.messages[-1][1]\n"
        "    for colour, word in SECRETS.items():\n"
        "        if re.search(r'\\b' + colour, asked) and 'lamp ' + word in question.system:\n"
        "            return 'Type lamp ' + word + '.'\n"
        "    return 'I do not know.'\n"
    )
    return "scripted:teacher.py:teacher", "scripted:teacher.py:student"


def test_a_free_run_needs_no_consent_and_the_result_as_json_is_alone(project: Project) -> None:
    teacher, student = write_scripts(project.folder)
    status, shown, error = project.run(
        "generate", TASK, "--model", teacher, "--eval-model", student, "--json"
    )
    assert status == 0
    data = json.loads(shown)
    assert (data["name"], data["best"], data["cost"]) == ("lamp-colours", 1, 0.0)
    assert [row["lift"] for row in data["held_out"]] == [1.0]
    assert Counter(one["part"] for one in data["cases"]) == {"learn": 8, "holdout": 4}
    assert "This takes about" in error
    assert "free." in error
    assert "Saved to ./skills/lamp-colours" in error


def test_a_draft_and_cases_alone(project: Project) -> None:
    school = School()
    status, shown, _ = project.generate(school, "--no-eval", "--no-log-runs")
    assert status == 0
    assert not school.of("student")
    assert len(load_cases(project.skill / "skill_meta.json")) == 12
    assert lines(shown)[-1] == "Saved to ./skills/lamp-colours"


def improvable(project: Project) -> Path:
    folder = write_skill(
        project.folder / "skills/gate", [], body=body("red"), frontmatter="license: MIT\n"
    )
    (folder / "skill_meta.json").unlink()
    (folder / "references").mkdir()
    (folder / "references/old.md").write_text("Old but good.\n")
    return folder


def test_a_skill_is_improved_in_place_if_one_may_and_the_old_one_is_kept(
    project: Project,
) -> None:
    folder = improvable(project)
    school = School([draft(*COLOURS, name="another-name")])
    with in_session(school) as url:
        words = generate_words(url)
        words.remove("--yes")
        status, _, error = project.run(*words, "--from", "skills/gate")
        assert status == 2
        assert "would change the skill in place\n  Add --force" in error
        status, shown, _ = project.run(*words, "--from", "skills/gate", "--yes")
    assert status == 0
    assert [line for line in lines(shown) if line.startswith("before small 0% → 12% (+12)")]
    text = (folder / "SKILL.md").read_text()
    assert "license: MIT" in text
    skill = load_skill(folder / "SKILL.md")
    assert (skill.name, skill.body) == ("gate", body(*COLOURS))
    assert (folder / "references/old.md").read_text() == "Old but good.\n"
    kept = project.folder / ".upskill/teach/gate/before/SKILL.md"
    assert body("red") in kept.read_text()
    asked = school.of("teacher")[0].question
    assert body("red") in asked
    assert "Old but good." in asked
    assert TASK in asked


def test_an_improved_skill_may_go_elsewhere_with_all_its_files(project: Project) -> None:
    folder = improvable(project)
    before = sorted(folder.rglob("*"))
    status, _, _ = project.generate(School(), "--from", "skills/gate", "-o", "gate-two")
    assert status == 0
    assert sorted(folder.rglob("*")) == before
    assert load_skill(project.folder / "gate-two/SKILL.md").body == body(*COLOURS)
    assert (project.folder / "gate-two/references/old.md").is_file()


def refine_words(url: str) -> list[str]:
    return ["refine", "gate", "-m", "big", "--eval-model", "small", "--base-url", url, "--yes"]


def cased_skill(project: Project, *colours: str) -> Path:
    shown = ("id", "input", "expected", "tags")
    written = [{key: case(colour)[key] for key in shown} for colour in COLOURS]
    return write_skill(project.folder / "skills/gate", written, body=body(*colours))


def test_one_that_is_too_long_is_made_shorter_even_if_all_pass(project: Project) -> None:
    long = draft(*COLOURS, body=body(*COLOURS) + "\nWords." * 200)
    school = School([long, long, draft(*COLOURS[:9]), draft(*COLOURS[:9])])
    words = ("--max-skill-tokens", "200", "--attempts", "2")
    status, shown, _ = project.generate(school, *words)
    assert status == 0
    assert load_skill(project.skill / "SKILL.md").body == body(*COLOURS[:9])
    asked = school.of("teacher")[2].question
    assert "The body is too long: about " in asked
    assert "answers fail; these" not in asked
    assert "still too long" not in shown
    assert [line for line in lines(shown) if line.startswith("attempt 2") and "best" in line]
    # One that is short and helps nobody is no better than one that helps.
    school = School([long, long, draft(), draft()])
    status, shown, _ = project.generate(school, *words, "--name", "other")
    assert status == 0
    assert "(limit 200)." in " ".join(lines(shown))


def test_refine_is_the_loop_alone(project: Project) -> None:
    folder = cased_skill(project, "red")
    meta = (folder / "skill_meta.json").read_bytes()
    school = School([draft(*COLOURS)])
    with in_session(school) as url:
        status, shown, _ = project.run(*refine_words(url))
    assert status == 0
    assert load_skill(folder / "SKILL.md").body == body(*COLOURS)
    assert not school.of("author")
    assert len(load_cases(folder / "skill_meta.json")) == 12
    assert json.loads(meta)["cases"][0]["input"] == load_cases(folder / "skill_meta.json")[0].input
    assert "attempt 2 small 0% → 100% (+100) best" in lines(shown)
    assert "Attempt 2 is the best. Stopped: every student reached 100%." in lines(shown)
    with in_session(School()) as url:
        status, shown, _ = project.run(*refine_words(url))
    assert status == 0
    told = "No new version was written: every student reached 100% with the current skill."
    assert told in " ".join(lines(shown))
    assert "current small 0% → 100% (+100)" in lines(shown)
    assert lines(shown)[-1] == "The skill is unchanged."
    assert "attempt" not in shown


def test_refine_leaves_a_skill_as_it_is_if_nothing_does_better(project: Project) -> None:
    folder = cased_skill(project, *COLOURS[:9])
    before = {path: path.read_bytes() for path in folder.rglob("*")}
    with in_session(School([draft("red"), draft("blue")])) as url:
        status, shown, _ = project.run(*refine_words(url))
    assert status == 0
    rows = [line for line in lines(shown) if line.startswith("current small 0% → ")]
    assert [row.endswith("best") for row in rows] == [False, True]
    assert "No version beats the current skill. Stopped:" in " ".join(lines(shown))
    assert lines(shown)[-1] == "The skill is unchanged."
    assert {path: path.read_bytes() for path in folder.rglob("*")} == before


def test_refine_needs_cases(project: Project) -> None:
    folder = cased_skill(project, "red")
    (folder / "skill_meta.json").unlink()
    status, _, error = project.run(*refine_words("http://127.0.0.1:9/v1"))
    assert (status, "Run pytest-upskill cases first" in error) == (2, True)


def chatty(asked: Asked) -> str:
    return f"{knows(asked)} My key is {KEY}."


def test_secrets_are_masked_in_all_that_is_sent_and_saved(project: Project) -> None:
    trace = project.folder / "trace.md"
    trace.write_text(f"# User\n\nDeploy with {KEY}\n\n# Assistant\n\nDone with {KEY}.\n")
    leaky = draft("red", body=f"{body('red')}\nUse {KEY}.")
    school = School([leaky, draft(*COLOURS)], student=chatty)
    with in_session(school) as url:
        words = [*generate_words(url), "--from", "trace.md", "-e", f"in {KEY} -> out"]
        words[1] = f"{TASK} with {KEY}"
        status, shown, error = project.run(*words)
    assert status == 0, error
    sent = [json.dumps(asked.body) for _, asked in school.asked]
    assert not [text for text in sent if KEY in text]
    assert KEY not in shown
    trace.unlink()
    for file in project.folder.rglob("*"):
        # What students said of themselves is theirs, and stays where their answers are kept.
        if file.is_file() and file.name not in ("results.json", "answers.sqlite"):
            assert KEY.encode() not in file.read_bytes(), file


def test_from_a_trace_the_teacher_is_measured_in_three_arms(project: Project) -> None:
    told = "\n".join(f"{colour} is lamp {word}" for colour, word in SECRETS.items())
    filler = "\n".join(f"Line {number} of a log that says little." for number in range(200))
    (project.folder / "trace.md").write_text(
        f"# User\n\nSet the lamp.\n\n# Assistant\n\nThese are the commands:\n{told}\n\n{filler}\n"
    )
    school = School([draft(*COLOURS)])
    status, shown, error = project.generate(school, "--from", "trace.md", "--json")
    assert status == 0, error
    data = json.loads(shown)
    [row] = data["teacher"]
    assert row["model"] == "big"
    assert (row["baseline_rate"], row["previous_rate"], row["skill_rate"]) == (0, 1, 1)
    assert data["trace_tokens"] > data["tokens"]
    skill = f"100% with the skill ({data['tokens']:,} tokens)"
    trace = f"100% with the trace ({data['trace_tokens']:,} tokens)"
    assert f"With big the skill is as good as the trace: {skill}, {trace}." in data["sentences"]
    assert "Set the lamp." in school.of("teacher")[0].question
    assert "Trace of " in error


def test_attempts_are_kept_with_results_that_can_be_read(project: Project) -> None:
    project.generate(School([draft("red"), draft(*COLOURS)]), "--runs", "2")
    run = read_run(project.workspace / "attempt-2/results.json")
    assert [(row.model, row.arm("skill").rate, row.runs) for row in run.summaries] == [
        ("small", 1.0, 2)
    ]
    assert "attempt 1: SKILL.md of" in (project.workspace / "attempt-1/report.txt").read_text()


def test_a_judge_grades_what_no_rule_can(project: Project) -> None:
    written: list[dict[str, Any]] = [
        case(colour, expected={"judge": [f"It names {word}."]}) for colour, word in SECRETS.items()
    ]
    school = School(cases=[json.dumps({"cases": written})])

    def script(asked: Asked) -> Reply:
        if not asked.system.startswith("You grade"):
            return school(asked)
        wanted = asked.question.rpartition("It names ")[2].partition(".")[0]
        answer = asked.question.partition("<answer")[2].partition("</answer")[0]
        verdict = "pass" if wanted in answer else "fail"
        one = {"criterion": 1, "quote": "", "reason": "so", "verdict": verdict}
        return Reply(json.dumps({"verdicts": [one]}))

    with LoopbackServer(script) as server:
        words = [*generate_words(f"{server.url}/v1"), "--judge", "strict"]
        status, shown, error = project.run(*words)
    assert status == 0, error
    assert "held out small 0% → 100% (+100)" in lines(shown)


def test_a_tool_and_examples_are_told_to_the_teacher(project: Project) -> None:
    tool = {
        "name": "set_lamp",
        "description": "Sets the lamp to a colour.",
        "inputSchema": {"type": "object", "properties": {"hue": {"type": "string"}}},
    }
    (project.folder / "tools.json").write_text(json.dumps({"tools": [tool]}))
    school = School()
    words = ["--tool", "tools.json#set_lamp", "-e", "red -> lamp zorp", "-e", "blue -> lamp flen"]
    status, _, error = project.generate(school, *words)
    assert status == 0, error
    for asked in (school.of("teacher")[0], school.of("author")[0]):
        assert "set_lamp" in asked.question
        assert "hue" in asked.question
        assert "- red -> lamp zorp\n- blue -> lamp flen" in asked.question
    status, _, error = project.generate(school, "--tool", "tools.json#other")
    assert status == 2
    assert "tools.json" in error


def test_a_trace_of_megabytes_is_condensed_to_what_a_teacher_can_read(project: Project) -> None:
    noise = "\n".join(f"line {number}: nothing to see here" for number in range(200_000))
    text = (
        f"# User\n\nSet the lamp.\n\n# Assistant\n\n```\n{noise}\n```\n\nType lamp zorp for red.\n"
    )
    (project.folder / "trace.md").write_text(text)
    assert len(text) > 5_000_000
    school = School()
    status, shown, error = project.generate(school, "--from", "trace.md", "--cases", "4")
    assert (status, error) == (1, "")  # so few cases show nothing
    sent = school.of("teacher")[0].question
    assert "lamp zorp" in sent
    assert len(sent) < 50_000
    assert [line for line in lines(shown) if line.startswith("Trace of ") and len(line) > 30]
