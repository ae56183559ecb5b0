"""Rows that the query spells out never change."""

from __future__ import annotations

from livemart.plan.relations.relation import Restrictions, Want
from livemart.plan.relations.spelled_rows import InlineRows
from tests.unit.plan.relations.scans import expr


def test_constant_rows_are_read_and_never_affected() -> None:
    rows = InlineRows("select * from values (1), (24)", ("hours",), "h")
    restrictions = Restrictions()

    rows.restrict(Want((expr("h.hours"),)), restrictions)

    assert restrictions.scans == {}
    assert rows.affected([expr("h.hours")]) == []
    assert list(map(str, rows.rows([expr("h.hours")]))) == [
        "select v.hours as w0 from (select * from values (1), (24)) as v"
    ]
