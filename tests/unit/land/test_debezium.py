"""Changes of a database's rows land to the rows of the database, however they arrive."""

from __future__ import annotations

import base64
import itertools
import json
import random
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from livemart.errors import SourceError
from livemart.land.landing import LandedBatch
from livemart.project.graph import Column
from livemart.project.sources import parse_source_spec
from tests.change_records import (
    FRAMES,
    OPTIONS,
    PLACED_AT,
    UNAVAILABLE,
    Row,
    Table,
    apply_in_order,
    change,
    changes,
    framed,
    mysql,
    postgres,
    row,
)
from tests.conftest import IS_NIGHTLY
from tests.deliveries import Shop

ORDERS = "bronze.orders"
_DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "sources.md"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(None, tmp_path, [changes()])


def land(shop: Shop, *batches: list[Any]) -> list[LandedBatch]:
    """Land lists of records, each as a separate file and batch; a text is a line."""
    landed = []
    for records in batches:
        batch_id = len(list(shop.folder.glob("cdc/*")))
        content = [it if isinstance(it, str) else json.dumps(it) for it in records]
        landed.append(shop.land(batch_id, shop.deliver(f"cdc/{batch_id}.jsonl", content)))
    return landed


def counts(batch: LandedBatch, relation: str = ORDERS) -> tuple[int, int, int, int]:
    it = batch.counts[relation]
    return it.produced, it.landed, it.superseded, it.dead_letters


def position(lsn: int) -> str:
    """The `_sequence` of a change."""
    return f"{lsn - 1:020}.1.{lsn:020}"


def letters(shop: Shop) -> list[tuple[Any, ...]]:
    return shop.rows("_dead_letters", "origin", "reason", "detail")


def test_each_operation_does_what_it_says(shop: Shop) -> None:
    records = [
        change("r", 10, row(1)),
        change("c", 20, row(2, total="-0.01")),
        change("u", 30, row(1, "paid"), row(1)),
        change("d", 40, None, row(2)),
        change("c", 50, row(3)),
    ]

    [batch] = land(shop, records)

    assert shop.rows("orders", "id", "status", "total", "placed_at", "_operation") == [
        (1, "paid", Decimal("12.50"), PLACED_AT, "u"),
        (3, "placed", Decimal("12.50"), PLACED_AT, "c"),
    ]
    assert shop.rows("_deletes_orders", "id", "_sequence") == [(2, position(40))]
    assert counts(batch) == (5, 3, 2, 0)


def test_what_says_nothing_of_a_row_changes_nothing_and_is_counted(shop: Shop) -> None:
    nothing = [
        "null",
        {"schema": None, "payload": None},
        framed(None, 2, 1),
        framed(None, 4, 1),
        {"ts_ms": 1_772_366_400_000},
        {"status": "BEGIN", "id": "556:1", "ts_ms": 1},
        {"source": mysql("b.000001", 4), "databaseName": "shop", "ddl": "alter table orders"},
        change("m", 25, message={"prefix": "foo", "content": "Ymfy"}),
    ]

    first, second = land(shop, [change("c", 20, row(1)), *nothing], nothing)

    assert shop.rows("orders", "id") == [(1,)]
    assert counts(first) == (9, 1, 8, 0)
    assert counts(second) == (8, 0, 8, 0)
    assert shop.rows("_deletes_orders", "id") == []


def test_a_changed_key_is_a_delete_and_a_create_at_one_position(shop: Shop) -> None:
    moved = [change("d", 20, None, row(1)), "null", change("c", 20, row(2))]

    land(shop, [change("c", 10, row(1))], moved, moved[::-1])

    assert shop.rows("orders", "id", "note") == [(2, "note of 2")]


@pytest.mark.parametrize("position", [10, 20])
def test_a_row_that_is_read_again_does_not_win_over_a_newer_change(
    shop: Shop, position: int
) -> None:
    again = [change("r", position, row(1, "stale")), change("r", position, row(2))]

    land(shop, [change("u", 20, row(1, "paid")), change("d", 20, None, row(2))], again)
    before = shop.rows("orders", "id", "status")
    land(shop, [change("r", 21, row(1, "newest"))])

    assert before == [(1, "paid")]
    assert shop.rows("orders", "id", "status") == [(1, "newest")]


def test_a_change_that_was_made_before_a_snapshot_and_committed_after_it_wins(shop: Shop) -> None:
    read = [change("r", postgres(30, sequence='[null,"30"]'), row(key)) for key in (1, 2, 3)]
    committed = [
        change("u", postgres(20, sequence='["40","20"]'), row(1, "paid")),
        change("d", postgres(21, sequence='["40","21"]'), None, row(2)),
        # A restarted connector read it again.
        change("r", postgres(50, sequence='[null,"50"]'), row(3, "paid")),
    ]

    land(shop, committed[::-1], read)

    assert shop.rows("orders", "id", "status") == [(1, "paid"), (3, "paid")]


def test_of_two_changes_that_which_was_committed_later_wins(shop: Shop) -> None:
    # One creates a row and removes it; the other waits for its key and creates it again.
    one = [change("c", postgres(20, sequence='["10","20"]'), row(1, "first"))]
    one.append(change("d", postgres(40, sequence='["10","40"]'), None, row(1)))
    other = change("c", postgres(30, sequence='["50","30"]'), row(1, "second"))

    land(shop, [other, *one])

    assert shop.rows("orders", "id", "status") == [(1, "second")]


def test_a_row_that_is_read_while_changes_are_sent_mends_what_was_before(shop: Shop) -> None:
    # As an incremental snapshot of PostgreSQL writes it.
    again = postgres(60, snapshot="incremental", sequence='["50","60"]') | {"lsn": None}

    land(
        shop,
        [change("u", postgres(20, sequence='["10","20"]'), row(1, note=UNAVAILABLE))],
        [change("r", again, row(1, "read"))],
    )

    assert shop.rows("orders", "id", "status", "note") == [(1, "read", "note of 1")]


def test_a_file_that_comes_twice_changes_nothing(shop: Shop) -> None:
    records = [
        change("c", 10, row(1)),
        change("u", 20, row(1, note=UNAVAILABLE)),
        change("c", 30, row(2)),
        change("d", 40, None, row(2)),
    ]

    first, again = land(shop, records, records)

    assert again.versions[ORDERS] == first.versions[ORDERS]
    assert counts(again) == (4, 0, 4, 0)


def test_the_binlog_goes_on_from_000009_to_000010(shop: Shop) -> None:
    newest = mysql("mysql-bin.000010", 4)
    records = [
        change("u", newest, row(1, "newest")),
        change("c", mysql("mysql-bin.000009", 5_000), row(1, "older")),
        # One statement changes many rows: one position, other rows of it.
        change("u", newest | {"row": 2}, row(2, "last")),
        change("u", newest | {"row": 1}, row(2, "first")),
        change("u", mysql("mysql-bin.999999", 4), row(3, "older")),
        change("u", mysql("mysql-bin.1000000", 4), row(3, "newest")),
    ]

    land(shop, records)

    assert shop.rows("orders", "id", "status") == [(1, "newest"), (2, "last"), (3, "newest")]


@pytest.mark.parametrize(
    "record",
    [
        change("d", 20, None, {"id": 1}),
        change("d", 20, None, dict.fromkeys(row(1)) | {"id": 1, "total": "no decimal"}),
        {"topic": "t", "key": {"id": 1}, "value": change("d", 20)},
        {"topic": "t", "key": '{"id":1}', "payload": json.dumps(change("d", 20))},
    ],
)
def test_a_delete_needs_the_key_alone(shop: Shop, record: Row) -> None:
    land(shop, [change("c", 10, row(1))], [record])

    assert shop.rows("orders", "id") == []
    assert shop.rows("_deletes_orders", "id") == [(1,)]


def test_a_truncate_is_a_dead_letter_that_says_what_to_do(tmp_path: Path) -> None:
    events = changes("order_changes", keys=())
    shop = Shop(None, tmp_path, [changes(), events])
    truncate = change("t", 20)

    [_, batch] = land(shop, [change("c", 10, row(1))], [truncate])
    before = shop.rows("orders", "id")
    letter = shop.rows("_dead_letters", "source", "reason", "record", "detail")
    # As its message advises.
    land(shop, [change("d", 20, None, {"id": 1}), change("c", 30, row(2))])

    assert before == [(1,)]
    assert [it[:3] for it in letter] == [(ORDERS, "TRUNCATED", json.dumps(truncate))]
    assert "hand over a delete (`op` d) of each" in letter[0][3]
    assert counts(batch) == (1, 0, 0, 1)
    assert counts(batch, "bronze.order_changes") == (1, 1, 0, 0)
    assert shop.rows("orders", "id") == [(2,)]


def test_without_keys_every_change_is_a_row(tmp_path: Path) -> None:
    shop = Shop(None, tmp_path, [changes(keys=())])
    records = [
        change("c", 10, row(1)),
        change("u", 20, row(1, "paid", note=UNAVAILABLE)),
        change("d", 30, None, row(1, "paid")),
        "null",
        change("t", 40),
    ]

    [batch] = land(shop, records)

    names = ("_sequence", "_operation", "id", "status", "note", "_kept_values")
    assert shop.rows("orders", *names) == [
        (position(10), "c", 1, "placed", "note of 1", None),
        (position(20), "u", 1, "paid", None, [("note", None)]),
        (position(30), "d", 1, "paid", "note of 1", None),
        (position(40), "t", None, None, None, None),
    ]
    assert counts(batch) == (5, 4, 1, 0)


class TestUnavailable:
    """A value that the record does not hold is that of the newest version before it."""

    def test_it_is_what_is_stored(self, shop: Shop) -> None:
        land(
            shop,
            [change("c", 10, row(1, note="first"))],
            [change("u", 20, row(1, "paid", note=UNAVAILABLE))],
            [change("u", 30, row(1, "sent", note=UNAVAILABLE))],
        )

        assert shop.rows("orders", "status", "note", "_kept_values", "_batch_id") == [
            ("sent", "first", [("note", position(10))], 2)
        ]

    def test_a_version_that_comes_late_gives_it(self, shop: Shop) -> None:
        steps = [
            [change("c", 10, row(1, note="first")), change("u", 30, row(1, note=UNAVAILABLE))],
            [change("u", 20, row(1, "late", note="second"))],
            [change("u", 15, row(1, "too late", note="between"))],
        ]

        batches = land(shop, *steps)

        assert [counts(batch) for batch in batches] == [(2, 1, 1, 0), (1, 1, 0, 0), (1, 0, 1, 0)]
        assert shop.rows("orders", "status", "note") == [("placed", "second")]

    def test_what_was_before_a_delete_is_not_it(self, shop: Shop) -> None:
        steps = [
            [change("c", 10, row(1, note="first")), change("c", 30, row(1, note=UNAVAILABLE))],
            [change("d", 20, None, row(1))],
            [change("u", 15, row(1, note="first, again"))],
        ]

        land(shop, *steps)

        assert shop.rows("orders", "id", "note") == [(1, None)]

    def test_nobody_knows_it_of_a_row_that_was_never_seen(self, shop: Shop) -> None:
        [batch] = land(shop, [change("u", 30, row(1, note=UNAVAILABLE))])
        unknown = shop.rows("orders", "id", "note", "_kept_values")
        land(shop, [change("c", 10, row(1, note="first"))])

        assert unknown == [(1, None, [("note", None)])]
        assert counts(batch) == (1, 1, 0, 0)
        assert shop.rows("orders", "id", "note") == [(1, "first")]


@pytest.mark.parametrize(
    ("record", "code", "detail"),
    [
        (
            change("x", 20, row(1)),
            "MALFORMED_RECORD",
            "op: found 'x', expected one of c, r, u, d, t and",
        ),
        (row(1), "MALFORMED_RECORD", "no `op`: not a change record; if the connector unwraps"),
        (change("u", 20), "MALFORMED_RECORD", "op u without a row in `after`"),
        (change("d", 20), "MALFORMED_RECORD", "op d without a row in `before`"),
        (change("u", 20, {"status": "x"}), "NULL_KEY", "id is NULL"),
        (change("u", 20, row(2), row(1)), "MALFORMED_RECORD", "id changed within one update"),
        (
            change("u", postgres(20, connector="db2"), row(1)),
            "MALFORMED_RECORD",
            "source.connector: found 'db2', expected one of postgresql, mysql, mariadb",
        ),
        (
            change("u", postgres(20) | {"lsn": None, "sequence": "[null,null]"}, row(1)),
            "MALFORMED_RECORD",
            "source.lsn: found None, which is not a position",
        ),
        (
            change("u", mysql("binlog", 4), row(1)),
            "MALFORMED_RECORD",
            "source.file: found 'binlog', which has no number",
        ),
        (change("u", 20, row(1), source=None), "MALFORMED_RECORD", "no `source`"),
        (change("u", 20, row(1, _sequence="7")), "MALFORMED_RECORD", "the row has a field _seq"),
        (change("u", 20, row(1) | {"total": "%"}), "TYPE_MISMATCH", 'total: "%" does not fit dec'),
        ("[1]", "MALFORMED_RECORD", "not a JSON object"),
    ],
)
def test_what_cannot_be_taken_is_a_dead_letter(
    shop: Shop, record: Any, code: str, detail: str
) -> None:
    [batch] = land(shop, [change("c", 10, row(1)), record])

    [(origin, reason, text)] = letters(shop)
    assert (origin, reason) == ("cdc/0.jsonl:2", code)
    assert text.startswith(detail)
    assert counts(batch) == (2, 1, 0, 1)


def test_sources_take_the_changes_of_their_table_from_one_file(tmp_path: Path) -> None:
    orders = changes(envelope_options=replace(OPTIONS, table="public.orders"))
    refunds = changes("refunds", envelope_options=replace(OPTIONS, table="refunds"))
    shop = Shop(None, tmp_path, [orders, refunds])
    records = [
        change("c", 10, row(1)),
        change("c", postgres(20, table="refunds"), row(1)),
        change("d", postgres(30, table="refunds"), None, row(1)),
        change("t", postgres(40, table="other")),
    ]

    [batch] = land(shop, records)

    assert shop.rows("orders", "id") == [(1,)]
    assert shop.rows("refunds", "id") == []
    assert [counts(batch, f"bronze.{name}") for name in ("orders", "refunds")] == [
        (4, 1, 3, 0),
        (4, 1, 3, 0),
    ]


def test_a_column_that_is_added_in_mid_stream_is_drift(tmp_path: Path) -> None:
    rescuing, evolving = changes(), changes("evolving", schema_drift="evolve")
    shop = Shop(None, tmp_path, [rescuing, evolving])
    steps = [
        [change("c", 10, row(1)), change("c", 11, row(2))],
        [change("u", 20, row(1, tip="1.50")), change("d", 21, None, row(2, tip="2"))],
        [change("u", 30, {name: it for name, it in row(1, tip="3").items() if name != "note"})],
    ]

    land(shop, *steps[:2])
    rescued = shop.rows("orders", "id", "_rescued_data")
    land(shop, steps[2])

    assert rescued == [(1, [("tip", "1.50")])]
    # A column that was dropped is NULL.
    assert shop.rows("evolving", "id", "tip", "note", "_rescued_data") == [(1, "3", None, None)]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("cut", range(3))
def test_a_column_that_drift_brings_keeps_values_in_any_order_and_cut(
    tmp_path: Path, order: tuple[int, ...], cut: int
) -> None:
    rescuing, evolving = changes(), changes("evolving", schema_drift="evolve")
    shop = Shop(None, tmp_path, [rescuing, evolving])
    history = [
        change("c", 10, row(1, tip="1.50")),
        change("u", 20, row(1, tip="2")),
        change("u", 30, row(1, "paid", tip=UNAVAILABLE)),
    ]
    arriving = [history[place] for place in order]

    land(shop, *filter(None, (arriving[:cut], arriving[cut:])))

    names = ("id", "status", "tip", "_kept_values")
    assert shop.rows("evolving", *names) == [(1, "paid", "2", [("tip", position(20))])]
    # It is no column here, nor will drift make it one.
    names = ("id", "status", "_rescued_data", "_kept_values")
    assert shop.rows("orders", *names) == [
        (1, "paid", [("tip", "2")], [("tip", position(20))]),
    ]


@pytest.mark.gate_takes_every(4)
@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
@pytest.mark.parametrize("cut", [1, 2, 4])
def test_a_large_field_that_no_column_names_is_kept_beside_the_others(
    tmp_path: Path, order: tuple[int, ...], cut: int
) -> None:
    shop = Shop(None, tmp_path, [changes()])
    history = [
        change("c", 10, row(1, **{"a.b": "large", "tip": "1"})),
        change("u", 20, row(1, **{"a.b": UNAVAILABLE, "tip": "2"})),
        change("u", 30, row(1, **{"a.b": UNAVAILABLE, "tip": None})),
        change("u", 40, row(1, **{"a.b": UNAVAILABLE, "more": UNAVAILABLE})),
    ]
    arriving = [history[place] for place in order]

    land(shop, arriving[:cut], arriving[cut:])
    land(shop, [history[3]])

    assert shop.rows("orders", "_rescued_data", "_kept_values") == [
        ([("`a.b`", "large")], [("a.b", position(10)), ("more", position(30))])
    ]


def test_drift_that_must_not_be_stops_landing(tmp_path: Path) -> None:
    shop = Shop(None, tmp_path, [changes(schema_drift="fail")])

    with pytest.raises(SourceError, match=r"SCHEMA_DRIFT: bronze.orders: cdc/0.jsonl:2"):
        land(shop, [change("c", 10, row(1)), change("c", 20, row(2, tip="1"))])


def test_a_large_field_that_no_column_names_stops_landing_also_where_it_is_unchanged(
    tmp_path: Path,
) -> None:
    shop = Shop(None, tmp_path, [changes(schema_drift="fail")])
    # `note` is a column.
    land(shop, [change("u", 10, row(1, note=UNAVAILABLE))])

    with pytest.raises(SourceError, match=r"cdc/1.jsonl:2: found fields tip, `a.b`\n"):
        unchanged = row(2, **{"a.b": UNAVAILABLE, "tip": "1", "note": UNAVAILABLE})
        land(shop, [change("c", 20, row(2)), change("u", 30, unchanged)])


@pytest.mark.parametrize("connector", ["postgresql", "mysql"])
@pytest.mark.parametrize("seed", range(200 if IS_NIGHTLY else 8))
def test_a_history_lands_to_the_rows_of_the_database(
    tmp_path: Path, connector: Any, seed: int
) -> None:
    chance = random.Random(f"{connector} {seed}")
    table = Table(chance, connector)
    table.run(120)
    log = table.log
    expected = {
        (it["id"], it["status"], it["total"], it["note"]) for it in apply_in_order(log).values()
    }
    lines = []
    for record in [*log, *chance.sample(log, 20)]:
        key = (record["after"] or record["before"])["id"]
        lines.append(framed(record, chance.randrange(FRAMES), key))
        if record["op"] == "d":
            lines.append(framed(None, chance.randrange(FRAMES), key))
    # In order, as a connector that was killed sends them again, or any way at all.
    if seed % 3 == 1:
        cut = chance.randrange(len(lines))
        lines[cut:cut] = lines[max(0, cut - 30) : cut]
    elif seed % 3 == 2:
        chance.shuffle(lines)
    cuts = sorted(chance.sample(range(1, len(lines)), 4))
    batches = [lines[one:other] for one, other in zip([0, *cuts], [*cuts, None], strict=True)]
    shop = Shop(None, tmp_path, [changes()])

    landed = land(shop, *batches)

    rows = shop.rows("orders", "id", "status", "total", "note")
    assert {(*it[:2], _digits(it[2]), it[3]) for it in rows} == expected
    assert len(rows) == len(expected) == len(table.rows)
    for batch, content in zip(landed, batches, strict=True):
        produced, taken, superseded, dead = counts(batch)
        assert (produced, dead) == (len(content), 0)
        assert produced == taken + superseded
    if connector == "mysql":
        assert {it["source"]["file"] for it in log} > {"mysql-bin.000009", "mysql-bin.000010"}


def test_the_changes_of_the_documents_land_as_they_say(tmp_path: Path) -> None:
    section = _DOCUMENT.read_text(encoding="utf-8").partition("\n## Changes of a database")[2]
    code = dict(re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL))
    [table] = yaml.safe_load(code["yaml"])["sources"][0]["tables"]
    columns = tuple(Column(it["name"], it["data_type"]) for it in table["columns"])
    meta, event_time = table["config"]["meta"]["livemart"], table["config"]["event_time"]
    spec, mistakes = parse_source_spec(meta, columns, "m.yml: orders", event_time=event_time)
    assert mistakes == []
    orders = replace(changes(), columns=columns, stream=spec, event_time=event_time)
    shop = Shop(None, tmp_path, [orders])

    batch = shop.land(0, shop.deliver("cdc/0.jsonl", code["json"]))

    [landed] = shop.rows("orders", *(column.name for column in columns))
    told = re.search(r"They land as the one row `(.*)`", section)
    assert told is not None
    shown = ", ".join(str(it) for it in landed)
    assert shown.replace(".250000+00:00", ".25") == told[1]
    assert [it[0] for it in shop.rows("_deletes_orders", "order_id")] == [2]
    assert counts(batch) == (4, 2, 2, 0)


def _digits(number: Decimal) -> str:
    unscaled = int(number * 100)
    size = unscaled.bit_length() // 8 + 1
    return base64.b64encode(unscaled.to_bytes(size, "big", signed=True)).decode()
