"""Filters name key columns and times of the model; a row is the same value in every form."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from livemart.serve.auth.callers import Caller
from livemart.serve.http.forms import ARROW, CSV
from livemart.serve.http.problems import ProblemError
from livemart.serve.models.pull import asked_rows, may_read
from livemart.serve.models.row_questions import read_row_question
from livemart.serve.models.written_rows import (
    ArrowRows,
    CsvRows,
    JsonRows,
    ParquetRows,
    RowWriter,
    json_row,
)
from livemart.store.predicates import AskedRows
from livemart.store.served import Published, ServedModel
from tests.serve.apps import site
from tests.store.stores import NOON, fill_store, reference_tables

MODEL = ServedModel(
    "totals",
    (
        ("shop", "string"),
        ("shop:day", "date"),
        ("n", "bigint"),
        ("amount", "decimal(10,2)"),
        ("at", "timestamp"),
        ("tags", "json"),
    ),
    ("shop", "shop:day"),
    "shop",
    "at",
)
ROW = {
    "shop": 'a "b", c',
    "shop:day": datetime(2026, 3, 1).date(),
    "n": 2**60,
    "amount": Decimal("10.50"),
    "at": NOON,
    "tags": ["x"],
}
EMPTY = {**dict.fromkeys(ROW), "shop": ""}
PUBLISHED = Published(7, NOON, NOON, "epoch", NOON)


def filters(*keys: str, **span: Any) -> AskedRows:
    times = (span.get("start"), span.get("end"), span.get("column"))
    return asked_rows(MODEL, Caller(None), read_row_question(MODEL, []), keys, *times)


def test_the_longest_name_that_fits_is_the_column() -> None:
    asked = filters("shop:day:2026-03-01", "shop:a:b")

    assert asked["equals"] == {"shop:day": ROW["shop:day"], "shop": "a:b"}
    assert (asked["since"], asked["until"]) == (None, None)


def test_an_instant_without_a_zone_is_utc() -> None:
    lisbon = datetime(2026, 7, 1, 13, tzinfo=timezone(timedelta(hours=1)))

    asked = filters(start=datetime(2026, 7, 1, 12), end=lisbon, column="shop:day")

    noon = datetime(2026, 7, 1, 12, tzinfo=UTC)
    assert (asked["since"], asked["until"]) == (("shop:day", noon), ("shop:day", noon))
    assert filters(start=noon)["since"] == ("at", noon)


@pytest.mark.parametrize(
    ("keys", "column", "text"),
    [
        (("n:1",), None, "write one of shop:<value>, shop:day:<value>"),
        (("shop:a", "shop:b"), None, "name shop once"),
        (("shop:day:soon",), None, "key: shop:day: "),
        ((), "n", "times of this model are: shop:day, at"),
    ],
)
def test_a_wrong_filter_says_which_there_are(
    keys: tuple[str, ...], column: str | None, text: str
) -> None:
    with pytest.raises(ProblemError, match=text) as caught:
        filters(*keys, column=column)

    assert caught.value.code == "PARAMETER_WRONG"


def test_a_row_is_the_same_in_every_form() -> None:
    def written(form: type[RowWriter]) -> bytes:
        writer = form(MODEL, PUBLISHED)
        assert writer.write([ROW]) > 0 and writer.write([EMPTY]) > 0
        return writer.end(is_truncated=True, next_="cursor")

    plain = json_row(MODEL, ROW)
    assert plain == {
        "shop": 'a "b", c',
        "shop:day": "2026-03-01",
        "n": str(2**60),
        "amount": "10.50",
        "at": "2026-03-02T12:00:00Z",
        "tags": ["x"],
    }

    body = json.loads(written(JsonRows))
    text = written(CsvRows).decode()
    table = pa.ipc.open_stream(written(ArrowRows)).read_all()

    assert body["rows"] == [plain, json_row(MODEL, EMPTY)] and body["is_truncated"]
    header, line, last = csv.reader(io.StringIO(text))
    assert header == [name for name, _ in MODEL.columns]
    assert line == [*list(plain.values())[:-1], '["x"]']
    # An empty string is not NULL.
    assert text.endswith('\r\n"",,,,,\r\n') and last == [""] * 6
    assert table.to_pylist() == [{**ROW, "tags": '["x"]'}, EMPTY]
    assert table.schema.metadata[b"snapshot_id"] == b"7"
    file = pq.read_table(io.BytesIO(written(ParquetRows)))
    assert file.equals(table, check_metadata=True)


def test_a_model_without_tenants_is_for_admins() -> None:
    common = ServedModel("common", (("n", "int"),), (), None)

    assert may_read(Caller(None), common) and may_read(Caller(frozenset({"r1"})), MODEL)
    assert not may_read(Caller(frozenset({"r1"})), common)


def test_rows_are_asked_for_by_any_column_and_shown_in_any_order(tmp_path: Path) -> None:
    with site(tmp_path) as one:
        fill_store(one.url, reference_tables())
        one.until(lambda: one.shows(1))
        path, own = "/v1/models/restaurant_top_dishes", one.bearer("r1")

        def ask(query: str, headers: dict[str, str] | None = None) -> Any:
            return one.client.get(f"{path}?{query}", headers=own | (headers or {}))

        every = ask("").json()["rows"]
        query = "window_hours=in.(24,168)&dish_rank=gte.2&order=sales_amount.desc&select="
        some = ask(f"{query}dish_id,sales_amount")
        as_csv = ask(f"{query}dish_id&limit=1", {"Accept": CSV})
        by_link = ask(f"{query}dish_id&limit=1&format=csv", {"Accept": "text/html"})
        second = ask(f"{query}dish_id&limit=1&after={by_link.headers['livemart-next']}")
        as_arrow = ask(f"{query}dish_id", {"Accept": ARROW})
        of_others = ask("restaurant_id=neq.r1").json()["rows"]
        tags = {ask(f"{query}{column}").headers["etag"] for column in ("dish_id", "dish_rank")}

    expected = sorted(
        (row for row in every if row["window_hours"] in (24, 168) and row["dish_rank"] >= 2),
        key=lambda row: Decimal(row["sales_amount"]),
        reverse=True,
    )
    assert len(expected) == 4 and {row["restaurant_id"] for row in every} == {"r1"}
    assert some.json()["rows"] == [
        {name: row[name] for name in ("dish_id", "sales_amount")} for row in expected
    ]
    assert as_csv.text == f"dish_id\r\n{expected[0]['dish_id']}\r\n"
    assert as_csv.headers["livemart-truncated"] == "true"
    # A link cannot say what it accepts; the form of a page is no part of the walk.
    assert (by_link.text, by_link.headers["etag"]) == (as_csv.text, as_csv.headers["etag"])
    assert second.json()["rows"] == [{"dish_id": expected[1]["dish_id"]}]
    shown = pa.ipc.open_stream(as_arrow.content).read_all().to_pylist()
    assert shown == [{"dish_id": row["dish_id"]} for row in expected]
    # No condition reaches the rows of others.
    assert of_others == []
    assert len(tags) == 2
