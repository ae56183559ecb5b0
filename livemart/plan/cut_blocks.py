"""Cuts a query at one of the queries that it is written of: all of it, its totals, or its rows.

Used by the planner for a query that no strategy moves. A part that names a column of a query around
it is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from sqlglot import Token, TokenType, exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from livemart.plan.blocks import Block, Blocks, numbered, outside_of_brackets
from livemart.plan.build.correlated import items_of_from
from livemart.plan.cut import COUNT_OF_ROWS, Cut, hole_of
from livemart.plan.relations.aggregate_calls import WRAPPERS, aggregate_calls
from livemart.plan.sql.flatten import Flat, Occurrence
from livemart.plan.sql.parse import parse, qualified, tokens_of
from livemart.plan.sql.template import Template, template
from livemart.plan.sql.written import span_of
from livemart.spark_sql import quoted

Columns = Mapping[str, tuple[str, ...]]
_BEHIND_WHERE = frozenset(
    {
        TokenType.GROUP_BY, TokenType.HAVING, TokenType.QUALIFY, TokenType.WINDOW,
        TokenType.ORDER_BY, TokenType.SORT_BY, TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY,
        TokenType.LIMIT, TokenType.OFFSET,
    }
)  # fmt: skip
# The clauses that are computed above the rows, and those that a total has none of.
_ABOVE = ("group", "having", "qualify", "windows", "order", "sort", "cluster", "distribute")
# Delta refuses these signs in the name of a column.
_NOT_STORED = re.compile(r"[ ,;{}()\n\t=]")
_VALUE = "__livemart_value"


def cut_whole(part: BlockPart) -> Cut | None:
    """Return a query in which one of its subqueries is a stage, as it is written."""
    kind, text = part.block.kind, part.alone
    if kind == "top":
        return None
    if kind == "value":
        if len(part.tree.selects) != 1:
            return None
        if part.is_nameless:
            if part.list_end is None:
                return None
            text = Flat(
                template(
                    text.cut(0, part.list_end),
                    f" as {_VALUE}",
                    text.cut(part.list_end, len(text.text)),
                ).pieces
            )
    elif not part.is_named or not _are_stored(part.names):
        return None
    stage = numbered(text)
    cut = _put_back(part, stage, template("select * from ", hole_of(stage)))
    return replace(cut, is_value=kind == "value")


def cut_totals(part: BlockPart) -> Cut | None:
    """Return a query whose totals without GROUP BY are a stage: one row of plain aggregates.

    A count of all rows is added, by which the totals can be moved.
    """
    select = part.select_of_rows
    if select is None or any(map(select.args.get, (*_ABOVE, "distinct", "limit", "offset"))):
        return None
    spans: dict[tuple[int, int], str] = {}
    for item in select.expressions:
        if item.find(exp.Query, exp.Window) is not None:
            return None
        calls = [_with_wrappers(call) for call in aggregate_calls(item)]
        inside = {id(column) for call in calls for column in call.find_all(exp.Column)}
        if any(column.table and id(column) not in inside for column in item.find_all(exp.Column)):
            return None
        for call in calls:
            if (span := span_of(call)) is None:
                return None
            spans.setdefault(span, f"__livemart_total_{len(spans) + 1}")
    if not spans:
        return None
    cut = _cut_at_rows(part, spans, [f"count(*) as {COUNT_OF_ROWS}"])
    return None if cut is None else replace(cut, adds_up=True)


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
    sets = (exp.Rollup, exp.Cube, exp.GroupingSets)
    is_total = group is None and any(map(aggregate_calls, select.expressions))
    if not is_total and (group is None or group.find(*sets) is None):
        return None
    above = [*select.expressions]
    for name in _ABOVE:
        value = select.args.get(name)
        above += value if isinstance(value, list) else [value] if value is not None else []
    spans: dict[tuple[int, int], str] = {}
    named: dict[tuple[str, str], str] = {}
    for clause in above:
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
    hidden = [] if spans else [f"1 as {COUNT_OF_ROWS}"]
    if has_keys:
        keys = dict.fromkeys(key for key in _compared(select) if key[0] in part.sources)
        hidden = [
            f"{quoted(table)}.{quoted(name)} as __livemart_key_{number}"
            for number, (table, name) in enumerate((it for it in keys if it not in named), start=1)
        ]
        if not hidden:
            return None
    return _cut_at_rows(part, spans, hidden)


@dataclass(frozen=True, slots=True)
class BlockPart:
    """A block of a query as a query by itself, and the places in its text.

    `is_named`: no column has a name that Spark makes up. `rows`: from its FROM to the end of its
    WHERE; None if that is not known. `list_end`: the end of its select list. `bare`: behind each
    output column without an alias, its name as written.
    """

    blocks: Blocks
    block: Block
    alone: Flat
    tree: exp.Query
    names: tuple[str, ...]
    sources: Mapping[str, tuple[str, ...]]
    begin: int
    rows: tuple[int, int] | None
    list_end: int | None
    bare: Mapping[int, str]
    has_names: bool
    is_nameless: bool
    is_named: bool

    @property
    def select_of_rows(self) -> exp.Select | None:
        """The tree if a stage can be made from its FROM and WHERE, None if it cannot."""
        has_names = self.has_names or self.block.kind == "value"
        is_known = has_names and self.rows is not None
        return self.tree if is_known and isinstance(self.tree, exp.Select) else None

    def span(self, column: exp.Column) -> tuple[int, int] | None:
        """Return where a column is written, None if it is not."""
        text = self.alone.text
        start, end = _place(column.this)
        if text[start:end].strip("`").lower() != column.name.lower():
            return None
        first = _place(column.args["table"])
        # A table that is not written has the place of its item of FROM, if any.
        if first[1] <= start and text[first[1] : start].strip() == ".":
            start = first[0]
        elif text[:start].rstrip().endswith("."):
            return None
        return start, end


def _place(name: exp.Expr) -> tuple[int, int]:
    """Return where a name is written; (0, 0) if it is not."""
    if "start" not in name.meta or "end" not in name.meta:
        return 0, 0
    return int(name.meta["start"]), int(name.meta["end"]) + 1


def block_part(
    blocks: Blocks, block: Block, alone: Template[Occurrence], columns: Columns
) -> BlockPart | None:
    """Return a block with its places; None if it reads a query around it, or is not understood.

    Args:
        blocks: the blocks of the whole query.
        block: one of them.
        alone: its text as `Blocks.standing_alone` returns it.
        columns: by relation.
    """
    flat = Flat(alone.pieces)
    begin = len(flat.text) - (block.end - block.start)
    tree = parse(flat.text)
    if not isinstance(tree, exp.Query):
        return None
    items = [*tree.expressions] if isinstance(tree, exp.Select) else []
    explicit = {it.alias.lower(): it for it in items if isinstance(it, exp.Alias)}
    plain = {
        it.name.lower(): it
        for it in items
        if isinstance(it, exp.Column) and not isinstance(it.this, exp.Star)
    }
    has_names = len(items) == len(explicit) + len(plain) and not explicit.keys() & plain.keys()
    is_nameless = len(items) == 1 and not has_names
    places = [_place(it.this) for it in plain.values()]
    bare = {end: flat.text[start:end] for start, end in places}
    outputs = {**explicit, **plain}
    is_named = all(isinstance(it, exp.Alias | exp.Column | exp.Star) for it in _first(tree))
    tree = qualified(tree, flat.schema(columns))
    scopes = traverse_scope(tree)
    if _reads_around(tree):
        return None
    sources: dict[str, tuple[str, ...]] = {}
    rows = list_end = None
    if isinstance(tree, exp.Select):
        items_read = _sources(scopes[-1], flat, columns)
        rows, list_end = _rows(tokens_of(flat.text), begin)
        if items_read is None or _is_ambiguous(outputs, items_read):
            rows = None
        else:
            sources = items_read
    names = tuple(name.lower() for name in tree.named_selects)
    return BlockPart(
        *(blocks, block, flat, tree, names, sources, begin, rows, list_end, bare),
        has_names,
        is_nameless,
        is_named,
    )


def _first(tree: exp.Expr) -> list[exp.Expr]:
    """Return the select list that gives a query the names of its columns."""
    while isinstance(tree, exp.SetOperation | exp.Subquery):
        tree = tree.this
    return [*tree.expressions] if isinstance(tree, exp.Select) else []


def _sources(scope: Scope, flat: Flat, columns: Columns) -> dict[str, tuple[str, ...]] | None:
    """Return the columns of each item of a FROM clause; None if those of one are not known."""
    relations = {it.placeholder.lower(): it.relation for it in flat.occurrences}
    sources: dict[str, tuple[str, ...]] = {}
    for alias, (_, source) in scope.selected_sources.items():
        if isinstance(source, Scope) and isinstance(source.expression, exp.Query):
            names = tuple(source.expression.named_selects)
        elif isinstance(source, exp.Table) and source.name.lower() in relations:
            names = columns.get(relations[source.name.lower()], ())
        else:
            return None
        if isinstance(source, exp.Table) and source.alias_column_names:
            return None
        sources[alias] = tuple(name.lower() for name in names)
    select = scope.expression
    if select.args.get("laterals") or not sources:
        return None
    joins, items = select.args.get("joins") or (), items_of_from(select)
    is_plain = not any(join.method or join.args.get("using") for join in joins)
    is_plain &= not any(item.args.get("pivots") for item in items)
    return sources if is_plain and len(items) == len(sources) else None


def _is_ambiguous(outputs: Mapping[str, exp.Expr], sources: Mapping[str, tuple[str, ...]]) -> bool:
    """Return True if a name may mean an output column or another column that is read."""
    for name, item in outputs.items():
        having = [alias for alias, names in sources.items() if name in names]
        if not having:
            continue
        value = item.unalias()
        is_that = isinstance(value, exp.Column) and value.name.lower() == name
        if not is_that or len(having) > 1:
            return True
    return False


def _rows(tokens: list[Token], begin: int) -> tuple[tuple[int, int] | None, int | None]:
    """Return where the FROM and WHERE of a SELECT are, and where its select list ends."""
    outside = outside_of_brackets([token for token in tokens if token.start >= begin])
    kinds = [token.token_type for token in outside]
    starts = [
        place
        for place, kind in enumerate(kinds)
        if kind is TokenType.FROM and kinds[place - 1] is not TokenType.DISTINCT
    ]
    if not kinds or kinds[0] is not TokenType.SELECT or len(starts) != 1:
        return None, None
    end = outside[-1].end + 1
    for place in range(starts[0], len(kinds)):
        if kinds[place] in _BEHIND_WHERE:
            end = outside[place - 1].end + 1
            break
    start = outside[starts[0]].start
    return (start, end), outside[starts[0] - 1].end + 1


def _reads_around(tree: exp.Query) -> bool:
    """Return True if a query names a table that is not in it."""
    for column in tree.find_all(exp.Column):
        if not column.table:
            continue
        aliases: list[str] = []
        around = column.find_ancestor(exp.Select)
        while around is not None:
            aliases += [item.alias_or_name for item in items_of_from(around)]
            around = around.find_ancestor(exp.Select)
        if column.table not in aliases:
            return True
    return False


def _compared(select: exp.Select) -> Iterator[tuple[str, str]]:
    """Yield table and name of each column that a query compares with another column."""
    for equal in select.find_all(exp.EQ):
        if isinstance(equal.left, exp.Column) and isinstance(equal.right, exp.Column):
            yield from ((it.table, it.name.lower()) for it in (equal.left, equal.right))


def _with_wrappers(call: exp.Expr) -> exp.Expr:
    while isinstance(call.parent, (*WRAPPERS, exp.WithinGroup)):
        call = call.parent
    return call


def _cut_at_rows(
    part: BlockPart, spans: Mapping[tuple[int, int], str], hidden: list[str]
) -> Cut | None:
    """Return a query whose stage selects the pieces at `spans` from the rows of a block.

    In the rest each piece is replaced by the name of its column.
    """
    assert part.rows is not None
    flat, (start, end) = part.alone, part.rows
    ordered = sorted(spans)
    if any(one[1] > other[0] for one, other in pairwise(sorted([*spans, part.rows]))):
        return None
    # A column that is written at several places is selected once.
    first = {name: span for span, name in reversed([(it, spans[it]) for it in ordered])}
    listed: list[str | Template[Occurrence]] = []
    for name, span in sorted(first.items(), key=lambda it: it[1]):
        listed += [", " if listed else "", flat.cut(*span), f" as {name}"]
    listed += [f"{', ' if listed else ''}{text}" for text in hidden]
    stage = numbered(
        template(flat.cut(0, part.begin), "select ", *listed, " ", flat.cut(start, end))
    )
    edits: list[tuple[int, int, str | Template[Occurrence]]] = [
        (start, end, template("from ", hole_of(stage)))
    ]
    for begin, until in ordered:
        name = spans[begin, until]
        # A column that is selected as it is keeps its name.
        is_kept = until in part.bare and until <= start
        edits.append((begin, until, f"{name} as {part.bare[until]}" if is_kept else name))
    rest: list[str | Template[Occurrence]] = []
    position = part.begin
    for begin, until, instead in sorted(edits, key=lambda edit: edit[:2]):
        rest += [flat.cut(position, begin), instead]
        position = until
    rest.append(flat.cut(position, len(flat.text)))
    return _put_back(part, stage, template(*rest))


def _put_back(part: BlockPart, stage: Flat, instead: Template[Occurrence]) -> Cut:
    """Return the cut of a query in which a text is put in the place of a block."""
    flat, block = part.blocks.flat, part.block
    text = template(flat.cut(0, block.start), instead, flat.cut(block.end, len(flat.text)))
    return Cut(stage, Blocks(numbered(text)).without_unread())


def _are_stored(names: tuple[str, ...]) -> bool:
    """Return True if a table can have these columns."""
    return (
        bool(names)
        and len(set(names)) == len(names)
        and not any(name in ("", "*") or _NOT_STORED.search(name) for name in names)
        and not any(name.startswith("_col_") for name in names)
    )


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
        for way in (cut_totals, cut_rows, partial(cut_rows, has_keys=True), cut_whole):
            cut = None
            with suppress(Exception):
                cut = way(part)
            if cut is not None:
                yield cut
