"""Finds the places in the text of a query at which it can be cut, and puts its two parts together.

Used by the ways to cut a query. A part that names a column of a query around it is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import Token, TokenType, exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from livemart.plan.blocks import Block, Blocks, numbered, outside_of_brackets
from livemart.plan.cut import Cut, hole_of
from livemart.plan.reading.correlated import items_of_from
from livemart.plan.relations.aggregate_calls import aggregate_calls
from livemart.plan.sql.flatten import Flat, Occurrence
from livemart.plan.sql.parse import parse, qualified, tokens_of, words_of
from livemart.plan.sql.template import Template, template
from livemart.plan.sql.written import span_of
from livemart.spark_sql import quoted

_VALUE = "__livemart_value"
Columns = Mapping[str, tuple[str, ...]]
TextSpan = tuple[int, int]
_BEHIND_WHERE = frozenset(
    {
        TokenType.GROUP_BY, TokenType.HAVING, TokenType.QUALIFY, TokenType.WINDOW,
        TokenType.ORDER_BY, TokenType.SORT_BY, TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY,
        TokenType.LIMIT, TokenType.OFFSET,
    }
)  # fmt: skip
_GROUPS = frozenset({TokenType.GROUP_BY, TokenType.HAVING})
# The clauses besides the select list that are computed above groups.
ABOVE_GROUPS = ("qualify", "windows", "order", "sort", "cluster", "distribute")
# Delta refuses these signs in the name of a column.
_AS = re.compile(r"\s*as\b", re.IGNORECASE)
_NOT_STORED = re.compile(r"[ ,;{}()\n\t=]")


@dataclass(frozen=True, slots=True)
class BlockPart:
    """A block of a query as a query by itself, and the places in its text.

    `plain`: the tree before names of columns were looked up. `is_named`: no column has a name that
    Spark makes up. `rows`: from its FROM to the end of its WHERE; None if that is not known.
    `having`: where its HAVING begins, or its GROUP BY ends. `behind_groups`: the end of both.
    `list_end`: the end of its select list. `bare`: behind each output column without an alias, its
    name as written. `ambiguous`: names of output columns that another column that is read has.
    """

    blocks: Blocks
    block: Block
    alone: Flat
    plain: exp.Query
    tree: exp.Query
    names: tuple[str, ...]
    sources: Mapping[str, tuple[str, ...]]
    begin: int
    rows: TextSpan | None
    having: int
    behind_groups: int
    list_end: int | None
    bare: Mapping[int, str]
    ambiguous: frozenset[str]
    has_names: bool
    is_nameless: bool
    is_named: bool

    @property
    def select_of_rows(self) -> exp.Select | None:
        """The tree if a stage can be made from its FROM and WHERE, None if it cannot."""
        has_names = self.has_names or self.block.kind in ("value", "branch")
        return self.select_of_gates if has_names else None

    @property
    def select_of_gates(self) -> exp.Select | None:
        """The tree if a stage can be made from its groups or windows, None if it cannot.

        In the select list, in GROUP BY and in an aggregate call, Spark takes a name for that of a
        column that is read, if there is one.
        """
        if self.rows is None or not isinstance(self.tree, exp.Select):
            return None
        behind = (self.having, len(self.alone.text))
        clauses = (self.plain.args.get(name) for name in ("having", "qualify", "order"))
        calls = [call for it in clauses if it is not None for call in aggregate_calls(it)]
        spans = [span for call in calls if (span := span_of(call)) is not None]
        is_clear = self.ambiguous.isdisjoint(self._names_in(behind, without=spans))
        return self.tree if is_clear else None

    @property
    def named(self) -> Flat | None:
        """The block by itself, a value with a name; None if no table can have its columns."""
        if self.block.kind == "value" and self.is_nameless and self.list_end is not None:
            flat, place = self.alone, self.list_end
            begin, end = flat.cut(0, place), flat.cut(place, len(flat.text))
            return Flat(template(begin, f" as {_VALUE}", end).pieces)
        return self.alone if self.is_named and are_stored(self.names) else None

    def span(self, expr: exp.Expr) -> TextSpan | None:
        """Return where a column or another expression is written, None if that is not known."""
        if not isinstance(expr, exp.Column):
            return span_of(expr)
        text = self.alone.text
        start, end = _place(expr.this)
        if text[start:end].strip("`").lower() != expr.name.lower():
            return None
        first = _place(expr.args["table"])
        # A table that is not written has the place of its item of FROM, if any.
        if first[1] <= start and text[first[1] : start].strip() == ".":
            start = first[0]
        elif text[:start].rstrip().endswith("."):
            return None
        return start, end

    def names_a_field(self, spans: Collection[TextSpan]) -> bool:
        """Return True if Spark names a field of a struct after one of some pieces of the text."""
        for row in self.tree.find_all(exp.Struct, exp.Tuple, exp.ArraysZip):
            if isinstance(row.parent, exp.In) or row.find_ancestor(exp.Group):
                continue
            for item in row.iter_expressions():
                span = self.span(item.expression if isinstance(item, exp.PropertyEQ) else item)
                if span is not None and span in spans and not _AS.match(self.alone.text, span[1]):
                    return True
        return False

    def outputs_in(self, span: TextSpan) -> list[str]:
        """Return the output columns that a piece of the text may name, if no table has them."""
        of_tables = {name for names in self.sources.values() for name in names}
        outputs = set(self.names) - of_tables
        return list(dict.fromkeys(name for name in self._names_in(span) if name in outputs))

    def words(self, span: TextSpan) -> set[str]:
        """Return the words in a piece of the text, in lower case."""
        tokens = tokens_of(self.alone.text)
        return {it.text.lower() for it in tokens if span[0] <= it.start < span[1]}

    def names_left(self, begin: int, without: Sequence[TextSpan]) -> set[str]:
        """Return the names of tables and of their columns behind a place that no output has."""
        names = self._names_in((begin, len(self.alone.text)), without=without)
        read = {name for columns in self.sources.values() for name in columns} | set(self.sources)
        return (set(names) & read) - set(self.names)

    def named_windows(self) -> Template[Occurrence] | None:
        """Return the clause of named windows, empty without one; None if it is not found."""
        if not self.tree.args.get("windows"):
            return template()
        assert self.rows is not None
        tokens = outside_of_brackets(self.alone.text, self.rows[1])
        kinds = [token.token_type for token in tokens]
        if kinds.count(TokenType.WINDOW) != 1:
            return None
        start = kinds.index(TokenType.WINDOW)
        ends = [n for n in range(start + 1, len(kinds)) if kinds[n] in _BEHIND_WHERE]
        end = tokens[ends[0] - 1 if ends else -1].end + 1
        return template(" ", self.alone.cut(tokens[start].start, end))

    def _names_in(self, span: TextSpan, without: Sequence[TextSpan] = ()) -> Iterator[str]:
        return (token.text.lower() for token in self.name_tokens(span, without))

    def name_tokens(self, span: TextSpan, without: Iterable[TextSpan] = ()) -> Iterator[Token]:
        """Yield the names in a piece of the text that name no function, and no table before them.

        Texts are left out, other words are not: `day` in `interval 1 day` is among the names.
        `without`: pieces that are left out.
        """
        tokens = [
            token
            for token in tokens_of(self.alone.text)
            if span[0] <= token.start < span[1]
            and not any(start <= token.start < end for start, end in without)
        ]
        kinds = [None, *(token.token_type for token in tokens), None]
        for place, token in enumerate(tokens):
            is_call = kinds[place + 2] is TokenType.L_PAREN
            # A session may take what is in double quotes for a name.
            is_text = token.token_type is TokenType.STRING and self.alone.text[token.start] == "'"
            if kinds[place] is not TokenType.DOT and not is_call and not is_text:
                yield token


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
    plain = parse(flat.text)
    if not isinstance(plain, exp.Query):
        return None
    items = [*plain.expressions] if isinstance(plain, exp.Select) else []
    explicit = {it.alias.lower(): it for it in items if isinstance(it, exp.Alias)}
    implicit = {
        it.name.lower(): it
        for it in items
        if isinstance(it, exp.Column) and not isinstance(it.this, exp.Star)
    }
    has_names = len(items) == len(explicit) + len(implicit) and not (
        explicit.keys() & implicit.keys()
    )
    is_nameless = len(items) == 1 and not has_names and not items[0].is_star
    places = [_place(it.this) for it in implicit.values()]
    bare = {end: flat.text[start:end] for start, end in places}
    is_named = all(isinstance(it, exp.Alias | exp.Column | exp.Star) for it in _first(plain))
    # The columns of a pivot are written at other places.
    is_pivoted = any(it.find_ancestor(exp.Select) is plain for it in plain.find_all(exp.Pivot))
    tree = qualified(plain.copy(), flat.schema(columns))
    scopes = traverse_scope(tree)
    if _reads_around(tree):
        return None
    sources: dict[str, tuple[str, ...]] = {}
    rows = list_end = None
    ambiguous: frozenset[str] = frozenset()
    having = behind_groups = len(flat.text)
    if isinstance(tree, exp.Select):
        items_read = _sources(scopes[-1], flat, columns)
        rows, having, behind_groups, list_end = _rows(flat.text, begin)
        if items_read is None or is_pivoted:
            rows = None
        else:
            sources = items_read
            ambiguous = _ambiguous({**explicit, **implicit}, sources)
    names = tuple(name.lower() for name in tree.named_selects)
    return BlockPart(
        blocks=blocks,
        block=block,
        alone=flat,
        plain=plain,
        tree=tree,
        names=names,
        sources=sources,
        begin=begin,
        rows=rows,
        having=having,
        behind_groups=behind_groups,
        list_end=list_end,
        bare=bare,
        ambiguous=ambiguous,
        has_names=has_names,
        is_nameless=is_nameless,
        is_named=is_named,
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
    return sources if is_plain and len(items) == len(sources) else None


def _ambiguous(
    outputs: Mapping[str, exp.Expr], sources: Mapping[str, tuple[str, ...]]
) -> frozenset[str]:
    """Return the names that may mean an output column or another column that is read."""
    ambiguous = set()
    for name, item in outputs.items():
        having = [alias for alias, names in sources.items() if name in names]
        value = item.unalias()
        # Behind another name than that of a table it is a field of a struct.
        is_that = (
            isinstance(value, exp.Column)
            and value.name.lower() == name
            and (not value.table or value.table in sources)
        )
        if having and (not is_that or len(having) > 1):
            ambiguous.add(name)
    return frozenset(ambiguous)


def _rows(text: str, begin: int) -> tuple[TextSpan | None, int, int, int | None]:
    """Return FROM and WHERE of a SELECT, the begin and end of HAVING, the end of its list."""
    outside = outside_of_brackets(text, begin)
    kinds = [token.token_type for token in outside]
    starts = [
        place
        for place, kind in enumerate(kinds)
        if kind is TokenType.FROM and kinds[place - 1] is not TokenType.DISTINCT
    ]
    end = outside[-1].end + 1 if outside else begin
    if not kinds or kinds[0] is not TokenType.SELECT or len(starts) != 1:
        return None, end, end, None
    behind = [n for n, kind in enumerate(kinds) if n > starts[0] and kind in _BEHIND_WHERE]
    behind_groups = [n for n in behind if kinds[n] not in _GROUPS]
    rows_end, groups_end = (
        outside[places[0] - 1].end + 1 if places else end for places in (behind, behind_groups)
    )
    having = [outside[n].start for n in behind if kinds[n] is TokenType.HAVING]
    start, list_end = outside[starts[0]].start, outside[starts[0] - 1].end + 1
    return (start, rows_end), (having or [groups_end])[0], groups_end, list_end


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


def cut_at_rows(
    part: BlockPart,
    spans: Mapping[TextSpan, str],
    hidden: Mapping[str, str],
    *,
    groups: Template[Occurrence] | None = None,
    windows: Template[Occurrence] | None = None,
    condition: TextSpan | None = None,
    instead: Mapping[TextSpan, str | Template[Occurrence]] | None = None,
) -> Cut | None:
    """Return a query whose stage selects the pieces at `spans` from the rows of a block.

    In the rest each piece is replaced by the name of its column.

    Args:
        spans: the names of the columns.
        hidden: the SQL of further columns of the stage, by name.
        groups: GROUP BY and HAVING of the stage, which the rest does not have.
        windows: the named windows of the stage, which the rest has as well.
        condition: that of HAVING, if it is the rest that keeps groups by it.
        instead: what else the rest has in the place of pieces.
    """
    assert part.rows is not None
    flat, (start, end) = part.alone, part.rows
    ordered = sorted(spans)
    if any(one[1] > other[0] for one, other in pairwise(sorted([*spans, part.rows]))):
        return None
    if part.names_a_field(spans):
        return None
    # A column that is written at several places is selected once.
    first = {name: span for span, name in reversed([(it, spans[it]) for it in ordered])}
    listed: list[str | Template[Occurrence]] = []
    for name, span in sorted(first.items(), key=lambda it: it[1]):
        listed += [", " if listed else "", flat.cut(*span), f" as {name}"]
    for name, text in hidden.items():
        listed += [", " if listed else "", f"{text} as {name}"]
    below = [flat.cut(start, end), *(part for part in (groups, windows) if part is not None)]
    stage = numbered(template(flat.cut(0, part.begin), "select ", *listed, " ", *below))
    if groups is not None:
        end = part.behind_groups
    orders = _orders(part)
    if orders is None or part.names_left(end, [*ordered, *orders]):
        return None
    if condition is not None:
        end = condition[0]
    word = "" if condition is None else " where"
    edits: dict[TextSpan, str | Template[Occurrence]] = {
        (start, end): template("from ", hole_of(stage), word),
        **orders,
        **(instead or {}),
    }
    for begin, until in ordered:
        if start <= begin < end:
            # Among the groups: the rest has none.
            continue
        name = spans[begin, until]
        # A column that is selected as it is keeps its name.
        is_kept = until in part.bare and until <= start
        edits[begin, until] = f"{name} as {part.bare[until]}" if is_kept else name
    return put_back(part, stage, edited(part, edits))


def _orders(part: BlockPart) -> dict[TextSpan, str] | None:
    """Return the outputs by which a query is ordered where their SQL is written in their place.

    The parser has put them there. None if the SQL of one is written otherwise.
    """
    orders: dict[TextSpan, str] = {}
    text = part.alone.text
    outputs = {it.alias_or_name.lower(): it.unalias() for it in part.plain.selects}
    written, meant = (tree.args.get("order") for tree in (part.plain, part.tree))
    for was, now in zip(written or (), meant or (), strict=True):
        if isinstance(was.this, exp.Column | exp.Literal) or not isinstance(now.this, exp.Column):
            continue
        output = outputs.get(now.this.name.lower())
        spans = [span_of(it) for it in (was.this, output) if it is not None]
        words = [words_of(text[slice(*span)]) for span in spans if span is not None]
        if len(words) < 2 or words[0] != words[1] or spans[0] is None:
            return None
        orders[spans[0]] = quoted(now.this.name)
    return orders


def edited(
    part: BlockPart,
    edits: Mapping[TextSpan, str | Template[Occurrence]],
    within: TextSpan | None = None,
) -> Template[Occurrence]:
    """Return the text of a block or `within` it, with other text in the place of some pieces."""
    flat = part.alone
    position, end = within or (part.begin, len(flat.text))
    rest: list[str | Template[Occurrence]] = []
    for begin, until in sorted(edits):
        rest += [flat.cut(position, begin), edits[begin, until]]
        position = until
    return template(*rest, flat.cut(position, end))


def clauses(select: exp.Select, names: Sequence[str]) -> Iterator[exp.Expr]:
    """Yield the items of a select list, and those of other clauses by their names."""
    yield from select.expressions
    for name in names:
        value = select.args.get(name)
        yield from value if isinstance(value, list) else [value] if value is not None else []


def put_back(part: BlockPart, stage: Flat, instead: Template[Occurrence]) -> Cut:
    """Return the cut of a query in which a text is put in the place of a block."""
    flat, block = part.blocks.flat, part.block
    text = template(flat.cut(0, block.start), instead, flat.cut(block.end, len(flat.text)))
    rest = Blocks(numbered(text)).without_unread()
    return Cut(stage, rest, is_branch=block.kind in ("first", "branch"))


def are_stored(names: tuple[str, ...]) -> bool:
    """Return True if a table can have these columns."""
    return (
        bool(names)
        and len(set(names)) == len(names)
        and not any(name in ("", "*") or _NOT_STORED.search(name) for name in names)
        and not any(name.startswith("_col_") for name in names)
    )
