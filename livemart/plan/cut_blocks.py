"""Cuts a query at one of the queries that it is written of: all of it, its totals, or its rows.

Used by the planner for a query that no strategy moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial

from sqlglot import TokenType, exp

from livemart.plan.block_part import (
    ABOVE_GROUPS,
    BlockPart,
    Columns,
    TextSpan,
    block_part,
    clauses,
    cut_at_rows,
    put_back,
)
from livemart.plan.blocks import CLOSING, OPENING, Blocks, numbered, outside_of_brackets
from livemart.plan.cut import COUNT_OF_ROWS, MOST_STAGES, Cut, hole_of
from livemart.plan.cut_gates import cut_groups, cut_keys, cut_sets, cut_windows, partitions
from livemart.plan.reading.grouping_sets import SETS
from livemart.plan.relations.aggregate_calls import aggregate_calls, called, with_wrappers
from livemart.plan.sql.determinism import function_name
from livemart.plan.sql.flatten import Flat, Occurrence
from livemart.plan.sql.functions import GENERATORS
from livemart.plan.sql.parse import tokens_of
from livemart.plan.sql.template import Template, template
from livemart.plan.sql.written import span_of
from livemart.spark_sql import quoted

# Spark computes them before all totals of their SELECT: rows are added, or left out for NULL.
_MOVE_ROWS = GENERATORS | {"window", "session_window"}
# The hidden column of a stage whose different values are counted.
_COUNTED = "__livemart_counted"
# The clauses that are computed above the rows, and those that a total has none of.
_ABOVE_ROWS = ("group", "having", *ABOVE_GROUPS)


def cut_whole(part: BlockPart) -> Cut | None:
    """Return a query in which one of its subqueries is a stage, as it is written."""
    is_value, text = part.block.kind == "value", part.named
    if part.block.kind == "top" or text is None or (is_value and len(part.names) != 1):
        return None
    stage = numbered(text)
    cut = put_back(part, stage, template("select * from ", hole_of(stage)))
    return replace(cut, is_value=is_value)


def cut_totals(part: BlockPart) -> Cut | None:
    """Return a query whose totals without GROUP BY are a stage: one row of plain aggregates.

    A count of all rows is added, by which the totals can be moved. A count of different values
    becomes a query by itself, whose stage has these values, each with the count of its rows.
    """
    select = part.select_of_rows
    if select is None or any(map(select.args.get, (*_ABOVE_ROWS, "distinct", "limit", "offset"))):
        return None
    spans: dict[TextSpan, str] = {}
    counted: dict[TextSpan, str] = {}
    counts: dict[TextSpan, exp.Expr] = {}
    has_values = False
    for item in select.expressions:
        calls = [with_wrappers(call) for call in aggregate_calls(item)]
        if not calls and item.find(exp.Query) is not None and _reads_alone(part, item):
            # It is one value beside the totals, as it is beside their stage.
            has_values = True
            continue
        if item.find(exp.Query, exp.Window) is not None:
            return None
        inside = {id(column) for call in calls for column in call.find_all(exp.Column)}
        if any(column.table and id(column) not in inside for column in item.find_all(exp.Column)):
            return None
        for call in calls:
            if (span := span_of(call)) is None:
                return None
            if (value := _counted_value(part, call, span)) is not None:
                counted[span], counts[span] = value, call
            else:
                spans.setdefault(span, f"__livemart_total_{len(spans) + 1}")
    if not (spans or counted) or len(set(counted.values())) + bool(spans) > MOST_STAGES:
        return None
    functions = {function_name(it) for item in select.expressions for it in item.walk()}
    if counted and not functions.isdisjoint(_MOVE_ROWS):
        return None
    assert part.rows is not None
    flat, hidden = part.alone, {COUNT_OF_ROWS: "count(*)"}
    groups: Template[Occurrence] | None = None
    asked: dict[TextSpan, str | Template[Occurrence]] = {
        span: template("(select ", flat.cut(*span), " ", flat.cut(*part.rows), ")")
        for span in counted
    }
    is_beside = has_values or len(counted) > (not spans)
    if not spans:
        first, value = min(counted.items())
        asked[first] = f"count({_COUNTED})"
        hidden, groups = {_COUNTED: value, **hidden}, template(f" group by {value}")
    cut = cut_at_rows(part, spans, hidden, groups=groups, instead=asked)
    if cut is None:
        return None
    is_late, is_branch = bool(counted) or has_values, cut.is_branch or is_beside
    cut = replace(cut, adds_up=True, is_branch=is_branch)
    queries = tuple(
        (_rows_of_values(part, value), _rows_of_columns(part, counts[span]))
        for span, value in counted.items()
    )
    return replace(cut, is_late=is_late, counted=queries)


def _reads_alone(part: BlockPart, item: exp.Expr) -> bool:
    """Return True if an item of a select list names no column of the rows."""
    return not any(it.table in part.sources for it in item.find_all(exp.Column))


def _counted_value(part: BlockPart, call: exp.Expr, span: TextSpan) -> str | None:
    """Return the SQL of the values that `count(distinct ..)` counts: no NULL, as in its filter.

    None for another call, and where the text is not clear.
    """
    count, text = called(call), part.alone.text
    distinct = count.this
    if not isinstance(count, exp.Count) or not isinstance(distinct, exp.Distinct):
        return None
    is_one = len(distinct.expressions) == 1 and not distinct.find(exp.Tuple, exp.Star)
    if not is_one or not distinct.find(exp.Column) or part.outputs_in(span):
        return None
    # `count ( distinct .. ) filter ( where .. )`
    tokens = [it for it in tokens_of(text) if span[0] <= it.start < span[1]]
    brackets = [it for it in outside_of_brackets(tokens) if it.token_type in OPENING | CLOSING]
    words, values = list[TokenType](), list[str]()
    for opening, closing in zip(brackets[::2], brackets[1::2], strict=True):
        word = tokens[tokens.index(opening) + 1]
        words.append(word.token_type)
        values.append(text[word.end + 1 : closing.start])
    if words == [TokenType.DISTINCT]:
        return values[0]
    is_filtered = words == [TokenType.DISTINCT, TokenType.WHERE]
    return f"case when {values[1]} then {values[0]} end" if is_filtered else None


def _rows_of_values(part: BlockPart, value: str) -> Flat:
    """Return the query of the different values of an expression."""
    listed = f"{value} as {_COUNTED}, count(*) as {COUNT_OF_ROWS}"
    return _over_rows(part, listed, f" group by {value}")


def _rows_of_columns(part: BlockPart, call: exp.Expr) -> Flat | None:
    """Return the query of the columns that a call takes values from, not those of conditions."""

    def is_condition(node: exp.Expr) -> bool:
        return isinstance(node.parent, exp.If | exp.Case) and node.arg_key == "this"

    nodes = called(call).walk(prune=is_condition)
    columns = [it for it in nodes if isinstance(it, exp.Column) and not is_condition(it)]
    listed = [
        f"{quoted(it.table)}.{quoted(it.name)} as __livemart_column_{number}"
        for number, it in enumerate(columns, start=1)
    ]
    return _over_rows(part, ", ".join(listed)) if listed else None


def _over_rows(part: BlockPart, listed: str, behind: str = "") -> Flat:
    assert part.rows is not None
    head, rows = part.alone.cut(0, part.begin), part.alone.cut(*part.rows)
    return numbered(template(head, f"select {listed} ", rows, behind))


def cut_rows(part: BlockPart, *, has_keys: bool = False) -> Cut | None:
    """Return a query whose joined and filtered rows are a stage, below a total over all of them.

    Totals are those without GROUP BY, and those of grouping sets.

    Args:
        has_keys: the stage has the columns that joins and subqueries compare as well, which may
            confine a change where the columns that are used above do not.
    """
    select = part.select_of_rows
    if select is None:
        return None
    group = select.args.get("group")
    is_total = group is None and any(map(aggregate_calls, select.expressions))
    if not is_total and (group is None or group.find(*SETS) is None):
        return None
    spans: dict[tuple[int, int], str] = {}
    named: dict[tuple[str, str], str] = {}
    for clause in clauses(select, _ABOVE_ROWS):
        if clause.find(exp.Query) is not None:
            return None
        for star in clause.find_all(exp.Star):
            if not isinstance(star.parent, exp.Count):
                return None
        for column in clause.find_all(exp.Column):
            if column.table not in part.sources:
                if column.table or column.name.lower() not in part.names:
                    return None
                continue
            span = part.span(column)
            if span is None:
                return None
            key = (column.table, column.name.lower())
            spans[span] = named.setdefault(key, f"__livemart_column_{len(named) + 1}")
    hidden = {} if spans else {COUNT_OF_ROWS: "1"}
    if has_keys:
        keys = dict.fromkeys(key for key in _compared(select) if key[0] in part.sources)
        hidden = {
            f"__livemart_key_{number}": f"{quoted(table)}.{quoted(name)}"
            for number, (table, name) in enumerate((it for it in keys if it not in named), start=1)
        }
        if not hidden:
            return None
    return cut_at_rows(part, spans, hidden)


def _compared(select: exp.Select) -> Iterator[tuple[str, str]]:
    """Yield table and name of each column that a query compares with another column."""
    for equal in select.find_all(exp.EQ):
        if isinstance(equal.left, exp.Column) and isinstance(equal.right, exp.Column):
            yield from ((it.table, it.name.lower()) for it in (equal.left, equal.right))


def cuts_of_blocks(
    flat: Flat, columns: Columns, is_hopeless: Callable[[Flat], bool]
) -> Iterator[Cut]:
    """Yield the ways to cut a query at its subqueries, the largest stages first.

    Args:
        is_hopeless: says of a subquery as a query by itself that no cut of it gains anything.
    """
    blocks = Blocks(flat)
    for block in blocks:
        part = None
        # A shape that the parser does not know is not cut.
        with suppress(Exception):
            alone = blocks.standing_alone(block)
            # A value is computed again for nothing worse than one row.
            if alone is not None and (block.kind == "value" or not is_hopeless(numbered(alone))):
                part = block_part(blocks, block, alone, columns)
        if part is None:
            continue
        ways: list[Callable[[BlockPart], Cut | None]] = [cut_sets, cut_totals, cut_rows]
        ways += [partial(cut_rows, has_keys=True), cut_groups]
        ways += [partial(cut_windows, by=by) for by in partitions(part)]
        for way in (*ways, cut_keys, cut_whole):
            cut = None
            with suppress(Exception):
                cut = way(part)
            if cut is not None:
                yield cut
