"""Wrong options and settings: one clear message each,
before anything is collected or asked.

``test_a_usage_error_ends_the_run`` proves that such a message ends a run; all others
are tested on the start of a session.
"""

import shutil

import pytest

from pytest_upskill.skills.context import require_ref
from support.kit import commit_all, write_script, write_skill
from support.usage import usage_error

SERVER = ("--model", "m", "--skill-base-url", "http://127.0.0.1:9/v1")


@pytest.fixture(autouse=True)
def _skill(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    write_script(pytester.path / "answers.json")


@pytest.mark.parametrize(
    ("args", "ini", "message"),
    [
        (["--skill", "nowhere"], "", "--skill nowhere: no such file or folder"),
        (["--skill", "gat"], "", 'no skill of this name (did you mean "gate"?)'),
        (
            ["--skill", "skills/gat"],
            "",
            'no such file or folder (did you mean "gate"?)',
        ),
        (["--skill", "skills", "--skill-runs", "0"], "", "'0' is not a whole number"),
        (["--skill", "skills", "--model", "hiaku"], "", 'did you mean "haiku"?'),
        (
            ["--skill", "skills"],
            "skill_runs = three",
            "tox.ini: skill_runs: 'three' is not",
        ),
        (
            [],
            "skill_paths = nowhere",
            "tox.ini: skill_paths: nowhere: no such file or folder",
        ),
    ],
)
def test_a_usage_error_ends_the_run(
    pytester: pytest.Pytester, args: list[str], ini: str, message: str
) -> None:
    pytester.makeini(f"[pytest]\n{ini}")
    result = pytester.runpytest_inprocess(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    shown = result.stdout.str() + result.stderr.str()
    assert message in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("--skill ", "argument --skill: the value is empty"),
        ("--skill-runs 100000000", "'100000000' is not a whole number from 1 to 1,000"),
        ("--skill-timeout soon", "'soon' is not a number above 0"),
        (
            "--skill-sandbox chroot",
            "'chroot' is not auto, bwrap, docker, podman or none",
        ),
        ("--skill-no-worse", "--skill-no-worse: there is nothing to compare with"),
    ],
)
def test_values_of_options(pytester: pytest.Pytester, args: str, message: str) -> None:
    assert message in usage_error(pytester, "--skill", "skills", *args.split(" "))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("--model haiku", "ANTHROPIC_API_KEY is not set"),
        ("--model local:none.gguf", "none.gguf: no such file or folder"),
        ("--model local:skills/gate/SKILL.md", "is not a GGUF file"),
        ("--model scripted:none.json", "no such file or folder"),
        ("--skill-base-url localhost:8080 --model m", "--skill-base-url: not the URL"),
        ("--skill-base-url http://localhost:8080/v1", "Add --model NAME"),
        (
            "--skill-base-url http://localhost:8080/v1 --model m --skill-max-cost 1",
            "--skill-max-cost: the price of m is not known",
        ),
        ("--skill-tests none.json --model haiku", "no such file"),
        ("--skill-tests skills --model haiku", "is a folder"),
    ],
)
def test_models_and_files(pytester: pytest.Pytester, args: str, message: str) -> None:
    assert message in usage_error(pytester, "--skill", "skills", *args.split())


def test_an_empty_key_counts_as_missing(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "")
    args = ("--skill", "skills", "--model", "haiku")
    assert "ANTHROPIC_API_KEY is empty" in usage_error(pytester, *args)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            "--skill-agent lop",
            '--skill-agent lop: no such agent (did you mean "loop"?)',
        ),
        ("--model local", "--model local: this model takes no tools"),
        ("--skill-with nowhere", "nowhere: no such file or folder"),
        ("--skill-with skills", "--skill-with skills/gate: this skill is tested, so "),
        ("--skill-with other", "--skill-with other/gate: a skill of this name (gate) "),
        ("--skill-agent chat --model loop/m", "--model loop/m: loop on m and chat on "),
    ],
)
def test_agents(pytester: pytest.Pytester, args: str, message: str) -> None:
    write_skill(pytester.path / "other/gate")
    agent = ("--skill", "skills", "--skill-agent", "loop", *SERVER)
    assert message in " ".join(usage_error(pytester, *agent, *args.split()).split())
    assert not (pytester.path / "skills/gate/new").exists()


@pytest.mark.parametrize(
    ("agent", "model", "what"),
    [
        ("acme", "haiku", "acme"),
        ("loop", "own:x", "own:x"),
        ("loop", "given:x", "given:x"),
    ],
)
def test_what_a_conftest_adds_is_refused_on_a_cluster(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    agent: str,
    model: str,
    what: str,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-1234567890abcdefghij")
    pytester.makeconftest("""
        from pytest_upskill import Answer, CommandAgent, Model, ModelSpec, Provider

        class Parrot(Model):
            async def ask(self, question):
                return Answer("x")

        class Own(Provider):
            def resolve(self, wanted, rest, env):
                return ModelSpec(wanted.name, self, rest)

            async def open(self, spec, timeout):
                return Parrot()

        class Acme(CommandAgent):
            program, install, protocols = "acme", "acme", ("messages",)

            def launch(self, job):
                raise NotImplementedError

        def pytest_upskill_models():
            return {"own": Own("own", "own:x"), "given": lambda name: Parrot()}

        def pytest_upskill_agents():
            return {"acme": Acme}
        """)
    args = ("--skill-cluster", "tcp://127.0.0.1:1", "-o", "skill_cluster_keys=true")
    message = usage_error(
        pytester, "--skill", "skills", "--skill-agent", agent, "--model", model, *args
    )
    assert f"its workers can't ask {what}\n" in message


@pytest.mark.parametrize(
    ("ini", "message"),
    [
        (
            "skill_max_tokens = many",
            "tox.ini: skill_max_tokens: 'many' is not a whole number",
        ),
        ("skill_fresh = maybe", "tox.ini: skill_fresh: 'maybe' is not true or false"),
        (
            "skill_timeout = -1",
            "tox.ini: skill_timeout: '-1.0' is not a number above 0",
        ),
        ("skill_models = hiaku", "tox.ini: skill_models: hiaku: unknown model"),
    ],
)
def test_values_in_the_ini_file(
    pytester: pytest.Pytester, ini: str, message: str
) -> None:
    pytester.makeini(f"[pytest]\n{ini}")
    assert message in usage_error(pytester, "--skill", "skills")


def test_an_ini_override_is_not_blamed_on_the_file(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nskill_runs = 3")
    message = usage_error(pytester, "--skill", "skills", "-o", "skill_runs=three")
    assert message.startswith("-o: skill_runs: 'three' is not a whole number")


def test_wrong_types_in_pyproject(pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml('[tool.pytest]\nskill_paths = "skills"\n')
    result = pytester.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "skill_paths" in result.stderr.str()


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_the_ref_of_against(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(pytester.path.parent))

    def refused(ref: str) -> str:
        require_ref.cache_clear()
        return usage_error(pytester, "--skill", "skills", f"--skill-against={ref}")

    assert "is in no git repository" in refused("main")
    commit_all(pytester.path)
    assert "nowhere: no such ref in the repository of " in refused("nowhere")
    assert "--skill-against main:skills: no such ref" in refused("main:skills")
    assert "--skill-against --help: not a git ref" in refused("--help")
    monkeypatch.setenv("PATH", "")
    assert "--skill-against main: can't run git: " in refused("main")
    require_ref.cache_clear()
