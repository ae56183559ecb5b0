"""Messages of CSV and Avro: each holds one record, and what it lacks is said elsewhere."""

from __future__ import annotations

import base64
import io
import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from livemart.land.records.judge import Group
from livemart.land.records.messages.message import Message
from livemart.land.records.messages.read import read_messages
from livemart.land.records.messages.registry import RegistryAwayError
from livemart.land.records.origin import Place
from livemart.land.records.schema import RecordSchema
from livemart.project.spark_types import parse_type
from tests.deliveries import NOON, source

COLUMNS = {
    "order_id": "string",
    "total": "decimal(10,2)",
    "ordered_at": "timestamp",
    "tags": "array<string>",
}
SCHEMA = {
    "type": "record",
    "name": "order",
    "fields": [
        {"name": "order_id", "type": "string"},
        {
            "name": "total",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
        },
        {"name": "ordered_at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tags", "type": ["null", {"type": "array", "items": "string"}], "default": None},
    ],
}
RECORD = {"order_id": "a", "total": Decimal("12.50"), "ordered_at": NOON, "tags": ["x", "y"]}


def read(*contents: bytes, added: str = "", **spec: Any) -> list[dict[str, Any]]:
    """Return what messages are judged as, in their order; `added` is a column of drift."""
    columns = COLUMNS | spec.pop("columns", {})
    each = source("orders", columns, **spec)
    more = [(added, parse_type("string"))] if added else []
    group = Group.of([each], RecordSchema.of(each, more), NOON)
    messages = [Message(number, content, b"k") for number, content in enumerate(contents)]
    tables = list(read_messages(group, Place("orders/0", "@"), messages))
    rows = pa.concat_tables(tables).to_pylist()
    return sorted(rows, key=lambda row: int(row["_origin"].split("@")[1]))


def avro(record: Any = RECORD, schema: Any = SCHEMA, number: int | None = None) -> bytes:
    file = io.BytesIO()
    fastavro.schemaless_writer(file, schema, record)
    head = b"" if number is None else struct.pack(">bI", 0, number)
    return head + file.getvalue()


def is_record(row: dict[str, Any]) -> bool:
    return row["_code_0"] is None and {name: row[name] for name in COLUMNS} == RECORD


def test_fields_of_csv_stand_in_the_order_of_the_declared_columns() -> None:
    plain = b'a,12.50,2026-03-01T12:00:00Z,"[""x"",""y""]"'
    judged = read(
        plain,
        plain + b"\r\n",
        b'"a,b\nc",1,,',
        b"a,1",
        b"a,1,2026-03-01,\nb,2,2026-03-01,",
        b'"a',
        format="csv",
        # The table holds it from earlier; no message has it.
        added="coupon",
    )

    assert is_record(judged[0]) and is_record(judged[1])
    assert (judged[2]["order_id"], judged[2]["total"]) == ("a,b\nc", Decimal("1.00"))
    assert [row["_detail_0"] for row in judged[3:]] == [
        "2 fields, the header has 4",
        "2 records of CSV: a message holds one",
        "a quote out of place near character 1",
    ]


def test_parts_of_messages_take_no_place_among_the_fields_of_csv() -> None:
    (judged,) = read(
        b"a,1,,",
        format="csv",
        columns={"order_key": "string"},
        message=(("key", "order_key"),),
    )

    assert (judged["order_key"], judged["order_id"]) == ("k", "a")


def test_a_text_keeps_its_lines() -> None:
    each = source("lines", {"line": "string"}, format="text")
    group = Group.of([each], RecordSchema.of(each), NOON)

    (judged,) = read_messages(group, Place("lines/0", "@"), [Message(0, b" a\nb ")])

    assert judged.column("line").to_pylist() == [" a\nb "]


def test_avro_is_read_by_the_schema_that_is_told() -> None:
    whole = avro()
    judged = read(
        whole,
        whole[:-3],
        whole + b"x",
        b"\xff" * 20,
        b"",
        format="avro",
        avro_schema=json.dumps(SCHEMA),
    )

    assert is_record(judged[0])
    assert {row["_code_0"] for row in judged[1:]} == {"MALFORMED_RECORD"}
    assert "1 bytes remain after its record" in judged[2]["_detail_0"]


def test_a_record_of_avro_that_fits_no_column_is_a_letter_that_can_be_read() -> None:
    record = {**RECORD, "total": Decimal("123456789012.50")}
    wider = json.loads(json.dumps(SCHEMA).replace('"precision": 10', '"precision": 20'))

    (judged,) = read(avro(record, wider), format="avro", avro_schema=json.dumps(wider))

    assert judged["_code_0"] == "TYPE_MISMATCH"
    assert json.loads(judged["_record"])["order_id"] == "a"


def test_schemas_of_a_folder_are_read_by_number(tmp_path: Path) -> None:
    (tmp_path / "7.avsc").write_text(json.dumps(SCHEMA))
    newer = {**SCHEMA, "fields": [*SCHEMA["fields"], {"name": "tip", "type": "int"}]}
    (tmp_path / "8.avsc").write_text(json.dumps(newer))
    registry: dict[str, Any] = {"format": "avro", "schema_registry": str(tmp_path)}

    judged = read(
        avro(number=7),
        avro({**RECORD, "tip": 2}, newer, 8),
        avro(),
        b"\0\0",
        **registry,
    )

    assert is_record(judged[0]) and is_record(judged[1])
    assert judged[1]["_rescued_data"] == [("tip", "2")]
    assert [row["_detail_0"] for row in judged[2:]] == [
        "it does not begin with a zero byte and the number of a schema"
    ] * 2
    # After the file is restored, the messages still exist.
    with pytest.raises(RegistryAwayError, match=r"9\.avsc: FileNotFoundError"):
        read(avro(number=9), **registry)


class _Registry(BaseHTTPRequestHandler):
    """Answers what its server's `answers` hold by path, and counts."""

    def do_GET(self) -> None:
        server: Any = self.server
        server.asked.append(self.path)
        status, body = server.answers.get(self.path, (404, {"error_code": 40403}))
        login = base64.b64encode(server.login.encode()).decode()
        if server.login and self.headers["Authorization"] != f"Basic {login}":
            status, body = 401, {}
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def registry_of(
    answers: dict[str, tuple[int, Any]], login: str = ""
) -> Iterator[tuple[str, list[str]]]:
    """Yield the address of a schema registry and what it is asked."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Registry) as server:
        asked: list[str] = []
        server.answers, server.asked = answers, asked  # type: ignore[attr-defined]
        server.login = login  # type: ignore[attr-defined]
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


def test_schemas_of_a_registry_are_asked_for_once() -> None:
    answers: dict[str, tuple[int, Any]] = {
        "/schemas/ids/7": (200, {"schema": json.dumps(SCHEMA)}),
        "/schemas/ids/8": (200, {"schema": "...", "schemaType": "PROTOBUF"}),
        "/schemas/ids/9": (503, {}),
    }
    with registry_of(answers) as (address, asked):
        registry: dict[str, Any] = {"format": "avro", "schema_registry": f"{address}/"}
        judged = read(*[avro(number=7)] * 3, avro(number=8), avro(number=404), **registry)
        with pytest.raises(RegistryAwayError, match="503"):
            read(avro(number=9), **registry)
        answers["/schemas/ids/9"] = answers["/schemas/ids/7"]
        (back,) = read(avro(number=9), **registry)

    assert all(map(is_record, [*judged[:3], back]))
    assert asked.count("/schemas/ids/7") == 1
    assert [row["_detail_0"] for row in judged[3:]] == [
        "schema 8 is of type PROTOBUF",
        f"{address}/ has no schema 404",
    ]
    # It does not listen any more, and what is known of it still holds.
    assert is_record(read(avro(number=7), **registry)[0])
    with pytest.raises(RegistryAwayError, match="refused"):
        read(avro(number=10), **registry)


def test_schemas_that_a_schema_refers_to_are_fetched_once_each() -> None:
    money = {"type": "record", "name": "money", "fields": [{"name": "amount", "type": "double"}]}
    item = {"type": "record", "name": "item", "fields": [{"name": "price", "type": "money"}]}
    fields = [
        {"name": "order_id", "type": "string"},
        {"name": "items", "type": {"type": "array", "items": "item"}},
        {"name": "tip", "type": "money"},
    ]
    whole = {"type": "record", "name": "order", "fields": fields}

    def told(schema: Any, *names: str) -> tuple[int, Any]:
        references = [{"name": it, "subject": f"of {it}/", "version": 3} for it in names]
        return 200, {"schema": json.dumps(schema), "references": references}

    answers = {
        "/schemas/ids/1": told(whole, "item", "money"),
        "/subjects/of%20item%2F/versions/3": told(item, "money"),
        "/subjects/of%20money%2F/versions/3": told(money),
        "/schemas/ids/2": told(whole, "gone"),
    }
    named: dict[str, Any] = {}
    for schema in (money, item, whole):
        parsed = fastavro.parse_schema(schema, named)
    price = {"amount": 2.5}
    record = avro({"order_id": "a", "items": [{"price": price}], "tip": price}, parsed, 1)
    with registry_of(answers) as (address, asked):
        registry: dict[str, Any] = {"format": "avro", "schema_registry": address}
        columns = {"tip": "struct<amount:double>"}
        first, second = read(record, record, columns=columns, **registry)
        with pytest.raises(RegistryAwayError, match=r"of%20gone.*does not exist"):
            read(avro(number=2), **registry)

    assert (first["order_id"], first["tip"]) == (second["order_id"], second["tip"]) == ("a", price)
    assert first["_rescued_data"] == [("items", '[{"price":{"amount":2.5}}]')]
    assert len(asked) == 5


def test_a_registry_is_told_the_login_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGISTRY_USER", "me")
    login = (("user", "REGISTRY_USER"), ("password", "REGISTRY_PASSWORD"))
    schema: tuple[int, Any] = (200, {"schema": json.dumps(SCHEMA)})
    with registry_of({"/schemas/ids/1": schema, "/schemas/ids/2": schema}, "me:hunter2") as (
        address,
        asked,
    ):
        registry: dict[str, Any] = {
            **{"format": "avro", "schema_registry": address, "registry_secrets": login}
        }
        with pytest.raises(RegistryAwayError, match="no environment variable REGISTRY_PASSWORD"):
            read(avro(number=1), **registry)
        monkeypatch.setenv("REGISTRY_PASSWORD", "hunter3")
        with pytest.raises(PermissionError, match="401") as denied:
            read(avro(number=1), **registry)
        monkeypatch.setenv("REGISTRY_PASSWORD", "hunter2")
        (judged,) = read(avro(number=1), **registry)
        with pytest.raises(PermissionError, match="401"):
            read(avro(number=2), format="avro", schema_registry=address)

    assert is_record(judged)
    assert len(asked) == 3
    assert "hunter" not in str(denied.value)


def test_times_without_a_zone_stay_local() -> None:
    kind = {"type": "long", "logicalType": "local-timestamp-micros"}
    schema = {"type": "record", "name": "o", "fields": [{"name": "ordered_at", "type": kind}]}

    (judged,) = read(
        avro({"ordered_at": datetime(2026, 3, 1, 12)}, schema),
        format="avro",
        avro_schema=json.dumps(schema),
    )

    assert judged["ordered_at"] == datetime(2026, 3, 1, 12, tzinfo=UTC)
