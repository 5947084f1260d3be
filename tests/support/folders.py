"""A folder for each of many examples."""

import tempfile
from pathlib import Path

import pytest


def new_folder(factory: pytest.TempPathFactory) -> Path:
    """An empty folder; unlike ``mktemp`` this does not read the
    names of all others first.
    """
    return Path(tempfile.mkdtemp(dir=factory.getbasetemp()))
