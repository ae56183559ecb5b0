"""A test's name says something only if its SQL asks it."""

from __future__ import annotations

import pytest

from livemart.project.declared.usual_tests import is_usual

GROUPED = (
    "select a as unique_field, count(*) as n_records from m.t{} group by a having count(*) > 1"
)
PAIRS = "select a, `B`{} from m.t group by a, `B` having count(*) > 1"
CHECKED = (
    "with all_values as (select {} as value_field, count(*) as n_records from m.t group by a) "
    "select * from all_values where value_field not in ('x', 'y'){}"
)


@pytest.mark.parametrize(
    ("kind", "columns", "code"),
    [
        ("not_null", ["a"], "select a from m.t where a is null"),
        ("not_null", ["`A b`"], "select * from `m`.`t` where `A b` is null"),
        ("unique", ["a"], GROUPED.format(" where a is not null")),
        ("unique", ["desc"], GROUPED.format("").replace(" a ", " desc ")),
        ("not_null", ["a b"], "select `a b` from m.t where `a b` is null ;"),
        ("unique_combination", ["a", "b"], PAIRS.format(", count(*) as row_count")),
        (
            "unique_combination_of_columns",
            ["a", "`b`"],
            f"with validation_errors as ({PAIRS.format('')}) select * from validation_errors",
        ),
        ("accepted_values", ["a"], CHECKED.format("a", "")),
        ("within_a_year", ["a"], "whatever {it} says"),
        ("unique", ["a"], ""),
        ("unique", ["`a.b`"], ""),
        ("not_null", ["`a.b`"], "select `a.b` from m.t where `a.b` is null"),
        ("unique_combination", ["a", "b.c"], PAIRS.format("").replace("`B`", "`b.c`")),
    ],
)
def test_a_test_that_asks_what_its_name_says(kind: str, columns: list[str], code: str) -> None:
    assert is_usual(kind, columns, code)


@pytest.mark.parametrize(
    ("kind", "columns", "code"),
    [
        ("not_null", ["a.b"], "select a.b from m.t where a.b is null"),
        ("unique_combination", ["a", "b.c"], PAIRS.format("").replace("`B`", "b.c")),
        ("unique", ["a.b"], ""),
        ("unique", ["a.`b`"], ""),
        ("not_null", ["a"], "select a from m.t where a is null or trim(a) = ''"),
        ("not_null", ["a"], "select a from m.t where b is null"),
        ("not_null", ["a"], "select count(*) from m.t where a is null"),
        ("not_null", ["a"], "select a from m.t where a is null limit 0"),
        ("not_null", ["a"], "select m.t.a from m.t join m.u using (b) where a is null"),
        ("unique", ["a"], GROUPED.format(" where is_active")),
        ("unique", ["a"], GROUPED.format("").replace("> 1", "> 2")),
        ("unique", ["a"], GROUPED.format("").replace("group by a", "group by a, b")),
        ("unique", ["a"], GROUPED.format("").replace("having count(*)", "having sum(b)")),
        ("unique", ["a"], GROUPED.format("").replace("m.t", "(select * from m.t where b)")),
        ("unique_combination", ["a", "b"], PAIRS.format("").replace("m.t", "m.t where a > 1")),
        ("unique_combination", [], PAIRS.format("")),
        ("accepted_values", ["a"], CHECKED.format("lower(a)", "")),
        ("accepted_values", ["a"], CHECKED.format("a", " or value_field is null")),
        ("unique", ["a"], GROUPED.format("").replace("m.t", "(select * from m.t) dbt_subquery")),
        ("not_null", ["a"], "select explode(a) from m.t where a is null"),
        ("not_null", ["a"], "select a from m.t tablesample (1 percent) where a is null"),
        ("accepted_values", ["a"], CHECKED.format("a", "").replace("from all_", "from m.all_")),
        ("unique", ["a"], "this is no SQL ("),
    ],
)
def test_a_test_of_a_projects_own_under_a_known_name(
    kind: str, columns: list[str], code: str
) -> None:
    assert not is_usual(kind, columns, code)
