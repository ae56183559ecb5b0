"""Lists the sets of ROLLUP, CUBE and GROUPING SETS, each of which groups all rows.

Used where gates are built, and where a query is cut at them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

from sqlglot import exp

from livemart.plan.relations.relation import Expr, bare, columns_of
from livemart.plan.sql.determinism import function_name
from livemart.plan.sql.written import sql_of

SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)
# `group by a, b with rollup`: each is a list of one.
_BEHIND_KEYS = {"rollup": exp.Rollup, "cube": exp.Cube}
# Each row counts in each set.
_MOST_SETS = 1024

_Keys = tuple[Expr, ...]


def grouping_sets(group: exp.Group) -> list[_Keys] | None:
    """Return the keys of each set of a GROUP BY; None if some rule here does not know them.

    Spark multiplies what a comma separates. It gives the same number to two sets of the same keys,
    and finds a key by its meaning: `a + b` is `b + a`. So no two keys may read the same column.

    >>> from livemart.plan.sql.parse import parse
    >>> def sets(keys):
    ...     found = grouping_sets(parse(f"select 1 from t group by {keys}").args["group"])
    ...     return found and [", ".join(map(sql_of, keys)) for keys in found]
    >>> sets("a, rollup(b, (c, d))")
    ['a, b, c, d', 'a, b', 'a']
    >>> sets("a, b with cube")
    ['a, b', 'a', 'b', '']
    >>> sets("grouping sets ((a, upper(b)), a, ())")
    ['a, upper(b)', 'a', '']
    >>> sets("rollup(a), rollup(a)"), sets("rollup(a, upper(a))"), sets("rollup(1)")
    (None, None, None)
    >>> sets("(a, b) with rollup")
    """
    if any(map(group.args.get, ("totals", "all", "grouping_sets"))):
        return None
    items: Sequence[Expr] = group.expressions
    behind = [kind for name, kind in _BEHIND_KEYS.items() if group.args.get(name)]
    if behind:
        # Several columns in brackets are one key there, a struct.
        if len(behind) > 1 or any(isinstance(item, (*SETS, exp.Tuple)) for item in items):
            return None
        items = [behind[0](expressions=items)]
    choices = [_sets_of(item) for item in items]
    count = 1
    for sets in choices:
        count *= len(sets)
    if not count or count > _MOST_SETS:
        return None
    every = [tuple(key for keys in chosen for key in keys) for chosen in product(*choices)]
    keys = {sql_of(key): key for keys in every for key in keys}
    reads = [set(map(sql_of, columns_of(key))) for key in keys.values()]
    are_apart = len(set().union(*reads)) == sum(map(len, reads))
    is_distinct = len({frozenset(map(sql_of, keys)) for keys in every}) == len(every)
    are_firm = not any(_is_window(node) for key in keys.values() for node in key.walk())
    return every if keys and are_apart and is_distinct and are_firm else None


def _sets_of(item: Expr) -> list[_Keys]:
    """Return the sets of one item of GROUP BY; none if it is not understood."""
    if not isinstance(item, SETS):
        # In brackets it is one value, a struct.
        return [] if isinstance(item, exp.Tuple) else _plain_set(item)
    parts = item.expressions
    if any(part.find(*SETS) for part in parts):
        return []
    units = [set_ for part in parts for set_ in _plain_set(part)]
    if len(units) < len(parts) or (isinstance(item, exp.Cube) and 2 ** len(units) > _MOST_SETS):
        return []
    if isinstance(item, exp.GroupingSets):
        return units
    sizes = range(len(units), -1, -1)
    if isinstance(item, exp.Rollup):
        chosen = [units[:size] for size in sizes]
    else:
        chosen = [list(some) for size in sizes for some in combinations(units, size)]
    return [tuple(key for unit in some for key in unit) for some in chosen]


def _plain_set(part: Expr) -> list[_Keys]:
    """Return a key, or several in brackets, as one set; none for a key that reads no column."""
    keys = tuple(map(bare, part.expressions if isinstance(part, exp.Tuple) else [part]))
    reads_rows = all(next(columns_of(key), None) is not None for key in keys)
    is_plain = not any(isinstance(key, exp.Tuple) or key.find(exp.Query) for key in keys)
    return [keys] if reads_rows and is_plain else []


def _is_window(node: Expr) -> bool:
    return isinstance(node, exp.Window) or function_name(node) in ("window", "session_window")
