"""The pytest plugin of the history."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.junitxml import xml_key

from ...plugin.run import RUN

if TYPE_CHECKING:
    from ...results.run import RunResults


class History:
    """Adds what earlier runs say to the results, and keeps the run."""

    def pytest_upskill_results(
        self, config: pytest.Config, results: "RunResults"
    ) -> Mapping[str, Any] | None:
        from .keeping import look_at_earlier_runs

        return look_at_earlier_runs(config.stash[RUN], results)

    @pytest.hookimpl(tryfirst=True)  # before the hooks of conftest files
    def pytest_upskill_finished(
        self, config: pytest.Config, results: "RunResults"
    ) -> None:
        from .keeping import keep_run

        run_id = keep_run(config.stash[RUN], results)
        if run_id and (junit := config.stash.get(xml_key, None)):
            junit.add_global_property("upskill_run", run_id)
