"""Every form of an answer, and a stream of changes, show a value as what it is."""

from __future__ import annotations

import csv
import io
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from livemart.arrow.single_floats import nearest_single
from livemart.arrow.types import plain_table
from livemart.publish.exposures import ServedSpec
from livemart.publish.publisher import publish
from livemart.serve.http.forms import PARQUET
from livemart.store.reader import StoreReader
from livemart.store.store import Store
from tests.serve.apps import site
from tests.serve.auth.tenant_cases import ARROW, CSV, JSON
from tests.store.served_tables import Versions
from tests.store.stores import changes_of, fill_store, make_snapshot, net_change
from tests.unit.arrow.test_variants import nested

LOCAL = datetime(2026, 3, 2, 14, 35)
LARGE = 2**53 + 1


# 0.3 s.
def test_large_numbers_keep_their_digits_and_local_times_get_no_zone(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "order_id": pa.array([LARGE], pa.int64()),
            "item_count": pa.array([3], pa.int64()),
            "opened_at": pa.array([LOCAL], pa.timestamp("us")),
        }
    )
    with site(tmp_path) as one:
        fill_store(one.url, {"m": rows}, {"m": ("order_id",)})
        one.until(lambda: one.shows(1))
        forms = {
            form: one.client.get("/v1/models/m", headers={"Accept": form})
            for form in (JSON, CSV, ARROW)
        }
        path = f"/v1/models/m?key=order_id:{LARGE}&from=2026-03-02T14:35&time_column=opened_at"
        filtered = one.client.get(path)
        listed = one.client.get("/v1/models").json()["models"]
        fill_store(one.url, {"m": rows.slice(1)}, {"m": ("order_id",)}, 2)
        reader = StoreReader.open(one.url)
        (deleted,) = changes_of(reader, "m", 1, None, 10).changes
        reader.close()

    expected = {"order_id": str(LARGE), "item_count": 3, "opened_at": "2026-03-02T14:35:00"}
    assert forms[JSON].json()["rows"] == filtered.json()["rows"] == [expected]
    assert deleted.row == expected
    (row,) = csv.DictReader(io.StringIO(forms[CSV].text))
    assert row == {name: str(value) for name, value in expected.items()}
    table = pa.ipc.open_stream(forms[ARROW].content).read_all()
    assert table.to_pylist() == rows.to_pylist()
    kinds = {column["name"]: column["type"] for column in listed[0]["columns"]}
    assert kinds == {"order_id": "bigint", "item_count": "bigint", "opened_at": "timestamp_ntz"}


# 0.4 s.
def test_a_float_is_shown_found_and_followed_by_its_shortest_digits(tmp_path: Path) -> None:
    # The last two: the double of the shortest digits is nearer to another float; the largest one.
    texts = ("-0.1", "0.1", "0.3", "7.038531e-26", "3.4028235e+38")
    floats = pa.array([nearest_single(text) for text in texts], pa.float32())
    rows = pa.table({"ratio": floats, "id": pa.array(range(len(texts)))})
    with site(tmp_path) as one:
        fill_store(one.url, {"m": rows.slice(0, 0)}, {"m": ("ratio",)})
        fill_store(one.url, {"m": rows, "bag": rows}, {"m": ("ratio",)}, 2)
        one.until(lambda: one.shows(2))
        forms = {
            form: one.client.get("/v1/models/m?order=ratio", headers={"Accept": form})
            for form in (JSON, CSV, ARROW, PARQUET)
        }
        path = "/v1/models/m?order=ratio&limit=1"
        found = {
            question: [
                row["id"] for row in one.client.get(f"/v1/models/m?{question}").json()["rows"]
            ]
            for question in ("ratio=eq.0.1", "ratio=in.(0.3,1)", "ratio=lt.0.1", "key=ratio:0.3")
        }
        walked: list[float] = []
        after: str | None = ""
        while after is not None:
            page = one.client.get(path + (f"&after={after}" if after else "")).json()
            walked += [row["ratio"] for row in page["rows"]]
            after = page["next"]
        listed = one.client.get("/v1/models").json()["models"]
        reader = StoreReader.open(one.url)
        changed = [change.row["ratio"] for change in changes_of(reader, "m", 1, None, 10).changes]
        reader.close()

    shown = [-0.1, 7.038531e-26, 0.1, 0.3, 3.4028235e38]
    in_order = rows.sort_by("ratio")
    assert [row["ratio"] for row in forms[JSON].json()["rows"]] == walked == shown
    assert [row["ratio"] for row in csv.DictReader(io.StringIO(forms[CSV].text))] == [
        str(value) for value in shown
    ]
    assert pa.ipc.open_stream(forms[ARROW].content).read_all().equals(in_order)
    assert pq.read_table(pa.BufferReader(forms[PARQUET].content)).equals(in_order)
    assert found == {
        "ratio=eq.0.1": [1],
        "ratio=in.(0.3,1)": [2],
        "ratio=lt.0.1": [0, 3],
        "key=ratio:0.3": [2],
    }
    assert sorted(changed) == shown
    assert {"name": "ratio", "type": "float"} in listed[-1]["columns"]


# 0.4 s.
def test_a_variant_is_served_as_the_json_that_it_holds_however_deep(tmp_path: Path) -> None:
    texts = ('{"b":[1,2.50,1e3,9007199254740993],"a":{"x":null}}', "null", None, '"a"')
    decimal = '{"exact":12345678901234567890.12,"whole":3.0}'
    kept = plain_table(nested(*texts, decimal))
    rows = kept.append_column("id", pa.array(range(5)))
    changed = plain_table(nested('{"b":1}')).append_column("id", pa.array([3]))
    with site(tmp_path) as one:
        fill_store(one.url, {"m": rows, "bag": kept}, {"m": ("id",), "bag": ()})
        one.until(lambda: one.shows(1))
        served = one.client.get("/v1/models/m").json()["rows"]
        bag = one.client.get("/v1/models/bag").json()["rows"]
        listed = one.client.get("/v1/models").json()["models"]
        after = pa.concat_tables([rows.slice(0, 3), rows.slice(4), changed])
        spec = ServedSpec("m", "model.test.m", "gold.m", ("id",), None)
        store = Store.open(one.url)
        publish(
            store, make_snapshot(2, ["m"]), [spec], Versions(lambda *_: net_change(rows, after))
        )
        store.close()
        reader = StoreReader.open(one.url)
        (change,) = changes_of(reader, "m", 1, None, 10).changes
        reader.close()

    values = [
        {"a": {"x": None}, "b": [1, 2.5, 1000.0, "9007199254740993"]},
        None,
        None,
        "a",
        {"exact": "12345678901234567890.12", "whole": 3},
    ]
    expected = [
        {"v": it, "l": [it, None], "s": {"x": it, "n": place}, "m": {"k": [it, None]}}
        for place, it in enumerate(values)
    ]
    assert served == [row | {"id": place} for place, row in enumerate(expected)]
    assert sorted(bag, key=str) == sorted(expected, key=str)
    kinds = {column["name"]: column["type"] for column in listed[1]["columns"]}
    assert kinds == {"v": "json", "l": "json", "s": "json", "m": "json", "id": "bigint"}
    assert (change.op, change.row["v"], change.row["l"]) == ("update", {"b": 1}, [{"b": 1}, None])
