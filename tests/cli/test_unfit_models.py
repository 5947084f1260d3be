"""What a model can't do is said before the first call of any command."""

from pathlib import Path

import pytest

from pytest_upskill.cli import main
from support.kit import case, write_script, write_skill

SMALL = "local:m.gguf?context=4096"


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pytest_upskill.models.local.installed", lambda: True)
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    cases = [case(f"How, at {hour}?", "gate up", id=f"at-{hour}") for hour in range(12)]
    write_skill(tmp_path / "skills/long", cases, body="Type gate up. " * 1000)
    write_script(tmp_path / "a.json")


@pytest.mark.parametrize(
    "words",
    [
        ["ablate", "long", "--model", SMALL],
        ["refine", "long", "--model", "scripted:a.json", "--eval-model", SMALL],
        [
            "cases",
            "long",
            "--add",
            "4",
            "--model",
            "scripted:a.json",
            "--eval-model",
            SMALL,
        ],
    ],
)
def test_a_skill_that_no_model_can_read_is_an_error(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--yes"]) == 2
    assert "long is too long: about 3,500 tokens of 4,096" in capsys.readouterr().err


def test_a_model_that_nobody_named_is_called_the_default(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["ablate", "long", "--agent", "loop", "--yes"]) == 2
    assert (
        "--model local (the default): this model takes no tools"
        in capsys.readouterr().err
    )
