"""The kind of an expression follows from the columns that it reads and from what it calls."""

from __future__ import annotations

import pytest
from sqlglot import parse_one

from livemart.plan.relations.kinds import UNKNOWN, are_alike, value_kind

_TIME = "timestamp[us, tz=UTC]"
_COLUMNS = {
    "n": "number",
    "d": "double",
    "s": "string",
    "at": _TIME,
    "lines": "list<element: struct<sku: string, many: int64 not null>>",
}


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("n + 1", "number"),
        ("n * d", "double"),
        ("coalesce(s, 'none')", "string"),
        ("coalesce(s, n)", UNKNOWN),
        ("case when n > 1 then n end", "number"),
        ("nullif(s, '')", "string"),
        ("concat(n, '-', s)", "string"),
        ("max_by(s, at)", "string"),
        ("lag(n) over (partition by s order by at)", "number"),
        ("cast(n as decimal(20, 2))", "decimal128(20, 2)"),
        ("cast(n as decimal(12, 2))", "number"),
        ("lines[0].many", "number"),
        ("lines[0].sku", "string"),
        ("lines[0].other", UNKNOWN),
        ("date_trunc('hour', at)", _TIME),
        ("window(at, '1 hour').start", _TIME),
        ("at + interval 1 hour", _TIME),
        ("n / 2", UNKNOWN),
        ("sqrt(n)", UNKNOWN),
        ("(at - at) / 2", "interval"),
        ("at - from_utc_timestamp(at, 'CET')", "interval"),
        ("case when n > 1 then -(at - timestamp_seconds(n)) else n end", "interval"),
        ("try_subtract(at, s)", "interval"),
        ("struct(array(at - at))", "interval"),
        ("element_at(array(at - at), 1)", "interval"),
        ("floor(n / 10) * 2.5 + unix_timestamp(at)", UNKNOWN),
        ("extract(day from at - at)", UNKNOWN),
    ],
)
def test_an_expression_has_the_kind_that_spark_gives_its_values(sql: str, kind: str) -> None:
    expr = parse_one(sql, read="spark")

    assert value_kind(expr, lambda reference: _COLUMNS[reference.name]) == kind


def test_nothing_is_told_by_a_table_that_is_not_there() -> None:
    kind = value_kind(parse_one("coalesce(s, n)", read="spark"), lambda _: None)

    assert kind is None
    assert are_alike([kind, "string"])
