"""Values that a join finds equal may be written differently; long chains are asked once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from livemart.plan.plan import Inputs, Plan
from livemart.plan.planner import plan_query
from livemart.plan.relations.equi_keys import EquiKey
from livemart.plan.relations.join import Join
from livemart.plan.relations.key_query import KeyQuery
from tests.unit.plan.simulation import Simulation

_COLUMNS = {"s.a": ("id", "x"), "s.b": ("code", "v"), "s.c": ("id", "v")}


def _plan(query: str) -> Plan:
    return plan_query(query, Inputs(columns=_COLUMNS))


def _affected(plan: Plan, occurrence: int) -> list[str]:
    assert plan.region is not None
    found = [str(each) for each in plan.region.affected]
    return [query for query in found if f"__touched_{occurrence}__" in query]


def test_an_expression_over_a_key_is_read_from_its_own_side() -> None:
    # 7 = '07' holds, and the group of both is '7'.
    plan = _plan(
        "select concat(a.id, '') as k, max(b.v) as m from s.a as a"
        " inner join s.b as b on a.id = b.code group by 1"
    )

    assert all("__present_0__" in query for query in _affected(plan, 1))


def test_a_key_itself_is_read_from_the_side_that_changed() -> None:
    plan = _plan(
        "select a.id as k, max(b.v) as m from s.a as a"
        " inner join s.b as b on a.id = b.code group by 1"
    )

    assert _affected(plan, 1) == ["select distinct code as w0 from __touched_1__"]


def test_a_coalesce_that_is_written_is_not_one_of_its_arguments() -> None:
    written = _plan(
        "select coalesce(a.id, b.code) as k, max(b.v) as m from s.a as a"
        " inner join s.b as b on a.id = b.code group by 1"
    )
    merged = _plan(
        "select id, max(b.v) as m from s.a as a inner join s.c as b using (id) group by id"
    )

    assert [reason.code for reason in written.reasons] == ["KEY_NOT_IN_OUTPUT"]
    assert _affected(merged, 1) == ["select distinct id as w0 from __touched_1__"]


@pytest.mark.parametrize("keys", [1, 2])
def test_each_join_of_a_long_chain_is_asked_a_few_times(
    monkeypatch: pytest.MonkeyPatch, keys: int
) -> None:
    joins = 12
    columns = {f"s.d{number}": ("a", "b", "c", "e") for number in range(joins)}
    asked = 0
    real: Callable[..., list[KeyQuery]] = Join._rekeyed_by

    def counted(self: Join, by: Sequence[EquiKey], *arguments: Any) -> list[KeyQuery]:
        nonlocal asked
        asked += 1
        return real(self, by, *arguments)

    monkeypatch.setattr(Join, "_rekeyed_by", counted)
    query = f"select d{joins - 1}.b, count(*) as n from"
    query += " (select k, max(x) as b, max(h) as e from s.t group by k) as t"
    for number in range(joins):
        before = f"d{number - 1}" if number else "t"
        query += f" inner join s.d{number} as d{number} on {before}.b = d{number}.a"
        if keys == 2:
            query += f" and {before}.e = d{number}.c"
    plan = plan_query(f"{query} group by 1", Inputs(columns={**columns, "s.t": ("k", "x", "h")}))

    assert plan.steps is not None
    # The whole SQL, and what is left of it over each stage.
    assert asked <= 10 * joins * (1 + len(plan.stages))


@pytest.mark.parametrize(("equality", "key"), [("=", ("id",)), ("<=>", ())])
def test_no_row_is_unique_that_several_null_keys_may_meet(
    equality: str, key: tuple[str, ...]
) -> None:
    # Delta stores '' as NULL in a column of a partition: both groups of a table then have that key.
    unique = {"s.a": (("id",),), "s.b": (("code",),)}
    query = f"select a.id, b.v from s.a as a left join s.b as b on a.x {equality} b.code"

    plan = plan_query(query, Inputs(columns=_COLUMNS, unique=unique))

    assert plan.unique_key == key


@pytest.mark.parametrize(
    ("query", "kinds", "key"),
    [
        # 1 equals '1' and '01', and a double several bigints: a row may find two of them.
        ("a.x = b.code", ("number", "string"), ()),
        ("b.code = a.x", ("double", "number"), ()),
        ("a.x + 1 = b.code", ("number", "string"), ()),
        ("cast(a.x as double) = b.code", ("number", "number"), ()),
        ("a.x = b.code", ("string", "string"), ("id",)),
        ("cast(a.x as string) = b.code", ("number", "string"), ("id",)),
        ("coalesce(a.x, 0) = b.code", ("number", "string"), ()),
        ("case when a.id > 'm' then a.x end = b.code", ("number", "string"), ()),
        ("a.x.n = b.code", ("struct<n: int32>", "string"), ()),
        ("sqrt(a.x) = b.code", ("number", "number"), ()),
        ("coalesce(a.x, 'none') = b.code", ("string", "string"), ("id",)),
        ("md5(a.x) = b.code", ("number", "string"), ("id",)),
        ("a.x.n = b.code", ("struct<n: string>", "string"), ("id",)),
        ("date_trunc('hour', a.x) = b.code", ("timestamp[us, tz=UTC]",) * 2, ("id",)),
        ("sqrt(a.x) = b.code", None, ("id",)),
        ("a.x = b.code", None, ("id",)),
    ],
)
def test_a_key_of_another_type_may_match_more_than_once(
    query: str, kinds: tuple[str, str] | None, key: tuple[str, ...]
) -> None:
    types = {}
    if kinds is not None:
        types = {"s.a": {"id": "string", "X": kinds[0]}, "s.b": {"code": kinds[1]}}
    inputs = Inputs(columns=_COLUMNS, unique={"s.a": (("id",),), "s.b": (("code",),)}, kinds=types)

    plan = plan_query(f"select a.id, b.v from s.a left join s.b on {query}", inputs)

    assert plan.unique_key == key


@pytest.mark.parametrize(("kind", "key"), [("string", ("id",)), ("number", ())])
def test_the_type_of_a_key_is_the_one_of_the_value_that_is_selected_below(
    kind: str, key: tuple[str, ...]
) -> None:
    kinds = {"s.a": {"id": "string", "x": kind}, "s.b": {"code": "string", "v": "number"}}
    inputs = Inputs(columns=_COLUMNS, unique={"s.b": (("code",),)}, kinds=kinds)

    plan = plan_query(
        "select a.id, b.v from (select id, max(coalesce(x, x)) as code from s.a group by id) as a"
        " left join s.b on a.code = b.code",
        inputs,
    )

    assert plan.unique_key == key
    assert plan.kinds == {"id": "string", "v": "number"}


@pytest.mark.parametrize(
    "query",
    [
        "select c.k, max(a.x) as m from s.a join s.b on a.k = b.k join s.c on b.k = c.k group by 1",
        "select a.k, count(distinct c.z) as n from s.a join s.b on a.k = b.k"
        " join s.c on b.k = c.k group by 1",
        "select a.k, max((select max(c.z) from s.c join s.b on c.k = b.k where b.k = a.k)) as m"
        " from s.a group by 1",
    ],
)
@pytest.mark.parametrize(
    ("changed", "row"), [("s.a", ("07", 9)), ("s.b", (8,)), ("s.c", ("007", 3))]
)
def test_a_key_is_not_followed_through_a_number_to_another_text(
    query: str, changed: str, row: tuple[object, ...]
) -> None:
    # '07' equals 7, and 7 equals '7' and '007': no two of the texts are equal.
    types = {"s.a": {"k": "s", "x": "i"}, "s.b": {"k": "i"}, "s.c": {"k": "s", "z": "i"}}
    words = {"s": "string", "i": "number"}
    inputs = Inputs(
        columns={relation: tuple(columns) for relation, columns in types.items()},
        kinds={
            relation: {name: words[it] for name, it in columns.items()}
            for relation, columns in types.items()
        },
    )
    old: dict[str, list[tuple[object, ...]]]
    old = {"s.a": [("07", 5)], "s.b": [(7,)], "s.c": [("7", 2)]}
    new = {**old, changed: [*old[changed], row]}
    plan = plan_query(query, inputs)

    assert plan.region is not None
    assert list(Simulation(types).faults(plan, old, new)) == []


@pytest.mark.parametrize(("values", "reads"), [("(7), (null)", ["k"]), ("('7'), ('07')", [])])
def test_rows_are_read_by_a_spelled_out_key_of_their_type(values: str, reads: list[str]) -> None:
    plan = plan_query(
        f"select v.k, max(b.x) as m from (values {values}) as v (k) left join s.b on v.k = b.k"
        " group by v.k",
        Inputs(columns={"s.b": ("k", "x")}, kinds={"s.b": {"k": "number", "x": "number"}}),
    )

    assert plan.region is not None
    (restriction,) = plan.region.restrictions[0]
    assert [name for _, name, _ in restriction.keys] == reads
