"""The pytest plugin of properties in JUnit files."""

from typing import TYPE_CHECKING

import pytest
from _pytest.junitxml import LogXML, xml_key

from ...errors import shown
from ...plugin.failure_lines import link_to
from ...plugin.run import RUN

if TYPE_CHECKING:
    from ...results.run import RunResults


class JUnit:
    """Adds the numbers of each test, and of the run, to the file of --junitxml."""

    _config: pytest.Config

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._config = session.config

    @pytest.hookimpl(tryfirst=True)  # before the report is written
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        run = self._config.stash[RUN]
        if xml_key not in self._config.stash or not run.ledger:
            return
        records = run.ledger.records_of(report.nodeid)
        test = run.ledger.test(report.nodeid)
        if not records or not test:
            return

        from .properties import case_properties

        name = f"{test.skill}::{test.case}[{test.label}]"
        report.user_properties.append(("upskill", name))
        if link := link_to(test, run.settings):
            report.user_properties.append(("upskill_page", link))
        scores = {skill.name: skill.score for skill in run.ledger.skills}
        report.user_properties += case_properties(
            records,
            scores.get(test.skill, "pass"),
            tags=test.tags,
            max_age=run.settings.max_age,
        )

    @pytest.hookimpl(tryfirst=True)  # before the hooks of conftest files
    def pytest_upskill_finished(
        self, config: pytest.Config, results: "RunResults"
    ) -> None:
        xml: LogXML | None = config.stash.get(xml_key, None)
        if not xml:
            return

        from .properties import suite_properties

        for name, value in suite_properties(results):
            xml.add_global_property(name, value)
        settings = config.stash[RUN].settings
        if settings.json_file:
            xml.add_global_property("upskill_json", shown(settings.json_file))
        if settings.html_file:
            xml.add_global_property("upskill_page", shown(settings.html_file))
