"""Whether a skill was opened, by the text that a model saw."""

import json
import re
from collections.abc import Callable
from html import escape
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_upskill.agents.recorder import Recorder
from pytest_upskill.agents.staging import InstalledSkill
from pytest_upskill.skills.case import WorkspaceFile
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.transcript import ToolCall
from support.agents import BODY, CODES, SCRIPT, installed, recorder_for

LONG = "\n".join(
    f"{number}. Turn wheel {'abcdefghijklmnopqrst'[number % 20] * 3}{number} until the"
    " bell rings."
    for number in range(400)
)


def shown(recorder: Recorder, *texts: str, arguments: str = "{}") -> Recorder:
    """Results of calls, a reply each, after the first request."""
    recorder.system("Be brief.")
    recorder.message("user", "Open the gate.")
    for at, text in enumerate(texts):
        recorder.reply(Answer("", calls=(ToolCall(str(at), "any", arguments),)))
        recorder.result(str(at), text, failed=False)
    return recorder


def numbered(separator: str, width: int) -> Callable[[str], str]:
    def form(text: str) -> str:
        lines = enumerate(text.splitlines(), start=1)
        return "\n".join(f"{number:{width}}{separator}{line}" for number, line in lines)

    return form


FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "arrows": numbered("→", 6),
    "tabs": numbered("\t", 0),
    "cat -n": numbered("\t", 6),
    "colons": numbered(": ", 1),
    "bars": numbered(" | ", 4),
    "codex": lambda text: "\n".join(
        f"L{n}: {line}" for n, line in enumerate(text.splitlines(), 1)
    ),
    "grep": lambda text: "\n".join(
        f"a/SKILL.md:{n}:{x}" for n, x in enumerate(text.splitlines())
    ),
    "grep -r": lambda text: "\n".join(
        f"./x-y/SKILL.md:{line}" for line in text.splitlines()
    ),
    "json": json.dumps,
    "json in json": lambda text: json.dumps({"content": [{"text": json.dumps(text)}]}),
    "xml": escape,
    "quoted": lambda text: re.sub("^", "> ", text, flags=re.M),
    "blanks at the end": lambda text: re.sub("$", "  ", text, flags=re.M),
    "windows": lambda text: text.replace("\n", "\r\n"),
    "cat -A": lambda text: re.sub("$", "$", text, flags=re.M),
    "indented": lambda text: re.sub("^", "    ", text, flags=re.M),
    "wrapped in tags": lambda text: f"<file><content>\n{text}\n</content></file>",
}


INLINE: dict[str, Callable[[str], str]] = {
    "json": lambda text: json.dumps({"output": text, "exit_code": 0}),
    "json in json": lambda text: json.dumps(
        {"content": [{"text": json.dumps({"out": text})}]}
    ),
    "tags": lambda text: f"<file path='SKILL.md'>{text.strip()}</file>",
    "told": lambda text: f"Skill gate loaded: {text.strip()} (end of the skill)",
    "wrapped": lambda text: re.sub("(.{60})", r"\1" + "\n", text),
}


@pytest.mark.parametrize("form", INLINE.values(), ids=list(INLINE))
def test_a_body_of_one_line_is_known_inside_of_others(
    form: Callable[[str], str], tmp_path: Path
) -> None:
    body = (
        "1. Read references/codes.md, then write three lines, each with a word about"
        " ponds."
    )
    skill = installed(tmp_path, body=body)
    asked = '{"path": "references/codes.md"}'
    assert shown(recorder_for(skill), form(body)).activity.activated is True
    assert shown(recorder_for(skill), form(body)[:40]).activity.activated is False
    seen = shown(
        recorder_for(skill), form(CODES.replace("\n", " ")), arguments=asked
    ).activity
    assert (seen.activated, seen.read) == (False, ("references/codes.md",))


@pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))
def test_a_body_is_known_in_any_form(
    form: Callable[[str], str], tmp_path: Path
) -> None:
    recorder = shown(recorder_for(installed(tmp_path)), form(BODY))
    assert recorder.activity.activated is True
    assert recorder.activity.opened == ("gate",)


WORDS = st.sampled_from(
    ["Turn", "the wheel", "- Wait", "1. Then", "gatekeeper", "# Über", "開けて"]
)
LETTERS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=40
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(st.tuples(WORDS, LETTERS).map(" ".join), min_size=3, max_size=10),
    form=st.sampled_from(list(FORMS.values())),
    around=st.sampled_from(
        [FORMS[name] for name in ("as it is", "json", "xml", "windows")]
    ),
)
def test_any_body_is_known_in_any_form(
    lines: list[str],
    form: Callable[[str], str],
    around: Callable[[str], str],
    tmp_path: Path,
) -> None:
    body = "\n".join(lines)
    text = around(form(body))
    skill = installed(tmp_path, body=body, files={}, description="-")
    assert shown(recorder_for(skill, prompt="-"), text).activity.activated is True
    assert shown(recorder_for(skill, prompt="-"), "-").activity.activated is False


def test_parts_of_a_body_add_up(tmp_path: Path) -> None:
    skill = installed(tmp_path, body=LONG)
    lines = LONG.splitlines()
    parts = ["\n".join(lines[at : at + 20]) for at in range(0, 400, 20)]
    assert shown(recorder_for(skill), "\n".join(lines[:10])).activity.activated is False
    head = json.dumps({"command": "head -60 /x/skills/gate/SKILL.md"})
    assert (
        shown(recorder_for(skill), *parts[:3], arguments=head).activity.activated
        is True
    )
    assert (
        shown(recorder_for(skill), parts[0], arguments=head).activity.activated is False
    )
    assert shown(recorder_for(skill), *parts[:6]).activity.activated is True
    assert (
        shown(recorder_for(skill), "\n".join(lines[200:320])).activity.activated is True
    )


def test_it_may_come_as_a_message(tmp_path: Path) -> None:
    recorder = shown(recorder_for(installed(tmp_path)), "Launching skill: gate")
    recorder.message("user", f"Base directory: /x/gate\n\n{BODY}")
    assert recorder.activity.activated is True


def test_the_description_is_not_the_body(tmp_path: Path) -> None:
    description = BODY.splitlines()[2]  # a line of the body
    skill = installed(tmp_path, description=description)
    recorder = recorder_for(skill)
    recorder.system(f"<available_skills>\n{description}\n</available_skills>")
    assert shown(recorder, description, description).activity.activated is False
    recorder.reply(Answer("", calls=(ToolCall("x", "any", "{}"),)))
    recorder.result("x", BODY, failed=False)
    assert recorder.activity.activated is True


def test_a_prompt_that_quotes_the_skill_is_not_an_opened_skill(tmp_path: Path) -> None:
    skill = installed(tmp_path)
    recorder = recorder_for(skill)
    recorder.message("user", f"What do you think of this?\n\n{BODY}")
    # Where it kept the question
    shown(recorder, BODY, arguments='{"command": "cat notes.md"}')
    assert recorder.activity.activated is False
    recorder.reply(Answer("", calls=(ToolCall("x", "any", '{"name": "gate"}'),)))
    recorder.result("x", BODY, failed=False)
    assert recorder.activity.activated is True


def test_a_copy_in_the_workspace_is_not_the_skill(tmp_path: Path) -> None:
    files = [WorkspaceFile("old.md", f"{BODY}\nMore.".encode())]
    recorder = recorder_for(installed(tmp_path), files=files)
    assert (
        shown(recorder, BODY, arguments='{"path": "old.md"}').activity.activated
        is False
    )


def test_what_the_model_says_itself_does_not_count(tmp_path: Path) -> None:
    recorder = shown(recorder_for(installed(tmp_path)), "ok")
    call = ToolCall("w", "write", json.dumps({"path": "a", "content": BODY}))
    recorder.reply(Answer(BODY, calls=(call,), thinking=BODY))
    recorder.message("assistant", BODY)
    recorder.result("w", "Wrote 200 bytes to a.", failed=False)
    assert recorder.activity.activated is False


def test_equal_lines_of_another_skill_do_not_count(tmp_path: Path) -> None:
    rows = [
        f"Rowing is tiring work, and hint {number} is to rest." for number in range(20)
    ]
    other_body = "\n".join([*rows, *BODY.splitlines()[-2:]])
    other = installed(tmp_path, "boat", body=other_body, files={}, tested=False)
    gate = installed(tmp_path)
    both = shown(recorder_for(gate, other), other_body).activity
    assert (both.activated, both.opened) == (False, ("boat",))
    alone = shown(recorder_for(gate), "\n".join([*rows, "# The gate"])).activity
    assert alone.activated is False


def test_skills_are_told_in_the_order_of_opening(tmp_path: Path) -> None:
    gate = installed(tmp_path)
    boat = installed(tmp_path, "boat", body=LONG, files={}, tested=False)
    assert shown(recorder_for(gate, boat), BODY, LONG).activity.opened == (
        "gate",
        "boat",
    )
    assert shown(recorder_for(gate, boat), LONG, BODY, LONG).activity.opened == (
        "boat",
        "gate",
    )


def test_of_several_tested_skills_any_counts_and_files_are_told_apart(
    tmp_path: Path,
) -> None:
    gate = installed(tmp_path)
    boat = installed(
        tmp_path, "boat", body=LONG, files={"oars.md": "Pull both oars at once."}
    )
    first = shown(recorder_for(gate, boat), LONG, "Pull both oars at once.").activity
    assert (first.activated, first.opened, first.read) == (
        True,
        ("boat",),
        ("boat/oars.md",),
    )
    neither = shown(recorder_for(gate, boat), "Nothing of it.").activity
    assert (neither.activated, neither.opened) == (False, ())


def test_of_calls_side_by_side_the_first_call_opened_first(tmp_path: Path) -> None:
    boat = installed(tmp_path, "boat", body=LONG, files={}, tested=False)
    recorder = recorder_for(installed(tmp_path), boat)
    calls = [
        ToolCall("1", "skill", '{"name": "gate"}'),
        ToolCall("2", "skill", '{"name": "boat"}'),
    ]
    recorder.reply(Answer("", calls=tuple(calls)))
    recorder.result(calls[1], LONG, failed=False)  # its result came first
    recorder.result(calls[0], BODY, failed=False)
    assert recorder.activity.opened == ("gate", "boat")


def test_the_baseline_has_nothing_to_activate(tmp_path: Path) -> None:
    other = installed(tmp_path, "boat", body=LONG, files={}, tested=False)
    activity = shown(recorder_for(other), BODY, LONG).activity
    assert (activity.activated, activity.opened) == (None, ("boat",))
    assert (activity.read, activity.scripts) == ((), ())
    assert shown(recorder_for(), BODY).activity.activated is None


def test_files_are_read_if_their_text_was_seen(tmp_path: Path) -> None:
    files = {
        "references/codes.md": CODES,
        "references/other.md": "Nobody reads this, and it tells nothing at all.",
        "scripts/open.sh": SCRIPT,
        "assets/table.csv": "1,2\n3,4\n",
        "assets/unread.csv": "1,2\n3,5\n",
    }
    (tmp_path / "gate").mkdir()
    (tmp_path / "gate/logo.png").write_bytes(b"\x89PNG\0")
    skill = installed(tmp_path, files=files)
    skill = InstalledSkill(
        skill.name,
        skill.description,
        skill.body,
        (*skill.files, "logo.png"),
        skill.host,
        tested=True,
    )
    recorder = shown(
        recorder_for(skill), FORMS["arrows"](CODES), "references/other.md\nlogo.png"
    )
    assert recorder.activity.read == ("references/codes.md",)
    assert recorder.activity.activated is False
    recorder.reply(
        Answer("", calls=(ToolCall("t", "read", '{"path": "assets/table.csv"}'),))
    )
    recorder.result("t", "1\t1,2\n2\t3,4\n", failed=False)
    recorder.reply(
        Answer("", calls=(ToolCall("u", "read", '{"path": "assets/table.csv"}'),))
    )
    recorder.result("u", "1,2\n3,4\n", failed=False)
    assert set(recorder.activity.read) == {"references/codes.md", "assets/table.csv"}


def run_by(
    skill: InstalledSkill, command: str, output: str = "", *, failed: bool = False
) -> str:
    recorder = recorder_for(skill)
    call = ToolCall("1", "bash", json.dumps({"command": command}))
    recorder.reply(Answer("", calls=(call,)))
    recorder.result("1", output, failed)
    return " ".join(recorder.activity.scripts)


@pytest.mark.parametrize(
    ("command", "ran"),
    [
        ("python /skills/gate/scripts/fill.py", "scripts/fill.py"),
        ("cd /skills/gate && python3 scripts/fill.py --x 1", "scripts/fill.py"),
        ("cd /skills/gate/scripts && python3 -u ./fill.py", "scripts/fill.py"),
        ("cd /skills/gate; ./scripts/open.sh Walrus", "scripts/open.sh"),
        ("bash /skills/gate/scripts/open.sh 1 2>&1 | tee out.txt", "scripts/open.sh"),
        ("/skills/gate/scripts/open.sh", "scripts/open.sh"),
        ("sh -x /skills/gate/scripts/open.sh", "scripts/open.sh"),
        ("A=1 B='x y' timeout 10 bash /skills/gate/scripts/open.sh", "scripts/open.sh"),
        ("x=$(bash /skills/gate/scripts/open.sh 4)", "scripts/open.sh"),
        ('echo "$(/skills/gate/scripts/open.sh 4)"', "scripts/open.sh"),
        ("ls && (cd /skills/gate && python scripts/fill.py)", "scripts/fill.py"),
        ("bash -lc 'cd /skills/gate && python scripts/fill.py'", "scripts/fill.py"),
        ("if true; then python /skills/gate/scripts/fill.py; fi", "scripts/fill.py"),
        (
            "for f in *; do python /skills/gate/scripts/fill.py $f; done",
            "scripts/fill.py",
        ),
        ("cd /skills/gate\npython scripts/fill.py \\\n  --all", "scripts/fill.py"),
        ("cd /skills/gate && python -m scripts.fill", "scripts/fill.py"),
        ("uv run /skills/gate/scripts/fill.py", "scripts/fill.py"),
        ("uv run python /skills/gate/scripts/fill.py", "scripts/fill.py"),
        ("node .claude/skills/gate/scripts/a.js", "scripts/a.js"),
        ("python ~/.agents/skills/gate/scripts/fill.py", "scripts/fill.py"),
        ("S=/skills/gate; python $S/scripts/fill.py", "scripts/fill.py"),
        ('python "${SKILL}/scripts/fill.py"', "scripts/fill.py"),
        ("source /skills/gate/scripts/open.sh", "scripts/open.sh"),
        (
            "cat a.json | python /skills/gate/scripts/fill.py > b.json",
            "scripts/fill.py",
        ),
        (
            "python - <<'EOF'\nprint(1)\nEOF\nbash /skills/gate/scripts/open.sh",
            "scripts/open.sh",
        ),
        (
            "cp /skills/gate/scripts/fill.py . && python fill.py",
            "scripts/fill.py",
        ),
        (
            "PYTHONPATH=/skills/gate/scripts python -c 'import fill; fill.main()'",
            "scripts/fill.py",
        ),
        (
            (
                "python - <<'EOF'\nimport sys\nsys.path.insert(0,"
                " '/skills/gate/scripts')\nfrom fill import main\nEOF"
            ),
            "scripts/fill.py",
        ),
        # Reading, looking, or another file of that name is not running.
        ("cat /skills/gate/scripts/fill.py", ""),
        ("head -20 /skills/gate/scripts/open.sh; ls /skills/gate/scripts", ""),
        ("grep -n main /skills/gate/scripts/fill.py", ""),
        ("cp /skills/gate/scripts/fill.py .", ""),
        ("chmod +x /skills/gate/scripts/open.sh", ""),
        ("echo python /skills/gate/scripts/fill.py", ""),
        ("python -m py_compile /skills/gate/scripts/fill.py", ""),
        ("bash -n /skills/gate/scripts/open.sh", ""),
        ("python scripts/fill.py", ""),
        ("python fill.py", ""),
        ("./open.sh", ""),
        ("cat <<'EOF' > notes.txt\npython /skills/gate/scripts/fill.py\nEOF", ""),
        ("# python /skills/gate/scripts/fill.py", ""),
        ("python x.py /skills/gate/scripts/fill.py", ""),
        ("python /skills/boat/scripts/fill.py", ""),
        ("vim /skills/gate/scripts/fill.py 'unclosed", ""),
    ],
)
def test_scripts_that_a_command_runs(command: str, ran: str, tmp_path: Path) -> None:
    names = [
        "scripts/fill.py",
        "scripts/open.sh",
        "scripts/a.js",
        "references/codes.md",
    ]
    skill = installed(tmp_path, files=dict.fromkeys(names, "text\n"))
    assert run_by(skill, command) == ran


def test_a_command_may_stand_in_a_program(tmp_path: Path) -> None:
    """As Codex has some models call tools."""
    recorder = recorder_for(installed(tmp_path))
    program = (
        'const r = await tools.exec_command({cmd: "cd /skills/gate &&\\n'
        './scripts/open.sh \\"1\\"", workdir: "/"}); text(r.output)'
    )
    recorder.reply(Answer("", calls=(ToolCall("1", "exec", program),)))
    recorder.result("1", "ok", failed=False)
    assert recorder.activity.scripts == ("scripts/open.sh",)


def test_a_command_may_be_a_list(tmp_path: Path) -> None:
    skill = installed(tmp_path)
    recorder = recorder_for(skill)
    words = ["bash", "-lc", "cd /skills/gate && ./scripts/open.sh 1"]
    call = ToolCall(
        "1", "shell", json.dumps({"command": words, "workdir": "/workspace"})
    )
    recorder.reply(Answer("", calls=(call,)))
    recorder.result("1", "ok", failed=False)
    assert recorder.activity.scripts == ("scripts/open.sh",)


@pytest.mark.parametrize(
    ("output", "ran"),
    [
        ("bash: line 1: /skills/gate/scripts/open.sh: Permission denied", ""),
        ("bash: line 1: ./scripts/open.sh: No such file or directory", ""),
        ("sh: 1: /skills/gate/scripts/open.sh: not found", ""),
        ("bash: line 1: cd: /skills/gate: No such file or directory", ""),
        ("bash: line 1: python3: command not found", ""),
        ("python3: can't open file '/skills/gate/scripts/open.sh': [Errno 2]", ""),
        ("usage: open.sh CODE", "scripts/open.sh"),
        (
            "FileNotFoundError: [Errno 2] No such file or directory: 'in.pdf'",
            "scripts/open.sh",
        ),
        ("bash: line 1: jq: command not found", "scripts/open.sh"),
        (
            "/skills/gate/scripts/open.sh: line 3: foo: command not found",
            "scripts/open.sh",
        ),
        (
            "/skills/gate/scripts/open.sh: 3: python3: command not found",
            "scripts/open.sh",
        ),
        ("cat: in.txt: No such file or directory", "scripts/open.sh"),
    ],
)
def test_a_script_that_could_not_be_started_did_not_run(
    output: str, ran: str, tmp_path: Path
) -> None:
    skill = installed(tmp_path)
    command = "cd /skills/gate && ./scripts/open.sh Walrus | jq"
    assert run_by(skill, command, output, failed=True) == ran


def test_a_line_of_a_long_file_that_was_asked_for_is_reading(tmp_path: Path) -> None:
    skill = installed(
        tmp_path, files={"references/wheels.md": LONG, "scripts/open.sh": SCRIPT}
    )
    line = LONG.splitlines()[150]
    asked = json.dumps({"command": "grep -n 150 /skills/gate/references/wheels.md"})
    assert shown(recorder_for(skill), line, arguments=asked).activity.read == (
        "references/wheels.md",
    )
    assert shown(recorder_for(skill), line).activity.read == ()


def test_what_a_script_prints_is_not_reading_it(tmp_path: Path) -> None:
    line = "The motor hums along, and the gate is open."
    script = "\n".join(
        ["cat <<EOF", line, "EOF", *(f"sleep_for_a_while {n}" for n in range(9))]
    )
    skill = installed(tmp_path, files={"scripts/open.sh": script})
    asked = json.dumps({"command": "bash /skills/gate/scripts/open.sh 1"})
    did = shown(recorder_for(skill), line, arguments=asked).activity
    assert (did.read, did.scripts) == ((), ("scripts/open.sh",))


def test_marked_up_lines_are_known_where_markup_is_escaped(tmp_path: Path) -> None:
    body = 'Write <gate>open</gate> && wait.\nThen say "It\'s open" to <keeper>.\n'
    recorder = shown(recorder_for(installed(tmp_path, body=body)), escape(body))
    assert recorder.activity.activated is True


def test_a_call_that_never_came_back_ran_nothing(tmp_path: Path) -> None:
    recorder = recorder_for(installed(tmp_path))
    call = ToolCall("1", "bash", '{"command": "/skills/gate/scripts/open.sh"}')
    recorder.reply(Answer("", calls=(call,)))
    assert recorder.activity.scripts == ()
