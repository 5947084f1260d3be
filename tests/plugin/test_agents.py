"""--skill-agent: cases carried out by agents on models, and what is refused before a run."""

import pytest

from support.kit import case, run_skills, write_script, write_skill


@pytest.fixture
def model(pytester: pytest.Pytester) -> str:
    write_skill(pytester.path / "skills/gate")
    return write_script(pytester.path / "answers.json")


def collected(pytester: pytest.Pytester, *args: str) -> list[str]:
    """Node ids without the file."""
    result = pytester.runpytest_inprocess(*args, "--collect-only", "-q")
    assert result.ret == 0
    return [line.partition("::")[2] for line in result.outlines if "::" in line]


def test_every_agent_is_on_every_model(pytester: pytest.Pytester, model: str) -> None:
    both = ("--skill-agent", "chat", "--skill-agent", "loop")
    found = collected(pytester, "--skill", "skills", "--model", model, *both)
    assert found == [f"open-gate[{model}]", f"open-gate[loop/{model}]"]


def test_a_node_id_names_its_agent(pytester: pytest.Pytester, model: str) -> None:
    one = f"skills/gate/skill_meta.json::open-gate[loop/{model}]"
    assert collected(pytester, one) == [f"open-gate[loop/{model}]"]
    # beside the usual ones
    other = write_skill(pytester.path / "skills/other")
    found = collected(pytester, one, str(other / "SKILL.md"), "--model", model)
    assert found == [f"open-gate[loop/{model}]", f"open-gate[{model}]"]


@pytest.mark.parametrize(
    ("patterns", "fits"),
    [
        (["loop/*"], ["loop"]),
        (["scripted:*"], ["chat", "loop"]),
        (["*answers.json"], ["chat", "loop"]),
    ],
)
def test_cases_name_agents_or_models(
    pytester: pytest.Pytester, patterns: list[str], fits: list[str]
) -> None:
    cases = [case("How?", "gate up", id="one", models=patterns)]
    write_skill(pytester.path / "skills/gate", cases)
    model = write_script(pytester.path / "answers.json")
    both = ("--skill-agent", "chat", "--skill-agent", "loop")
    found = collected(pytester, "--skill", "skills", "--model", model, *both)
    labels = {"chat": f"one[{model}]", "loop": f"one[loop/{model}]"}
    assert found == [labels[agent] for agent in fits]


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--skill-agent", "lop"], '--skill-agent lop: no such agent (did you mean "loop"?)*'),
        (["--skill-sandbox", "chroot"], "*'chroot' is not auto, bwrap, docker, podman or none"),
        (["--model", "local"], "--model local: this model takes no tools"),
        (["--skill-with", "nowhere"], "--skill-with*nowhere: no such file or folder"),
        (["--skill-with", "skills"], "--skill-with skills/gate: this skill is tested, so *"),
        (["--skill-with", "other"], "--skill-with other/gate: a skill of this name (gate) *"),
        (
            ["--skill-agent", "chat", "--model", "loop/answers"],
            "--model loop/answers: loop on answers and chat on *",
        ),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_asked(
    pytester: pytest.Pytester, model: str, args: list[str], told: str
) -> None:
    write_skill(pytester.path / "other/gate")
    models = ("--model", "answers", "--skill-base-url", "http://127.0.0.1:9/v1")
    result = run_skills(pytester, model, "--skill-agent", "loop", *models, *args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{told}"])


def test_a_case_that_needs_an_agent_says_so_without_one(
    pytester: pytest.Pytester, model: str
) -> None:
    files = {"id": "files", "input": "Write it.", "expected": {"files": {"a.md": {"exists": True}}}}
    cases = [case("How?", "gate up", id="plain"), files]
    write_skill(pytester.path / "skills/gate", cases)
    result = run_skills(pytester, model)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ['*skill_meta.json:1: cases?1?: "files" looks at what an agent does; *--skill-agent loop']
    )
    result = run_skills(pytester, model, "--collect-only")
    result.stdout.fnmatch_lines(["upskill: 1 of these tests would need --skill-agent loop"])
    both = ("--skill-agent", "chat", "--skill-agent", "loop", "--collect-only")
    result = run_skills(pytester, model, *both)
    result.stdout.fnmatch_lines(["upskill: gate: 1 case for agents, not for chat"])
    assert f"files[{model}]" not in result.stdout.str()
    assert f"files[loop/{model}]" in result.stdout.str()


def test_a_file_of_cases_for_agents_alone_is_one_error(
    pytester: pytest.Pytester, model: str
) -> None:
    cases = [case("How?", "x", id=name, context={"files": ["a.png"]}) for name in ("a", "b")]
    (write_skill(pytester.path / "skills/gate", cases) / "a.png").write_bytes(b"\x89PNG\0")
    result = run_skills(pytester, model, "--skill-max-turns", "5")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "upskill: --skill-max-turns: only for agents (--skill-agent loop)",
            "*'a.png' is not UTF-8 text*; add --skill-agent loop",
        ]
    )


def test_agents_with_as_much_to_do_share_a_line(pytester: pytest.Pytester) -> None:
    judged = {"id": "two", "input": "open", "expected": {"judge": ["It is open"]}}
    write_skill(pytester.path / "skills/gate", [case("open", "yes", id="one"), judged])
    models = ("--model", "scripted:answers.json", "--skill-judge", "scripted:answers.json")
    (pytester.path / "answers.json").write_text('[{"answer": "yes"}]')
    agents = ("--skill-agent", "loop", "--skill-agent", "claude", "--skill-agent", "chat")
    result = pytester.runpytest("--skill", "skills", *agents, *models, "--collect-only")
    result.stdout.fnmatch_lines(
        [
            "upskill: a run would make up to 6 calls: 2 tests × 2 arms × 1 run, and 2 by the judge",
            "upskill: a run would make up to 4 trials each by loop, claude, each of up to 30 "
            "turns: 2 tests × 2 arms × 1 run, and 2 calls by the judge for each",
        ]
    )
