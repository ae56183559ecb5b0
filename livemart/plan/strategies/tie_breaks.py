"""Gives SQL whose orders may tie with an order for what ties: one of the ways that Spark may take.

Used by `verify`, to learn which answers are right. The text stays as it is written but for what is
added to the end of each such order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from sqlglot import Dialect, Token, TokenType, exp
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope

from livemart.plan.relations.aggregate_calls import PICKS, called
from livemart.plan.relations.frames import needs_total_order
from livemart.plan.sql.determinism import function_name, is_aggregate
from livemart.plan.sql.parse import parse
from livemart.plan.sql.written import span_of, sql_of

# The first four go by what the rows hold, ends first; all others mix them, each in its own way.
ORDERLY_WAYS = 4
_ORDERED_PICKS = frozenset({"arg_max", "arg_min", "max_by", "min_by"})

# What stands at an offset of a text, up to another, in the n-th way.
_Edit = tuple[int, int, Callable[[int], str]]


class _Place(NamedTuple):
    """Where an order ends, or would end if there were one."""

    offset: int
    has_order: bool
    has_frame: bool


def with_ties_broken(text: str, schema: Mapping[str, object], ways: int) -> Iterator[str]:
    """Yield a SELECT whose ties are broken, each time in another way; nothing if none can be.

    Args:
        text: a flat text.
        schema: the columns of each table, by the name that the text calls it.
        ways: how many.

    Raises:
        Unplannable: PARSE_UNSUPPORTED.
    """
    tokens = list(Dialect.get_or_raise("spark").tokenize(text))
    tree = qualify(
        parse(text),
        schema=dict(schema),
        dialect="spark",
        validate_qualify_columns=False,
        quote_identifiers=False,
        identify=False,
    )
    edits: dict[int, _Edit] = {}
    for scope in traverse_scope(tree):
        if isinstance(scope.expression, exp.Select):
            for edit in _edits(scope, schema, tokens):
                edits[edit[0]] = edit
    for way in range(ways if edits else 0):
        parts, position = [], 0
        for start, end, written in sorted(edits.values(), key=lambda edit: edit[0]):
            parts += [text[position:start], written(way)]
            position = end
        yield "".join([*parts, text[position:]])


def _edits(scope: Scope, schema: Mapping[str, object], tokens: Sequence[Token]) -> Iterator[_Edit]:
    select = scope.expression
    named = {window.this.name: window for window in select.args.get("windows") or ()}
    in_windows: set[int] = set()
    for window in scope.find_all(exp.Window):
        if not isinstance(window.this, exp.Expr) or (span := span_of(window)) is None:
            continue
        call = called(window)
        in_windows.add(id(call))
        spec = named.get(window.alias, window) if window.alias else window
        takes_any = function_name(call) in PICKS and spec.args.get("order") is None
        if not (needs_total_order(call, spec) or takes_any):
            continue
        start = _definition(window.alias, span[1], tokens) if window.alias else span[0]
        columns = _columns(scope, schema)
        argument = sql_of(call.this) if isinstance(call.this, exp.Expr) else columns
        if start is not None and (place := _end_of_order(start, tokens)) is not None:
            yield _in_order(place, columns, argument)
    for call in scope.find_all(exp.Func):
        if function_name(call) not in PICKS or id(call) in in_windows or not is_aggregate(call):
            continue
        span = span_of(call)
        is_plain = not isinstance(call.parent, exp.IgnoreNulls | exp.RespectNulls)
        if span is not None and is_plain and isinstance(call.this, exp.Expr):
            yield (*span, _pick(call))


def _columns(scope: Scope, schema: Mapping[str, object]) -> str:
    """Return SQL for a text that tells two rows of what a SELECT reads apart."""
    group = scope.expression.args.get("group")
    if group is not None:
        listed = [sql_of(key) for key in group.expressions]
    else:
        listed = []
        for name, (_, source) in scope.selected_sources.items():
            columns: Sequence[str] = ()
            if isinstance(source, exp.Table):
                known = schema.get(source.name.lower())
                columns = list(known) if isinstance(known, Mapping) else ()
            elif isinstance(source.expression, exp.Query):
                columns = source.expression.named_selects
            listed += [sql_of(exp.column(column, table=name)) for column in columns]
    fields = ", ".join(f"{value} as c{place}" for place, value in enumerate(listed))
    return f"to_json(struct({fields}))" if listed else "1"


def _in_order(place: _Place, columns: str, argument: str) -> _Edit:
    def written(way: int) -> str:
        order = _way(way, columns, argument)
        if place.has_order:
            return f", {order} "
        frame = (
            "" if place.has_frame else " rows between unbounded preceding and unbounded following"
        )
        return f" order by {order}{frame} "

    return place.offset, place.offset, written


def _pick(call: exp.Expr) -> Callable[[int], str]:
    """Return a call that takes, of the values that it may take, the one that an order says."""
    value = sql_of(call.this)
    order = sql_of(call.args["expression"]) if function_name(call) in _ORDERED_PICKS else None

    def written(way: int) -> str:
        tie = f"xxhash64(to_json(struct({value} as c)), {way // 2})"
        tie = f"-{tie}" if way % 2 else tie
        if order is None:
            return f"max_by({value}, {tie})"
        name = "max_by" if function_name(call) in ("arg_max", "max_by") else "min_by"
        return f"{name}({value}, if({order} is null, null, struct({order} as o, {tie} as t)))"

    return written


def _way(way: int, columns: str, argument: str) -> str:
    orderly = (columns, f"{columns} desc", f"{argument}, {columns}", f"{argument} desc, {columns}")
    return orderly[way] if way < ORDERLY_WAYS else f"xxhash64({columns}, {way})"


def _definition(name: str, start: int, tokens: Sequence[Token]) -> int | None:
    """Return where the brackets of `window name as (...)` begin, behind the calls that name it."""
    for place, token in enumerate(tokens[:-2]):
        is_named = token.start >= start and token.text.lower() == name.lower()
        if is_named and tokens[place + 1].token_type is TokenType.ALIAS:
            return int(tokens[place + 2].start)
    return None


def _end_of_order(start: int, tokens: Sequence[Token]) -> _Place | None:
    """Return the end of the order in the first OVER (...) or (...) from an offset."""
    behind = [token for token in tokens if token.start >= start]
    if behind and behind[0].token_type is not TokenType.L_PAREN:
        over = _at_this_depth(behind, {"OVER"})
        behind = behind[over + 1 :] if over is not None else []
    if not behind or behind[0].token_type is not TokenType.L_PAREN:
        return None
    inside = behind[1:]
    end = _at_this_depth(inside, {"ROWS", "RANGE", ")"})
    if end is None:
        return None
    frame = inside[end:]
    words = [token.text.upper() for token in frame[: _at_this_depth(frame, {")"})]]
    if words[:1] == ["RANGE"] and words.count("UNBOUNDED") + words.count("CURRENT") < 2:
        # A distance is from the value of one column.
        return None
    ordered = _at_this_depth(inside[:end], {"ORDER BY", "SORT BY"})
    return _Place(int(inside[end].start), ordered is not None, bool(words))


def _at_this_depth(tokens: Sequence[Token], words: Set[str]) -> int | None:
    """Return the place of the first of some words that stands within no brackets."""
    depth = 0
    for place, token in enumerate(tokens):
        if depth == 0 and " ".join(token.text.upper().split()) in words:
            return place
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
    return None
