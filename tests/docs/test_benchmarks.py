"""The tables of `make bench`: each has a place in RESULTS.md, and is written there at once."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def test_every_benchmark_has_a_place_in_the_results() -> None:
    from bench import BENCHMARKS
    from tables import PAGES

    page = PAGES[0].read_text(encoding="utf-8")
    assert [name for name in BENCHMARKS if f"<!-- bench: {name} -->" not in page] == []


def test_a_table_is_the_same_in_all_pages() -> None:
    from tables import PAGES

    results, performance = (page.read_text(encoding="utf-8") for page in PAGES)
    tables = re.findall(r"<!-- bench: .*?<!-- end -->", performance, re.S)
    assert tables
    assert [table for table in tables if table not in results] == []


def test_a_table_is_in_its_pages_as_soon_as_it_is_there_even_if_the_next_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import bench
    from tables import show

    pages = (tmp_path / "one.md", tmp_path / "two.md")
    place = "<!-- bench: {} -->\n{}\n<!-- end -->\n"
    pages[0].write_text("".join(place.format(name, "old") for name in ("lit", "out", "dim")))
    pages[1].write_text(place.format("lit", "old"))
    seen = list[str]()

    def lit(_: Path) -> None:
        show("Lamps", [["lit", "3"]], ["lamp", "number"])

    def out(_: Path) -> None:
        show("Lamps", [["out", "9"]], ["lamp", "number"])
        seen.extend(page.read_text() for page in pages)
        raise SystemExit("no oil")

    monkeypatch.setattr(bench, "PAGES", pages)
    monkeypatch.setattr(bench, "versions", lambda: "none")
    monkeypatch.setattr(bench, "BENCHMARKS", {"lit": lit, "out": out, "dim": lit})
    with pytest.raises(SystemExit, match="failed: out"):
        bench.main(["--write"])
    assert ["| lit    | 3" in text for text in seen] == [True, True]
    assert "<!-- bench: out -->\nold\n<!-- end -->" in pages[0].read_text()
    assert pages[0].read_text().count("| lit    | 3") == 2
    assert "out: no oil" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == sorted(pages)
