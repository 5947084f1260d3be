"""Test Agent Skills with pytest.

PYTEST_DONT_REWRITE, or pytest warns when ``pytest-upskill eval`` has imported this before it.
"""

__version__ = "0.1.0"
