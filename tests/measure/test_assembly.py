"""One way from model names to an engine, for pytest, the commands and Python."""

from pathlib import Path

import pytest

from pytest_upskill.cli import main
from pytest_upskill.errors import SettingsError
from pytest_upskill.measure.assembly import Assembly
from pytest_upskill.models import local
from pytest_upskill.models.model import ModelName, NamedBy, Progress
from pytest_upskill.models.prices import FREE, Price
from pytest_upskill.settings import Settings
from pytest_upskill.teach.api import generate_skill
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.subject import Subject
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
    models = Assembly()
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
    assert list(Assembly().add_models(Settings())) == ["local"]
    with pytest.raises(
        SettingsError, match=r"^base_url: no model of that server is named"
    ):
        Assembly().add_models(Settings(base_url="http://one/v1"))


def test_a_model_of_another_file_is_blamed_on_that_file(tmp_path: Path) -> None:
    file = tmp_path / "upskill.config.yaml"
    settings = Settings(models=("hauku",), models_file=file)
    with pytest.raises(SettingsError) as caught:
        Assembly().add_models(settings)
    assert caught.value.message(str.upper).startswith(
        f"{file}: eval_model: hauku: unknown model"
    )


def test_a_budget_needs_every_price() -> None:
    models = Assembly({"known": Price(1, 1, 1)})
    for name in ("known", "other", "third"):
        models.add(ModelName(name, "http://one/v1"))
    models.require_prices(None)
    with pytest.raises(
        SettingsError, match=r"^max_cost: the price of other, third is not known"
    ):
        models.require_prices(0.0)
    assert models.price_of("known") == Price(1, 1, 1)


def test_an_agent_needs_a_model_that_calls_tools(tmp_path: Path) -> None:
    models = Assembly()
    own = f"local:{tmp_path / 'big.gguf'}"
    for name in ("haiku", own, "local"):
        models.add(ModelName(name))
    models.require_tools(
        [Subject("loop", "haiku"), Subject("loop", own), Subject("chat", "local")]
    )
    with pytest.raises(
        SettingsError, match=r"^models local: this model takes no tools"
    ) as caught:
        models.require_tools([Subject("loop", "haiku"), Subject("codex", "local")])
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
    models = Assembly()
    models.add(ModelName("haiku"))
    with pytest.raises(SettingsError, match=f"Set ANTHROPIC_API_KEY, {hint}"):
        models.require(no_download, [Subject(agent, "haiku")])


def test_the_engine_asks_stores_and_replays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = write_script(tmp_path / "a.json")
    models = Assembly()
    settings = Settings(models=(name,))
    models.add_models(settings)
    models.require(no_download)
    assert models.price_of(name) == FREE
    question = Question(name, "", (("user", "Hello?"),), 10, 1)
    engine = models.engine(settings, tmp_path, no_trouble)
    [answer] = engine.ask([question])
    engine.close()
    assert isinstance(answer, Answer)
    (tmp_path / "empty.jsonl").write_text("")
    replayed = Settings(models=(name,), replay_file=tmp_path / "empty.jsonl")
    engine = models.engine(
        replayed, tmp_path, no_trouble, how_to_record="pytest --record"
    )
    [reply] = engine.ask([question])
    engine.close()
    assert "not in empty.jsonl. Record it: pytest --record" in getattr(
        reply, "reason", ""
    )


def no_trouble(text: str) -> None:
    raise AssertionError(text)
