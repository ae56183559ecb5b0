"""Maps rows one by one: projection, filter.

Linear: a row's image depends on that row alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from livemart.plan.relations.clock import ClockBound
from livemart.plan.relations.relation import Expr, Relation, Renaming, bare, column, replaced
from livemart.plan.sql.written import sql_of


class Projection(Renaming):
    """Compute each output column from one input row.

    A key that is computed is asked for by its expression. Where no stored column moves with it, it
    restricts nothing that is read.

    >>> show(
    ...     "select concat('shop ', shop_id) as shop, max(amount) as most"
    ...     " from raw.orders group by 1",
    ...     change="orders",
    ... )
    region: shop
    affected: select distinct concat('shop ', shop_id) as w0 from touched_orders
    read: orders, all rows
    """

    def __init__(self, source: Relation, outputs: Mapping[str, Expr]) -> None:
        super().__init__(source)
        self.outputs = dict(outputs)
        self.names = tuple(self.outputs)

    def over_source(self, expr: Expr) -> Expr:
        return replaced(
            expr,
            lambda reference: None if reference.table else self.outputs.get(reference.name),
        )

    def unique_keys(self, *, null_safe: bool = False) -> list[frozenset[str]]:
        back = {sql_of(bare(expr)): name for name, expr in reversed(self.outputs.items())}
        return [
            frozenset(sql_of(column(back[text])) for text in key)
            for key in self.source.unique_keys(null_safe=null_safe)
            if all(text in back for text in key)
        ]


class Compared(Renaming):
    """Hand on all rows to steps that compare a time of theirs with the clock.

    A row stays when the clock passes it, with another value.

    >>> show(
    ...     "select order_id, ordered_at >= (select as_of from livemart.clock)"
    ...     " - interval 1 hour as is_new from raw.orders",
    ...     change="clock",
    ... )
    signed: rows
    passed: orders with ordered_at between the old and the new __clock__ - interval 1 hour
    """

    def __init__(self, source: Relation, bounds: tuple[ClockBound, ...]) -> None:
        super().__init__(source)
        self.bounds = bounds

    def over_source(self, expr: Expr) -> Expr:
        return expr

    def unique_keys(self, *, null_safe: bool = False) -> list[frozenset[str]]:
        return self.source.unique_keys(null_safe=null_safe)


class Filter(Compared):
    """Keep the rows that meet a condition; `bounds`: windows against the clock that it demands.

    An order outside the window, before and after its change, affects nothing.

    >>> show(
    ...     "select shop_id, max(amount) as most from raw.orders where amount > 5 and ordered_at >="
    ...     " (select as_of from livemart.clock) - interval 24 hours group by shop_id",
    ...     change="orders",
    ... )
    region: shop_id
    within: ordered_at from __clock__ - interval 24 hours
    affected: select distinct shop_id as w0 from touched_orders
    read: orders, where shop_id = w0
    """
