"""Cuts a query into a part whose rows are stored, and the rest of it over their table.

Used by the planner for a query that no strategy moves. Both texts are pieces of the analyst's own
(ADR-0010): nothing but names of columns is printed, so that Spark reads each expression as it was
written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import Token, TokenType, exp

from livemart.plan.blocks import numbered, outside_of_brackets
from livemart.plan.sql.determinism import function_name, is_aggregate
from livemart.plan.sql.flatten import Flat, Occurrence
from livemart.plan.sql.parse import parse
from livemart.plan.sql.template import Template, template
from livemart.spark_sql import quoted

# The clauses that may follow the order of a query that is cut.
_ENDS = (
    [TokenType.LIMIT, TokenType.NUMBER],
    [TokenType.LIMIT, TokenType.NUMBER, TokenType.OFFSET, TokenType.NUMBER],
)
# They ask which set of groups a row is of: only the query with the groups knows.
_GROUPINGS = frozenset({"grouping", "grouping_id"})
# The hidden column of a stage that counts the rows of its groups.
COUNT_OF_ROWS = "__livemart_rows"

# Each stage is one more table, and one more commit in each batch that changes it.
MOST_STAGES = 8


@dataclass(frozen=True, slots=True)
class Cut:
    """A query in two: `stage`, whose rows are stored, and `rest`, which reads their table.

    The rest names the table by `Flat.stage_relation`. `is_subset`: each of its rows is one of
    the stage. `is_value`: the stage is one value that the rest reads. `adds_up`: the stage gains
    nothing unless it is moved by adding up. `keeps_rows`: the stage has as many rows as it reads,
    and gains nothing unless the rest is moved as well. `is_branch`: the stage is in a branch of a
    union, and gains nothing if the rest reads all of a table for another branch. `is_late`: it is
    tried where no other cut gains anything, so that the stages of other queries stay theirs.
    `counted`: the query of the values of each count of different values, and that of the columns
    which they are taken from; None if they are constants.
    """

    stage: Flat
    rest: Flat
    is_subset: bool = False
    is_value: bool = False
    adds_up: bool = False
    keeps_rows: bool = False
    is_branch: bool = False
    is_late: bool = False
    counted: tuple[tuple[Flat, Flat | None], ...] = ()


def hole_of(stage: Flat) -> Template[Occurrence]:
    """Return the mention of a stage in a rest; its number is not known yet."""
    return Template((Occurrence(0, stage.stage_relation, stage.stage_relation),))


def cut_limit(flat: Flat, names: Collection[str]) -> Cut | None:
    """Return a query that ends in LIMIT as one without it and its order, and a last step.

    Without an order any rows are an answer. An expression that the order alone reads becomes a
    hidden column of the stage.

    Args:
        flat: the whole query.
        names: its output columns.

    Returns:
        None if it is not certain that both steps together mean the query.
    """
    text, tree = flat.text, parse(flat.text)
    if not isinstance(tree, exp.Select | exp.SetOperation):
        return None
    ordered = tree.args.get("order")
    sorts = [item.this for item in ordered.expressions] if ordered is not None else []
    if any(tree.args.get(clause) for clause in ("windows", "sort", "cluster", "distribute")):
        return None
    tokens = outside_of_brackets(text)
    orders = [n for n, token in enumerate(tokens) if token.token_type is TokenType.ORDER_BY]
    limits = [n for n, token in enumerate(tokens) if token.token_type is TokenType.LIMIT]
    if len(orders) != (ordered is not None) or len(limits) != 1 or orders > limits:
        return None
    if [token.token_type for token in tokens[limits[0] :]] not in _ENDS:
        return None
    begin = tokens[(orders or limits)[0]].start
    items = _items(tokens[orders[0] + 1 : limits[0]]) if orders else []
    if len(items) != len(sorts):
        return None
    hidden: dict[str, str] = {}
    order, position = "\n", begin
    for (start, end), sort in zip(items, sorts, strict=True):
        if not (is_read := _reads_outputs(sort, names)):
            if is_read is None:
                return None
            name = f"__livemart_order_{len(hidden) + 1}"
            hidden[name] = text[start:end]
            order += text[position:start] + quoted(name)
            position = end
    order += text[position:]
    stage = Flat(flat.cut(0, begin).pieces)
    if hidden:
        with_hidden = with_columns(flat, tree, hidden, end=begin)
        if with_hidden is None:
            return None
        stage = with_hidden
    # A row has the columns of the stage, in their order and as they are spelled there.
    columns = f"* except ({', '.join(map(quoted, hidden))})" if hidden else "*"
    rest = numbered(template(f"select {columns} from ", hole_of(stage), order))
    return Cut(stage, rest, is_subset=True)


def with_row_count(cut: Cut) -> Cut | None:
    """Return a cut whose stage counts the rows of each group as well, by which they can be moved.

    The rest does not see the count. None if the stage does not end in plain groups.
    """
    tree = parse(cut.stage.text)
    if tree.args.get("group") is None:
        return None
    if (stage := with_columns(cut.stage, tree, {COUNT_OF_ROWS: "count(*)"})) is None:
        return None
    seen = template(f"(select * except ({quoted(COUNT_OF_ROWS)}) from ", hole_of(stage), ")")
    plain = cut.stage.stage_relation
    rest = cut.rest.over(lambda it: seen if it.relation == plain else Template((it,)))
    return replace(cut, stage=stage, rest=numbered(rest))


def _items(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """Return where the expression of each item of an order is, without its direction."""
    items: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type is TokenType.COMMA:
            items.append([])
        else:
            items[-1].append(token)
    places = []
    for item in items:
        words = [token.text.upper() for token in item]
        if words[-2:] in (["NULLS", "FIRST"], ["NULLS", "LAST"]):
            words = words[:-2]
        if words[-1:] in (["ASC"], ["DESC"]):
            words = words[:-1]
        if words:
            places.append((item[0].start, item[len(words) - 1].end + 1))
    return places


def _reads_outputs(expr: exp.Expr, names: Collection[str]) -> bool | None:
    """Return True if an expression reads nothing but output columns, False if it reads none.

    Spark looks for a name among the output columns first. None if it is not certain which is meant.
    """
    if next(expr.find_all(exp.Query), None) is not None or expr.name.lower() == "all":
        return None
    columns = [[part.name.lower() for part in it.parts] for it in expr.find_all(exp.Column)]
    of_groups = any(
        is_aggregate(node) or isinstance(node, exp.Window) or function_name(node) in _GROUPINGS
        for node in expr.walk()
    )
    if not any(parts[0] in names for parts in columns):
        # A number is the place of an output column.
        return not columns and not of_groups
    if of_groups or not all(len(parts) == 1 and parts[0] in names for parts in columns):
        return None
    return True


def with_columns(
    flat: Flat, tree: exp.Expr, columns: Mapping[str, str], begin: int = 0, end: int | None = None
) -> Flat | None:
    """Return a query up to a place in it, with these columns more: the SQL of each by its name.

    None where another column would mean more. `begin`: behind its common table expressions.
    """
    end = len(flat.text) if end is None else end
    tokens = outside_of_brackets(flat.text, begin)
    if (place := _end_of_select_list(tree, tokens)) is None:
        return None
    added = "".join(f", {sql} as {quoted(name)}" for name, sql in columns.items())
    return Flat((*flat.cut(0, place).pieces, added, *flat.cut(place, end).pieces))


def _end_of_select_list(tree: exp.Expr, tokens: Sequence[Token]) -> int | None:
    """Return where the select list of a query ends, None where another column would mean more."""
    group = tree.args.get("group")
    if not isinstance(tree, exp.Select) or tree.args.get("distinct"):
        return None
    if group is not None and group.args.get("all"):
        return None
    kinds = [token.token_type for token in tokens]
    selects = [n for n, kind in enumerate(kinds) if kind is TokenType.SELECT]
    # In `is distinct from` it is no clause.
    sources = [
        n
        for n, kind in enumerate(kinds)
        if kind is TokenType.FROM and kinds[n - 1] is not TokenType.DISTINCT
    ]
    if len(selects) != 1 or not sources or sources[0] < selects[0]:
        return None
    return int(tokens[sources[0] - 1].end) + 1
