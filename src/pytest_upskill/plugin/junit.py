"""The file of --junitxml is pytest's own; this adds what it says of skills.

In the controller alone, which knows the prices and what the run amounts to.
"""

import pytest
from _pytest.junitxml import xml_key

from ..reports.export.junit_properties import case_properties, suite_properties
from ..results.run import RunResults
from ..trials.records import dump_records
from .items import RECORDS_PROPERTY
from .ledger import Ledger


def add_to_test(report: pytest.TestReport, ledger: Ledger, config: pytest.Config) -> None:
    """Before JUnit sees it: of several reports of a test it takes the properties of one."""
    names = [name for name, _ in report.user_properties]
    if xml_key in config.stash and RECORDS_PROPERTY in names:
        priced = ledger.priced_records_of(report.nodeid)
        others = [pair for pair in report.user_properties if pair[0] != RECORDS_PROPERTY]
        records = (RECORDS_PROPERTY, dump_records(priced))
        report.user_properties[:] = [records, *others, *case_properties(priced)]


def add_to_suite(results: RunResults, config: pytest.Config) -> None:
    if xml := config.stash.get(xml_key, None):
        for name, value in suite_properties(results):
            xml.add_global_property(name, value)
