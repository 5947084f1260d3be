"""The hook that other plugins and conftest files may answer."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest


@pytest.hookspec
def pytest_upskill_checks(config: pytest.Config) -> Mapping[str, Callable[[Any, Any], Any]]:  # type: ignore[empty-body]
    """Checks by the names that ``expected`` may use.

    Each is a function of the answer (``pytest_upskill.records.Answer``) and of the value that
    stands in the case. It returns True or False, or such and a reason, or fails an assertion.
    """
