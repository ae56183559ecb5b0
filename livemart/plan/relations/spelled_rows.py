"""Gives rows that the query spells out: VALUES, and a SELECT without FROM. They never change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from livemart.plan.relations.generate import over_subquery
from livemart.plan.relations.key_query import KeyQuery, key_query
from livemart.plan.relations.kinds import UNKNOWN, ValueKind
from livemart.plan.relations.relation import Expr, Relation, Restrictions, Scan, Want, columns_of
from livemart.plan.sql.written import sql_of


class InlineRows(Relation):
    """Constant rows, read as `qualifier.name` (bare names if there is no qualifier).

    >>> show(
    ...     "select area, max(amount) as most from raw.orders as o"
    ...     " join (values ('a', 'north'), ('b', 'south')) as v (shop, area) on shop_id = v.shop"
    ...     " group by area",
    ...     change="orders",
    ... )
    region: area
    affected: select distinct p.w1 as w0 from (select distinct shop_id as w0 from
        touched_orders) as c inner join (select v.shop as w0, v.area as w1 from (select *
        from VALUES ('a', 'north'), ('b', 'south') AS v(shop, area)) as v) as p on c.w0 =
        p.w0
    read: orders, all rows
    """

    def __init__(
        self,
        query: str,
        names: tuple[str, ...],
        qualifier: str = "",
        kinds: Mapping[str, ValueKind] | None = None,
    ) -> None:
        self.query = query
        self.names = names
        self.qualifier = qualifier
        self._kinds = kinds or {}

    def is_local(self, expr: Expr, *, anchored: bool) -> bool:
        return True

    def affected(self, want: Sequence[Expr], *, has_time: bool = False) -> list[KeyQuery]:
        return []

    def rows(self, want: Sequence[Expr], *, past: bool = False) -> list[KeyQuery]:
        places = {
            sql_of(reference): reference.name for expr in want for reference in columns_of(expr)
        }
        inner = [over_subquery(expr, {"v": places}) for expr in want]
        return [key_query(inner, f"({self.query}) as v", is_distinct=False)]

    def restrict(self, want: Want, restrictions: Restrictions) -> None:
        return

    def trace(self, expr: Expr) -> list[tuple[Scan, Expr]] | None:
        return []

    def _kind_of_column(self, reference: exp.Column) -> ValueKind:
        return self._kinds.get(reference.name, UNKNOWN)
