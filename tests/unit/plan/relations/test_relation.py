"""A scan answers the four questions itself; the columns of an expression."""

from __future__ import annotations

import pytest

from livemart.plan.reasons import Inapplicable
from livemart.plan.relations.relation import Restrictions, Want, composed_of, is_constant
from tests.unit.plan.relations.scans import expr, sales


def test_a_scan_is_where_a_question_ends() -> None:
    scan, want = sales(), Want((expr("shop"),))
    restrictions = Restrictions()

    scan.restrict(want, restrictions)

    assert restrictions.scans == {0: [want]}
    assert list(map(str, scan.affected([expr("upper(shop)")]))) == [
        "select distinct UPPER(shop) as w0 from __touched_0__"
    ]
    (known,) = scan.rows([expr("shop")], past=True)
    assert str(known) == "select distinct shop as w0 from __known_0__"


def test_a_column_of_another_relation_cannot_be_asked_of_a_scan() -> None:
    with pytest.raises(Inapplicable, match="other is not made of columns"):
        sales().affected([expr("other")])


@pytest.mark.parametrize(
    ("text", "is_composed"),
    [("upper(shop)", True), ("concat(shop, 1)", True), ("id", False), ("max(shop)", False)],
)
def test_what_is_composed_of_a_key(text: str, is_composed: bool) -> None:
    assert composed_of(expr(text), [expr("(shop)")]) is is_composed


@pytest.mark.parametrize(
    ("text", "expected"), [("1 + 1", True), ("shop", False), ("max(1)", False)]
)
def test_a_constant_reads_nothing(text: str, expected: bool) -> None:
    assert is_constant(expr(text)) is expected
