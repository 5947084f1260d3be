"""Our own files with one value changed to something odd: an error for people,
or a good result.
"""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill._util.json_forms import json_values
from pytest_upskill.cli import main
from pytest_upskill.errors import AcceptedError, ResultsError
from pytest_upskill.features.accepted.results import read_results
from pytest_upskill.reports.markdown import markdown_summary
from pytest_upskill.reports.page import run_page
from pytest_upskill.results import history
from pytest_upskill.results.merging import Source, merged
from pytest_upskill.results.run_comparison import compare_runs
from pytest_upskill.results.run_file import read_run, results_values
from support.made import accepted_count, made_run
from support.made_studies import made_study

RUN = made_run(
    cases=2,
    arms=("baseline", "previous", "skill"),
    accepted={0: accepted_count(1, 2)},
    studies=(made_study(),),
)
REPORT: dict[str, Any] = json.loads(json.dumps(results_values(RUN)))
ACCEPTED: dict[str, Any] = {
    "haiku": {
        "a1": {
            "was": {"passes": 1, "runs": 2},
            "date": "2026-01-01",
            "baseline": {"passes": 0, "runs": 2},
            "model_id": "haiku-1",
            "case": "a",
            "skill_digest": "0",
            "setup": "0",
        }
    }
}
ODD: st.SearchStrategy[object] = st.sampled_from(
    [
        *(
            float("nan"),
            float("inf"),
            -float("inf"),
            1e300,
            -1,
            0,
            2**53,
            2**63,
            10**400,
        ),
        *(
            "",
            "many",
            "\ud800",
            "a\0b",
            "9999-12-31T23:59:59-12:00",
            True,
            None,
            [],
            {},
            [1],
        ),
    ]
)
# Python refuses to read the first two: a limit of digits, and of recursion.
TEXTS = [
    "1" * 5000,
    "[" * 100_000,
    "",
    "\0",
    "[]",
    "1e999",
    '\ufeff{"a": 1}',
    '{"a": "\\ud800"}',
    "{",
]


def paths(data: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inside = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in inside:
        yield (*above, key)
        if isinstance(value, dict | list):
            yield from paths(value, (*above, key))


def numbers(data: Any) -> Iterator[float]:
    """All numbers in nested values."""
    if isinstance(data, dict):
        data = list(data.values())
    if isinstance(data, list):
        for value in data:
            yield from numbers(value)
    elif isinstance(data, int | float):
        yield data


def changed(data: Any, path: tuple[Any, ...], value: object) -> str:
    """As JSON, with the value at a path replaced."""
    copy = json.loads(json.dumps(data))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return json.dumps(copy)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("odd")


@given(st.sampled_from(list(paths(REPORT))), ODD)
def test_odd_results_are_an_error_or_can_be_reported(
    folder: Path, path: tuple[Any, ...], odd: object
) -> None:
    (folder / "r.json").write_text(changed(REPORT, path, odd))
    try:
        run = read_run(folder / "r.json")
        merged([Source("a", run), Source("b", RUN)], subset=True)
        compare_runs(RUN, run)
    except ResultsError:
        return
    history.packed(run)
    run_page(run, [])
    assert "nan" not in markdown_summary(run, [], 0).split()


@given(st.data(), ODD)
def test_an_odd_head_of_a_kept_run_is_an_error_or_not_believed(
    folder: Path, data: st.DataObject, odd: object
) -> None:
    line, _, rest = gzip.decompress(history.packed(RUN)).decode().partition(",\n")
    head = json.loads(line + "}")
    path = data.draw(st.sampled_from(list(paths(head))))
    text = f"{changed(head, path, odd)[:-1]},\n{rest}"
    (folder / "k.json.gz").write_bytes(gzip.compress(text.encode()))
    try:
        read = history.read_head(folder / "k.json.gz")
    except ResultsError:
        return
    assert 2020 < read.started.year < 3001 or path == ("started",)
    assert all(abs(number) <= 2**53 for number in numbers(json_values(read.summary)))


@given(st.sampled_from(list(paths(ACCEPTED))), ODD)
def test_odd_accepted_results_are_an_error_or_good(
    folder: Path, path: tuple[Any, ...], odd: object
) -> None:
    (folder / "skill_results.json").write_text(changed(ACCEPTED, path, odd))
    try:
        results = read_results(folder)
    except AcceptedError:
        return
    for cases in results.values():
        for case in cases.values():
            assert 0 <= case.was.passes <= case.was.runs <= 10_000


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_text_that_is_no_report_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    kept = Path(".upskill/runs/20261115T083012Z-1a2b3c.json.gz")
    kept.parent.mkdir(parents=True)
    Path("r.json").write_text(text)
    for words in (["report", "r.json"], ["runs", "show", "r.json"]):
        assert main(words) == 2
        assert capsys.readouterr().err.startswith("pytest-upskill: r.json")
    ways: list[Callable[[bytes], bytes]] = [bytes, gzip.compress]
    for packed in ways:
        kept.write_bytes(packed(text.encode()))
        main(["runs"])
        assert "skipped, damaged: " in capsys.readouterr().out
    Path("skill_results.json").write_text(text)
    with pytest.raises(AcceptedError, match=r"skill_results\.json"):
        read_results(tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("seconds", 2**53, "seconds: must be 1e\\+09 or less"),
        ("seconds", float("nan"), "seconds: must be"),
        ("started", "9999-12-31T23:59:59-12:00", "started: no time of a run"),
        ("started", "0001-01-01T00:00:00+14:00", "started: no time of a run"),
    ],
)
def test_an_impossible_number_is_named(
    tmp_path: Path, key: str, value: object, told: str
) -> None:
    (tmp_path / "r.json").write_text(changed(REPORT, (key,), value))
    with pytest.raises(ResultsError, match=told):
        read_run(tmp_path / "r.json")


def test_an_unknown_key_is_named(tmp_path: Path) -> None:
    path = ("tests", 0, "expected", "was")
    (tmp_path / "r.json").write_text(
        changed(REPORT, path, {"passes": 1, "runs": 1, "run": 1})
    )
    with pytest.raises(
        ResultsError, match=r"tests\[0\]\.expected\.was\.run: unknown key"
    ):
        read_run(tmp_path / "r.json")
