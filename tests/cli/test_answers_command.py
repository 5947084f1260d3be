"""pytest-upskill answers: show, prune and clear stored answers."""

import time
from pathlib import Path

import pytest

from pytest_upskill.cli import main
from pytest_upskill.engine.store import Store
from pytest_upskill.trials.answer import Answer, Usage
from support.kit import write_damaged_store

ANSWER = Answer("gate up", Usage(10, 5, None), "end", 1.5)


@pytest.mark.parametrize("more", [[], ["--clear"], ["--prune", "0"]])
def test_answers_sets_a_damaged_store_aside(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    more: list[str],
) -> None:
    write_damaged_store(tmp_path / ".upskill/answers.sqlite")
    monkeypatch.chdir(tmp_path)
    main(["answers", *more])
    assert "set aside as" in capsys.readouterr().out
    main(["answers"])
    shown = capsys.readouterr().out
    assert "set aside" not in shown
    assert ": 0 answers," in shown


def test_answers_that_can_not_be_deleted_are_not_called_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path / ".upskill/answers.sqlite")
    store.put("a", "haiku", ANSWER)
    store.close()
    (tmp_path / ".upskill/answers.sqlite-shm").mkdir()  # as on a read-only disk
    monkeypatch.chdir(tmp_path)
    assert main(["answers", "--clear"]) == 1
    shown = capsys.readouterr().out
    assert "can't be deleted" in shown
    assert " deleted\n" not in shown
    assert ": 1 answer," in shown


def test_answers_shows_prunes_and_clears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    assert main(["answers"]) == 0
    assert "no stored answers" in capsys.readouterr().out
    store = Store(tmp_path / ".upskill/answers.sqlite")
    for key in ("a", "b"):
        store.put(key, "haiku", ANSWER)
    old = time.time() - 40 * 86_400
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: old)
        store.put("c", "opus", ANSWER)
    store.close()
    main(["answers"])
    shown = capsys.readouterr().out
    size = (tmp_path / ".upskill/answers.sqlite").stat().st_size
    assert f": 3 answers, {size:,} bytes" in shown
    assert "2  haiku" in shown
    main(["answers", "--prune", "30"])
    shown = capsys.readouterr().out
    assert "1 answer deleted" in shown
    assert "opus" not in shown
    main(["answers", "--clear"])
    assert "2 answers deleted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--prune", "-1"], "argument --prune: '-1' is not a number of days"),
        (["--prune", "nan"], "argument --prune: 'nan' is not a number of days"),
        (["--prune", "old"], "argument --prune: 'old' is not a number of days"),
        (
            ["--clear", "--prune", "3"],
            "argument --prune: not allowed with argument --clear",
        ),
    ],
)
def test_answers_rejects_bad_arguments(
    capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["answers", *arguments])
    assert caught.value.code == 2
    assert told in capsys.readouterr().err
