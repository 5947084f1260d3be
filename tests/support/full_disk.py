"""A disk that is full for stored answers, also for root."""

import sqlite3

import pytest

from pytest_upskill.engine import database


def fill_disk(monkeypatch: pytest.MonkeyPatch, pages: int = 20) -> None:
    """Let stores have no more than so many pages of 4 kB;
    three hold their empty tables.
    """
    usual = database._connection

    def connection(address: str) -> sqlite3.Connection:
        made = usual(address)
        made.execute(f"PRAGMA max_page_count={pages}")
        return made

    monkeypatch.setattr(database, "_connection", connection)
