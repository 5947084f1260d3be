"""The option that renews what golden runs are compared with."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--renew",
        action="store_true",
        help="Write the outputs of golden runs instead of comparing",
    )
