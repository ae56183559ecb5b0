"""Cuts a SELECT between its groups and its windows, or between windows of two partitions.

Used by the planner for a query that no strategy moves: each half may have a strategy.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, count

from sqlglot import TokenType, exp

from livemart.plan.block_part import (
    ABOVE_GROUPS,
    BlockPart,
    TextSpan,
    are_stored,
    clauses,
    cut_at_rows,
    edited,
    put_back,
)
from livemart.plan.blocks import numbered, outside_of_brackets
from livemart.plan.cut import COUNT_OF_ROWS, Cut, hole_of, with_columns
from livemart.plan.reading.grouping_sets import SETS, grouping_sets
from livemart.plan.relations.aggregate_calls import aggregate_calls, specification, with_wrappers
from livemart.plan.relations.relation import bare
from livemart.plan.sql.determinism import function_name
from livemart.plan.sql.flatten import Flat, Occurrence
from livemart.plan.sql.functions import GENERATORS
from livemart.plan.sql.parse import parse
from livemart.plan.sql.template import Template, separated, template
from livemart.plan.sql.written import span_of, sql_of
from livemart.spark_sql import quoted

_BEFORE_STAR = (TokenType.SELECT, TokenType.DISTINCT, TokenType.COMMA, TokenType.DOT)
_HAVING = "having"
_NUMBERED = re.compile(r"__livemart_[a-z]+_(\d+)")


def cut_groups(part: BlockPart) -> Cut | None:
    """Return a query whose groups are a stage, below a last step that computes its windows."""
    select = part.select_of_gates if part.has_names else None
    group = None if select is None else select.args.get("group")
    if select is None or group is None or not any(it.find(exp.Window) for it in _above(select)):
        return None
    if group.args.get("totals") or _has_sets(group):
        return None
    if _generates(select):
        return None
    pieces = _Pieces(part)
    # A constant key keeps all rows together.
    columns = [key for key in map(bare, _keys(part, select, group)) if key.find(exp.Column)]
    keys = {sql_of(key): key for key in columns}
    if not keys or not all(pieces.take(key, "key") for key in keys.values()):
        return None
    key_spans = list(pieces.spans)
    if not _take_values_of_groups(part, pieces, _above(select), keys):
        return None
    having = _having(part, select)
    if having is None or pieces.read_outputs():
        return None
    by = separated(", ", (part.alone.cut(*span) for span in key_spans))
    groups = template(" group by ", by, *having[0])
    return cut_at_rows(part, pieces.spans, having[1], groups=groups)


def cut_sets(part: BlockPart) -> Cut | None:
    """Return a query whose stage has the groups of grouping sets, to which changes are added.

    The last step computes from their totals, with HAVING as WHERE. A hidden column of the stage
    tells the sets apart, and another one counts the rows of each group.
    """
    select = part.select_of_gates if part.has_names or part.block.kind == "branch" else None
    group = None if select is None else select.args.get("group")
    if select is None or group is None or not _has_sets(group) or _generates(select):
        return None
    assert part.rows is not None
    sets, pieces = grouping_sets(group), _Pieces(part)
    keys = {sql_of(key): key for key in chain.from_iterable(sets or ())}
    if not keys or not all(pieces.take(key, "key") for key in keys.values()):
        return None
    having = select.args.get("having")
    if having is not None and having.find(exp.Query) is not None:
        return None
    computed = clauses(select, ("having", *ABOVE_GROUPS))
    if not _take_values_of_groups(part, pieces, computed, keys) or pieces.read_outputs():
        return None
    condition: TextSpan | None = None
    again: dict[TextSpan, Template[Occurrence]] | None = {}
    if having is not None:
        condition = (part.having + len(_HAVING), part.behind_groups)
        again = _take_outputs_named(part, pieces, select, condition)
        if again is None:
            return None
    by = (part.rows[1], part.having)
    named, groups = _outputs_named(part, select, by), _groups(part, select, by)
    if named is None or groups is None:
        return None
    hidden = {**named, pieces.new_name("set"): "grouping_id()"}
    if not pieces.has("total", "count(*)"):
        hidden[COUNT_OF_ROWS] = "count(*)"
    cut = cut_at_rows(part, pieces.spans, hidden, groups=groups, condition=condition, instead=again)
    return None if cut is None else replace(cut, adds_up=True, is_late=bool(again))


def partitions(part: BlockPart) -> list[frozenset[str]]:
    """Return the partitions of the windows of a SELECT without groups, if it has two or more.

    A window over all rows is computed of all of them: nothing is gained by a stage below it.
    """
    if (select := part.select_of_gates) is None:
        return []
    if any(map(select.args.get, ("group", "having"))) or _generates(select):
        return []
    by = list(dict.fromkeys(_partition(it) for it in _windows(select)))
    return by if len(by) > 1 and frozenset() not in by else []


def cut_windows(part: BlockPart, by: Collection[str]) -> Cut | None:
    """Return a query whose windows of one partition are a stage, below those of the others."""
    select = part.tree
    assert isinstance(select, exp.Select)
    chosen = [window for window in _windows(select) if _partition(window) == by]
    named = part.named_windows()
    if named is None:
        return None
    pieces = _Pieces(part)
    if not all(pieces.take(window, "window") for window in chosen):
        return None
    if any(clause.find(exp.Query) or aggregate_calls(clause) for clause in _above(select)):
        return None
    keys = {sql_of(bare(key)): bare(key) for key in _partition_by(chosen[0])}
    if (star := _star(part)) is None:
        if not part.has_names:
            return None
        for clause in _above(select):
            for node in _outermost(clause, {id(window) for window in chosen}, ()):
                is_of_rows = _is_of_rows(node, part)
                if is_of_rows is None or (is_of_rows and not pieces.take(node, "column")):
                    return None
    if pieces.read_outputs():
        return None
    if star is not None:
        return _cut_beside_star(part, star, pieces, keys, named)
    hidden = pieces.hidden(it for text, it in keys.items() if not pieces.has("column", text))
    cut = None if hidden is None else cut_at_rows(part, pieces.spans, hidden, windows=named)
    return None if cut is None else replace(cut, keeps_rows=True)


def cut_keys(part: BlockPart) -> Cut | None:
    """Return a query whose stage has the keys of its groups or windows as well.

    The rest leaves them out: they confine a change where no output column does. It compares the
    rows of groups that are DISTINCT.
    """
    select, flat = part.tree, part.named
    if not isinstance(select, exp.Select) or flat is None:
        return None
    if any(map(select.args.get, ("limit", "offset"))):
        return None
    group, distinct = select.args.get("group"), ""
    if group is not None and select.args.get("distinct"):
        if (rows := _without_distinct(flat, part.begin)) is None:
            return None
        flat, distinct = rows, "distinct "
    partitions_ = {_partition(window): window for window in _windows(select)}
    if group is not None and not partitions_ and not _has_sets(group):
        keys = group.expressions
    elif group is None and len(partitions_) == 1:
        (window,) = partitions_.values()
        keys = _partition_by(window)
    else:
        return None
    outputs = {_identity(item.unalias()) for item in select.expressions}
    missing = [key for key in map(bare, keys) if _identity(key) not in outputs]
    hidden = _Pieces(part).hidden(key for key in missing if key.find(exp.Column))
    if not hidden:
        return None
    if (stage := with_columns(flat, parse(flat.text), hidden, part.begin)) is None:
        return None
    stage = numbered(stage)
    columns = f"* except ({', '.join(map(quoted, hidden))})"
    cut = put_back(part, stage, template(f"select {distinct}{columns} from ", hole_of(stage)))
    return replace(cut, keeps_rows=group is None)


def _without_distinct(flat: Flat, begin: int) -> Flat | None:
    """Return a SELECT DISTINCT with all of its rows; None if it is of some columns alone."""
    select, distinct, behind, *_ = outside_of_brackets(flat.text, begin)
    words = [it.token_type for it in (select, distinct)]
    if words != [TokenType.SELECT, TokenType.DISTINCT] or behind.token_type is TokenType.ON:
        return None
    rest = flat.cut(distinct.end + 1, len(flat.text))
    return Flat(template(flat.cut(0, distinct.start), rest).pieces)


def _cut_beside_star(
    part: BlockPart,
    star: tuple[int, str],
    pieces: _Pieces,
    keys: Mapping[str, exp.Expr],
    named: Template[Occurrence],
) -> Cut | None:
    """Return a query of which all columns of one table are selected, in two steps.

    Args:
        star: the place at which the star can leave out columns, and how that is written there.
        named: the clause of named windows.
    """
    assert part.rows is not None
    if len(part.sources) != 1 or not part.is_named:
        return None
    ((alias, columns),) = part.sources.items()
    hidden = pieces.hidden(it for it in keys.values() if not isinstance(it, exp.Column))
    if hidden is None or not are_stored(columns):
        return None
    flat, (start, end) = part.alone, part.rows
    if alias not in part.words(part.rows) or part.names_a_field(pieces.spans):
        # The parser has made up its name.
        return None
    windows = {name: span for span, name in pieces.spans.items()}
    listed: list[str | Template[Occurrence]] = []
    for name, span in windows.items():
        listed += [", ", flat.cut(*span), f" as {name}"]
    listed += [f", {text} as {name}" for name, text in hidden.items()]
    stage = numbered(
        template(flat.cut(0, part.begin), "select *", *listed, " ", flat.cut(start, end), named)
    )
    edits: dict[TextSpan, str | Template[Occurrence]] = {
        (star[0], star[0]): star[1].format(", ".join([*windows, *hidden])),
        (start, end): template("from ", hole_of(stage), f" as {quoted(alias)}"),
        **pieces.spans,
    }
    return replace(put_back(part, stage, edited(part, edits)), keeps_rows=True)


class _Pieces:
    """The pieces of a query that its stage selects, with the names of their columns there."""

    def __init__(self, part: BlockPart) -> None:
        self._part = part
        self._names: dict[tuple[str, str], str] = {}
        self.spans: dict[TextSpan, str] = {}
        # Columns of a stage that the query reads keep their names.
        numbers = map(int, _NUMBERED.findall(part.alone.text))
        self._numbers = count(max(numbers, default=0) + 1)

    def take(self, expr: exp.Expr, role: str) -> bool:
        """Return False if the text of an expression is not known."""
        if (span := self._part.span(expr)) is None:
            return False
        text = sql_of(expr)
        if (role, text) not in self._names:
            self._names[role, text] = self.new_name(role)
        self.spans[span] = self._names[role, text]
        return True

    def has(self, role: str, text: str) -> bool:
        return (role, text) in self._names

    def hidden(self, keys: Iterable[exp.Expr]) -> dict[str, str] | None:
        """Return the SQL of columns that the rest does not use; None if a text is not known."""
        hidden = {}
        for key in keys:
            span = self._part.span(key)
            if span is None or key.find(exp.Query) is not None or self._part.outputs_in(span):
                return None
            hidden[self.new_name("key")] = self._part.alone.text[slice(*span)]
        return hidden

    def new_name(self, role: str) -> str:
        return f"__livemart_{role}_{next(self._numbers)}"

    def read_outputs(self) -> bool:
        """Return True if a piece may name an output column, which its stage does not have."""
        return any(map(self._part.outputs_in, self.spans))


def _above(select: exp.Select) -> Iterator[exp.Expr]:
    return clauses(select, ABOVE_GROUPS)


def _has_sets(group: exp.Expr) -> bool:
    return group.find(*SETS) is not None


def _keys(part: BlockPart, select: exp.Select, group: exp.Group) -> list[exp.Expr]:
    """Return the keys of plain groups; none if those of ALL are not certain."""
    if not group.args.get("all"):
        return group.expressions
    if "all" in {*part.names, *(name for names in part.sources.values() for name in names)}:
        # Spark groups by the column.
        return []
    keys, outputs = [], {*part.outputs_in((part.begin, len(part.alone.text)))}
    for written, item in zip(part.plain.selects, select.selects, strict=True):
        if not aggregate_calls(written):
            # Spark refuses the name of another output, which may have an aggregate.
            names = {it.name.lower() for it in written.find_all(exp.Column)}
            if names & outputs or item.find(exp.Query, exp.Window):
                return []
            keys.append(item.unalias())
    return keys


def _groups(part: BlockPart, select: exp.Select, by: TextSpan) -> Template[Occurrence] | None:
    """Return GROUP BY with the SQL of an output instead of its place: its stage has others."""
    pieces: list[str | Template[Occurrence]] = [" "]
    position, end = by
    for item in part.plain.args["group"].expressions:
        if isinstance(item, exp.Literal):
            place, value = span_of(item), part.span(select.selects[int(item.name) - 1].unalias())
            if place is None or value is None:
                return None
            pieces += [part.alone.cut(position, place[0]), part.alone.cut(*value)]
            position = place[1]
    return template(*pieces, part.alone.cut(position, end))


def _take_values_of_groups(
    part: BlockPart, pieces: _Pieces, computed: Iterable[exp.Expr], keys: Mapping[str, exp.Expr]
) -> bool:
    """Return False for an expression of more than keys and totals, or one without a known text."""
    for clause in computed:
        calls = {id(with_wrappers(call)) for call in aggregate_calls(clause)}
        for node in _outermost(clause, calls, keys):
            if (is_call := id(node) in calls) or _is_one_of(node, keys):
                if not pieces.take(node, "total" if is_call else "key"):
                    return False
            elif _is_of_rows(node, part) is not False:
                return False
    return True


def _take_outputs_named(
    part: BlockPart, pieces: _Pieces, select: exp.Select, condition: TextSpan
) -> dict[TextSpan, Template[Occurrence]] | None:
    """Return the SQL of outputs that a condition names, over the stage, at the places of the names.

    The name of one piece of the stage is taken as a piece. None if a name is not clear.
    """
    again = {}
    names = {item.alias_or_name.lower(): item.unalias() for item in select.expressions}
    named = part.outputs_in(condition)
    written = part.plain.args["having"].find_all(exp.Column)
    columns = {it.this.meta.get("start") for it in written if not it.table}
    for token in [*part.name_tokens(condition, without=pieces.spans)]:
        if (name := token.text.lower()) in named:
            span, place = part.span(names[name]), (token.start, token.end + 1)
            # The word may be a unit of time: `interval 1 day`.
            if span is None or token.start not in columns:
                return None
            if span in pieces.spans:
                pieces.spans[place] = pieces.spans[span]
            elif part.outputs_in(span) or names[name].find(exp.Window):
                return None
            else:
                inner = {it: new for it, new in pieces.spans.items() if _is_within(it, span)}
                again[place] = template("(", edited(part, inner, span), ")")
    return again


def _is_within(span: TextSpan, around: TextSpan) -> bool:
    return around[0] <= span[0] and span[1] <= around[1]


def _generates(select: exp.Select) -> bool:
    """Return True if windows and generated rows meet: the rest may number the rows otherwise."""
    return any(function_name(it) in GENERATORS for item in select.expressions for it in item.walk())


def _windows(select: exp.Select) -> list[exp.Window]:
    """Return the windows that are computed, and no definitions of names for them."""
    windows = (window for clause in _above(select) for window in clause.find_all(exp.Window))
    return [window for window in windows if not isinstance(window.this, exp.Identifier)]


def _identity(expr: exp.Expr) -> str | tuple[str, str]:
    """Return what two mentions of one column have in common, also of one that a star names."""
    expr = bare(expr)
    return (expr.table, expr.name.lower()) if isinstance(expr, exp.Column) else sql_of(expr)


def _partition_by(window: exp.Window) -> list[exp.Expr]:
    named = specification(window, window.find_ancestor(exp.Select))
    return list(named.args.get("partition_by") or ())


def _partition(window: exp.Window) -> frozenset[str]:
    return frozenset(sql_of(bare(key)) for key in _partition_by(window))


def _outermost(
    clause: exp.Expr, nodes: Collection[int], texts: Collection[str]
) -> Iterator[exp.Expr]:
    """Yield the expressions of a clause, nothing within the given ones."""
    return clause.dfs(prune=lambda it: id(it) in nodes or _is_one_of(it, texts))


def _is_one_of(node: exp.Expr, texts: Collection[str]) -> bool:
    """Return True for an expression with one of these texts, False for what is around it."""
    is_around = isinstance(node, exp.Alias | exp.Ordered | exp.Paren)
    return bool(texts) and not is_around and sql_of(node) in texts


def _is_of_rows(node: exp.Expr, part: BlockPart) -> bool | None:
    """Return True for a column of the rows; None for what may mean something else in the rest."""
    if isinstance(node, exp.Query) or (
        isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count)
    ):
        return None
    if not isinstance(node, exp.Column):
        return False
    if node.table in part.sources:
        return True
    return None if node.table or node.name.lower() not in part.names else False


def _having(
    part: BlockPart, select: exp.Select
) -> tuple[list[str | Template[Occurrence]], dict[str, str]] | None:
    """Return HAVING as written, and the output columns that it names; None if it is not clear."""
    if (having := select.args.get("having")) is None:
        return [], {}
    if having.find(exp.Query) is not None:
        return None
    span = (part.having, part.behind_groups)
    hidden = _outputs_named(part, select, span)
    return None if hidden is None else ([" ", part.alone.cut(*span)], hidden)


def _outputs_named(part: BlockPart, select: exp.Select, span: TextSpan) -> dict[str, str] | None:
    """Return the SQL of the output columns that a clause names; None if that is not clear."""
    outputs = {item.alias_or_name.lower(): item.unalias() for item in select.expressions}
    hidden = {}
    for name in part.outputs_in(span):
        value = outputs[name]
        place = part.span(value)
        if place is None or value.find(exp.Window) is not None or part.outputs_in(place):
            return None
        hidden[quoted(name)] = part.alone.text[slice(*place)]
    return hidden if are_stored(("k", *part.outputs_in(span))) else None


def _star(part: BlockPart) -> tuple[int, str] | None:
    """Return where the star of a select list leaves out columns; None if it has none, or several.

    With the place comes the text that leaves `{}` out there.
    """
    tokens = outside_of_brackets(part.alone.text, part.begin, part.list_end or 0)
    kinds = [token.token_type for token in tokens]
    stars = [
        place
        for place, kind in enumerate(kinds)
        if kind is TokenType.STAR and kinds[place - 1] in _BEFORE_STAR
    ]
    if len(stars) != 1:
        return None
    (star,) = stars
    if kinds[star + 1 :] == [] or kinds[star + 1] is TokenType.COMMA:
        return tokens[star].end + 1, " except ({})"
    if kinds[star + 1 : star + 3] == [TokenType.EXCEPT, TokenType.L_PAREN]:
        return tokens[star + 2].end + 1, "{}, "
    return None
