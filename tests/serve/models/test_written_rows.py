"""An answer has the same bytes, whichever process writes it."""

from __future__ import annotations

import csv
import io
import json
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import httpx2
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from livemart.serve.auth.seal import Seal
from livemart.serve.auth.signing_key import SigningKey
from livemart.serve.live.side_processes import SideProcesses
from livemart.serve.models import pull, written_rows
from livemart.serve.models.row_cursors import RowCursors
from livemart.serve.models.written_rows import (
    SMALL,
    ArrowRows,
    CsvRows,
    JsonRows,
    ParquetRows,
    PullQuery,
    RowWriter,
    WrittenRows,
    write_answer,
)
from livemart.store.predicates import AskedRows
from livemart.store.reader import StoreReader
from livemart.store.served import Published, ServedModel
from tests.serve.apps import server, site
from tests.serve.auth.tenant_cases import ARROW, CSV, JSON
from tests.store.stores import fill_store
from tests.waits import PATIENCE_S

COUNT = SMALL + 20
PUBLISHED = Published(
    1, None, datetime(2026, 3, 1, tzinfo=UTC), "e", datetime(2026, 3, 1, tzinfo=UTC)
)
CURSORS = RowCursors(Seal(SigningKey("k" * 32)), "m", None, "")
# Values whose text is easily another one: each column takes them in turn.
HARD: dict[str, pa.Array] = {
    "text": pa.array(['a "b", c', "", "line\r\nend", "\\u0041 \u2028 🍜", "NULL", None]),
    "amount": pa.array([Decimal("0.10"), Decimal("-7.00"), None], pa.decimal128(18, 2)),
    "exact": pa.array([Decimal("1E+5"), Decimal("12345678901234567890.1"), None]),
    "whole": pa.array([2**53, 2**53 + 1, -(2**63), 0, None], pa.int64()),
    "share": pa.array([0.1, 1e22, 5e-324, -0.0, float("nan"), float("inf"), None]),
    "is_open": pa.array([True, False, None]),
    "day": pa.array([date(1, 1, 1), date(9999, 12, 31), None]),
    "at": pa.array(
        [datetime(2026, 3, 1, 12, 0, 0, 1, UTC), datetime(1969, 12, 31, tzinfo=UTC), None],
        pa.timestamp("us", tz="UTC"),
    ),
    "local": pa.array([datetime(2026, 3, 29, 2, 30), None], pa.timestamp("us")),
    "raw": pa.array([b"\x00\xff", b"", None]),
    "tags": pa.array([["a", None], [], None]),
}


def hard_rows(count: int) -> pa.Table:
    """Return so many rows with the values of `HARD`."""
    places = {
        name: pa.array([n % len(values) for n in range(count)]) for name, values in HARD.items()
    }
    columns = {name: values.take(places[name]) for name, values in HARD.items()}
    return pa.table({"id": range(count), **columns})


# 1.8 s.
def test_a_large_answer_of_a_side_process_has_the_bytes_of_one_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = ["/v1/models/m", f"/v1/models/m?limit={SMALL + 1}&select=share,id&order=share.desc"]
    asked = [(path, form) for path in paths for form in (JSON, CSV, ARROW)]
    asked_aside: list[object] = []
    read = SideProcesses.read

    def note(side: SideProcesses, *question: Any) -> Any:
        asked_aside.append(question)
        return read(side, *question)

    monkeypatch.setattr(SideProcesses, "read", note)
    with site(tmp_path) as one:
        fill_store(one.url, {"m": hard_rows(COUNT)}, {"m": ("id",)})
        one.until(lambda: one.shows(1))
        here = [one.client.get(path, headers={"Accept": form}) for path, form in asked]
        with server(tmp_path) as (host, port), httpx2.Client(timeout=PATIENCE_S) as client:
            base = f"http://{host}:{port}"
            aside = [client.get(base + path, headers={"Accept": form}) for path, form in asked]
            few = client.get(f"{base}/v1/models/m?key=id:3").json()["rows"]
            asked_in_all = len(asked_aside)
            # One of a caller who crowds the server does.
            monkeypatch.setattr(pull, "is_crowding", lambda request: True)
            same = client.get(f"{base}/v1/models/m?key=id:3").json()["rows"]

    assert [answer.content for answer in aside] == [answer.content for answer in here]
    for name in ("etag", "livemart-truncated", "content-type"):
        found, expected = ([it.headers[name] for it in each] for each in (aside, here))
        assert found == expected
    assert [it.headers["livemart-truncated"] for it in here] == ["false"] * 3 + ["true"] * 3
    # A small answer waits for no process.
    assert asked_in_all == len(asked) and [row["id"] for row in few] == [3]
    assert len(asked_aside) == len(asked) + 1 and same == few


def test_an_answer_that_is_too_large_here_or_of_another_model_is_left_to_others(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/serving.db"
    fill_store(url, {"m": hard_rows(5)}, {"m": ("id",)})
    with closing(StoreReader.open(url)) as reader, reader.snapshot() as view:
        model = view.models()["m"]
        query = PullQuery(model, {"tenants": None, "columns": ("id",)}, 5, JsonRows, CURSORS)
        five = write_answer(view, query, most=5)
        first_two = write_answer(view, replace(query, limit=2), most=2)

        assert write_answer(view, query, most=4) is None
        assert write_answer(view, replace(query, limit=9), most=4) is None
        assert write_answer(view, replace(query, model=replace(model, row_key=()))) is None
        assert write_answer(view, replace(query, model=replace(model, name="other"))) is None

    assert five is not None and (five.count, five.is_truncated) == (5, False)
    assert first_two is not None and (first_two.count, first_two.is_truncated) == (3, True)
    assert [row["id"] for row in json.loads(first_two.body)["rows"]] == [0, 1]


@pytest.mark.parametrize("form", [JsonRows, CsvRows, ArrowRows])
def test_an_answer_is_written_a_few_rows_at_a_time_and_ends_when_it_is_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: type[RowWriter]
) -> None:
    url = f"sqlite:///{tmp_path}/serving.db"
    fill_store(url, {"m": hard_rows(7), "bag": hard_rows(7).drop_columns("id")}, {"m": ("id",)})

    def answers(name: str) -> list[WrittenRows | None]:
        with closing(StoreReader.open(url)) as reader, reader.snapshot() as view:
            model = view.models()[name]
            asked: AskedRows = {"tenants": None, "columns": tuple(model.kinds)}
            queries = [PullQuery(model, asked, limit, form, CURSORS) for limit in range(1, 9)]
            return [write_answer(view, query) for query in queries]

    at_once = {name: answers(name) for name in ("m", "bag")}
    monkeypatch.setattr(written_rows, "_ROWS", 2)
    assert [it and (it.count, it.is_truncated) for it in answers("m")] == [
        *((limit + 1, True) for limit in range(1, 7)),
        (7, False),
        (7, False),
    ]
    for name, expected in at_once.items():
        found = [decoded(form, it) for it in answers(name)]
        assert found == [decoded(form, it) for it in expected]
    monkeypatch.setattr(written_rows, "MOST_BYTES", 0)
    # Four of them are read: two, and those that show that there are more.
    assert {(it.count, it.is_truncated) for it in answers("m")[2:] if it} == {(4, True)}
    assert [decoded(form, it) for it in answers("m")[2:3]] == [decoded(form, at_once["m"][1])]


def decoded(form: type[RowWriter], written: WrittenRows | None) -> object:
    """Return the bytes of an answer; of Arrow, where the number of batches may differ, its rows."""
    assert written is not None
    if form is not ArrowRows:
        return written.body
    table = pa.ipc.open_stream(written.body).read_all()
    return repr((table.schema, table.schema.metadata, table.to_pylist()))


def _csv_rows(kinds: dict[str, str], *rows: dict[str, object]) -> tuple[str, list[list[str]]]:
    """Return the body, and the rows of a reader that passes over empty lines."""
    writer = CsvRows(ServedModel("m", tuple(kinds.items()), (), None), PUBLISHED)
    writer.write(rows)
    body = writer.end(is_truncated=False, next_=None).decode()
    return body, [row for row in csv.reader(io.StringIO(body)) if row]


@pytest.mark.parametrize("kind", ["int", "double", "decimal(9,2)", "timestamp", "boolean", "json"])
def test_null_in_the_only_column_of_csv_is_a_line_that_readers_take(kind: str) -> None:
    _, rows = _csv_rows({"n": kind}, {"n": None}, {"n": None})

    assert rows == [["n"], [""], [""]]


def test_null_in_csv_is_no_empty_text() -> None:
    alone, _ = _csv_rows({"t": "string"}, {"t": None}, {"t": ""})
    binary, _ = _csv_rows({"t": "binary"}, {"t": None}, {"t": b""})
    beside, _ = _csv_rows({"t": "string", "n": "int"}, {"t": None, "n": None}, {"t": "", "n": 1})

    assert alone == binary == 't\r\n\r\n""\r\n'
    assert beside == 't,n\r\n,\r\n"",1\r\n'


def test_json_in_csv_is_written_as_json_also_where_it_is_a_text() -> None:
    model = ServedModel("m", (("v", "json"), ("t", "string")), (), None)
    writer = CsvRows(model, PUBLISHED)

    writer.write([{"v": value, "t": "x"} for value in ("1", 1, "", None, {"a": "b"})])

    rows = list(csv.reader(io.StringIO(writer.end(is_truncated=False, next_=None).decode())))
    assert [row[0] for row in rows] == ["v", '"1"', "1", '""', "", '{"a":"b"}']


@pytest.mark.parametrize("kind", ["float", "double"])
def test_readers_of_parquet_that_skip_by_bounds_find_nan(tmp_path: Path, kind: str) -> None:
    writer = ParquetRows(ServedModel("m", (("n", "int"), ("x.y", kind)), (), None), PUBLISHED)
    writer.write([{"n": 1, "x.y": 1.0}, {"n": 2, "x.y": float("nan")}, {"n": 3, "x.y": None}])
    path = tmp_path / "m.parquet"
    path.write_bytes(writer.end(is_truncated=False, next_=None))

    with duckdb.connect() as reader:
        found = reader.sql(f"""select n from '{path}' where "x.y" > 5""").fetchall()
        every = reader.sql(f"select n from '{path}' where n > 0 order by n").fetchall()

    assert (found, every) == ([(2,)], [(1,), (2,), (3,)])
    group = pq.read_metadata(path).row_group(0)
    assert group.column(0).statistics.max == 3
