"""The places of a query's text at which it can be cut."""

from __future__ import annotations

import pytest

from livemart.plan.block_part import BlockPart, are_stored, block_part
from livemart.plan.blocks import Blocks
from livemart.plan.sql.flatten import flatten

COLUMNS = {"a.t": ("k", "x", "y"), "a.u": ("k", "z")}


def part_of(text: str) -> BlockPart:
    """Return the outermost block of a query."""
    blocks = Blocks(flatten(text, {}))
    alone = blocks.standing_alone(blocks.top)
    assert alone is not None
    part = block_part(blocks, blocks.top, alone, COLUMNS)
    assert part is not None
    return part


def test_groups_end_before_what_is_computed_of_them() -> None:
    part = part_of(
        "select k, max(x) as m from a.t as t where x is distinct from 1 group by k having m > 1"
        " order by k"
    )
    text = part.alone.text

    assert part.rows is not None
    assert text[part.rows[1] : part.behind_groups].strip() == "group by k having m > 1"
    assert text[slice(*part.rows)].endswith("where x is distinct from 1")


@pytest.mark.parametrize(
    ("text", "outputs"),
    [
        ("select x + 1 as b, b * 2 as c from a.t as t", ["b", "c"]),
        # A function, a field and a column of a table are named otherwise.
        ("select x as count, count(x) as n, y.n as x from a.t as t", ["count", "n"]),
        ("select x from a.t as t", []),
        # In double quotes a session may have names.
        (
            """select 'one' as two, "three" as three, 'two' as one from a.t as t""",
            ["two", "three", "one"],
        ),
        ("""select upper(x) || 'one' as x, 1 as two from a.t as t where y = "three" """, ["two"]),
    ],
)
def test_an_output_is_named_where_neither_column_nor_function_is(
    text: str, outputs: list[str]
) -> None:
    part = part_of(text)

    assert part.outputs_in((0, len(part.alone.text))) == outputs


@pytest.mark.parametrize(
    ("text", "is_clear"),
    [
        ("select k, sum(x) as x from a.t as t group by k having sum(x) > 1", True),
        ("select k, sum(x) as x from a.t as t group by k having x > 1", False),
        ("select k, sum(x) as x from a.t as t group by k order by x", False),
        ("select upper(t.y) as y from a.t as t group by t.y", True),
        ("select i from a.t as t lateral view explode(y) e as i", False),
    ],
)
def test_a_name_behind_the_rows_means_one_thing_if_gates_are_cut(text: str, is_clear: bool) -> None:
    assert (part_of(text).select_of_gates is not None) is is_clear


def test_a_table_has_each_name_once_and_none_that_delta_refuses() -> None:
    assert are_stored(("a", "b"))
    assert not any(map(are_stored, ((), ("a", "a"), ("a b",), ("*",), ("_col_0",))))
