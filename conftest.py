"""Tests of the plugin run pytest inside of pytest."""

pytest_plugins = ["pytester"]
