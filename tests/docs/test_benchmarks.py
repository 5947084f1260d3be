"""The tables of `make bench`: each has a place in RESULTS.md,
and is written there at once.
"""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def test_every_benchmark_has_a_place_in_the_results() -> None:
    from bench import BENCHMARKS
    from tables import RESULTS

    page = RESULTS.read_text(encoding="utf-8")
    assert [name for name in BENCHMARKS if f"<!-- bench: {name} -->" not in page] == []


def test_a_table_is_in_its_page_as_soon_as_it_is_there_even_if_the_next_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import bench
    from tables import show

    page = tmp_path / "results.md"
    place = "<!-- bench: {} -->\n{}\n<!-- end -->\n"
    page.write_text(
        "".join(place.format(name, "old") for name in ("lit", "out", "dim"))
    )
    seen = list[str]()

    def lit(_: Path) -> None:
        show("Lamps", [["lit", "3"]], ["lamp", "number"])

    def out(_: Path) -> None:
        show("Lamps", [["out", "9"]], ["lamp", "number"])
        seen.append(page.read_text())
        raise SystemExit("no oil")

    monkeypatch.setattr(bench, "RESULTS", page)
    monkeypatch.setattr(bench, "versions", lambda: "none")
    monkeypatch.setattr(bench, "BENCHMARKS", {"lit": lit, "out": out, "dim": lit})
    with pytest.raises(SystemExit, match="failed: out"):
        bench.main(["--write"])
    assert ["| lit    | 3" in text for text in seen] == [True]
    assert "<!-- bench: out -->\nold\n<!-- end -->" in page.read_text()
    assert page.read_text().count("| lit    | 3") == 2
    assert "out: no oil" in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == [page]
