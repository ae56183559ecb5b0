"""Refuses queries that the analysis must not reason about, before they are taken apart.

Used by the planner, on the parsed and on the qualified tree.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import timedelta

from sqlglot import exp

from livemart.intervals import parse_interval
from livemart.plan.reading.subqueries import unsupported
from livemart.plan.reasons import READS_A_NOTE, Inapplicable, Reason, refusal
from livemart.plan.relations.relation import bare
from livemart.plan.sql.determinism import function_name, is_bare_function, line_of, steady_way
from livemart.plan.sql.functions import BUILT_IN_FUNCTIONS
from livemart.plan.sql.written import sql_of

_ORDERS = ("order", "sort", "cluster", "distribute")
_WINDOWS = frozenset({"window", "session_window"})


def check_functions(tree: exp.Expr) -> None:
    """Raise Inapplicable for a function that Spark does not bring along.

    Raises:
        Inapplicable: UDF_NOT_DETERMINISTIC.
    """
    for node in tree.find_all(exp.Anonymous, exp.Dot):
        if isinstance(node, exp.Dot):
            name = f"{node.this.name}.{node.expression.name}"
            is_foreign = isinstance(node.expression, exp.Func)
        else:
            name = str(node.this).lower()
            is_foreign = name not in BUILT_IN_FUNCTIONS
        if is_foreign:
            raise refusal(
                "UDF_NOT_DETERMINISTIC", f"{name} is not a built-in function", line_of(node)
            )


def check_names(tree: exp.Expr) -> None:
    """Raise Inapplicable for names whose meaning depends on more than the analysis knows.

    Raises:
        Inapplicable: PARSE_UNSUPPORTED, for a column that no table has, a star among arguments, or
            a collation; EXPRESSION_NOT_DETERMINISTIC, for a function called without brackets.
    """
    for node in tree.walk():
        if isinstance(node, exp.Column):
            _check_column(node)
        elif isinstance(node, exp.Star) and not isinstance(
            node.parent, exp.Count | exp.Select | exp.Column
        ):
            raise unsupported("a star among arguments", node)
        elif isinstance(node, exp.Collate) or function_name(node) == "collate":
            raise unsupported("a collation", node)


def check_window_notes(tree: exp.Expr, stored: Collection[str] = ()) -> None:
    """Raise Inapplicable for a window of a window, or its time: stored rows cannot answer.

    Spark recognizes a column of windows by a note beside it.

    Args:
        tree: of a query.
        stored: stored columns that may hold windows, in lower case.

    Raises:
        Inapplicable: PARSE_UNSUPPORTED.
    """
    windows = {*stored, *(name for name, call in _named_windows(tree) if call == "window")}
    for node in tree.walk():
        name = function_name(node)
        timed = next(node.iter_expressions(), None) if name == "window" else None
        is_of_window = isinstance(timed, exp.Column) and timed.name.lower() in windows
        if is_of_window or name == "window_time":
            raise refusal(
                "PARSE_UNSUPPORTED",
                f"{sql_of(node)} {READS_A_NOTE}",
                line_of(node),
                "take the start of the window, which is a time",
            )


def passes_sessions_on(tree: exp.Expr) -> bool:
    """Return True if a subquery passes on a session window, and not only its bounds.

    A note beside it tells Spark to merge the sessions that meet in a group above.
    """
    selects = (select for select in tree.find_all(exp.Select) if select.parent is not None)
    return any(call == "session_window" for it in selects for _, call in _named_windows(it))


def _named_windows(tree: exp.Expr) -> Iterator[tuple[str, str]]:
    """Yield name and function of each output that is a window, as a struct."""
    for select in tree.find_all(exp.Select):
        for projection in select.expressions:
            if (call := function_name(bare(projection))) in _WINDOWS:
                yield (projection.alias_or_name or call).lower(), call


def group_aliases(tree: exp.Expr) -> list[exp.Column]:
    """Return the columns of a tree that is not qualified yet which `check_group_aliases` asks for.

    They may name a column of that SELECT itself, in what it groups by under a name, or by ALL.
    """
    aliases: list[exp.Column] = []
    for select in tree.find_all(exp.Select):
        group = select.args.get("group")
        if group is None:
            continue
        named = {key.name.lower() for key in group.expressions if _is_bare_name(key)}
        before: set[str] = set()
        for projection in select.expressions:
            name = projection.alias.lower() if isinstance(projection, exp.Alias) else ""
            if group.args.get("all") or name in named:
                aliases += [
                    column
                    for column in projection.find_all(exp.Column)
                    if _is_bare_name(column)
                    and column.name.lower() in before
                    and column.find_ancestor(exp.Select) is select
                ]
            before |= {name} - {""}
    return aliases


def check_group_aliases(columns: Iterable[exp.Column]) -> None:
    """Raise Inapplicable for a name of the same SELECT in GROUP BY ALL, which Spark refuses.

    Or in an expression that is grouped by its name; by its number it may be.

    Args:
        columns: see `group_aliases`; by now those of tables name them.

    Raises:
        Inapplicable: PARSE_UNSUPPORTED.
    """
    for column in columns:
        if not column.table:
            raise refusal(
                "PARSE_UNSUPPORTED",
                f"{column.name} is a name of the same SELECT, which Spark refuses in GROUP BY ALL "
                "or by a name",
                line_of(column),
                "group by numbers: group by 1, 2",
            )


def _is_bare_name(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and not node.table


def check_windows(tree: exp.Expr) -> None:
    """Raise Inapplicable for a window that Spark refuses: its offset is not below its slide.

    Raises:
        Inapplicable: WINDOW_REFUSED.
    """
    for node in tree.walk():
        if function_name(node) != "window":
            continue
        _, *written = node.iter_expressions()
        lengths = [length for part in written if (length := _length(part)) is not None]
        if len(lengths) != len(written) or len(lengths) not in (2, 3):
            continue
        size, slide, *offset = lengths
        slide_text = f"the slide of {written[1].name}"
        if slide > size:
            wrong = f"{slide_text} is above the size of {written[0].name}"
        elif offset and offset[0] >= slide:
            wrong = f"the offset of {written[2].name} is not below {slide_text}"
        else:
            continue
        raise refusal(
            "WINDOW_REFUSED",
            f"{sql_of(node)}: {wrong}: Spark refuses the model",
            line_of(node),
            "write an offset below the slide, and a slide of at most the size",
        )


def _length(node: exp.Expr) -> timedelta | None:
    """Return the length that a literal writes, None if the literal does not say it."""
    try:
        return parse_interval(node.name) if isinstance(node, exp.Literal) else None
    except ValueError:
        return None


def _check_column(node: exp.Column) -> None:
    if isinstance(node.this, exp.Star):
        if not isinstance(node.parent, exp.Select):
            raise unsupported("a star among arguments", node)
        return
    if node.table or node.name in _WINDOWS:
        return
    if is_bare_function(node):
        raise refusal(
            "EXPRESSION_NOT_DETERMINISTIC",
            f"{node.name} differs between two runs over the same rows",
            line_of(node),
            steady_way(node.name.lower()),
        )
    around = node.find_ancestor(exp.Order, exp.Sort, exp.Cluster, exp.Distribute, exp.Query)
    if around is not None and isinstance(around.parent, exp.Query) and around.arg_key in _ORDERS:
        # The order of the rows of a result, by a name of its select list.
        return
    raise Inapplicable(unknown_column(node.name, line_of(node)))


def unknown_column(name: str, line: int | None) -> Reason:
    """Return the reason of a query that names a column which no table of it is known to have."""
    return Reason(
        "PARSE_UNSUPPORTED",
        f"no table that the query reads is known to have the column {name}",
        line,
        "correct the name, or declare the column in the YAML of its source",
    )
