"""Adds an order for tied rows to SQL whose orders may tie: one answer that Spark may give.

Used by `verify`, to learn which answers are right. The text stays as it is written but for what is
added to the end of each such order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from sqlglot import Dialect, Token, TokenType, exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from livemart.plan.relations.aggregate_calls import (
    PICKS,
    WRAPPERS,
    aggregate_calls,
    called,
    specification,
)
from livemart.plan.relations.frames import is_by_rows, needs_total_order
from livemart.plan.sql.determinism import function_name, is_aggregate
from livemart.plan.sql.flatten import Flat, Occurrence
from livemart.plan.sql.parse import parse, qualified
from livemart.plan.sql.template import Template, template
from livemart.plan.sql.written import span_of, sql_of
from livemart.spark_sql import quoted

# The first ones go by what the rows hold, ends first; all others mix them, each in its own way.
ORDERLY_WAYS = 4
# In this way a row number is a rank: each row that ties is where any of them may be.
CANDIDATES = -1
_WHOLE = " rows between unbounded preceding and unbounded following"
_ORDERED_PICKS = frozenset({"arg_max", "arg_min", "max_by", "min_by"})
# With the frame that ends in the rows that tie, they give what no other order of the rows tells.
_OF_THE_LAST = frozenset({"last", "last_value", "nth_value"})
# The name that sqlglot gives a subquery that has none.
_NAMELESS = re.compile(r"_\d+$")
_MICROSECONDS = (
    "map('timestampFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\","
    " 'timestampNTZFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\")"
)

_Sql = str | Template[Occurrence]
_Written = Callable[[int], _Sql | None]


class _Edit(NamedTuple):
    """A replacement, for each way, of the text between two offsets; None: the text stays."""

    start: int
    end: int
    written: _Written


class _Place(NamedTuple):
    """Where an order ends, or would end if there were one."""

    offset: int
    has_order: bool
    has_frame: bool


def with_ties_broken(
    flat: Flat, schema: Mapping[str, object], ways: Sequence[int]
) -> Iterator[Flat]:
    """Yield a SELECT whose ties are broken, in each of some ways; nothing if none can be.

    Args:
        schema: the columns of each table, by the name that its text calls it.
        ways: their numbers, from 0; or `CANDIDATES`.

    Raises:
        Inapplicable: PARSE_UNSUPPORTED.

    Two of the ways, then that in which all that tie come first:

    >>> places = Flat(("select row_number() over (order by at) as place from t",))
    >>> for way in with_ties_broken(places, {"t": {"at": ""}}, (0, 1, CANDIDATES)):
    ...     print(way.text.replace(f", {_MICROSECONDS}", ""))
    select row_number() over (order by at, to_json(struct(`t`.`at` as c0)) ) as place from t
    select row_number() over (order by at, to_json(struct(`t`.`at` as c0)) desc ) as place from t
    select rank() over (order by at) as place from t
    """
    tokens = list(Dialect.get_or_raise("spark").tokenize(flat.text))
    tree = qualified(parse(flat.text), schema)
    edits: dict[int, _Edit] = {}
    for scope in traverse_scope(tree):
        if isinstance(scope.expression, exp.Select):
            for edit in (
                *_in_windows(scope, schema, tokens, flat),
                *_in_groups(scope),
                *_before_limit(scope, schema, tokens),
            ):
                edits[edit.start] = edit
    for way in ways if edits else ():
        parts, position = list[_Sql](), 0
        for edit in sorted(edits.values()):
            if edit.start >= position and (written := edit.written(way)) is not None:
                parts += [flat.cut(position, edit.start), written]
                position = edit.end
        yield Flat(template(*parts, flat.cut(position, len(flat.text))).pieces)


def _in_windows(
    scope: Scope, schema: Mapping[str, object], tokens: Sequence[Token], flat: Flat
) -> Iterator[_Edit]:
    for window in scope.find_all(exp.Window):
        if not isinstance(window.this, exp.Expr) or (span := span_of(window)) is None:
            continue
        call = called(window)
        spec = specification(window, scope.expression)
        is_ordered = spec.args.get("order") is not None
        if not needs_total_order(call, spec) and (is_ordered or function_name(call) not in PICKS):
            continue
        if function_name(call) in _OF_THE_LAST and is_ordered and not is_by_rows(spec):
            continue
        # A name may be that of several functions: this one gets a copy.
        brackets = _brackets(window.alias, span, tokens)
        if brackets is None or (place := _end_of_order(brackets, tokens)) is None:
            continue
        opened, closed = brackets
        argument = call.this if isinstance(call.this, exp.Expr) else None
        order = _order(_columns(scope, schema), argument)
        if window.alias:
            before, behind = flat.cut(opened, place.offset), flat.cut(place.offset, closed)
            yield _Edit(*_mention(span, tokens), _copied(before, behind, place, order))
        else:
            yield _Edit(place.offset, place.offset, _added(place, order))
        if function_name(call) == "row_number":
            name = span[0], span[0] + len("row_number")
            yield _Edit(*name, lambda way: "rank" if way == CANDIDATES else None)


def _in_groups(scope: Scope) -> Iterator[_Edit]:
    for call in scope.find_all(exp.Func):
        if function_name(call) not in PICKS or not is_aggregate(call):
            continue
        around: exp.Expr = call
        conditions = []
        while isinstance(around.parent, WRAPPERS):
            around = around.parent
            if isinstance(around, exp.Filter):
                conditions.append(_spelled(around.expression.this))
            elif isinstance(around, exp.IgnoreNulls):
                conditions.append(f"{_spelled(call.this)} is not null")
        span = span_of(around)
        if span is None or isinstance(around.parent, exp.Window):
            continue
        yield _Edit(*span, _picking(call, conditions))


def _before_limit(
    scope: Scope, schema: Mapping[str, object], tokens: Sequence[Token]
) -> Iterator[_Edit]:
    select = scope.expression
    assert isinstance(select, exp.Select)
    limit = select.args.get("limit")
    is_total = select.args.get("group") is None and any(map(aggregate_calls, select.selects))
    if is_total or select.args.get("distinct"):
        # Nothing else can be ordered by, and of one row nothing need be.
        return
    span = span_of(limit.expression) if isinstance(limit, exp.Limit) else None
    if span is None:
        return
    before = [token for token in tokens if token.end < span[0]]
    if before and before[-1].token_type is TokenType.LIMIT:
        has_order = select.args.get("order") is not None
        place = _Place(int(before[-1].start), has_order, has_frame=True)
        yield _Edit(
            place.offset, place.offset, _added(place, _order(_columns(scope, schema), None))
        )


def _picking(call: exp.Expr, conditions: Sequence[str]) -> Callable[[int], str | None]:
    """Return a call that takes, of the values that it may take, the one that an order says."""
    value = _spelled(call.this)
    is_ordered = function_name(call) in _ORDERED_PICKS
    order = _spelled(call.args["expression"]) if is_ordered else None
    required = [f"({condition})" for condition in conditions]
    if order is not None:
        required.append(f"({order}) is not null")

    def written(way: int) -> str | None:
        if way == CANDIDATES:
            return None
        tie = f"xxhash64({_json([value])}, {way // 2})"
        tie = f"-{tie}" if way % 2 else tie
        by = tie if order is None else f"struct({order} as o, {tie} as t)"
        if required:
            by = f"if({' and '.join(required)}, {by}, null)"
        takes_least = function_name(call) in ("arg_min", "min_by")
        return f"{'min_by' if takes_least else 'max_by'}({value}, {by})"

    return written


def _columns(scope: Scope, schema: Mapping[str, object]) -> list[str]:
    """Return SQL for values that distinguish two rows that a SELECT reads."""
    select = scope.expression
    assert isinstance(select, exp.Select)
    group = select.args.get("group")
    if group is not None:
        keys = group.expressions
        if group.args.get("all"):
            keys = [it.unalias() for it in select.selects if not any(map(is_aggregate, it.walk()))]
        return [_spelled(key) for key in keys]
    listed = []
    for name, (node, source) in scope.selected_sources.items():
        columns: Sequence[str] = node.alias_column_names
        if not columns and isinstance(source, exp.Table):
            types = schema.get(source.name.lower())
            columns = list(types) if isinstance(types, Mapping) else ()
        elif not columns and isinstance(source, Scope):
            query = source.expression
            columns = query.named_selects if isinstance(query, exp.Query) else ()
        qualifier = "" if _NAMELESS.match(name) else f"{quoted(name)}."
        listed += [f"{qualifier}{quoted(column)}" for column in columns]
    return listed


def _order(columns: Sequence[str], argument: exp.Expr | None) -> Callable[[int], str]:
    row = _json(columns)
    by = row
    if argument is not None and not isinstance(argument, exp.Star | exp.Distinct):
        by = _spelled(argument)
    orderly = (row, f"{row} desc", f"{by}, {row}", f"{by} desc, {row}")
    return lambda way: orderly[way] if way < ORDERLY_WAYS else f"xxhash64({row}, {way})"


def _json(values: Sequence[str]) -> str:
    fields = ", ".join(f"{value} as c{place}" for place, value in enumerate(values))
    return f"to_json(struct({fields}), {_MICROSECONDS})" if values else "''"


def _spelled(expr: exp.Expr) -> str:
    """Return SQL of an expression without the names that sqlglot gives to subqueries."""
    copy = expr.copy()
    for column in [*copy.find_all(exp.Column)]:
        if _NAMELESS.match(column.table):
            column.set("table", None)
    return sql_of(copy)


def _added(place: _Place, order: Callable[[int], str]) -> Callable[[int], str | None]:
    def written(way: int) -> str | None:
        if way == CANDIDATES:
            return None
        if place.has_order:
            return f", {order(way)} "
        return f" order by {order(way)}{'' if place.has_frame else _WHOLE} "

    return written


def _copied(before: _Sql, behind: _Sql, place: _Place, order: Callable[[int], str]) -> _Written:
    """Return the definition of a window with a text between its two parts."""
    added = _added(place, order)

    def written(way: int) -> _Sql | None:
        more = added(way)
        return None if more is None else template(before, more, behind)

    return written


def _mention(span: tuple[int, int], tokens: Sequence[Token]) -> tuple[int, int]:
    """Return the place of the name in `... over name`, which ends a span."""
    last = next(token for token in reversed(tokens) if token.end < span[1])
    return last.start, last.end + 1


def _brackets(name: str, span: tuple[int, int], tokens: Sequence[Token]) -> tuple[int, int] | None:
    """Return the place of the brackets of OVER (...), or of those of `window name as (...)`."""
    if name:
        starts = [
            tokens[place + 2].start
            for place in range(1, len(tokens) - 2)
            if tokens[place].text.lower() == name.lower()
            and tokens[place - 1].token_type in (TokenType.WINDOW, TokenType.COMMA)
            and tokens[place + 1].token_type is TokenType.ALIAS
            and tokens[place + 2].token_type is TokenType.L_PAREN
        ]
        behind = [start for start in starts if start >= span[1]]
        start = behind[0] if behind else starts[-1] if starts else None
    else:
        inside = [token for token in tokens if span[0] <= token.start < span[1]]
        over = _at_this_depth(inside, lambda before, token: token.text.upper() == "OVER")
        start = inside[over + 1].start if over is not None and inside[over + 1 :] else None
    if start is None:
        return None
    behind_start = [token for token in tokens if token.start > start]
    end = _at_this_depth(behind_start, lambda before, token: token.token_type is TokenType.R_PAREN)
    return None if end is None else (int(start), int(behind_start[end].end) + 1)


def _end_of_order(brackets: tuple[int, int], tokens: Sequence[Token]) -> _Place | None:
    """Return the end of the order within the brackets of a window, None if no other may be."""
    inside = [token for token in tokens if brackets[0] < token.start < brackets[1] - 1]

    def begins_frame(before: Token | None, token: Token) -> bool:
        is_name = before is None or before.token_type in (
            TokenType.ORDER_BY,
            TokenType.PARTITION_BY,
            TokenType.COMMA,
            TokenType.DOT,
        )
        is_word = token.token_type is not TokenType.IDENTIFIER
        return is_word and not is_name and token.text.upper() in ("ROWS", "RANGE")

    end = _at_this_depth(inside, begins_frame)
    frame = [token.text.upper() for token in inside[end:]] if end is not None else []
    if frame[:1] == ["RANGE"] and frame.count("UNBOUNDED") + frame.count("CURRENT") < 2:
        # A distance is from the value of one column.
        return None
    ordered = _at_this_depth(
        inside[:end],
        lambda before, token: " ".join(token.text.upper().split()) in ("ORDER BY", "SORT BY"),
    )
    offset = inside[end].start if end is not None else brackets[1] - 1
    return _Place(int(offset), ordered is not None, bool(frame))


def _at_this_depth(
    tokens: Sequence[Token], is_it: Callable[[Token | None, Token], bool]
) -> int | None:
    """Return the place of the first such token outside of all brackets."""
    depth, before = 0, None
    for place, token in enumerate(tokens):
        if depth == 0 and is_it(before, token):
            return place
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        before = token
    return None
