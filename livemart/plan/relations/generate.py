"""Makes rows of one row's elements: LATERAL VIEW and explode().

Linear: a row's elements depend on that row alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from livemart.plan.relations.key_query import KeyQuery, key_query
from livemart.plan.relations.kinds import NUMBER, UNKNOWN, ValueKind, element_kind
from livemart.plan.relations.relation import (
    Expr,
    Relation,
    Restrictions,
    Scan,
    Want,
    column,
    columns_of,
    replaced,
)
from livemart.plan.sql.written import sql_of
from livemart.spark_sql import quoted


class Generate(Relation):
    """Add the columns that a generator makes from each row, as `qualifier.name`.

    The elements of a changed order, as it was and as it is, tell what it affects. Nothing tells
    which stored orders hold such an element: all are read.

    >>> show(
    ...     "select m.course, max(d.amount) as most from"
    ...     " (select explode(dishes) as dish, amount from raw.orders) as d"
    ...     " join raw.menu as m on d.dish = m.dish group by m.course",
    ...     change="orders",
    ... )
    region: course
    affected: select distinct p.w1 as w0 from (select distinct __generated_dish.dish as w0
        from (select distinct dishes as w0 from touched_orders) as s lateral view
        explode(s.w0) `__generated_dish` as `dish`) as c inner join (select distinct dish as
        w0, course as w1 from present_menu) as p on c.w0 = p.w0
    read: orders, all rows
    read: menu, where course = w0
    """

    def __init__(
        self,
        source: Relation,
        generator: Expr,
        qualifier: str,
        names: tuple[str, ...],
        *,
        outer: bool,
    ) -> None:
        self.inputs = (source,)
        self.generator = generator
        self.qualifier = qualifier
        self.names = names
        self._outer = outer

    def is_local(self, expr: Expr, *, anchored: bool) -> bool:
        return not self._reads_generated(expr) and self.source.is_local(expr, anchored=anchored)

    def is_local_time(self, expr: Expr) -> bool:
        return not self._reads_generated(expr) and self.source.is_local_time(expr)

    def meets_frame(self, expr: Expr) -> bool:
        return not self._reads_generated(expr) and self.source.meets_frame(expr)

    def is_elastic(self, expr: Expr) -> bool:
        made_of = [expr, self.generator] if self._reads_generated(expr) else [expr]
        return any(map(super().is_elastic, made_of))

    def affected(self, want: Sequence[Expr], *, has_time: bool = False) -> list[KeyQuery]:
        if not any(self._reads_generated(expr) for expr in want):
            return self.source.affected(want, has_time=has_time)
        needed = self._needed(want)
        return self._unfolded(want, needed, self.source.affected(needed))

    def rows(self, want: Sequence[Expr], *, past: bool = False) -> list[KeyQuery]:
        if not any(self._reads_generated(expr) for expr in want):
            return self.source.rows(want, past=past)
        needed = self._needed(want)
        return self._unfolded(want, needed, self.source.rows(needed, past=past))

    def restrict(self, want: Want, restrictions: Restrictions) -> None:
        below = want.over(lambda expr: None if self._reads_generated(expr) else expr)
        self.source.restrict(below, restrictions)

    def trace(self, expr: Expr) -> list[tuple[Scan, Expr]] | None:
        return None if self._reads_generated(expr) else self.source.trace(expr)

    def unique_keys(self, *, null_safe: bool = False) -> list[frozenset[str]]:
        """Return each key of the input with a column that distinguishes its elements, if any."""
        return [
            key | {sql_of(column(name, self.qualifier))}
            for key in self.source.unique_keys(null_safe=null_safe)
            for name in self._distinguishing()
        ]

    def _kind_of_column(self, reference: exp.Column) -> ValueKind:
        if reference.table != self.qualifier:
            return self.source.value_kind(reference)
        is_placed = isinstance(self.generator, exp.Posexplode)
        if is_placed and reference.name == self.names[0]:
            return NUMBER
        if not isinstance(self.generator, exp.Explode):
            return UNKNOWN
        elements = self.source.value_kind(self.generator.this)
        return None if elements is None else element_kind(elements)

    def _distinguishing(self) -> list[str]:
        """Return the columns that hold each value once for a row of the input."""
        if isinstance(self.generator, exp.Posexplode):
            return [self.names[0]]
        if not isinstance(self.generator, exp.Stack):
            return []
        given, width = self.generator.expressions, len(self.names)
        if self.generator.this.name != str(len(given) // width) or len(given) % width:
            return []
        return [name for place, name in enumerate(self.names) if _are_distinct(given[place::width])]

    def _reads_generated(self, expr: Expr) -> bool:
        return any(reference.table == self.qualifier for reference in columns_of(expr))

    def _needed(self, want: Sequence[Expr]) -> list[Expr]:
        needed: dict[str, Expr] = {}
        for expr in (*want, self.generator):
            for reference in columns_of(expr):
                if reference.table != self.qualifier:
                    needed.setdefault(sql_of(reference), reference)
        return list(needed.values())

    def _unfolded(
        self, want: Sequence[Expr], needed: list[Expr], below: list[KeyQuery]
    ) -> list[KeyQuery]:
        places = {sql_of(expr): f"w{index}" for index, expr in enumerate(needed)}
        alias = "s" if self.qualifier != "s" else "s_"
        inner = [over_subquery(expr, {alias: places}) for expr in want]
        generator = over_subquery(self.generator, {alias: places})
        outer = "outer " if self._outer else ""
        names = ", ".join(map(quoted, self.names))
        unfolded = (
            f") as {alias} lateral view {outer}"
            f"{sql_of(generator)} {quoted(self.qualifier)} as {names}"
        )
        return [key_query(inner, "(", query, unfolded) for query in below]


def _are_distinct(values: Sequence[Expr]) -> bool:
    """Return True if values are whole numbers, written out, and no two are equal.

    Texts are not compared: two spellings may be one text.
    """
    texts = [it.name for it in values if isinstance(it, exp.Literal) and not it.is_string]
    are_whole = len(texts) == len(values) and all(map(str.isdecimal, texts))
    return are_whole and len(set(map(int, texts))) == len(texts)


def over_subquery(expr: Expr, places: Mapping[str, Mapping[str, str]]) -> Expr:
    """Return `expr` over subqueries.

    Args:
        expr: over columns as the query names them.
        places: by qualifier of a subquery, the columns that it gives and their names there. All in
            one step: the analyst, too, may call a table `l` and a column `w0`.
    """
    spots = {
        text: (place, qualifier)
        for qualifier, names in places.items()
        for text, place in names.items()
    }
    return replaced(
        expr,
        lambda reference: column(*spot) if (spot := spots.get(sql_of(reference))) else None,
    )
