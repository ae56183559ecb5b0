"""Joins two relations: a change reaches the rows that share its join key, on either side.

Sources: rules 7 to 10 of the refresh design; Larson and Zhou, "Efficient maintenance of
materialized outer-join views", ICDE 2007 (null-extended rows flip with the match).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from sqlglot import exp

from livemart.plan.reasons import Inapplicable, Reason, refusal
from livemart.plan.relations.equi_keys import EquiKey
from livemart.plan.relations.generate import over_subquery
from livemart.plan.relations.key_query import KeyQuery, key_query
from livemart.plan.relations.kinds import DATE, TIMES, ValueKind, are_alike
from livemart.plan.relations.relation import (
    Expr,
    Relation,
    Restrictions,
    Scan,
    Want,
    columns_of,
    is_constant,
)
from livemart.plan.sql.written import sql_of

# Branches of unions multiply in joins: more of them than this are no statement for Spark.
_MOST_WAYS = 256

# By side, what is read of it, by its SQL.
_Needed = dict[str, dict[str, Expr]]

JoinKind = Literal["inner", "left", "cross", "semi", "anti"]


class Join(Relation):
    """Join `left` with `right`; the left side is preserved in left joins.

    Conditions other than equalities may be left out: they only narrow what matches.

    A shop that moved affects the city that it was in and the one that it is in. An order affects
    the city of its shop: the changed orders are joined with the shops.

    >>> sql = (
    ...     "select s.city, max(o.amount) as most from raw.orders as o"
    ...     " join raw.shops as s on o.shop_id = s.shop_id group by s.city"
    ... )
    >>> show(sql, change="shops")
    region: city
    affected: select distinct city as w0 from touched_shops
    read: orders, all rows
    read: shops, where city = w0
    >>> show(sql, change="orders")
    region: city
    affected: select distinct p.w1 as w0 from (select distinct shop_id as w0 from
        touched_orders) as c inner join (select distinct shop_id as w0, city as w1 from
        present_shops) as p on c.w0 = p.w0
    read: orders, all rows
    read: shops, where city = w0

    Shops without an order are in the output of a left join. By an order the shop's own row changes.

    >>> show(
    ...     "select s.shop_id, count(distinct o.customer_id) as customers from raw.shops as s"
    ...     " left join raw.orders as o on s.shop_id = o.shop_id group by s.shop_id",
    ...     change="orders",
    ... )
    region: shop_id
    affected: select distinct shop_id as w0 from touched_orders
    read: shops, where shop_id = w0
    read: orders, where shop_id = w0
    """

    def __init__(
        self,
        left: Relation,
        right: Relation,
        kind: JoinKind,
        keys: Sequence[EquiKey],
        right_qualifiers: frozenset[str],
    ) -> None:
        self.inputs = (left, right)
        self.left = left
        self.right = right
        self.kind = kind
        self.keys = tuple(keys)
        self._right_qualifiers = right_qualifiers
        # Answers to earlier questions: chains of joins repeat the same ones many times.
        self._answers: dict[tuple[str, ...], list[KeyQuery] | Inapplicable] = {}

    # Sides -------------------------------------------------------------------------------------

    def side(self, expr: Expr) -> Literal["left", "right", "both", "none"]:
        """Say which side's columns an expression reads."""
        is_right = {reference.table in self._right_qualifiers for reference in columns_of(expr)}
        if not is_right:
            return "none"
        if len(is_right) == 2:
            return "both"
        return "right" if True in is_right else "left"

    def _as_left(self, expr: Expr) -> Expr | None:
        """Return `expr` over the left side, by the equality of the join keys if need be."""
        if self.kind != "inner":
            return expr if self.side(expr) in ("left", "none") else None
        return self._translated(expr, "left")

    def _as_right(self, expr: Expr) -> Expr | None:
        return self._translated(expr, "right")

    def _translated(self, expr: Expr, target: Literal["left", "right"]) -> Expr | None:
        """Return `expr` itself, or the key that a match makes equal to it.

        Equal values need not look alike (7 and '07'): so no expression over a key is translated,
        and no key whose sides are of two types. '07' equals 7, and 7 equals '7', in a chain of
        joins whose ends differ.
        """
        if self.side(expr) in (target, "none"):
            return expr
        text = sql_of(expr)
        for key in self.keys:
            joined, other = (key.left, key.right) if target == "right" else (key.right, key.left)
            if sql_of(joined) == text and self._is_of_one_value(key):
                return other
        return None

    def _is_of_one_value(self, key: EquiKey) -> bool:
        """Return True if a value of either side equals one value of the other at most."""
        kinds = {self.left.value_kind(key.left), self.right.value_kind(key.right)}
        # A date is the moment at which it begins.
        return are_alike(kinds) or (DATE in kinds and kinds <= TIMES)

    # The four questions ------------------------------------------------------------------------

    def is_local(self, expr: Expr, *, anchored: bool) -> bool:
        side = self.side(expr)
        if side in ("left", "none"):
            return self.left.is_local(expr, anchored=anchored)
        over_left = self._as_left(expr)
        if over_left is not None and self.left.is_local(over_left, anchored=anchored):
            return True
        if anchored or self.kind not in ("inner", "cross") or side == "both":
            return False
        return self.right.is_local(expr, anchored=anchored)

    def is_elastic(self, expr: Expr) -> bool:
        side = self.side(expr)
        return (side != "right" and self.left.is_elastic(expr)) or (
            side in ("right", "both") and self.right.is_elastic(expr)
        )

    def is_local_time(self, expr: Expr) -> bool:
        over_left = self._as_left(expr)
        return over_left is not None and self.left.is_local_time(over_left)

    def meets_frame(self, expr: Expr) -> bool:
        over_left, over_right = self._as_left(expr), self._as_right(expr)
        return (over_left is not None and self.left.meets_frame(over_left)) or (
            over_right is not None and self.right.meets_frame(over_right)
        )

    def affected(self, want: Sequence[Expr], *, has_time: bool = False) -> list[KeyQuery]:
        return self._once(
            (f"affected {has_time}", *map(sql_of, want)),
            lambda: [
                *self._affected_by_left(want, has_time=has_time),
                *self._affected_by_right(want, has_time=has_time),
            ],
        )

    def _once(
        self, question: tuple[str, ...], answer: Callable[[], list[KeyQuery]]
    ) -> list[KeyQuery]:
        """Return, or raise, the earlier answer to the same question."""
        if question not in self._answers:
            try:
                self._answers[question] = answer()
            except Inapplicable as error:
                self._answers[question] = error
        stored_answer = self._answers[question]
        if isinstance(stored_answer, Inapplicable):
            raise stored_answer
        return stored_answer

    def _affected_by_left(self, want: Sequence[Expr], *, has_time: bool) -> list[KeyQuery]:
        over_left = [self._as_left(expr) for expr in want]
        if all(expr is not None for expr in over_left):
            exprs = [expr for expr in over_left if expr is not None]
            return self.left.affected(exprs, has_time=has_time)
        if self.kind not in ("inner", "cross"):
            raise Inapplicable(self._lost(want))
        return self._rekeyed(want, changed="left")

    def _affected_by_right(self, want: Sequence[Expr], *, has_time: bool) -> list[KeyQuery]:
        if not any(isinstance(relation, Scan) for relation in self.right.walk()):
            return []
        over_right = [self._as_right(expr) for expr in want]
        if all(expr is not None and not is_constant(expr) for expr in over_right):
            try:
                exprs = [expr for expr in over_right if expr is not None]
                return self.right.affected(exprs, has_time=has_time)
            except Inapplicable:
                # The rows on the left that share some of the keys may still tell.
                if not self.keys[1:]:
                    raise
        if self.kind not in ("inner", "cross") and any(
            self.side(expr) in ("right", "both") and self._as_left(expr) is None for expr in want
        ):
            raise Inapplicable(self._lost(want))
        return self._rekeyed(want, changed="right")

    def _rekeyed(self, want: Sequence[Expr], changed: Literal["left", "right"]) -> list[KeyQuery]:
        """Join the changed rows of one side with the rows of the other.

        If all wanted columns are on the other side, its present rows are enough: the earlier values
        of a row are among that side's own changes. A mixture of both sides also needs the other's
        old images, for rows of both sides may have changed in one batch. A join key is never the
        time that a region widens: rows in a frame's reach have their own keys.
        """
        return self._by_traceable(lambda keys: self._rekeyed_by(keys, want, changed))

    def _by_traceable(
        self, queries_by: Callable[[Sequence[EquiKey]], list[KeyQuery]]
    ) -> list[KeyQuery]:
        """Return queries by all keys, or by those alone that can be traced: they find more rows."""
        try:
            return queries_by(self.keys)
        except Inapplicable:
            if not self.keys[1:]:
                raise
            keys = [key for key in self.keys if _is_plannable(queries_by, key)]
            if not keys or len(keys) == len(self.keys):
                raise
            return queries_by(keys)

    def _rekeyed_by(
        self, keys: Sequence[EquiKey], want: Sequence[Expr], changed: Literal["left", "right"]
    ) -> list[KeyQuery]:
        other: Literal["left", "right"] = "right" if changed == "left" else "left"
        mapped = [(self._as_left(expr) if other == "left" else expr) or expr for expr in want]
        needed = self._needed(keys, mapped)
        self._require_equality(keys, needed)
        sides = {"left": self.left, "right": self.right}
        changed_queries = sides[changed].affected(list(needed[changed].values()))
        is_mixed = any(self.side(expr) in (changed, "both") for expr in mapped)
        other_queries = sides[other].rows(list(needed[other].values()), past=is_mixed)
        alias = {changed: "c", other: "p"}
        kind, on, outputs = _joined(keys, mapped, needed, alias["left"], alias["right"])
        _require_few(len(changed_queries) * len(other_queries))
        return [
            key_query(outputs, "(", one, f") as c {kind} join (", other_query, f") as p{on}")
            for one in changed_queries
            for other_query in other_queries
        ]

    def rows(self, want: Sequence[Expr], *, past: bool = False) -> list[KeyQuery]:
        over_left = [self._as_left(expr) for expr in want]
        if all(expr is not None for expr in over_left):
            return self.left.rows([expr for expr in over_left if expr is not None], past=past)
        return self._once(
            (f"rows {past}", *map(sql_of, want)),
            lambda: self._by_traceable(lambda keys: self._rows_by(keys, want, past=past)),
        )

    def _rows_by(
        self, keys: Sequence[EquiKey], want: Sequence[Expr], *, past: bool
    ) -> list[KeyQuery]:
        needed = self._needed(keys, want)
        self._require_equality(keys, needed)
        kind, on, outputs = _joined(keys, want, needed, "l", "r")
        lefts = self.left.rows(list(needed["left"].values()), past=past)
        rights = self.right.rows(list(needed["right"].values()), past=past)
        joins = [(kind, right, on) for right in rights]
        if self.kind == "left":
            # The keys may match where another condition does not: any row may find nothing.
            joins.append(("left", rights[0], " on false"))
        _require_few(len(lefts) * len(joins))
        return [
            key_query(outputs, "(", left, f") as l {kind} join (", right, f") as r{on}")
            for left in lefts
            for kind, right, on in joins
        ]

    def _needed(self, keys: Sequence[EquiKey], exprs: Sequence[Expr]) -> _Needed:
        """Return the expressions that are needed of each side of a join by these keys."""
        needed: _Needed = {"left": {}, "right": {}}
        for key in keys:
            needed["left"].setdefault(sql_of(key.left), key.left)
            needed["right"].setdefault(sql_of(key.right), key.right)
        for reference in (reference for expr in exprs for reference in columns_of(expr)):
            side = "right" if self.side(reference) == "right" else "left"
            needed[side].setdefault(sql_of(reference), reference)
        return needed

    def _require_equality(self, keys: Sequence[EquiKey], needed: _Needed) -> None:
        """Raise Inapplicable if values of both sides would be paired, each with each."""
        are_tables = all(
            needed[side] and any(isinstance(part, Scan) for part in relation.walk())
            for side, relation in (("left", self.left), ("right", self.right))
        )
        if are_tables and not keys:
            left, right = (", ".join(needed[side]) for side in ("left", "right"))
            raise refusal(
                "JOIN_WITHOUT_EQUALITY",
                f"no equality joins {left} with {right}: a change would be looked up among all"
                " their pairs",
                suggestion="join by an equality, or store one side as a separate model",
            )

    def restrict(self, want: Want, restrictions: Restrictions) -> None:
        for side, below in ((self.left, self._as_left), (self.right, self._asked_of_right)):
            asked = want.over(below)
            pairs = zip(want.keys, asked.keys, strict=True)
            keys = tuple(key and self._keeping(key, translated, side) for key, translated in pairs)
            side.restrict(replace(asked, keys=keys), restrictions)

    @staticmethod
    def _keeping(key: Expr, translated: Expr | None, side: Relation) -> Expr | None:
        """Return a key over one side, if it may distinguish the rows that ties decide there.

        A value that equals it need not be of its type; then several of its values equal one of the
        other's. A refresh knows the types of plain columns.
        """
        if translated is None or translated is key or isinstance(translated, exp.Column):
            return translated
        return None if any(getattr(part, "ties", ()) for part in side.walk()) else translated

    def _asked_of_right(self, expr: Expr) -> Expr | None:
        """Return `expr` over the right side, where every match of a row on the left is found by it.

        A row that finds nothing has NULL for all of an optional side, and must keep it.
        """
        if self.kind == "left" and self.side(expr) in ("right", "both"):
            return None
        return self._as_right(expr)

    def trace(self, expr: Expr) -> list[tuple[Scan, Expr]] | None:
        side = self.side(expr)
        if side in ("left", "none"):
            return self.left.trace(expr)
        return self.right.trace(expr) if side == "right" else None

    def unique_keys(self, *, null_safe: bool = False) -> list[frozenset[str]]:
        left = self.left.unique_keys(null_safe=null_safe)
        if self.kind in ("semi", "anti") or self.matches_at_most_once():
            return left
        right = self.right.unique_keys(null_safe=null_safe)
        return [one | two for one in left for two in right]

    def matches_at_most_once(self) -> bool:
        """Return True if the join keys hold a unique key of the right side.

        A number equals several texts: a key whose sides are of two types may match several rows.
        """
        keys = [
            key
            for key in self.keys
            if are_alike([self.left.value_kind(key.left), self.right.value_kind(key.right)])
        ]
        joined = {sql_of(key.right) for key in keys}
        never_null = {sql_of(key.right) for key in keys if not key.null_safe}
        return any(key <= never_null for key in self.right.unique_keys()) or any(
            key <= joined for key in self.right.unique_keys(null_safe=True)
        )

    def _kind_of_column(self, reference: exp.Column) -> ValueKind:
        return (self.right if self.side(reference) == "right" else self.left).value_kind(reference)

    def _lost(self, want: Sequence[Expr]) -> Reason:
        lost = ", ".join(sql_of(expr) for expr in want if self._as_left(expr) is None)
        return Reason(
            "KEY_NOT_IN_OUTPUT",
            f"{lost} comes from the optional side of a {self.kind} join",
            None,
            "carry a key of the preserved side to the output, or store the joined rows in a model"
            " and group that",
        )


def _joined(
    keys: Sequence[EquiKey], exprs: Sequence[Expr], needed: _Needed, left: str, right: str
) -> tuple[str, str, list[Expr]]:
    """Return kind and condition of the join of two subqueries, and expressions over them."""
    alias = {"left": left, "right": right}
    places = {
        side: {text: f"w{index}" for index, text in enumerate(needed[side])} for side in needed
    }
    condition = " and ".join(
        f"{left}.{places['left'][sql_of(key.left)]} {'<=>' if key.null_safe else '='} "
        f"{right}.{places['right'][sql_of(key.right)]}"
        for key in keys
    )
    by_alias = {alias[side]: places[side] for side in alias}
    outputs = [over_subquery(expr, by_alias) for expr in exprs]
    return ("inner", f" on {condition}", outputs) if condition else ("cross", "", outputs)


def _require_few(ways: int) -> None:
    if ways > _MOST_WAYS:
        reason = f"a change may take {ways} ways through joined unions"
        raise refusal("PARSE_UNSUPPORTED", reason, suggestion="store the union as a separate model")


def _is_plannable(queries_by: Callable[[Sequence[EquiKey]], list[KeyQuery]], key: EquiKey) -> bool:
    try:
        queries_by([key])
    except Inapplicable:
        return False
    return True
