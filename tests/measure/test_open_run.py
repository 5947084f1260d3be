"""One way from model names to an engine, for pytest, the commands and Python."""

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.cli import main
from pytest_upskill.errors import SettingsError
from pytest_upskill.measure.engine_of_run import open_engine
from pytest_upskill.measure.models_of_run import Models
from pytest_upskill.measure.open_run import open_run
from pytest_upskill.measure.requirements import require, require_reachable
from pytest_upskill.models import local
from pytest_upskill.models.model import ModelName, NamedBy, Progress
from pytest_upskill.models.prices import FREE, Price
from pytest_upskill.settings import Settings
from pytest_upskill.teach.api import generate_skill
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.trial import Question
from support.kit import case, write_script, write_skill

MISSING = "the embedded model is not installed"


def no_download(what: str) -> Progress:
    raise AssertionError(f"{what} is downloaded")


@pytest.fixture
def without_llama(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project where the extra ``local`` is not installed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(local, "_NEEDED", ("no_such_package_of_llama",))
    write_skill(
        tmp_path / "skills/gate", [case(f"Question {n}?", "gate up") for n in range(4)]
    )
    (tmp_path / "l.jsonl").write_text(
        '{"question": "q", "answer": "a", "judge": "It is good.", "passed": true}'
    )
    return tmp_path


@pytest.mark.parametrize(
    ("command", "flag"),
    [
        (["judge", "l.jsonl", "--model", "local"], "--model"),
        (
            ["generate", "a task", "--model", "local", "--eval-model", "local"],
            "--eval-model",
        ),
        (["generate", "a task", "--model", "local", "--no-eval"], "--model"),
        (
            ["refine", "skills/gate", "--model", "local", "--eval-model", "local"],
            "--eval-model",
        ),
        (["cases", "skills/gate", "--add", "2", "--model", "local"], "--model"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
@pytest.mark.usefixtures("without_llama")
def test_a_command_without_the_extra_ends_with_one_clean_error(
    command: list[str], flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines()[0] == f"pytest-upskill: {flag} local: {MISSING}"
    assert 'pip install "pytest-upskill[local] @ ' in shown.err
    assert len(shown.err.splitlines()) == 2


@pytest.mark.parametrize("options", [[], ["--model", "local"]])
def test_pytest_without_the_extra_ends_with_the_same_error(
    without_llama: Path, pytester: pytest.Pytester, options: list[str]
) -> None:
    result = pytester.runpytest_inprocess("--skill", without_llama / "skills", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            f"ERROR: --model local: {MISSING}",
            "*pytest-upskill[[]local[]] @ git+https://*",
        ]
    )


@pytest.mark.usefixtures("without_llama")
def test_python_without_the_extra_gets_the_same_error() -> None:
    with pytest.raises(SettingsError, match=f"^teacher local: {MISSING}"):
        generate_skill("a task", teacher="local", students=[])


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            ["judge", "l.jsonl", "--model", "m", "--base-url", "foo"],
            "--base-url: not the URL of a server",
        ),
        (["judge", "l.jsonl", "--model", "hauku"], "--model hauku: unknown model"),
        (
            ["refine", "skills/gate", "--eval-model", "m", "--eval-base-url", "foo"],
            "--eval-base-url: not the URL of a server",
        ),
        (
            ["refine", "skills/gate", "--eval-model", "m", "--base-url", "foo"],
            "--base-url: not the URL of a server",
        ),
        (
            ["refine", "skills/gate", "--eval-model", "haiku", "--judge", "x:y"],
            "--judge x:y: ",
        ),
    ],
)
@pytest.mark.usefixtures("without_llama")
def test_a_command_blames_its_own_option(
    command: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 2
    shown = capsys.readouterr().err
    assert shown.startswith(f"pytest-upskill: {message}")
    assert "--skill-" not in shown


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("eval_model: hauku", "eval_model: hauku: unknown model"),
        ("eval_model: haiku\nmodel: opsu", "model: opsu: unknown model"),
        (
            "model: opus\nskill_generation_model: opsu",
            "skill_generation_model: opsu: unknown",
        ),
        ("test_gen_model: x:y", "test_gen_model: x:y: unknown model"),
    ],
)
def test_a_name_in_upskill_config_is_blamed_on_the_file(
    without_llama: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    config: str,
    message: str,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x")
    (without_llama / "upskill.config.yaml").write_text(config)
    assert main(["generate", "a task"]) == 2
    expected = f"pytest-upskill: upskill.config.yaml: {message}"
    assert capsys.readouterr().err.startswith(expected)
    assert main(["generate", "a task", "-m", "haiku", "--eval-model", "b:c"]) == 2
    assert capsys.readouterr().err.startswith(
        "pytest-upskill: --eval-model b:c: unknown"
    )


def test_a_model_in_two_roles_is_one_unless_its_address_differs() -> None:
    models = Models()
    one, other = "http://one/v1", "http://other/v1"
    assert models.add(ModelName("m", one)) == "m"
    assert models.add(ModelName("m", one, by=NamedBy("judge")), "judge") == "m"
    assert models.add(ModelName("m", other), "teacher") == "m (teacher)"
    assert {name: spec.base_url for name, spec in models.specs.items()} == {
        "m": one,
        "m (teacher)": other,
    }
    assert models.specs["m"].by.setting == "models"  # blamed on what named it first


def test_the_default_is_the_embedded_model_but_not_for_a_server() -> None:
    assert list(open_run(Settings()).specs) == ["local"]
    with pytest.raises(
        SettingsError, match=r"^base_url: no model of that server is named"
    ):
        open_run(Settings(base_url="http://one/v1"))


def test_a_model_of_a_server_may_be_named_like_the_oracle() -> None:
    url = "http://127.0.0.1:9/v1"
    run = open_run(Settings(models=("oracle",), base_url=url))
    assert run.specs["oracle"].base_url == url
    assert open_run(Settings(agents=("oracle",))).specs["oracle"].base_url is None


def test_a_model_of_another_file_is_blamed_on_that_file(tmp_path: Path) -> None:
    file = tmp_path / "upskill.config.yaml"
    settings = Settings(models=("hauku",), models_file=file)
    with pytest.raises(SettingsError) as caught:
        open_run(settings)
    assert caught.value.message(str.upper).startswith(
        f"{file}: eval_model: hauku: unknown model"
    )


def test_a_budget_needs_every_price() -> None:
    names = ("known", "other", "third")
    settings = Settings(models=names, base_url="http://one/v1")
    models = Models({"known": Price(1, 1, 1)})
    require(open_run(settings, models=models), (), no_trouble)
    with pytest.raises(
        SettingsError, match=r"^max_cost: the price of other, third is not known"
    ):
        require(open_run(replace(settings, max_cost=0.0), models=models), (), print)
    assert models.price_of("known") == Price(1, 1, 1)


def test_an_agent_needs_a_model_that_calls_tools(tmp_path: Path) -> None:
    own = f"local:{tmp_path / 'big.gguf'}"
    models = Models()
    run = open_run(Settings(models=("haiku", own), agents=("loop",)), models=models)
    assert all(map(models.takes_tools, run.specs))
    local = open_run(Settings(models=("local",), agents=("chat", "codex")))
    with pytest.raises(
        SettingsError, match=r"^models local: this model takes no tools"
    ) as caught:
        require(local, (), no_trouble)
    assert "Fitting models: openai:ID" in caught.value.hint


@pytest.mark.parametrize(
    ("agent", "hint"),
    [("chat", "or try without a key: "), ("claude", "or name another model")],
)
def test_an_agent_is_not_sent_to_the_embedded_model_for_want_of_a_key(
    agent: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    run = open_run(Settings(models=("haiku",), agents=(agent,)))
    with pytest.raises(SettingsError, match=f"Set ANTHROPIC_API_KEY, {hint}"):
        require(run, (), no_trouble, no_download)


def test_the_engine_asks_stores_and_replays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = write_script(tmp_path / "a.json")
    run = open_run(Settings(models=(name,)))
    require_reachable(run, no_download, run.subjects)
    assert run.models.price_of(name) == FREE
    question = Question(name, "", (("user", "Hello?"),), 10, 1)
    engine = open_engine(run, tmp_path, no_trouble)
    [answer] = engine.ask([question])
    engine.close()
    assert isinstance(answer, Answer)
    (tmp_path / "empty.jsonl").write_text("")
    replayed = Settings(models=(name,), replay_file=tmp_path / "empty.jsonl")
    engine = open_engine(
        open_run(replayed), tmp_path, no_trouble, how_to_record="pytest --record"
    )
    [reply] = engine.ask([question])
    engine.close()
    assert "not in empty.jsonl. Record it: pytest --record" in getattr(
        reply, "reason", ""
    )


def no_trouble(text: str) -> None:
    raise AssertionError(text)


def test_a_replay_needs_no_key_but_the_prices_of_a_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    settings = Settings(models=("openai:new",), replay_file=tmp_path / "a.jsonl")
    require(open_run(settings), (), no_trouble, no_download)
    with pytest.raises(SettingsError, match="the price of openai:new is not known"):
        require(open_run(replace(settings, max_cost=1.0)), (), no_trouble)


def test_a_judge_that_a_role_has_named_is_not_resolved_again() -> None:
    models = Models()
    judge = models.add(ModelName("gemini/x", "http://teacher/v1"), "judge")
    run = open_run(Settings(judge=judge), models=models, names=())
    assert list(run.models.specs) == ["gemini/x"]
    assert run.settings.judge_agent == ""
