"""Gives a subquery, a common table expression or a table a name.

Linear: only the names of columns change.
"""

from __future__ import annotations

from sqlglot import exp

from livemart.plan.relations.relation import Expr, Relation, Renaming, column, replaced
from livemart.plan.sql.written import sql_of
from livemart.spark_sql import unquoted


class Alias(Renaming):
    """Give the input's columns a qualifier: `name` becomes `qualifier.name`.

    Two mentions of one table are two scans, which their qualifiers tell apart.

    >>> show(
    ...     "select a.order_id, count(distinct b.shop_id) as others"
    ...     " from raw.orders as a join raw.orders as b on a.customer_id = b.customer_id"
    ...     " group by a.order_id",
    ...     change="orders",
    ... )
    region: order_id
    affected: select distinct order_id as w0 from touched_orders
    affected: select distinct p.w1 as w0 from (select distinct customer_id as w0 from
        touched_orders) as c inner join (select distinct customer_id as w0, order_id as w1
        from present_orders) as p on p.w0 = c.w0
    read: orders, where order_id = w0
    read: orders, all rows
    """

    def __init__(
        self,
        source: Relation,
        qualifier: str,
        names: tuple[str, ...],
        renamed: tuple[str, ...] = (),
    ) -> None:
        super().__init__(source)
        self.qualifier = qualifier
        self.names = renamed or names
        self._original = dict(zip(self.names, names, strict=False))

    def over_source(self, expr: Expr) -> Expr:
        def original(reference: exp.Column) -> Expr | None:
            if reference.table != self.qualifier:
                return None
            return column(self._original.get(reference.name, reference.name))

        return replaced(expr, original)

    def unique_keys(self, *, null_safe: bool = False) -> list[frozenset[str]]:
        back = {original: name for name, original in self._original.items()}
        keys = []
        for key in self.source.unique_keys(null_safe=null_safe):
            names = [unquoted(text) for text in key]
            if all(name in back for name in names):
                keys.append(frozenset(sql_of(column(back[name], self.qualifier)) for name in names))
        return keys
