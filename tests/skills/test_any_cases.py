"""Any file of cases loads, or is rejected with one clear error."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.checks import load_checked_cases
from pytest_upskill.errors import InputError
from support.folders import new_folder
from support.strategies import CASES, EVALS, META, VALUES


def is_read_or_refused(folder: Path, data: bytes) -> bool:
    (folder / "a.txt").write_text("a")
    file = folder / "skill_meta.json"
    file.write_bytes(data)
    try:
        loaded = load_checked_cases(file)
        told = [
            *(one.message for one in loaded.broken),
            *(text for _, text in loaded.warnings),
        ]
        assert all("skill_meta.json" in one.message for one in loaded.broken)
        assert not any("\x1b" in text for text in told)
        assert len({one.name for one in loaded.broken}) == len(loaded.broken)
        assert len({case.id for case, _ in loaded.cases}) == len(loaded.cases)
        return bool(loaded.cases or loaded.broken)
    except InputError as error:
        return "skill_meta.json" in str(error) and "\x1b" not in str(error)


@given(data=VALUES | CASES | META | EVALS)
def test_any_json_loads_or_raises_cases_error(
    tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    assert is_read_or_refused(new_folder(tmp_path_factory), json.dumps(data).encode())


@given(data=st.text().map(str.encode) | st.binary())
def test_any_content_loads_or_raises_cases_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    assert is_read_or_refused(new_folder(tmp_path_factory), data)
