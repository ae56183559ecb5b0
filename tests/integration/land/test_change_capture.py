"""Changes of a real PostgreSQL, by a real Debezium, land to the rows that the database has.

Clients change tables in overlapping transactions. Meanwhile the connector reads the rows that it
found and is killed, and the database stops as in a crash; a minute each, with Kafka. The messages
land twice: as files, in any order, and from the topics.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from livemart.land.landing import LandedBatch
from livemart.project.graph import Column, EnvelopeOptions, SourceTable
from tests.change_records import changes as change_source
from tests.deliveries import Shop
from tests.services.capture import (
    Message,
    ask_for_rows,
    changing,
    framed,
    messages_of,
    wait_for_all,
    wait_for_rows,
)
from tests.services.changed_tables import (
    ORDERS,
    PEOPLE,
    TABLES,
    TIP,
    ChangedTable,
    Changes,
    Connection,
    comparable,
    rows_of,
)
from tests.services.connect import Connect, postgres_connector
from tests.services.kafka import Kafka
from tests.store.postgres import Postgres
from tests.waits import wait_until

pytestmark = [pytest.mark.extended, pytest.mark.processes]


class Way(NamedTuple):
    """How a connector writes, in its own words and in those of a source."""

    connector: Mapping[str, str]
    source: EnvelopeOptions


WAYS = {
    "texts": Way(
        {"decimal.handling.mode": "string", "time.precision.mode": "isostring"},
        EnvelopeOptions(decimal_handling="string", time_precision="isostring"),
    ),
    "numbers": Way(
        {"time.precision.mode": "adaptive_time_microseconds", "binary.handling.mode": "hex"},
        EnvelopeOptions(
            decimal_handling="precise",
            time_precision="adaptive_time_microseconds",
            timestamp_digits=(("*", 6),),
            binary_handling="hex",
        ),
    ),
    "schemas": Way(
        {
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter.schemas.enable": "true",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "true",
            "provide.transaction.metadata": "true",
        },
        EnvelopeOptions(schemas=True),
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_database_lands_as_it_is(
    database: Postgres, kafka: Kafka, connect: Connect, tmp_path: Path, way: str
) -> None:
    name = f"shop_{way}"
    database.create_database(name)
    changes = Changes(lambda: database.connect(dbname=name, autocommit=False), seed=7)
    changes.create()
    settings = {"snapshot.mode": "no_data", **WAYS[way].connector}
    connect.add(name, postgres_connector(database.port, name, name, settings))
    with changing(changes, 4_000) as wait:
        wait(50)
        with database.connect(dbname=name) as connection:
            ask_for_rows(connection, [table.name for table in TABLES])
        wait(300)
        # Whether it has read all rows or not.
        connect.kill()
        wait(100)
        connect.start()
    wait_for_rows(kafka, name)
    changes.add_tip()
    with changing(changes, 1_200) as wait:
        wait(150)
        connect.kill()
        connect.start()
    database.stop()
    database.start()
    changes.drop_legacy()
    with changing(changes, 400):
        pass
    with database.connect(dbname=name) as connection:
        wait_for_all(connection, name)
        expected = [rows_of(connection, it, columns_at_the_end(it)) for it in TABLES]
    connect.remove(name)
    options = WAYS[way].source
    (tmp_path / "files").mkdir()
    (tmp_path / "topics").mkdir()
    files = Shop(None, tmp_path / "files", [source_of(it, options) for it in TABLES])
    topics = Shop(None, tmp_path / "topics", [source_of(it, options, kafka, name) for it in TABLES])
    messages = [it for table in TABLES for it in messages_of(kafka, topic_of(name, table))]

    from_files = land_files(files, messages, random.Random(7))
    from_topics = land_topics(topics)

    for shop in (files, topics):
        assert shop.rows("_dead_letters", "source", "reason", "detail") == []
        for table, rows in zip(TABLES, expected, strict=True):
            assert landed_rows(shop, table, columns_at_the_end(table)) == rows, table.name
    for table in TABLES:
        relation = f"bronze.{table.name}"
        sent = sum(it.topic == topic_of(name, table) for it in messages)
        for counts, produced in ((from_files, len(messages)), (from_topics, sent)):
            each = counts[relation]
            assert each["produced"] == each["landed"] + each["superseded"] == produced


def columns_at_the_end(table: ChangedTable) -> list[str]:
    """Return the columns that the database has after one was added and one dropped."""
    if table is not ORDERS:
        return list(table.columns)
    return [name for name in (*table.columns, TIP[0]) if name != "legacy"]


def test_a_truncated_table_is_mended_as_the_documents_say(
    database: Postgres, kafka: Kafka, connect: Connect, tmp_path: Path
) -> None:
    name = "shop_truncated"
    database.create_database(name)
    changes = Changes(lambda: database.connect(dbname=name, autocommit=False), seed=7)
    changes.create()
    connect.add(name, postgres_connector(database.port, name, name, WAYS["schemas"].connector))
    with database.connect(dbname=name) as connection:
        # No client writes while it reads all rows.
        wait_for_all(connection, name)
        changes.run(200)
        changes.finish()
        connection.execute("truncate people")
        connection.execute("insert into people values (3, 'placed', 'anew')")
        wait_for_all(connection, name)
    connect.remove(name)
    shop = Shop(None, tmp_path, [source_of(PEOPLE, WAYS["schemas"].source)])
    messages = messages_of(kafka, topic_of(name, PEOPLE))

    land_files(shop, messages, random.Random(7))
    before = landed_rows(shop, PEOPLE, list(PEOPLE.columns))
    [(reason, record)] = shop.rows("_dead_letters", "reason", "record")
    message = json.loads(record)
    value = message["value"] if "value" in message else json.loads(message["payload"])
    place = value["payload"]["source"]
    deletes = [
        json.dumps({"before": {"id": key}, "after": None, "source": place, "op": "d"})
        for (key,) in shop.rows("people", "id")
    ]
    shop.land(9, shop.deliver("cdc/9.jsonl", deletes))

    assert reason == "TRUNCATED"
    assert len(before) > 1
    assert landed_rows(shop, PEOPLE, list(PEOPLE.columns)) == {(3, "placed", "anew")}


def test_a_lost_slot_is_mended_as_the_documents_say(
    database: Postgres, kafka: Kafka, connect: Connect, tmp_path: Path
) -> None:
    name = "shop_lost"
    database.create_database(name)
    changes = Changes(lambda: database.connect(dbname=name, autocommit=False), seed=7)
    changes.create()
    settings = {"snapshot.mode": "when_needed", **WAYS["texts"].connector}
    connector = postgres_connector(database.port, name, name, settings)
    connect.add(name, connector)
    with database.connect(dbname=name) as connection:
        wait_for_all(connection, name)
        changes.run(300)
        changes.finish()
        wait_for_all(connection, name)
        connect.remove(name)
        wait_until(lambda: not is_active(connection, name))
        connection.execute("select pg_drop_replication_slot(%s)", [name])
        changes.run(600)
        changes.finish()
        connect.add(name, connector)
        wait_for_all(connection, name)
        expected = rows_of(connection, PEOPLE, list(PEOPLE.columns))
    connect.remove(name)
    shop = Shop(None, tmp_path, [source_of(PEOPLE, WAYS["texts"].source)])
    messages = messages_of(kafka, topic_of(name, PEOPLE))

    land_files(shop, messages, random.Random(7))
    columns = list(PEOPLE.columns)
    before = landed_rows(shop, PEOPLE, columns)
    rows = shop.rows("people", "id", "_sequence", "_operation")
    newest = max(sequence for _, sequence, operation in rows if operation == "r")
    lost = [key for key, sequence, _ in rows if sequence < newest]
    records = (json.loads(it.value) for it in messages if it.value is not None)
    place = max((it["source"] for it in records if it["op"] == "r"), key=lambda it: it["lsn"])
    deletes = [
        json.dumps({"before": {"id": key}, "after": None, "source": place, "op": "d"})
        for key in lost
    ]
    shop.land(9, shop.deliver("cdc/9.jsonl", deletes))

    assert before > expected
    assert landed_rows(shop, PEOPLE, columns) == expected


def test_bytes_in_base64_that_a_change_left_are_not_taken_for_null(
    database: Postgres, kafka: Kafka, connect: Connect, tmp_path: Path
) -> None:
    name = "shop_base64"
    database.create_database(name)
    columns = {name: ORDERS.columns[name] for name in ("id", "content", "note")}
    table = ChangedTable("scans", ("id",), columns)
    content = random.Random(7).randbytes(9_000)
    with database.connect(dbname=name) as connection:
        for statement in (*table.statements, "create table marks (id serial primary key)"):
            connection.execute(statement)
        settings = {**WAYS["schemas"].connector, "binary.handling.mode": "base64-url-safe"}
        connect.add(name, postgres_connector(database.port, name, name, settings))
        connection.execute("insert into scans values (1, %s, 'a'), (2, null, 'a')", [content])
        wait_for_all(connection, name)
        # A large value that is left as it was, and one that is NULL: the connector tells no
        # difference until it has the old row.
        connection.execute("update scans set note = 'b'")
        connection.execute("alter table scans replica identity full")
        connection.execute("update scans set note = 'c' where id = 2")
        wait_for_all(connection, name)
        options = EnvelopeOptions(schemas=True, binary_handling="base64-url-safe")
        shop = Shop(None, tmp_path, [source_of(table, options, kafka, name)])
        land_topics(shop)
        refused = shop.rows("_dead_letters", "reason", "detail")
        rows = landed_rows(shop, table, list(columns))
        connection.execute("update scans set note = 'd'")
        wait_for_all(connection, name)
    connect.remove(name)
    land_topics(shop, 9)

    assert [reason for reason, _ in refused] == ["MALFORMED_RECORD"] * 2
    assert all(detail.startswith("content: null") for _, detail in refused)
    assert rows == {(1, content, "a"), (2, None, "c")}
    assert landed_rows(shop, table, list(columns)) == {(1, content, "d"), (2, None, "d")}


def is_active(connection: Connection, slot: str) -> bool:
    """Return True while a connector reads from a slot."""
    query = "select active from pg_replication_slots where slot_name = %s"
    return connection.execute(query, [slot]).fetchone() == (True,)


def topic_of(prefix: str, table: ChangedTable) -> str:
    """The topic to which a connector sends the changes of a table."""
    return f"{prefix}.public.{table.name}"


def source_of(
    table: ChangedTable, options: EnvelopeOptions, kafka: Kafka | None = None, prefix: str = ""
) -> SourceTable:
    """A source of the changes of a table: from files, or from its topic.

    It declares the column that is added in mid-stream, too.
    """
    spec: dict[str, Any] = {"path": "cdc/*.jsonl"}
    if kafka is not None:
        topics = (topic_of(prefix, table),)
        spec = {"path": "", "kind": "kafka", "max_records_per_trigger": 300}
        spec |= {"options": (("servers", kafka.address), ("topics", topics))}
    added = dict([TIP] if table is ORDERS else [])
    declared = {name: kind for name, (_, kind) in ({**table.columns} | added).items()}
    each = change_source(
        table.name,
        keys=table.keys,
        envelope_options=replace(options, table=f"public.{table.name}"),
        **spec,
    )
    return replace(each, columns=tuple(Column(*it) for it in declared.items()))


def land_files(
    shop: Shop, messages: Sequence[Message], chance: random.Random
) -> dict[str, Counter[str]]:
    """Land messages in five batches, in any order and either frame; return the counts by table."""
    lines = [framed(message, as_kcat=chance.random() < 0.5) for message in messages]
    chance.shuffle(lines)
    paths = [shop.deliver(f"cdc/{number}.jsonl", lines[number::5]) for number in range(5)]
    return total(shop.land(number, path) for number, path in enumerate(paths))


def land_topics(shop: Shop, first: int = 0) -> dict[str, Counter[str]]:
    """Land what the topics hold, step by step; return the counts by table."""
    batches = [shop.land(first)]
    while any(counts.produced for counts in batches[-1].counts.values()):
        batches.append(shop.land(first + len(batches)))
    return total(batches)


def total(batches: Iterable[LandedBatch]) -> dict[str, Counter[str]]:
    """Return what batches counted, by table."""
    totals: dict[str, Counter[str]] = {}
    for batch in batches:
        for relation, counts in batch.counts.items():
            words = ("produced", "landed", "superseded", "dead_letters")
            each = totals.setdefault(relation, Counter())
            each.update({word: getattr(counts, word) for word in words})
    return totals


def landed_rows(shop: Shop, table: ChangedTable, columns: Sequence[str]) -> set[tuple[Any, ...]]:
    """Return the rows that landed, as `rows_of` gives those of the database."""
    rows = shop.rows(table.name, *columns)
    landed = {tuple(map(comparable, columns, row)) for row in rows}
    assert len(landed) == len(rows)
    return landed
