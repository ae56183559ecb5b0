from __future__ import annotations

import pytest

from livemart.project.cursors import CompilingCursor, SparkNeeded


@pytest.mark.parametrize(
    "sql",
    [
        "show table extended in raw like '*'",
        '/* {"app": "dbt"} */\n  SHOW DATABASES',
        "show tables in raw like '*'",
    ],
)
def test_while_compiling_the_catalog_is_empty(sql: str) -> None:
    cursor = CompilingCursor(None, {})

    cursor.execute(sql)

    assert cursor.fetchall() == []
    assert cursor.fetchone() is None
    assert cursor.description == []


def test_any_other_statement_needs_spark() -> None:
    cursor = CompilingCursor(None, {})

    with pytest.raises(SparkNeeded, match="select max"):
        cursor.execute("select max(day)\nfrom raw.orders")
