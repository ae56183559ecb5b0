"""Orders that may tie: what a refresh leaves is an answer that a build could have given.

Stored rows are decided by one order of what ties, a refresh by another, as Spark may do. The rows
of the table must then be the answer of some order that each group has for itself.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from itertools import combinations

import pytest

from livemart.plan import steps
from livemart.plan.plan import Full
from livemart.plan.planner import plan_query
from livemart.plan.sql.flatten import Flat, flatten
from livemart.plan.strategies import region
from livemart.plan.strategies.region import Region
from livemart.plan.uncut import plan_uncut
from tests.conftest import IS_GATE
from tests.unit.plan.random_queries import INPUTS, TABLES
from tests.unit.plan.simulation import Simulation
from tests.unit.plan.test_random_queries import changed_tables

# `{by_id}` and `{by_g}` end an order that may tie, within groups by k.
_NEWEST = "(select *, row_number() over (partition by k order by ts desc{by_id}) as place from s.t)"
_NEWEST_OF_W = (
    "(select k, g from (select *, row_number() over (partition by k order by x{by_g}) as place"
    " from s.w) as p where place = 1)"
)
_SHAPES = {
    "newest row": f"select k, x, y from {_NEWEST} as r where place = 1",
    "two newest rows, and their places": f"select k, place, x from {_NEWEST} as r where place < 3",
    "history": """
        select k, id, ts, lag(ts) over (partition by k order by ts desc{by_id}) as until,
            row_number() over (partition by k order by ts desc{by_id}) = 1 as is_current
        from s.t""",
    "history of what is joined": """
        select t.k, t.ts, u.g, lead(u.g) over (partition by t.k order by t.ts{by_id}) as next
        from s.t as t left join (select k as u_k, g from s.u) as u on t.k = u.u_k""",
    "running sum": """
        select k, id, sum(x) over (partition by k order by ts{by_id} rows 1 preceding) as running
        from s.t""",
    "newest row joined by what it holds": f"""
        select r.k, r.y, z.q from {_NEWEST} as r left join s.z as z on r.x = z.x
        where r.place = 1""",
    "value of the row before, joined": """
        select r.k, r.id, z.q
        from (select k, id, lag(x) over (partition by k order by ts{by_id}) as x from s.t) as r
        left join s.z as z on r.x = z.x""",
    "groups by the key of a pick": """
        select k, count(*) as steps, max(before) as most
        from (select k, lag(x) over (partition by k order by ts{by_id}) as before from s.t) as r
        where before is not null group by k""",
    "facts beside the newest row": f"""
        select t.id, t.k, r.g from s.t as t left join {_NEWEST_OF_W} as r on t.k = r.k""",
    "a frame of time beside the newest row": f"""
        select t.k, t.ts, r.g, sum(t.x) over (
                partition by t.k order by t.ts
                range between interval 1 hour preceding and current row
            ) as spent
        from s.t as t left join {_NEWEST_OF_W} as r on t.k = r.k""",
    "two branches over one pick": f"""
        select k, 'x' as field, x from {_NEWEST} as r where place = 1
        union all select k, 'y' as field, y from {_NEWEST} as r where place = 1""",
    "first value beside a frame of time": """
        select k, ts, id, sum(x) over (
                partition by k order by ts range between interval 1 hour preceding and current row
            ) as spent,
            row_number() over (partition by k order by ts{by_id}) as place
        from s.t""",
}


_ORDER = re.compile(r"(?<=by k order by )\w+( desc)?")

# Each key of these distinguishes groups in two ways, or in a hidden one.
_CUT = {
    "one pick on two paths": """
        with p as (
            select k, g, x from s.w qualify row_number() over (partition by k, g order by g) = 1
        )
        select k as key, x from p union all select g as key, x from p""",
    "one pick joined with itself": """
        with p as (
            select k, g, x from s.w qualify row_number() over (partition by k, g order by g) = 1
        )
        select a.x, b.k as key, b.x as other from p as a join p as b on a.k = b.g""",
    "a pick by what equals an expression": f"""
        select t.x, t.id from s.t as t
        left join (select k, y + 0 as y from {_NEWEST} as n where place = 1) as r on t.x = r.y""",
}


# The pick is a stage of each of these, which the last step reads.
_IN_STEPS = {
    "a pick by what equals an expression": _CUT["a pick by what equals an expression"],
    "groups by a column of the newest row": f"""
        select x, count(*) as n, sum(y) as total from {_NEWEST} as r where place = 1 group by x""",
    "groups by what a window computes": """
        select before, max(id) as last from (
            select id, lag(x) over (partition by k order by ts{by_id}) as before from s.t
        ) as r group by before""",
    "facts beside the newest row": f"""
        select t.id, r.g from s.t as t left join {_NEWEST_OF_W} as r on t.k = r.k""",
    "windows of two partitions": """
        select id, lag(x) over (partition by k order by ts{by_id}) as before,
            sum(x) over (partition by y) as total
        from s.t""",
    "a pick whose key is not selected": f"select x, y from {_NEWEST} as r where place = 1",
    "groups beside the rows that they count": """
        with p as (
            select * from s.t qualify row_number() over (partition by k order by ts{by_id}) = 1
        ),
        q as (select x, count(*) as n from p group by x)
        select p.id, q.n from q join p on p.x = q.x""",
    "picks beside groups of them": """
        with p as (
            select * from s.t qualify row_number() over (partition by k order by ts{by_id}) = 1
        ),
        q as (select k, max(id) as most from p group by k)
        select p.x, q.most from q join p on p.id = q.most""",
    "picks within subqueries without a name": """
        with z as (select g, max(q) as q from (select * from s.z) group by g),
        p as (
            select * from (select * from s.t)
            qualify row_number() over (partition by k order by ts{by_id}) = 1
        ),
        q as (select k, max(id) as most from p group by k)
        select p.x, q.most, z.q from q join p on p.id = q.most left join z on p.k = z.g""",
    "a total of picks beside each of them": """
        with p as (
            select * from s.t qualify row_number() over (partition by k order by ts{by_id}) = 1
        )
        select id, y - (select max(y) from p) as below from p""",
}


@pytest.mark.parametrize("query", _CUT.values(), ids=_CUT)
def test_no_key_that_cuts_a_decision_is_left(query: str) -> None:
    plan = plan_uncut(flatten(query.format(by_id="", by_g=""), {}), INPUTS)

    assert isinstance(plan.strategy, Full), plan.region
    assert plan.ties
    assert _decides_in_stages(query)


@pytest.mark.extended
def test_rows_of_stages_that_decide_are_legal() -> None:
    for name, shape in _IN_STEPS.items():
        assert _decides_in_stages(shape), name
        assert list(_illegal_in_steps(shape, 3)) == [], name


# The pick of these cannot be a stage: one of its columns has no name.
_UNNAMED = {
    "a value of picks beside picks": """
        with p as (
            select k, x, id, 1 + y from s.t
            qualify row_number() over (partition by k order by ts) = 1
        )
        select k, x, x - (select x from p order by x limit 1) as below from p""",
    "ranks beside groups of ranks": """
        with g as (select k, x, count(*) as n from s.t group by k, x),
        p as (select k, x, n, row_number() over (order by n) as place, n + 1 from g),
        q as (select k, max(x) as most from p where place < 9 group by k)
        select p.x, q.most, p.place from q join p on p.k = q.k""",
    "picks of a stage beside groups of them": """
        with g as (select k, x, count(*) as n from s.t group by k, x),
        p as (
            select k, x, 1 + n from g qualify row_number() over (partition by k order by n) = 1
        ),
        q as (select k, max(x) as most from p group by k)
        select p.k, q.most, rank() over (order by p.x) as place from q join p on p.k = q.k""",
}


@pytest.mark.parametrize("query", _UNNAMED.values(), ids=_UNNAMED)
def test_no_decision_is_in_two_steps(query: str) -> None:
    plan = plan_query(query, INPUTS)

    texts = [plan.flat, *(stage.plan.flat for stage in plan.stages)]
    assert sum(flat is not None and "row_number()" in flat.text for flat in texts) == 1


@pytest.mark.parametrize(
    "query",
    [
        "with g as (select x, count(*) as n from s.t group by x),"
        " p as (select x, n from g order by n desc limit 3)"
        " select x % 3 as r, count(*) as groups, sum(n) as n from p group by 1",
        "select t.id, b.n from s.t as t join (select k, count(*) as n from s.t group by k"
        " order by n desc limit 2) as b on t.k = b.k",
        "select id, x - (select max_by(x, ts) from s.t) as below from s.t",
    ],
)
def test_a_stage_whose_ties_are_not_known_may_decide(query: str) -> None:
    plan = plan_query(query, INPUTS)

    assert not plan.stages or any(stage.plan.may_decide for stage in plan.stages)


def test_a_decision_that_stage_and_last_step_both_make_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(steps, "_decides_alone", lambda cut, plan, inputs: True)

    assert next(_illegal_in_steps(_IN_STEPS["picks beside groups of them"]))


@pytest.mark.parametrize(
    "query",
    [
        "select k from s.w group by k, g qualify row_number() over (order by any_value(x), g) = 1",
        "select k, row_number() over v as n from s.w group by k, g"
        " window v as (partition by k order by any_value(x), g)",
        "select k from s.w group by k, g qualify any_value(x) > 1",
    ],
)
def test_a_tie_is_seen_wherever_it_stands(query: str) -> None:
    plan = plan_query(query, INPUTS)

    codes = {reason.code for reason in plan.reasons}
    assert codes & {"NONDETERMINISTIC_AGG", "WINDOW_WITHOUT_PARTITION_BY"}


def test_what_a_refresh_leaves_is_legal() -> None:
    for name, shape in _SHAPES.items():
        assert list(_illegal(shape, 8)) == [], name


def test_what_a_refresh_leaves_of_random_queries_is_legal() -> None:
    shapes = [_random_shape(random.Random(seed)) for seed in range(5 if IS_GATE else 16)]

    faults = [fault for shape in shapes for fault in _faults_of(shape, 4)]

    assert faults == []
    assert sum(map(_is_planned, shapes)) > len(shapes) // 2
    assert sum(map(_decides_in_stages, shapes)) > 1


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_what_a_refresh_leaves_of_many_random_queries_is_legal() -> None:
    for seed in range(1_000, 3_000):
        shape = _random_shape(random.Random(seed))
        assert _faults_of(shape, 16) == [], shape


def test_keys_that_scatter_a_decision_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(region, "keeping_decisions", lambda top, keys: keys)

    assert list(_illegal(_SHAPES["facts beside the newest row"]))


def test_an_interval_that_cuts_a_decision_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(region, "ties_of", lambda top: ())

    assert list(_illegal(_SHAPES["a frame of time beside the newest row"]))


def _random_shape(chance: random.Random) -> str:
    """Return a query over rows that were picked, or computed beside each other, within k."""
    over = "over (partition by k order by " + chance.choice(["ts", "ts desc", "x"]) + "{by_id})"
    computed = chance.choice(["lag(x)", "row_number()", "first_value(x)", "lead(y)"])
    t = chance.choice(
        [
            f"(select k, y, x from (select *, row_number() {over} as n from s.t) where n = 1)",
            f"(select k, y, x from (select *, row_number() {over} as n from s.t) where n < 3)",
            f"(select k, y, {computed} {over} as x from s.t)",
        ]
    )
    for step in range(chance.choice([1, 1, 2, 2, 3])):
        a = f"v{step}"
        left = chance.choice(["join", "left join"])
        t = chance.choice(
            [
                f"(select {a}.k, {a}.y, o.v as x from {t} as {a} {left} s.u as o on {a}.k = o.k)",
                f"(select {a}.k, o.q as y, {a}.x from {t} as {a} {left} s.z as o on {a}.x = o.x)",
                f"(select o.k, o.v as y, {a}.x from s.u as o {left} {t} as {a} on o.k = {a}.k)",
                f"(select o.g as k, o.v as y, {a}.x from s.u as o {left} {t} as {a} on o.g={a}.k)",
                f"(select o.k, o.v as y, o.v as x from s.u as o left semi join {t} as {a}"
                f" on o.k = {a}.k and o.v = {a}.x)",
                f"(select k, max(y) as y, count(*) as x from {t} as {a} group by k)",
                f"(select k, max(k) as y, sum(x) as x from {t} as {a} group by k, y)",
                f"(select distinct k, y, x from {t} as {a})",
                f"(select k, y, max(x) over (partition by k) as x from {t} as {a})",
                f"(select k, y, x from {t} as {a} union all select k, v, v from s.u)",
                f"(select k, y, x from {t} as {a} union all select k, x, y from {t} as {a}_)",
                f"(select k, y, x from {t} as {a} where x > 0 or y is null)",
            ]
        )
    columns = chance.choice(["k, y, x", "k, x", "y, x", "x, y, upper(k) as k"])
    return f"select {columns} from {t} as r"


def _is_planned(shape: str) -> bool:
    return isinstance(plan_query(shape.format(by_id="", by_g=""), INPUTS).strategy, Region)


def _decides_in_stages(shape: str) -> bool:
    plan = plan_query(shape.format(by_id="", by_g=""), INPUTS)
    return any(stage.plan.ties for stage in plan.stages)


def _faults_of(shape: str, changes: int) -> list[str]:
    if _decides_in_stages(shape):
        return list(_illegal_in_steps(shape, changes))
    return list(_illegal(shape, changes)) if _is_planned(shape) else []


def _illegal_in_steps(shape: str, changes: int = 16) -> Iterator[str]:
    """Yield the changes after which no order of each group gives the rows left by its steps."""
    plan = plan_query(shape.format(by_id="", by_g=""), INPUTS)
    groups = [*"abcd", None]
    for seed in range(changes):
        simulation = Simulation(TABLES)
        old, new = changed_tables(random.Random(seed))
        left, faults = simulation.left_in_steps(
            plan, lambda flat: _decided(flat, ()), lambda flat: _decided(flat, groups), old, new
        )
        yield from faults
        if not any(
            left == simulation.result(flatten(_deciding(shape, turned), {}), new)
            for size in range(len(groups) + 1)
            for turned in combinations(groups, size)
        ):
            yield f"{shape}, seed {seed}: {left}"


def _illegal(shape: str, changes: int = 16) -> Iterator[str]:
    """Yield the changes after which no order of each group gives what a refresh leaves."""
    plan = plan_query(shape.format(by_id="", by_g=""), INPUTS)
    assert isinstance(plan.strategy, Region), plan.reasons
    simulation = Simulation(TABLES)
    for seed in range(changes):
        old, new = changed_tables(random.Random(seed))
        stored = simulation.result(flatten(_deciding(shape, ()), {}), old)
        groups = [*"abcd", None]
        anew = flatten(_deciding(shape, groups), {})
        left = simulation.refreshed(plan, stored, anew, old, new)
        if not any(
            left == simulation.result(flatten(_deciding(shape, turned), {}), new)
            for size in range(len(groups) + 1)
            for turned in combinations(groups, size)
        ):
            yield f"{shape}, seed {seed}: {left}"


def _deciding(shape: str, turned: Sequence[str | None]) -> str:
    """Return a shape whose rows that tie come in order, in reverse in the groups `turned`."""
    return shape.format(by_id=_order("id", turned), by_g=_order("g", turned))


def _order(by: str, turned: Sequence[str | None]) -> str:
    of_groups = ", ".join(f"'{group}'" for group in turned) or "'none'"
    in_order = f"case when coalesce(k, 'None') in ({of_groups}) then null else {by} end"
    return f", {in_order}, {by} desc"


def _decided(flat: Flat, turned: Sequence[str | None]) -> Flat:
    """Return a step of a shape with the same orders of rows that tie."""

    def ordered(piece: str) -> str:
        by = "g" if "s.w" in flat.relations else "id"
        return _ORDER.sub(lambda found: found[0] + _order(by, turned), piece)

    return Flat(tuple(ordered(it) if isinstance(it, str) else it for it in flat.pieces))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (f"select k, x from {_NEWEST} as r where place = 1", {}),
        (f"select k, x, place from {_NEWEST} as r", {"place": "taken"}),
        (
            "select k, coalesce(lag(x) over (partition by k order by ts), 0) as b from s.t",
            {"b": "taken"},
        ),
        ("select k, y - lag(x) over (partition by k order by ts) as b from s.t", {"b": "made"}),
        (
            "select k, sum(x) over (partition by k order by ts rows 1 preceding) as b from s.t",
            {"b": "made"},
        ),
        (
            "select k, max_by(x, ts) as b, count(*) as n from s.t group by k",
            {"b": "taken", "n": "made"},
        ),
        (
            "select r.k, z.q from (select k, max_by(x, ts) as x from s.t group by k) as r"
            " join s.z as z on r.x = z.x",
            {},
        ),
        (
            "select k, b"
            " from (select k, lag(x) over (partition by k order by ts) as b from s.t) as r"
            " union all select k, x from s.w",
            {"b": "made"},
        ),
        ("select k, sum(x) as b from s.t group by k", {}),
    ],
)
def test_what_is_computed_of_rows_that_tie_is_told_from_what_a_row_holds(
    sql: str, expected: dict[str, str]
) -> None:
    plan = plan_query(sql.format(by_id="", by_g=""), INPUTS)

    assert plan.computed_among_ties == expected
