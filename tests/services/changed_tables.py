"""Changes tables of a PostgreSQL by several clients, with a seed; the database has their result.

Transactions overlap: a change may be committed long after it was made, and after later ones. Two
open transactions never have one key, so no statement waits for a lock and the order of all
statements is the seed's alone.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

Connection = psycopg.Connection[Any]
_CLIENTS = 4
_KEYS = 40


@dataclass(frozen=True)
class ChangedTable:
    """A table of the schema `public`.

    Attributes:
        name: of the table.
        keys: its primary key.
        columns: of each column the type in the database and the type that a source declares.
        large: columns whose large values a record leaves out if they stay, and which are not known
            under another key.
        besides: statements that follow `create table`.
    """

    name: str
    keys: tuple[str, ...]
    columns: Mapping[str, tuple[str, str]]
    large: tuple[str, ...] = ()
    besides: tuple[str, ...] = ()

    @property
    def statements(self) -> list[str]:
        """The statements that make it."""
        columns = ", ".join(f"{name} {kind}" for name, (kind, _) in self.columns.items())
        key = ", ".join(self.keys)
        return [f"create table {self.name} ({columns}, primary key ({key}))", *self.besides]


# Columns of every documented kind; `note` and `content` are stored apart when they are large.
ORDERS = ChangedTable(
    "orders",
    ("id",),
    {
        "id": ("bigint", "bigint"),
        "status": ("text", "string"),
        "total": ("numeric(10,2)", "decimal(10,2)"),
        "rate": ("numeric", "decimal(38,12)"),
        "placed_at": ("timestamp", "timestamp_ntz"),
        "seen_at": ("timestamptz", "timestamp"),
        "day": ("date", "date"),
        "opens_at": ("time", "string"),
        "span": ("interval", "bigint"),
        "note": ("text", "string"),
        "tags": ("text[]", "array<string>"),
        "numbers": ("int[]", "array<int>"),
        "payload": ("jsonb", "string"),
        "token": ("uuid", "string"),
        "content": ("bytea", "binary"),
        "is_paid": ("boolean", "boolean"),
        "small": ("smallint", "int"),
        "ratio": ("double precision", "double"),
        "legacy": ("int", "int"),
    },
    ("note", "content"),
    (
        "alter table orders alter column note set storage external",
        "alter table orders alter column content set storage external",
    ),
)
LINES = ChangedTable(
    "lines",
    ("order_id", "place"),
    {
        "order_id": ("bigint", "bigint"),
        "place": ("text", "string"),
        "quantity": ("int", "int"),
        "note": ("text", "string"),
    },
    ("note",),
    ("alter table lines alter column note set storage external",),
)
# Every record of it holds the whole row, before and after.
PEOPLE = ChangedTable(
    "people",
    ("id",),
    {"id": ("bigint", "bigint"), "status": ("text", "string"), "note": ("text", "string")},
    besides=(
        "alter table people alter column note set storage external",
        "alter table people replica identity full",
    ),
)
TABLES = (ORDERS, LINES, PEOPLE)
# Added to the orders in mid-stream.
TIP = ("tip", ("numeric(6,2)", "decimal(6,2)"))


@dataclass
class _Client:
    connection: Connection
    locked: set[tuple[str, int]] = field(default_factory=set)


class Changes:
    """Clients that change the tables.

    Args:
        connect: opens a connection; `autocommit` is off.
        seed: of all that is done.
    """

    def __init__(self, connect: Callable[[], Connection], seed: int) -> None:
        self._connect = connect
        self._random = random.Random(seed)
        self._clients: list[_Client] = []
        self._columns = {table.name: dict(table.columns) for table in TABLES}
        self.committed = 0

    def create(self, rows: int = 30) -> None:
        """Make the tables, with so many rows each."""
        with self._connect() as connection:
            for table in TABLES:
                for statement in table.statements:
                    connection.execute(statement)
            # By whose changes one sees how far a connector is.
            connection.execute("create table marks (id serial primary key)")
            connection.execute("create table signals (id text primary key, type text, data text)")
            for table in TABLES:
                for key in range(rows):
                    self._insert(connection, table, key)

    def run(self, steps: int) -> None:
        """Do so many statements; transactions may be left open."""
        for _ in range(steps):
            self._step()

    def finish(self) -> None:
        """Commit what is open, and close all connections."""
        for client in self._clients:
            client.connection.commit()
            client.connection.close()
        self._clients = []

    def add_tip(self) -> None:
        """Add a column to the orders; the rows that are there have NULL in it."""
        self.finish()
        name, (kind, _) = TIP
        with self._connect() as connection:
            connection.execute(f"alter table orders add column {name} {kind}")
        self._columns["orders"][name] = TIP[1]

    def drop_legacy(self) -> None:
        """Drop a column of the orders."""
        self.finish()
        with self._connect() as connection:
            connection.execute("alter table orders drop column legacy")
        del self._columns["orders"]["legacy"]

    def _step(self) -> None:
        while len(self._clients) < _CLIENTS:
            self._clients.append(_Client(self._connect()))
        client = self._random.choice(self._clients)
        chance = self._random.random()
        if client.locked and chance < 0.25:
            if chance < 0.03:
                client.connection.rollback()
            else:
                client.connection.commit()
                self.committed += 1
            client.locked = set()
            return
        table = self._random.choice(TABLES)
        taken = set().union(*(it.locked for it in self._clients if it is not client))
        free = [key for key in range(_KEYS) if (table.name, key) not in taken]
        key, other = self._random.sample(free, 2)
        client.locked |= {(table.name, key), (table.name, other)}
        self._change(client.connection, table, key, other)

    def _change(self, connection: Connection, table: ChangedTable, key: int, other: int) -> None:
        match self._random.randrange(10):
            case 0 | 1 | 2:
                self._insert(connection, table, key)
            case 3:
                connection.execute(f"delete from {table.name} where {table.keys[0]} = %s", [key])
            case 4:
                first, columns = table.keys[0], table.columns
                row = {first: other}
                row |= {name: self._value(name, columns[name][0]) for name in table.large}
                connection.execute(
                    f"update {table.name} set {', '.join(f'{name} = %s' for name in row)} "
                    f"where {first} = %s and not exists "
                    f"(select from {table.name} where {first} = %s)",
                    [*row.values(), key, other],
                )
            case _:
                self._update(connection, table, key)

    def _insert(self, connection: Connection, table: ChangedTable, key: int) -> None:
        row = {table.keys[0]: key} | {
            name: self._value(name, kind)
            for name, (kind, _) in self._columns[table.name].items()
            if name != table.keys[0]
        }
        connection.execute(
            f"insert into {table.name} ({', '.join(row)}) "
            f"values ({', '.join(['%s'] * len(row))}) on conflict do nothing",
            list(row.values()),
        )

    def _update(self, connection: Connection, table: ChangedTable, key: int) -> None:
        columns = [it for it in self._columns[table.name].items() if it[0] not in table.keys]
        chosen = self._random.sample(columns, self._random.randint(1, min(4, len(columns))))
        row = {name: self._value(name, kind) for name, (kind, _) in chosen}
        connection.execute(
            f"update {table.name} set {', '.join(f'{name} = %s' for name in row)} "
            f"where {table.keys[0]} = %s",
            [*row.values(), key],
        )

    def _value(self, name: str, kind: str) -> Any:
        chance = self._random
        if chance.random() < 0.15 and name != "place":
            return None
        match kind.partition("(")[0]:
            case "text" if name == "note":
                # Values above 2 kB are stored separately, and missing in changes that keep them.
                return chance.choice("abc") * chance.choice([3, 20, 4_000])
            case "text":
                return chance.choice(["placed", "paid", "sent", "", "ü €", "a\tb\\", '"quoted"'])
            case "numeric" if name == "rate":
                return Decimal(chance.randrange(-(10**9), 10**9)).scaleb(-chance.randrange(12))
            case "numeric":
                return Decimal(chance.randrange(-999_999, 999_999)) / 100
            case "timestamp":
                return _moment(chance)
            case "timestamptz":
                return _moment(chance).replace(tzinfo=UTC)
            case "date":
                return date(1960, 1, 1) + timedelta(days=chance.randrange(40_000))
            case "time":
                return _moment(chance).time()
            case "interval":
                # The connector counts the microseconds of one with a fraction inexactly.
                return timedelta(seconds=chance.randrange(-(10**5), 10**5))
            case "text[]":
                return chance.choice([[], ["a"], ["x", None, 'b,"'], ["__debezium"]])
            case "int[]":
                return [chance.randrange(-5, 5) for _ in range(chance.randrange(4))]
            case "jsonb":
                return Jsonb({"n": chance.randrange(9), "t": [None, True, "é"]})
            case "uuid":
                return UUID(int=chance.getrandbits(128))
            case "bytea":
                return chance.randbytes(chance.choice([0, 3, 5_000]))
            case "boolean":
                return chance.random() < 0.5
            case "double precision":
                return chance.uniform(-1e6, 1e6)
            case _:
                return chance.randrange(-30_000, 30_000)


def _moment(chance: random.Random) -> datetime:
    return datetime(1950, 1, 1) + timedelta(
        seconds=chance.randrange(5 * 10**9), microseconds=chance.randrange(10**6)
    )


def comparable(name: str, value: Any) -> Any:
    """Return a value of the database or of a landed table so that equal ones are equal."""
    match value:
        case None:
            return None
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).replace(tzinfo=None)
        case UUID():
            return str(value)
        case timedelta():
            return value // timedelta(microseconds=1)
        case time():
            return value.isoformat()
        case list():
            return tuple(value)
        case dict():
            return json.dumps(value, sort_keys=True)
        case str() if name == "payload":
            return json.dumps(json.loads(value), sort_keys=True)
        case str() if name == "opens_at":
            # Microseconds, or a text.
            if value.isdigit():
                return (datetime.min + timedelta(microseconds=int(value))).time().isoformat()
            return time.fromisoformat(value.removesuffix("Z")).isoformat()
        case _:
            return value


def rows_of(
    connection: Connection, table: ChangedTable, columns: Sequence[str]
) -> set[tuple[Any, ...]]:
    """Return the rows that the database has."""
    rows = connection.execute(f"select {', '.join(columns)} from {table.name}")
    return {tuple(map(comparable, columns, row)) for row in rows}
