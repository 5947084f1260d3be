"""How much memory could be used, as the system's files tell it."""

from pathlib import Path

import pytest

from pytest_upskill.engine.machine import available_memory

GB = 10**9
MEMINFO = (
    "MemTotal: 8000000 kB\nMemFree: 100000 kB\nMemAvailable: 5000000 kB\nCached: x\n"
)


def made(root: Path, files: dict[str, object]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(str(text))
    return root


def test_what_is_available_counts_and_not_what_is_free(tmp_path: Path) -> None:
    assert (
        available_memory(made(tmp_path, {"proc/meminfo": MEMINFO})) == 5_000_000 * 1024
    )


@pytest.mark.parametrize(
    ("files", "most"),
    [
        # Pages that nobody needs are no loss.
        (
            {
                "sys/fs/cgroup/memory.max": 2 * GB,
                "sys/fs/cgroup/memory.current": GB,
                "sys/fs/cgroup/memory.stat": f"anon 5\ninactive_file {GB // 2}\n",
            },
            1.5 * GB,
        ),
        ({"sys/fs/cgroup/memory.max": "max\n"}, 5_000_000 * 1024),
    ],
)
def test_a_container_may_have_less(
    tmp_path: Path, files: dict[str, object], most: float
) -> None:
    assert available_memory(made(tmp_path, {"proc/meminfo": MEMINFO, **files})) == most


def test_where_nobody_tells_half_of_all_memory_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = {"SC_PHYS_PAGES": 1_000_000, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr("os.sysconf", sizes.__getitem__)
    assert available_memory(tmp_path) == 2_048_000_000
    monkeypatch.delattr("os.sysconf")
    assert available_memory(tmp_path) == float("inf")
