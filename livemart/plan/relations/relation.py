"""Gives a query as a tree of local steps, each able to say how a change passes through it.

Used by the strategies. Every SQL shape is one subclass, in a module beside this one. A relation
answers four questions, all by rewriting expressions over its own columns into expressions over its
inputs' columns:

- `is_local(expr)`: may the value of `expr` confine a change, i.e. do rows with different values
  never influence each other below this point? (a region key)
- `affected(want)`: SQL that returns a superset of the values of `want` in all changed output rows,
  old and new images, given one view of touched rows per stored relation.
- `rows(want)`: SQL for `want` over all present rows (filters may be left out: a superset); with
  `past` also over the old images of touched rows.
- `restrict(want, restrictions)`: which rows of each stored relation are enough to compute the
  output rows that match given values of `want`.

Soundness: see docs/refresh.md; "affected may grow freely, and what is read follows from it".

The examples show SQL as the answers make it: what a change of a table affects, then what is read.
`show` is of tests/unit/plan/examples.py, where its tables and its lines are described.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from sqlglot import exp

from livemart.plan.reasons import refusal
from livemart.plan.relations.key_query import KeyQuery, RowsOf, key_query
from livemart.plan.relations.kinds import UNKNOWN, ValueKind, common_kind, value_kind
from livemart.plan.sql.determinism import function_name, is_aggregate, may_name_zone
from livemart.plan.sql.names import column as column
from livemart.plan.sql.written import is_atom, sql_of

# A column that each of several subqueries reads twice doubles with each of them.
_MOST_REFERENCES = 500

Expr = exp.Expr


@dataclass(frozen=True, slots=True)
class Want:
    """Expressions over one relation's columns that must match the affected region.

    `keys[i]` is matched with region key i; None where the key got lost on the way down, which only
    widens what is read. `time` is matched with the region's interval, widened by `before` and
    `after` microseconds.

    The city, w0, and the time are wanted of the rows. The city is no column of `orders`: its key is
    None there, and the time is left.

    >>> show(
    ...     "select city, ordered_at, avg(amount) over (partition by city order by ordered_at"
    ...     " range between interval 1 hour preceding and current row) as average"
    ...     " from raw.orders as o join raw.shops as s on o.shop_id = s.shop_id",
    ...     change="shops",
    ... )
    region: city, ordered_at from 0:00:00 before a change to 1:00:00 after it
    affected: select distinct c.w1 as w0, p.w1 as w1 from (select distinct shop_id as w0,
        city as w1 from touched_shops) as c inner join (select distinct shop_id as w0,
        ordered_at as w1 from known_orders) as p on p.w0 = c.w0
    read: orders, where ordered_at from w1 - 1:00:00 to w1 + 1:00:00
    read: shops, where city = w0
    """

    keys: tuple[Expr | None, ...]
    time: Expr | None = None
    before: int = 0
    after: int = 0

    def over(self, below: Callable[[Expr], Expr | None]) -> Want:
        """Return the same wish for a step below; None for each column that it does not have."""
        keys = tuple(None if key is None else below(key) for key in self.keys)
        return replace(self, keys=keys, time=None if self.time is None else below(self.time))


@dataclass(frozen=True, slots=True)
class Restriction:
    """Rows of one stored relation to read; neither keys nor time: the whole relation.

    `keys`: index of the region's key, stored column, and how many microseconds at most the two are
    apart. `time`: the stored column that must be in the region's intervals, once these are widened
    by so many microseconds `before` and `after`.

    The day is no stored column: its rows are looked for up to 24 hours around it.

    >>> show(
    ...     "select shop_id, to_date(ordered_at) as day, max(amount) as most"
    ...     " from raw.orders group by 1, 2",
    ...     change="orders",
    ... )
    region: shop_id, day
    affected: select distinct shop_id as w0, to_date(ordered_at) as w1 from touched_orders
    read: orders, where shop_id = w0 and ordered_at within 1 day, 0:00:00 of w1
    """

    keys: tuple[tuple[int, str, int], ...]
    time: str | None = None
    before: int = 0
    after: int = 0


@dataclass(slots=True)
class Restrictions:
    """The rows and decisions that a region asks for from the steps below a query.

    `scans`: by occurrence, alternatives over its stored columns. `decisions`: by gate where rows
    may tie, the region's keys as they arrive there on each way; None where a key does not tell its
    groups apart.

    A common table expression that is read twice asks for its rows in two ways:

    >>> show(
    ...     "with o as (select shop_id, customer_id, amount from raw.orders)"
    ...     " select who, max(amount) as most from (select shop_id as who, amount from o"
    ...     " union all select customer_id, amount from o) group by who",
    ...     change="orders",
    ... )
    region: who
    affected: select distinct shop_id as w0 from touched_orders
    affected: select distinct customer_id as w0 from touched_orders
    read: orders, where shop_id = w0 or customer_id = w0
    """

    scans: dict[int, list[Want]] = field(default_factory=dict)
    decisions: dict[int, list[tuple[Expr | None, ...]]] = field(default_factory=dict)


class Relation(ABC):
    """One step of a query. `names` are its output columns, `inputs` the steps it reads.

    A query is a tree of them, here an aggregate over a join of two scans. A shop that moves to
    another city affects its own group, which needs the shop's rows of both tables.

    >>> show(
    ...     "select o.shop_id, max(s.city) as city, count(distinct o.customer_id) as customers"
    ...     " from raw.orders as o join raw.shops as s on o.shop_id = s.shop_id"
    ...     " group by o.shop_id",
    ...     change="shops",
    ... )
    region: shop_id
    affected: select distinct shop_id as w0 from touched_shops
    read: orders, where shop_id = w0
    read: shops, where shop_id = w0
    """

    inputs: tuple[Relation, ...] = ()

    @property
    def source(self) -> Relation:
        """The input of a step that has one."""
        return self.inputs[0]

    @abstractmethod
    def is_local(self, expr: Expr, *, anchored: bool) -> bool:
        """Return True if `expr` may be a region key; `anchored`: without asking a joined side."""

    def is_local_time(self, expr: Expr) -> bool:
        """Return True if `expr` may be the time of the region's intervals."""
        return False

    def meets_frame(self, expr: Expr) -> bool:
        """Return True if `expr` is the order of a bounded frame: a date or a timestamp."""
        return False

    def is_elastic(self, expr: Expr) -> bool:
        """Return True if the value of `expr` depends on other rows: bounds of a session.

        A session window is asked for through all names that it got below: rows that come between
        move it, so it confines nothing.
        """
        return any(function_name(node) == "session_window" for node in expr.walk()) or any(
            source.is_elastic(expr) for source in self.inputs
        )

    @abstractmethod
    def affected(self, want: Sequence[Expr], *, has_time: bool = False) -> list[KeyQuery]:
        """Return SELECTs (columns w0, w1, ...) whose union covers the changed values of `want`.

        With `has_time` the last of `want` is the region's time: the changed points are enough, for
        the region widens them by the margins of the frames.

        Raises:
            Inapplicable: KEY_NOT_IN_OUTPUT, if a value cannot be traced to the changed rows.
        """

    @abstractmethod
    def rows(self, want: Sequence[Expr], *, past: bool = False) -> list[KeyQuery]:
        """Return SELECTs (columns w0, w1, ...) of `want` over all present rows.

        With `past` also over the rows that this batch changed, as they were.
        """

    @abstractmethod
    def restrict(self, want: Want, restrictions: Restrictions) -> None:
        """Add to `restrictions` the rows that each stored relation below must supply."""

    @abstractmethod
    def trace(self, expr: Expr) -> list[tuple[Scan, Expr]] | None:
        """Return `expr` over the columns of the stored relations it comes from, else None."""

    def unique_keys(self, *, null_safe: bool = False) -> list[frozenset[str]]:
        """Return sets of expressions (as SQL over this relation's columns), each set unique.

        Several rows of a table may hold NULL for a text that is unique: Delta stores '' as NULL in
        a column of a partition.

        Args:
            null_safe: the sets alone of which one row has NULL, for the query groups by them.
        """
        return []

    def value_kind(self, expr: Expr) -> ValueKind:
        """Return the kind of the values of `expr`: `UNKNOWN`, or None where no table tells."""
        return value_kind(expr, self._kind_once)

    @cached_property
    def _kinds_by_column(self) -> dict[str, ValueKind]:
        # A column that is read twice at each of many levels would be asked for without end.
        return {}

    def _kind_once(self, reference: exp.Column) -> ValueKind:
        text = sql_of(reference)
        if text not in self._kinds_by_column:
            self._kinds_by_column[text] = self._kind_of_column(reference)
        return self._kinds_by_column[text]

    def _kind_of_column(self, reference: exp.Column) -> ValueKind:
        return self.source.value_kind(reference) if self.inputs else UNKNOWN

    def walk(self) -> Iterator[Relation]:
        """Yield this relation and all below it, shared ones once."""
        seen: set[int] = set()
        stack: list[Relation] = [self]
        while stack:
            relation = stack.pop()
            if id(relation) in seen:
                continue
            seen.add(id(relation))
            yield relation
            stack.extend(reversed(relation.inputs))


class Scan(Relation):
    """A mention of a stored relation. Its columns are bare names.

    >>> orders = Scan(0, "raw.orders", ("order_id", "shop_id"))
    >>> print(*orders.affected([column("shop_id")]))
    select distinct shop_id as w0 from __touched_0__
    >>> print(*orders.rows([column("order_id")], past=True))
    select distinct order_id as w0 from __known_0__
    """

    def __init__(
        self,
        occurrence: int,
        relation: str,
        names: tuple[str, ...],
        unique: Sequence[frozenset[str]] = (),
        kinds: Mapping[str, str] | None = None,
    ) -> None:
        self.occurrence = occurrence
        self.relation = relation
        self.names = names
        # No kind is known of other columns.
        self.kinds = {name.lower(): kind for name, kind in (kinds or {}).items()}
        self._unique = list(unique)

    def is_local(self, expr: Expr, *, anchored: bool) -> bool:
        return self._has(expr) and not may_name_zone(expr)

    def is_local_time(self, expr: Expr) -> bool:
        return self._has(expr)

    def affected(self, want: Sequence[Expr], *, has_time: bool = False) -> list[KeyQuery]:
        self._require(want)
        return [key_query(want, RowsOf("touched", self.occurrence))]

    def rows(self, want: Sequence[Expr], *, past: bool = False) -> list[KeyQuery]:
        self._require(want)
        return [key_query(want, RowsOf("known" if past else "present", self.occurrence))]

    def restrict(self, want: Want, restrictions: Restrictions) -> None:
        restrictions.scans.setdefault(self.occurrence, []).append(want)

    def trace(self, expr: Expr) -> list[tuple[Scan, Expr]] | None:
        return [(self, expr)]

    def unique_keys(self, *, null_safe: bool = False) -> list[frozenset[str]]:
        return [] if null_safe else self._unique

    def _kind_of_column(self, reference: exp.Column) -> ValueKind:
        return self.kinds.get(reference.name.lower(), UNKNOWN) if self.kinds else None

    def _has(self, expr: Expr) -> bool:
        """Return False if more than columns of this relation is read, such as the clock."""
        return all(
            not reference.table and reference.name in self.names for reference in columns_of(expr)
        )

    def _require(self, want: Sequence[Expr]) -> None:
        for expr in want:
            if not self._has(expr):
                raise refusal(
                    "KEY_NOT_IN_OUTPUT", f"{sql_of(expr)} is not made of columns of {self.relation}"
                )


class RowByRow(Relation):
    """A step that computes each row from one row of one input, to which all questions go on.

    Orders and returns are two inputs, and each is asked for the shop by its own name for it.

    >>> show(
    ...     "select shop, max(at) as newest from (select shop_id as shop, ordered_at as at"
    ...     " from raw.orders union all select shop_id, returned_at from raw.returns) group by 1",
    ...     change="orders",
    ... )
    region: shop
    affected: select distinct shop_id as w0 from touched_orders
    read: orders, where shop_id = w0
    read: returns, where shop_id = w0
    """

    @abstractmethod
    def over_input(self, expr: Expr, place: int) -> Expr:
        """Return `expr` with this step's columns replaced by expressions over one input."""

    def below(self, *exprs: Expr) -> Iterator[tuple[Relation, list[Expr]]]:
        """Yield each input with the expressions over it."""
        for place, source in enumerate(self.inputs):
            yield source, [self.over_input(expr, place) for expr in exprs]

    def is_local(self, expr: Expr, *, anchored: bool) -> bool:
        return all(part.is_local(over, anchored=anchored) for part, (over,) in self.below(expr))

    def is_local_time(self, expr: Expr) -> bool:
        return all(source.is_local_time(over) for source, (over,) in self.below(expr))

    def meets_frame(self, expr: Expr) -> bool:
        return any(source.meets_frame(over) for source, (over,) in self.below(expr))

    def is_elastic(self, expr: Expr) -> bool:
        return any(source.is_elastic(over) for source, (over,) in self.below(expr))

    def affected(self, want: Sequence[Expr], *, has_time: bool = False) -> list[KeyQuery]:
        return [
            query
            for source, exprs in self.below(*want)
            for query in source.affected(exprs, has_time=has_time)
        ]

    def rows(self, want: Sequence[Expr], *, past: bool = False) -> list[KeyQuery]:
        return [
            query for source, exprs in self.below(*want) for query in source.rows(exprs, past=past)
        ]

    def restrict(self, want: Want, restrictions: Restrictions) -> None:
        for place, source in enumerate(self.inputs):
            source.restrict(want.over(partial(self.over_input, place=place)), restrictions)

    def trace(self, expr: Expr) -> list[tuple[Scan, Expr]] | None:
        sites: list[tuple[Scan, Expr]] = []
        for source, (over,) in self.below(expr):
            if (traced := source.trace(over)) is None:
                return None
            sites += traced
        return sites

    def _kind_of_column(self, reference: exp.Column) -> ValueKind:
        return common_kind(source.value_kind(over) for source, (over,) in self.below(reference))


class Renaming(RowByRow):
    """A step whose columns are expressions over its one input: nothing else changes.

    The shop is called three things on its way to the output, and asked for by its first name.

    >>> show(
    ...     "select seller as shop, max(amount) as most"
    ...     " from (select o.shop_id as seller, amount from raw.orders as o) group by 1",
    ...     change="orders",
    ... )
    region: shop
    affected: select distinct shop_id as w0 from touched_orders
    read: orders, where shop_id = w0
    """

    def __init__(self, source: Relation) -> None:
        self.inputs = (source,)

    @abstractmethod
    def over_source(self, expr: Expr) -> Expr:
        """Return `expr` with this step's columns replaced by expressions over the input."""

    def over_input(self, expr: Expr, place: int) -> Expr:
        return self.over_source(expr)


def columns_of(expr: Expr) -> Iterator[exp.Column]:
    """Yield the column references in `expr`."""
    return expr.find_all(exp.Column)


def replaced(expr: Expr, replacement: Callable[[exp.Column], Expr | None]) -> Expr:
    """Return a copy of `expr` with some of its columns replaced.

    Args:
        replacement: the expression for a column; None for the column itself.

    Raises:
        Inapplicable: PARSE_UNSUPPORTED, if a parameter of a function of elements has the name of
            a column that would be moved into its body, or the expression reads too many columns.
    """
    copy = expr.copy()
    references = list(columns_of(copy))
    if len(references) > _MOST_REFERENCES:
        raise refusal(
            "PARSE_UNSUPPORTED",
            f"an output column reads over {_MOST_REFERENCES:,} columns, written out",
            None,
            "store a subquery below it as a model",
        )
    for reference in references:
        value = replacement(reference)
        if value is None:
            continue
        if reference is copy:
            return bare(value).copy()
        value = bare(value).copy()
        _refuse_capture(reference, value)
        reference.replace(value if is_atom(value) else exp.Paren(this=value))
    return copy


def _refuse_capture(reference: exp.Column, value: Expr) -> None:
    around = reference.find_ancestor(exp.Lambda)
    while around is not None:
        parameters = {parameter.name.lower() for parameter in around.expressions}
        for part in columns_of(value):
            if part.parts[0].name.lower() in parameters:
                message = f"{sql_of(part)} has the name of a parameter of {sql_of(around)[:60]}"
                raise refusal("PARSE_UNSUPPORTED", message)
        around = around.find_ancestor(exp.Lambda)


def is_constant(expr: Expr) -> bool:
    """Return True if no column, aggregate or subquery is read."""
    return not any(
        isinstance(node, exp.Column | exp.Query) or is_aggregate(node) for node in expr.walk()
    )


def composed_of(expr: Expr, parts: Sequence[Expr]) -> bool:
    """Return True if `expr` is built from `parts` and constants alone."""
    return _composed(expr, {sql_of(bare(part)) for part in parts})


def _composed(expr: Expr, texts: set[str]) -> bool:
    if sql_of(bare(expr)) in texts:
        return True
    if isinstance(expr, exp.Column | exp.Query | exp.Window | exp.Star) or is_aggregate(expr):
        return False
    return all(
        _composed(child, texts)
        for child in expr.iter_expressions()
        if not isinstance(child, exp.DataType | exp.Identifier)
    )


def bare(expr: Expr) -> Expr:
    """Return `expr` without surrounding parentheses and alias."""
    while isinstance(expr, exp.Paren | exp.Alias):
        expr = expr.this
    return expr


def conjuncts(condition: Expr) -> list[Expr]:
    """Return the parts of a condition that must all hold, in their order."""
    condition = bare(condition)
    if isinstance(condition, exp.And):
        return [*conjuncts(condition.left), *conjuncts(condition.right)]
    return [condition]
