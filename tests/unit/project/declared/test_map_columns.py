"""Maps that Spark's generated code does not group by rightly are found by type, name and call."""

from __future__ import annotations

import pytest

from livemart.project.declared.map_columns import MapColumns
from livemart.project.graph import Column

DECLARED = [
    Column("labels", "map<string,int>"),
    Column("Parts", "array<struct<name:string,seen:map<string,date>>>"),
    Column("words", "map<string,string>"),
    Column("prices", "map<string,decimal(10,2)>"),
    Column("lists", "map<string,array<string>>"),
    Column("unknown", None),
    Column("wrong", "map<"),
]
GROUPED = "select {0}, count(*) as n from t group by {0}"


@pytest.mark.parametrize(
    ("key", "is_found"),
    [
        ("labels", True),
        ("t.`Labels`", True),
        ("struct(parts, id)", True),
        ("map('a', id)", True),
        ("from_json(j, 'a map<string,int>')", True),
        ("words", False),
        ("prices", False),
        ("lists", False),
        ("unknown", False),
        ("heatmap(id)", False),
        ("my_labels", False),
    ],
)
def test_a_map_with_numbers_or_times_is_found_as_a_key(key: str, is_found: bool) -> None:
    columns = MapColumns(DECLARED)

    assert columns.groups(GROUPED.format(key)) == is_found
    assert not columns.groups(f"select {key} from t order by id")
    pivoted = f"select * from (select {key}, k, v from t) pivot (sum(v) for k in (1))"
    assert columns.groups(pivoted) == is_found


def test_names_that_texts_give_to_such_maps_are_learned_in_their_order() -> None:
    columns = MapColumns(DECLARED)
    columns.add("select id, labels as l, words as w, size(labels) as amount from t")
    columns.add("select shop, max_by(l, id) as newest, count(*) as sales from a group by shop")
    columns.add("select map_from_entries(array(struct(id, (n + 1)))) as made, n from b")
    columns.add("select cast(x as map<string, int>) as `typed`, y from c")
    columns.add("select e.item from d lateral view explode(array(newest)) e as item")

    found = [
        name
        for name in ("l", "newest", "made", "typed", "w", "amount", "sales", "n", "y", "id")
        if columns.groups(GROUPED.format(name))
    ]

    assert found == ["l", "newest", "made", "typed"]
