"""A table of orders that writes its changes as Debezium does, and the resulting rows.

The oracle is a dictionary to which the changes are applied in the order of the log: it knows
neither batches nor files nor how landing decides.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

from livemart.project.graph import EnvelopeOptions, SourceTable
from livemart.project.landing_columns import SEQUENCE
from tests.deliveries import source

UNAVAILABLE = "__debezium_unavailable_value"
COLUMNS = {
    "id": "bigint",
    "status": "string",
    "total": "decimal(10,2)",
    "placed_at": "timestamp_ntz",
    "note": "string",
}
OPTIONS = EnvelopeOptions(
    decimal_handling="precise", time_precision="adaptive", timestamp_digits=(("*", 6),)
)
PLACED_AT = datetime(2026, 3, 1, 12, 0, 0, 250_000)
_EPOCH = datetime(1970, 1, 1)
_FIELDS = [
    {"field": "id", "type": "int64", "optional": False},
    {"field": "status", "type": "string", "optional": True},
    {
        "field": "total",
        "type": "bytes",
        "optional": True,
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "2", "connect.decimal.precision": "10"},
    },
    {
        "field": "placed_at",
        "type": "int64",
        "optional": True,
        "name": "io.debezium.time.MicroTimestamp",
    },
    {"field": "note", "type": "string", "optional": True},
]
SCHEMA = {
    "type": "struct",
    "fields": [{"type": "struct", "fields": _FIELDS, "field": side} for side in ("before", "after")]
    + [{"type": "string", "field": "op"}],
    "name": "shop.public.orders.Envelope",
}
# The type of `total` as AvroConverter writes it.
AVRO_DECIMAL = {
    "type": "bytes",
    "scale": 2,
    "precision": 10,
    "connect.version": 1,
    "connect.parameters": {"scale": "2", "connect.decimal.precision": "10"},
    "connect.name": "org.apache.kafka.connect.data.Decimal",
    "logicalType": "decimal",
}

Row = dict[str, Any]


def changes(name: str = "orders", *, path: str = "cdc/*.jsonl", **spec: Any) -> SourceTable:
    """A source of change records with the key `id`; `keys=()` lands every change."""
    spec = {
        "keys": ("id",),
        "sequence_by": (SEQUENCE,),
        "apply_as_deletes": "_operation = 'd'",
        "envelope": "debezium",
        "envelope_options": OPTIONS,
    } | spec
    if not spec["keys"]:
        spec |= {"sequence_by": (), "apply_as_deletes": None}
    return source(name, COLUMNS, path=path, **spec)


def row(key: int, status: str | None = "placed", **fields: Any) -> Row:
    """A row of the table, its values as the connector writes them."""
    total = Decimal(fields.pop("total", "12.50"))
    placed = (PLACED_AT - _EPOCH) // timedelta(microseconds=1)
    return {
        "id": key,
        "status": status,
        "total": precise(total),
        "placed_at": placed,
        "note": f"note of {key}",
    } | fields


def precise(number: Decimal) -> str:
    """Return a decimal as `decimal.handling.mode: precise` writes it: its digits in base64."""
    digits = int(number.scaleb(-number.as_tuple().exponent))  # type: ignore[operator]
    return base64.b64encode(
        digits.to_bytes(digits.bit_length() // 8 + 1, "big", signed=True)
    ).decode()


def postgres(lsn: int, **fields: Any) -> Row:
    """The `source` of a change."""
    return {
        "version": "3.7.0.Final",
        "connector": "postgresql",
        "name": "shop",
        "db": "shop",
        "schema": "public",
        "table": "orders",
        "sequence": json.dumps([str(lsn - 1), str(lsn)]),
        "txId": 556,
        "lsn": lsn,
    } | fields


def mysql(file: str, pos: int, number: int = 0, **fields: Any) -> Row:
    """The `source` of a change."""
    return {
        "version": "3.7.0.Final",
        "connector": "mysql",
        "name": "shop",
        "db": "shop",
        "table": "orders",
        "server_id": 1,
        "gtid": None,
        "file": file,
        "pos": pos,
        "row": number,
    } | fields


def change(
    op: str, where: int | Row, after: Row | None = None, before: Row | None = None, **fields: Any
) -> Row:
    """A change record; a number stands for an LSN of PostgreSQL."""
    place = postgres(where) if isinstance(where, int) else where
    return {"before": before, "after": after, "source": place, "op": op, "ts_ms": 1} | fields


@dataclass
class Table:
    """Rows that change at random; `log` has each change in the order of the database's log."""

    chance: random.Random
    connector: Literal["postgresql", "mysql"]
    rows: dict[int, Row] = field(default_factory=dict)
    log: list[Row] = field(default_factory=list)
    _position: int = 3_400

    def run(self, steps: int) -> None:
        """Insert, update, move and delete rows, and read some of them again as a snapshot does."""
        for _ in range(steps):
            key = self.chance.randrange(8)
            if key not in self.rows:
                self._write("c", None, row(key, total=self._total()))
                continue
            match self.chance.randrange(6):
                case 0:
                    self._remove(key)
                case 1:
                    self._move(key)
                case 2:
                    self._read_again()
                case _:
                    self._update(key)

    def _total(self) -> str:
        return f"{self.chance.randrange(-99_999, 99_999)}.{self.chance.randrange(100):02}"

    def _place(self, *, ahead: bool = True) -> Row:
        self._position += self.chance.randrange(1, 40) * ahead
        if self.connector == "postgresql":
            return postgres(self._position)
        # Files are short: the log turns from 000009 to 000010 on its way.
        file, pos = divmod(self._position, 400)
        return mysql(f"mysql-bin.{file:06}", pos, self.chance.randrange(1, 3))

    def _write(self, op: str, before: Row | None, after: Row) -> None:
        self.rows[after["id"]] = after
        self.log.append(change(op, self._place(), after, before))

    def _update(self, key: int) -> None:
        after = self.rows[key] | {"status": self.chance.choice(["paid", "sent", None])}
        if self.chance.random() < 0.5:
            after["note"] = f"note {self.chance.randrange(1_000)}"
        before = self.rows[key] if self.connector == "mysql" else None
        self._write("u", before, after)
        if after["note"] == (before or {}).get("note") or self.chance.random() < 0.4:
            self._leave_out_note()

    def _leave_out_note(self) -> None:
        """Let the newest change not say the note; it is then what it was before."""
        newest = self.log[-1]
        key = newest["after"]["id"]
        newest["after"] = newest["after"] | {"note": UNAVAILABLE}
        self.rows[key] = apply_in_order(self.log)[key]

    def _remove(self, key: int) -> None:
        before = self.rows.pop(key)
        if self.chance.random() < 0.5:
            before = dict.fromkeys(before) | {"id": key}
        self.log.append(change("d", self._place(), None, before))

    def _move(self, key: int) -> None:
        """Change a key: a delete and a create at one position."""
        free = [it for it in range(8) if it not in self.rows]
        if not free:
            return
        place, moved = self._place(), self.rows.pop(key)
        after = moved | {"id": self.chance.choice(free)}
        self.log.append(change("d", place, None, moved))
        self.log.append(change("c", place, after))
        self.rows[after["id"]] = after
        if self.chance.random() < 0.5:
            self._leave_out_note()

    def _read_again(self) -> None:
        """Read all rows as a snapshot does: at the position that the log has reached."""
        place = self._place(ahead=False)
        if self.connector == "mysql":
            place |= {"row": 0}
        for content in self.rows.values():
            self.log.append(change("r", place | {"snapshot": "true"}, dict(content)))


def position_of(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what orders a change among the others; a row that was read is before its equals."""
    place, is_change = record["source"], record["op"] != "r"
    if place["connector"] == "postgresql":
        return place["lsn"], is_change
    return int(place["file"].split(".")[1]), place["pos"], place["row"], is_change


def apply_in_order(log: list[Row]) -> dict[int, Row]:
    """Return the rows after some changes, by key."""
    rows: dict[int, Row] = {}
    for record in sorted(log, key=position_of):
        if record["op"] == "d":
            rows.pop(record["before"]["id"], None)
            continue
        after = dict(record["after"])
        if after["note"] == UNAVAILABLE:
            after["note"] = rows[after["id"]]["note"] if after["id"] in rows else None
        rows[after["id"]] = after
    return rows


def framed(record: Row | None, frame: int, key: int | None = None) -> str:
    """Return a record as one of those writes it that hand changes over as files."""
    content = {"schema": SCHEMA, "payload": record} if frame % 2 and record else record
    match frame // 2:
        case 0:
            return json.dumps(content)
        case 1:
            return json.dumps({"topic": "shop.public.orders", "key": {"id": key}, "value": content})
        case _:
            payload = None if content is None else json.dumps(content)
            message = {"topic": "shop.public.orders", "partition": 0, "offset": 7, "key": str(key)}
            return json.dumps(message | {"payload": payload})


FRAMES = 6
