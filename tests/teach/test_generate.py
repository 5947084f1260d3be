"""generate from end to end: the real SDKs, a server that plays all models,
no key anywhere.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from pytest_upskill.engine.store import Store
from pytest_upskill.lint import lint_skill
from pytest_upskill.results.run_file import read_run
from pytest_upskill.skills.skill import load_skill
from pytest_upskill.skills.suites.json_suites import load_cases
from support.fake_models import (
    ALL_CASES,
    COLOURS,
    QUESTIONS,
    SECRETS,
    FakeModels,
    Project,
    body,
    case,
    cases,
    draft,
    generate_words,
    lines,
    served,
)


def test_a_task_becomes_a_skill_with_cases_and_nothing_else_is_written(
    project: Project, tmp_path: Path
) -> None:
    home, folder = project.home, project.folder
    status, shown, error = project.generate(FakeModels())
    assert (status, error) == (0, ""), shown
    skill = load_skill(folder / "skills/lamp-colours/SKILL.md")
    assert skill.body == body(*COLOURS)
    read = load_cases(folder / "skills/lamp-colours/skill_meta.json").require_all()
    assert Counter(one.tags[-1] for one in read) == {"learn": 8, "holdout": 4}
    meta = json.loads((folder / "skills/lamp-colours/skill_meta.json").read_text())[
        "metadata"
    ]
    assert set(meta) == {
        *("version", "generated_by", "generated_at", "source_task", "test_pass_rate")
    }
    assert (meta["generated_by"], meta["test_pass_rate"]) == ("big", 1.0)
    found = [finding.code for finding in lint_skill(skill.file, judge=False, lift=0.5)]
    assert found == []
    assert list(home.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "project"]
    assert sorted(path.name for path in folder.iterdir()) == [".upskill", "skills"]
    assert sorted(path.name for path in (folder / ".upskill").iterdir()) == [
        *(".gitignore", "answers.sqlite", "teach"),
    ]
    kept = folder / ".upskill/teach/lamp-colours"
    assert sorted(path.name for path in kept.iterdir()) == ["attempt-1"]
    assert sorted(path.name for path in (kept / "attempt-1").iterdir()) == [
        *("SKILL.md", "report.txt", "results.json"),
    ]


def test_a_bad_skill_is_improved_and_the_steps_are_shown(project: Project) -> None:
    fake = FakeModels([draft(), draft(*COLOURS[:6]), draft(*COLOURS)])
    status, shown, _ = project.generate(fake, "--eval-model", "other", "--runs", "2")
    assert status == 0
    assert load_skill(project.skill / "SKILL.md").body == body(*COLOURS)
    rows = [line for line in lines(shown) if line.startswith(("attempt", "held out"))]
    assert rows[0] == "attempt 1 small 0% → 0% (0) other 0% → 0% (0)"
    assert rows[-2:] == [
        "attempt 3 small 0% → 100% (+100) other 0% → 100% (+100) best",
        "held out small 0% → 100% (+100) other 0% → 100% (+100)",
    ]
    assert max(map(len, shown.partition("Next:")[0].splitlines())) <= 80
    assert len(list(project.workspace.glob("attempt-*"))) == 3
    run = read_run(project.workspace / "attempt-3/results.json")
    assert [(row.label, row.arm("skill").rate, row.runs) for row in run.rows] == [
        *(("small", 1.0, 2), ("other", 1.0, 2)),
    ]
    assert (
        "attempt 1: SKILL.md of"
        in (project.workspace / "attempt-1/report.txt").read_text()
    )


def test_the_best_version_is_saved_and_a_plateau_ends_the_loop(
    project: Project,
) -> None:
    fake = FakeModels(
        [draft("red"), draft(*COLOURS[:9]), draft("blue"), draft("pink"), draft("cyan")]
    )
    _, data = project.taught(fake, "--attempts", "9")
    assert load_skill(project.skill / "SKILL.md").body == body(*COLOURS[:9])
    assert (data["chosen"], len(data["attempts"])) == (2, 4)
    assert len(fake.of("teacher")) == 4
    tried = fake.of("teacher")[-1].question
    assert "did no better" in tried
    assert SECRETS["blue"] in tried


def test_the_shorter_of_two_equal_versions_is_kept(project: Project) -> None:
    long = json.loads(draft(*COLOURS[:6]))
    long["body"] += "\n\nColours are seen by the eye, as everybody knows."
    fake = FakeModels([json.dumps(long), draft(*COLOURS[:6])])
    project.generate(fake, "--attempts", "2")
    assert load_skill(project.skill / "SKILL.md").body == body(*COLOURS[:6])


def test_it_stops_at_the_target_and_when_nothing_new_is_written(
    project: Project,
) -> None:
    fake = FakeModels([draft(*COLOURS[:9])])
    status, data = project.taught(fake, "--target", "0.5", "--name", "one")
    assert status == 0
    assert len(fake.of("teacher")) == 1
    assert "50%" in data["stop"]
    _, data = project.taught(FakeModels([draft(*COLOURS[:3])]), "--name", "two")
    assert "nothing new" in data["stop"]


def test_a_broken_skill_is_repaired_by_one_request_that_quotes_the_problems(
    project: Project,
) -> None:
    files = [{"path": "../../evil.md", "text": "no"}]
    fake = FakeModels([draft(*COLOURS, files=files), draft(*COLOURS)])
    assert project.generate(fake, "--no-eval")[0] == 0
    first, second = fake.of("teacher")
    assert len(second.body["messages"]) == len(first.body["messages"]) + 2
    assert "'../../evil.md' must be in references/" in second.question


def test_an_empty_reply_of_the_teacher_is_asked_for_again(project: Project) -> None:
    fake = FakeModels(["", draft(*COLOURS)])
    assert project.generate(fake, "--no-eval")[0] == 0
    assert fake.of("teacher")[1].body["messages"][-2]["content"] == "(no text)"


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ({"body": " "}, "no text after the frontmatter"),
        ({"description": "long " * 300}, "1499 characters (limit 1024)"),
        ({"files": [{"path": "scripts/.env", "text": ""}]}, "may have only letters"),
        ({"files": [{"path": "scripts/a b.sh", "text": ""}]}, "may have only letters"),
        ({"files": [{"path": "/etc/passwd", "text": ""}]}, "must be in references/"),
        (
            {"files": [{"path": "scripts/conftest.py", "text": ""}]},
            "'conftest.py' is loaded by",
        ),
        (
            {"files": [{"path": "assets/test_x.TXT", "text": ""}]},
            "'test_x.TXT' is loaded by",
        ),
        ({"body": 3}, "body: Input should be a valid string"),
    ],
)
def test_a_skill_that_stays_broken_is_an_error(
    project: Project, broken: dict[str, object], told: str
) -> None:
    fake = FakeModels([draft(*COLOURS, **broken)])
    status, _, error = project.generate(fake)
    assert status == 1
    assert told in error
    assert "Try a stronger model" in error
    assert len(fake.of("teacher")) == 2
    assert project.files() == []


def test_a_skill_that_stays_too_long_is_kept_with_a_warning(project: Project) -> None:
    long = draft(*COLOURS, body=body(*COLOURS) + "\nWords." * 200)
    fake = FakeModels([long])
    status, data = project.taught(fake, "--max-skill-tokens", "200")
    assert (status, data["attempts"][0]["draft"]["tokens"] > 200) == (0, True)
    assert [one for one in data["sentences"] if "too long" in one]
    assert "(limit 200)" in fake.of("teacher")[1].question


def test_a_skill_that_is_too_long_is_shortened_even_if_all_cases_pass(
    project: Project,
) -> None:
    long = draft(*COLOURS, body=body(*COLOURS) + "\nWords." * 200)
    fake = FakeModels([long, long, draft(*COLOURS[:9]), draft(*COLOURS[:9])])
    words = ("--max-skill-tokens", "200", "--attempts", "2")
    status, data = project.taught(fake, *words)
    assert (status, data["chosen"]) == (0, 2)
    assert load_skill(project.skill / "SKILL.md").body == body(*COLOURS[:9])
    asked = fake.of("teacher")[2].question
    assert "The body is too long: about " in asked
    assert "answers fail; these" not in asked
    assert not [one for one in data["sentences"] if "too long" in one]
    # A short skill that does not help is no better than a long one that does.
    fake = FakeModels([long, long, draft(), draft()])
    status, data = project.taught(fake, *words, "--name", "other")
    assert (status, data["chosen"]) == (0, 1)


def test_an_unusable_reply_counts_as_a_version(
    project: Project,
) -> None:
    fake = FakeModels([draft("red"), "I can't.", "I still can't.", draft(*COLOURS)])
    status, data = project.taught(fake)
    assert (status, data["chosen"]) == (0, 3)
    assert [bool(version["problem"]) for version in data["attempts"]] == [
        False,
        True,
        False,
    ]
    assert "could not be used" in fake.of("teacher")[-1].question


def test_references_are_saved_and_linked_ones_must_exist(project: Project) -> None:
    text = body(*COLOURS) + "\n\nMore is in [more](references/more.md)."
    files = [{"path": "references/more.md", "text": "More of it.\n"}]
    fake = FakeModels([draft(body=text), draft(body=text, files=files)])
    assert project.generate(fake, "--no-eval")[0] == 0
    assert (project.skill / "references/more.md").read_text() == "More of it.\n"
    assert "references/more.md" in fake.of("teacher")[1].question


def test_json_is_found_in_replies_of_servers_without_schemas(project: Project) -> None:
    skill = f"Here it is:\n```json\n{draft(*COLOURS)}\n```\nDone."
    fake = FakeModels([skill], [f"<think>{{{{</think>{ALL_CASES}"])
    assert project.generate(fake, "--no-eval")[0] == 0
    assert (len(fake.of("teacher")), len(fake.of("author"))) == (1, 1)


def test_a_whole_skill_md_is_accepted(project: Project) -> None:
    text = f"---\nname: Lamp Colours\ndescription: About lamp.\n---\n\n{body(*COLOURS)}"
    fake = FakeModels([f"```markdown\n{text}\n```"])
    assert project.generate(fake, "--no-eval")[0] == 0
    skill = load_skill(project.skill / "SKILL.md")
    assert (skill.description, skill.body) == ("About lamp.", body(*COLOURS))


def test_the_teacher_never_sees_held_out_cases_and_nothing_is_asked_twice(
    project: Project,
) -> None:
    fake = FakeModels(
        [draft("red"), draft("red", "blue"), draft("red", "blue", "pink")]
    )
    project.generate(fake)
    read = load_cases(project.skill / "skill_meta.json").require_all()
    held = [one for one in read if "holdout" in one.tags]
    assert len(held) == 4
    first, *refining = fake.of("teacher")
    assert len(refining) == 2
    for asked in (first, *refining):
        sent = json.dumps(asked.body, ensure_ascii=False)
        assert not [one.id for one in held if one.id in sent or one.input in sent]
    learnt = [one for one in read if "learn" in one.tags and "red" not in one.input]
    assert [one for one in learnt if one.input in refining[0].question]
    assert "I do not know." in refining[0].question
    assert "is not in the answer" in refining[0].question
    bare = [asked for asked in fake.of("student") if "lamp" not in asked.system]
    assert len(bare) == 24  # to choose cases, and to count
    times = Counter(fake.keys())
    assert (max(times.values()), sum(number > 1 for number in times.values())) == (
        2,
        12,
    )


def test_nothing_is_asked_whose_answer_could_not_be_stored(project: Project) -> None:
    (project.folder / ".upskill/answers.sqlite").mkdir(parents=True)
    status, _, errors = project.generate(fake := FakeModels(), "--no-eval")
    assert (status, fake.keys()) == (1, [])
    assert "not asked: answers can't be kept: .upskill/answers.sqlite: " in errors


def test_a_skill_whose_answers_were_not_stored_is_saved_but_no_success(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Store, "put", lambda self, *_: setattr(self, "_unusable", 1))
    status, shown, _ = project.generate(FakeModels(), "--no-eval")
    assert status == 1
    assert "1 answer could not be stored: .upskill/answers.sqlite" in " ".join(
        shown.split()
    )
    assert project.skill.is_dir()


@pytest.mark.parametrize(
    ("students", "tested"), [([], "teacher"), (["--eval-model", "student"], "student")]
)
def test_a_draft_that_nobody_measured_is_tested_on_a_model(
    project: Project, students: list[str], tested: str
) -> None:
    with served(FakeModels()) as url:
        words = [
            "generate",
            "about lamp",
            "-m",
            "teacher",
            *students,
            "--base-url",
            url,
        ]
        _, shown, _ = project.run(*words, "--yes", "--no-eval")
    [command] = [line for line in shown.splitlines() if "test it: " in line]
    assert f" --model {tested} --skill-base-url {url}" in command


def test_the_same_name_at_two_addresses_is_two_models(project: Project) -> None:
    teacher, student = FakeModels(), FakeModels()
    with served(teacher) as one, served(student) as other:
        words = ["generate", "about lamp", "-m", "glm", "--eval-model", "glm", "--yes"]
        status, shown, _ = project.run(
            *words, "--base-url", one, "--eval-base-url", other
        )
    assert status == 0
    assert "Generating skill with glm (teacher)…" in shown
    assert not teacher.of("student")
    assert not student.of("teacher")
    # Cases are chosen, then asked with the skill or not
    assert len(student.of("student")) == 36


def test_bad_options_are_refused_before_the_first_call(
    project: Project,
) -> None:
    fake = FakeModels()
    for words, told in (
        (["--cases", "2"], "--cases 2: not a whole number from 4 to 200"),
        (["--name", "Two Words"], "For example: two-words"),
        (["-o", "."], "this exists and is not a skill"),
        (["--from", "gone.jsonl"], "no such file or folder"),
        (["--max-cost", "1"], "the price of small, big is not known"),
    ):
        if words == ["-o", "."]:
            (project.folder / "mine.txt").write_text("precious")
        status, _, error = project.generate(fake, *words)
        assert (status, told in error) == (2, True), error
    assert fake.asked == []
    for words, told in (
        (
            [],
            (
                "--model opus (the default): ANTHROPIC_API_KEY is not set\n"
                "  Set ANTHROPIC_API_KEY, or name another model."
            ),
        ),
        (
            ["--model", "local", "--eval-model", "haiku"],
            (
                "--eval-model haiku: ANTHROPIC_API_KEY is not set\n"
                "  Set ANTHROPIC_API_KEY, or name another model."
            ),
        ),
        (
            ["--model", "scripted:a.json"],
            "--model scripted:a.json: a.json: no such file",
        ),
        (["--eval-model", "x", "--base-url", "y"], "pytest-upskill: --base-url"),
        (
            ["--eval-model", "x", "--eval-base-url", "y"],
            "pytest-upskill: --eval-base-url",
        ),
    ):
        status, _, error = project.run("generate", "x", "--eval-model", "local", *words)
        assert (status, told in error) == (2, True), error
    assert project.files() == ["mine.txt"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["--cases", "4"],
            "Too few cases: 4 can't show that a skill helps (6 needed).",
        ),
        (
            [],
            "Too few held-out cases: 4 can't show a lift (6 needed); all 12 cases can.",
        ),
        (["--holdout", "0.5"], ""),
        (["--holdout", "0"], ""),
    ],
)
def test_too_few_cases_are_reported_before_the_first_call(
    project: Project, words: list[str], told: str
) -> None:
    fake = FakeModels()
    with served(fake) as url:
        # Without --yes
        status, shown, _ = project.run(*generate_words(url)[:-1], *words)
    assert (status, fake.asked) == (2, [])
    first, *more = lines(shown)
    assert first.startswith("This takes up to about ")
    assert more == ([told] if told else [])


def test_no_case_need_be_held_out(project: Project) -> None:
    status, data = project.taught(FakeModels(), "--holdout", "0")
    assert status == 0
    assert Counter(data["cases"].values()) == {"learn": 12}


def test_no_eval_writes_a_draft_and_cases(project: Project) -> None:
    fake = FakeModels()
    status, data = project.taught(fake, "--no-eval")
    assert (status, data["folder"]) == (0, str(project.skill))
    assert not fake.of("student")
    assert len(load_cases(project.skill / "skill_meta.json").require_all()) == 12


def test_the_questions_of_these_tests_are_no_duplicates() -> None:
    assert len(set(QUESTIONS)) == len(COLOURS)
    assert json.loads(cases(case("red")))["cases"][0]["expected"]["contains"] == [
        "zorp"
    ]
