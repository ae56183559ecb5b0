"""Which statements are planned for few rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from livemart.limits import FEW_HANDLED_ROWS, FEW_STATEMENT_ROWS
from livemart.spark import quick_session
from livemart.spark.quick_session import session_for

_ENTRIES = pa.map_(pa.string(), pa.int64())


@dataclass(frozen=True, eq=False)
class _Table:
    row_count: int = 10
    kind: pa.DataType = field(default_factory=pa.int64)
    is_plain: bool = True

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([("id", pa.string()), ("value", self.kind)])


def _chosen(*tables: _Table, text: str = "", places: int = 1, is_repeated: bool = False) -> str:
    usual: Any = "usual"
    return str(session_for(usual, tables, places, [text], is_repeated=is_repeated))


@pytest.fixture(autouse=True)
def _names(monkeypatch: pytest.MonkeyPatch) -> None:
    def few_rows_session(spark: object, *, is_repeated: bool) -> str:
        return "compiled" if is_repeated else "interpreted"

    monkeypatch.setattr(quick_session, "few_rows_session", few_rows_session)


def test_all_tables_are_plain_and_have_few_rows_together() -> None:
    few, more = _Table(FEW_STATEMENT_ROWS), _Table(1)

    assert _chosen() == _chosen(few) == "interpreted"
    assert _chosen(few, is_repeated=True) == "compiled"
    assert _chosen(few, more) == _chosen(few, more, is_repeated=True) == "usual"
    assert _chosen(more, _Table(1, is_plain=False)) == "usual"
    # Read in several places, a table has its rows once.
    assert _chosen(few, few) == "interpreted"


def test_many_joins_are_worth_generated_code_unless_it_is_there() -> None:
    table = _Table(FEW_HANDLED_ROWS // 10)

    assert _chosen(table, places=10) == "interpreted"
    assert _chosen(table, places=11) == "usual"
    assert _chosen(table, places=11, is_repeated=True) == "compiled"


@pytest.mark.parametrize(
    "kind",
    [
        _ENTRIES,
        pa.list_(_ENTRIES),
        pa.large_list(_ENTRIES),
        pa.map_(pa.int64(), pa.string()),
        pa.struct([("a", pa.int64()), ("b", pa.list_(pa.struct([("m", _ENTRIES)])))]),
    ],
)
def test_a_map_at_any_depth_is_never_interpreted(kind: pa.DataType) -> None:
    text = "select id, `Value` from t"
    assert _chosen(_Table(), _Table(kind=kind), text=text) == "usual"
    assert _chosen(_Table(kind=kind), text=text, is_repeated=True) == "compiled"


@pytest.mark.parametrize(
    ("text", "session"),
    [
        ("select id from t", "interpreted"),
        ("select count(distinct id) from t", "interpreted"),
        ("select values, a_value from t", "interpreted"),
        ("select * from t union all select * from t", "interpreted"),
        ("select distinct * from t", "usual"),
        ("select distinct `a`.b.* from t", "usual"),
        ("select * from t union select * from t", "usual"),
    ],
)
def test_a_map_that_no_statement_names_is_not_read(text: str, session: str) -> None:
    """`_rescued_data` of landed tables is a map."""
    assert _chosen(_Table(kind=_ENTRIES), text=text) == session


@pytest.mark.parametrize(
    "text",
    [
        "select map(d, 1) from t",
        "select MAP_FROM_ARRAYS(a, b) from t",
        "select str_to_map(x) from t",
        "select from_json(x, 'a map<string,int>') from t",
        "select cast(x as Map<string, int>) from t",
    ],
)
def test_a_map_that_the_text_makes_is_never_interpreted(text: str) -> None:
    assert _chosen(_Table(), text=text) == "usual"


def test_other_nested_values_and_words_are_no_maps() -> None:
    nested = pa.struct([("a", pa.list_(pa.int64()))])

    assert _chosen(_Table(kind=nested), text="select heatmaps, a.remapped from t") == "interpreted"


@pytest.mark.parametrize("is_repeated", [False, True])
@pytest.mark.parametrize(
    "pairs",
    [
        "p as a CROSS\n join p as b",
        "p as a, p as b",
        "p, p as b",
        "main.`p q` a , p",
        "p a join p b on true",
        "p a inner join p b on (1 = 1)",
    ],
)
def test_unions_whose_rows_are_all_paired_are_broadcast(pairs: str, is_repeated: bool) -> None:
    """Spark would run a task for each pair of branches: a date spine has thousands."""
    two = "with p as (select 0 as digit union all select 1)"

    assert _chosen(text=f"{two} select 1 from {pairs}", is_repeated=is_repeated) == "usual"
    assert _chosen(text=f"with p as (select 0) select 1 from {pairs}") == "interpreted"


@pytest.mark.parametrize(
    "joins",
    ["p", "p join q on p.a = q.a and true", "p join q on 10 = p.a", "p where p.a in (1, 2)"],
)
def test_unions_that_are_joined_by_an_equality_are_planned_for_few_rows(joins: str) -> None:
    assert _chosen(text=f"select a, b from {joins} union all select 1, 2") == "interpreted"
