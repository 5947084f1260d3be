"""What the judge sees of an agent's work."""

import json
import re
from dataclasses import replace
from typing import Any, Final

import pytest

from pytest_upskill.checks import parse_checks
from pytest_upskill.checks.grading import rubric_for
from pytest_upskill.checks.judging import first_questions
from pytest_upskill.checks.kinds import KINDS
from pytest_upskill.skills.case import WorkspaceFile
from pytest_upskill.trials.answer import Answer, AnswerFile
from pytest_upskill.trials.arm import SkillCopy
from pytest_upskill.trials.transcript import Activity, Turn
from pytest_upskill.trials.trial import Hidden, Question, Rubric, Task
from support.checking import agent_answer, refused

BODY: Final = (
    "# Ledger work\n\nAlways round amounts to whole cents before you add them up.\n"
    "Run scripts/total.py on the ledger file.\n"
)
DESCRIPTION: Final = "Adds up ledgers in the way of our accountants."
HIDDEN: Final = Hidden(("ledger-sums",), (DESCRIPTION, BODY))
RUBRIC: Final = Rubric(("The total is right.",), judge="sonnet", hidden=HIDDEN)
TASK: Final = Task("loop", files=(WorkspaceFile("ledger.csv", b"1\n2\n"),))
QUESTION: Final = Question(
    "m", "", (("user", "Add up ledger.csv."),), 100, 1, task=TASK
)
TELLING: Final = re.compile(
    rf"ledger-sums|/skills|SKILL\.md|\bskill|{re.escape(DESCRIPTION)}|round amounts to"
    r" whole",
    re.I,
)


def asked(
    answer: Answer, rubric: Rubric = RUBRIC, question: Question = QUESTION
) -> str:
    (only,) = first_questions(rubric, question, answer)
    return only.messages[0][1]


def steps(*done: tuple[str, Any, str]) -> tuple[Turn, ...]:
    turns = [
        Turn("system", f"<name>ledger-sums</name> {DESCRIPTION}"),
        Turn("user", "Add up."),
    ]
    for tool, arguments, result in done:
        turns.append(Turn("thinking", "The skill ledger-sums fits."))
        turns += [
            Turn("call", json.dumps(arguments), tool),
            Turn("result", result, tool),
        ]
    return (*turns, Turn("assistant", "The total is 3."))


WORK = ("bash", {"command": "awk '{s+=$1} END {print s}' ledger.csv"}, "3")
LIST = ("bash", {"command": "ls"}, "ledger.csv")
NUMBERED = "\n".join(f"{n}\t{line}" for n, line in enumerate(BODY.splitlines()))
LOOKING: Final = [
    ("skill", {"name": "ledger-sums"}, BODY),
    ("Skill", {"skill": "x"}, "Launching"),
    ("activate_skill", {"name": "ledger-sums"}, "ok"),
    ("read", {"path": "/skills/ledger-sums/SKILL.md"}, BODY),
    (
        "bash",
        {"command": "cat /skills/ledger-sums/references/a.md"},
        "Secret rules of the house",
    ),
    ("bash", {"command": "ls -R /skills"}, "/skills:\nledger-sums"),
    ("shell", {"cmd": ["cat", ".agents/skills/ledger-sums/SKILL.md"]}, BODY),
    ("bash", {"command": "find / -name SKILL.md -exec cat {} +"}, BODY),
    ("bash", {"command": "cat $X"}, BODY),
    ("bash", {"command": "cat -n $X"}, NUMBERED),
    ("bash", {"command": "cat $X"}, json.dumps({"content": BODY})),
]
FINAL = (
    "Following the ledger-sums skill (see /skills/ledger-sums/SKILL.md), the total"
    " is 3."
)


@pytest.mark.parametrize("look", LOOKING, ids=lambda look: json.dumps(look[1]))
def test_judge_can_not_tell_the_arm_by_the_skill(look: tuple[str, Any, str]) -> None:
    made = AnswerFile.of("total.txt", b"3\n")
    without = replace(
        agent_answer(made, text="The total is 3."), transcript=steps(LIST, WORK)
    )
    with_skill = replace(without, text=FINAL, transcript=steps(LIST, look, WORK))
    assert TELLING.search(FINAL)
    for answer in (without, with_skill):
        assert not TELLING.search(asked(answer))
    same = replace(with_skill, text=without.text)
    assert asked(same) == asked(without)


def test_running_a_script_of_the_skill_is_part_of_the_work() -> None:
    command = "python /skills/ledger-sums/scripts/total.py ledger.csv"
    answer = agent_answer(scripts=("scripts/total.py",))
    answer = replace(answer, transcript=steps(("bash", {"command": command}, "3")))
    assert "python tools/scripts/total.py ledger.csv" in asked(answer)
    assert not TELLING.search(asked(answer))


def test_lines_of_the_skill_are_left_out_of_results_but_not_of_the_answer() -> None:
    line = "Always round amounts to whole cents before you add them up."
    mixed = ("bash", {"command": "cat notes"}, f"one\ntwo\nthree\n{line}\nfour")
    answer = replace(agent_answer(text=f"My advice: {line}"), transcript=steps(mixed))
    assert asked(answer).count(line) == 1
    assert "one two three four" in asked(answer)


@pytest.mark.parametrize(
    "said", ["Ledger Sums", "ledger_sums", "`ledger-sums`", "LEDGER-SUMS"]
)
def test_the_name_is_reworded_however_it_is_spelled(said: str) -> None:
    shown = asked(agent_answer(text=f"I used {said} for it."))
    assert re.search("I used `?guide`? for it", shown)


def test_words_that_the_question_uses_stay() -> None:
    hidden = Hidden(("pdf",), (DESCRIPTION,))
    rubric = replace(RUBRIC, hidden=hidden)
    question = replace(QUESTION, messages=(("user", "Make a pdf of my skills."),))
    text = "I used the pdf skill and made cv.pdf of your skills."
    shown = asked(agent_answer(text=text), rubric, question)
    assert "I used the guide and made cv.pdf of your skills." in shown


def test_it_sees_the_files_and_what_was_done() -> None:
    files = (
        AnswerFile.of("out/total.txt", b"3\n"),
        AnswerFile("ledger.csv", "1\n", 2, "x", "changed"),
        AnswerFile("old.txt", None, 0, "", "deleted"),
        AnswerFile.of("page.png", b"\0"),
    )
    shown = asked(replace(agent_answer(*files), transcript=steps(LIST, WORK)))
    assert "- made: out/total.txt (2 bytes)\n- changed: ledger.csv (2 bytes)\n" in shown
    assert "- deleted: old.txt\n- made: page.png (1 bytes)" in shown
    assert "out/total.txt (2 bytes):\n3\n" in shown
    assert '- bash {"command": "ls"}\n  gave: ledger.csv\n' in shown


@pytest.mark.parametrize(
    ("rubric", "named"),
    [
        (RUBRIC, ["a.md", "b.md"]),
        (replace(RUBRIC, texts=("The file b.md has a total.",)), ["b.md", "a.md"]),
        (replace(RUBRIC, files=("sub/*.md",)), ["a.md"]),
        (replace(RUBRIC, files=("ledger.csv",)), ["ledger.csv"]),
    ],
)
def test_files_that_are_named_are_shown_whole(rubric: Rubric, named: list[str]) -> None:
    files = AnswerFile.of("sub/a.md", b"text of a"), AnswerFile.of("b.md", b"text of b")
    shown = asked(agent_answer(*files), rubric)
    assert re.findall(r"^(?:sub/)?(\S+) \(\d+ bytes\):$", shown, re.M) == named


def test_what_was_said_before_a_call_is_shown_unless_the_call_looks_at_the_skill() -> (
    None
):
    def said(text: str, step: tuple[str, Any, str]) -> tuple[Turn, ...]:
        *_, call, result, _ = steps(step)
        return Turn("assistant", text), call, result

    turns = [
        *said("I read ledger-sums first.", LOOKING[0]),
        *said("Now I\nadd up.", WORK),
    ]
    shown = asked(
        replace(agent_answer(), transcript=(*turns, Turn("assistant", "It is 3.")))
    )
    assert "- said: Now I add up.\n- bash" in shown
    assert "first" not in shown


def test_the_context_is_shown_and_is_no_criterion() -> None:
    expected = {"judge": "It is good.", "judge_context": "A total of 3, by the skill."}
    rubric = rubric_for(parse_checks(expected, KINDS, ()), "sonnet")
    assert rubric
    assert rubric.texts == ("It is good.",)
    for answer in (agent_answer(text="I used a skill."), Answer("I used a skill.")):
        shown = asked(answer, rubric)
        before, _, criteria = shown.rpartition("The criteria:")
        assert re.search(
            r"none itself:\n<wanted \w+>\nA total of 3, by the skill.\n</wanted", before
        )
        assert "A total" not in criteria
        assert "I used a skill." in shown  # as the author uses the word
    other = replace(rubric, context="A total of 4.")
    assert (
        asked(Answer("x"), other).splitlines()[0]
        != asked(Answer("x"), rubric).splitlines()[0]
    )
    assert 'judge_context: there is no "judge"' in refused(
        {"contains": "a", "judge_context": "b"}
    )


def test_judge_files_is_a_setting_of_a_group() -> None:
    expected = {"judge": "It is good.", "judge_files": ["out/*.md"]}
    rubric = rubric_for(parse_checks(expected, KINDS, ()), "sonnet")
    assert rubric
    assert rubric.files == ("out/*.md",)
    one = rubric_for(
        parse_checks({**expected, "judge_files": "./a.md"}, KINDS, ()), "sonnet"
    )
    assert one
    assert one.files == ("a.md",)
    assert "must be a path" in refused({**expected, "judge_files": "/etc/passwd"})
    assert 'judge_files: there is no "judge"' in refused(
        {"contains": "a", "judge_files": ["a"]}
    )


@pytest.mark.nightly
def test_a_huge_answer_is_cut() -> None:
    files = tuple(AnswerFile.of(f"{n}.txt", b"y" * 9000) for n in range(500))
    done = steps(*[("bash", {"command": "z" * 9000}, "w" * 9000)] * 500)
    shown = asked(replace(agent_answer(*files, text="x" * 500_000), transcript=done))
    assert len(shown) < 200_000
    assert "and 300 more" in shown
    assert "440 calls left out" in shown


def test_no_text_of_the_agent_leaves_its_mark() -> None:
    """Everything that is judged is in the digest that marks it."""
    one = agent_answer(AnswerFile.of("a.md", b"x"))
    others = [
        replace(one, files=(AnswerFile.of("a.md", b"y"),)),
        replace(one, transcript=steps(WORK)),
        replace(one, text="Done!"),
    ]
    marks = {first_questions(RUBRIC, QUESTION, each)[0].mark for each in (one, *others)}
    assert len(marks) == 4
    for section in ("question", "answer", "files", "work"):
        mark = first_questions(RUBRIC, QUESTION, one)[0].mark
        assert f"<{section} {mark}>\n" in asked(one)
        assert f"\n</{section} {mark}>\n" in asked(one)


def test_secrets_are_masked() -> None:
    token = "ghp_" + "aB3" * 12
    answer = agent_answer(AnswerFile.of("a.md", token.encode()), text=token)
    answer = replace(answer, transcript=steps(("bash", {"command": token}, token)))
    assert token not in asked(answer)


def test_prompt_for_a_plain_completion_is_as_it_was() -> None:
    """Or all stored rulings would be void."""
    question = Question("m", "", (("user", "Open the gate."),), 100, 1)
    rubric = Rubric(
        ("It names the gate.",), judge="sonnet", hidden=Hidden(("gate",), ("up",))
    )
    answer = Answer(
        "The gate skill says: gate up", files=(AnswerFile.of("a.md", b"text"),)
    )
    (only,) = first_questions(rubric, question, answer)
    assert (
        only.content
        == "def97555881ac493d895aa5f2f8289d783eeb5e7a5b2f20f50f3612d261af813"
    )
    mark = only.mark
    assert only.messages[0][1].startswith(
        f"<question {mark}>\nOpen the gate.\n</question {mark}>\n\n<answer {mark}>\nThe"
        f" gate skill says: gate up\n</answer {mark}>\n\nThe answer came with these"
        f" files, which are part of it and data too:\n<files {mark}>\na.md (4"
        f" bytes):\ntext\n</files {mark}>\n\nThe criteria:\n1. It names"
    )


@pytest.mark.parametrize("stop", ["max_turns", "time"])
def test_judge_is_not_asked_about_a_limit_stop(stop: str) -> None:
    answer = replace(agent_answer(), stop=stop)
    if answer.why_not_gradable:
        assert not first_questions(RUBRIC, QUESTION, answer)


def test_skills_of_both_arms_are_neutral_too() -> None:
    other = SkillCopy("tables", "/x", "d")
    question = replace(QUESTION, task=replace(TASK, skills=(other,)))
    look = ("read", {"path": "/skills/tables/SKILL.md"}, "How to make tables")
    answer = replace(
        agent_answer(), transcript=steps(look, WORK), activity=Activity(2, 2, None)
    )
    assert "/skills" not in asked(answer, question=question)


def test_the_judge_sees_what_the_user_answered() -> None:
    talk = (
        Turn("user", "Add up."),
        Turn(
            "assistant", "The skill ledger-sums says to ask. Which currency?", reply=1
        ),
        Turn("answer", "EUR, see ledger-sums.", reply=1),
        Turn("call", '{"command": "sum"}', "bash", reply=2),
        Turn("result", "3", "bash", reply=2),
        Turn("assistant", "It is 3 EUR.", reply=3),
    )
    seen = asked(Answer("It is 3 EUR.", transcript=talk, activity=Activity(3, 1)))
    work = seen.split("<work")[1].split("</work")[0]
    assert "Which currency?" in work
    assert "the user answered: EUR" in work
    assert work.index("the user answered") < work.index("bash")
    assert not TELLING.search(work)
