"""Landing small batches: order, repeats, replays, drift and faults; no JVM is needed for it."""

from __future__ import annotations

import gzip
import json
import os
import random
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from livemart.errors import SourceError, StateError
from livemart.land import micro_batch
from livemart.land.micro_batch import Limit, MicroBatch
from livemart.land.sources.files.stream import Limits, Slot
from livemart.state.drift import DriftedField, DriftKind
from tests.deliveries import COLUMNS, NOON, Shop, lines, order, source


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(None, tmp_path)


def test_tables_are_there_before_the_first_record(shop: Shop) -> None:
    expected = [*COLUMNS, "_landed_at", "_batch_id", "_origin", "_rescued_data"]

    actual = shop.warehouse.arrow_schema("bronze.orders").names

    assert actual == expected
    assert shop.rows("_deletes_orders", "order_id") == []
    assert shop.rows("_dead_letters", "reason") == []


def test_one_file_feeds_a_keyed_and_an_append_only_source(shop: Shop) -> None:
    records = [
        order("a", 1),
        order("a", 2, status="delivered"),
        order("b", 1),
        order("b", 3, op="d"),
    ]
    path = shop.deliver("orders/1.jsonl", [*lines(records), "{broken"])

    batch = shop.land(0, path)

    assert shop.rows("orders", "order_id", "status", "_origin") == [
        ("a", "delivered", "orders/1.jsonl:2")
    ]
    assert len(shop.rows("order_events", "order_id")) == 4
    assert shop.rows("_deletes_orders", "order_id", "_origin") == [("b", "orders/1.jsonl:4")]
    assert shop.rows("_dead_letters", "source", "origin", "reason", "record", "batch_id") == [
        (name, "orders/1.jsonl:5", "MALFORMED_RECORD", "{broken", 0)
        for name in ("bronze.order_events", "bronze.orders")
    ]
    counts = batch.counts["bronze.orders"]
    assert (counts.produced, counts.landed, counts.superseded, counts.dead_letters) == (5, 2, 2, 1)
    assert (batch.newest_event_time, batch.landed_at, batch.has_records) == (NOON, NOON, True)


@pytest.mark.parametrize("seed", range(3))
def test_the_order_and_batches_of_arrival_never_matter(tmp_path: Path, seed: int) -> None:
    source_of_chance = random.Random(seed)
    records = [
        order(
            f"o{source_of_chance.randrange(30)}",
            source_of_chance.randrange(5),
            status=source_of_chance.choice(["placed", "delivered", "cancelled"]),
            op=source_of_chance.choice(["c", "c", "c", "d"]),
        )
        for _ in range(150)
    ]
    once = _landed(tmp_path / "once", [records])
    expected = (once.rows("orders", *COLUMNS), len(once.rows("order_events", "order_id")))

    shuffled = source_of_chance.sample(records, len(records))
    cuts = sorted(source_of_chance.sample(range(1, 150), 5))
    pieces = [shuffled[start:end] for start, end in zip([0, *cuts], [*cuts, 150], strict=True)]
    split = _landed(tmp_path / "split", pieces)
    actual = (split.rows("orders", *COLUMNS), len(split.rows("order_events", "order_id")))

    assert actual == expected


def test_new_keys_are_appended_and_a_repeat_writes_nothing(shop: Shop) -> None:
    first = shop.deliver("orders/1.jsonl", lines(order(f"a{number}") for number in range(50)))
    second = shop.deliver("orders/2.jsonl", lines(order(f"b{number}") for number in range(50)))
    again = shop.deliver("orders/3.jsonl", first.read_bytes())

    before = shop.land(0, first).versions["bronze.orders"]
    after = shop.land(1, second).versions["bronze.orders"]
    repeat = shop.land(2, again)

    entries = shop.warehouse.data_changed_between("bronze.orders", before, after)
    assert [entry and len(entry.removes) for entry in entries] == [0]
    assert repeat.versions["bronze.orders"] == after
    assert repeat.counts["bronze.orders"].superseded == 50
    assert repeat.counts["bronze.order_events"].landed == 50


def test_a_correction_replaces_the_row_and_a_newer_version_brings_a_key_back(shop: Shop) -> None:
    steps = [
        [order("a", 1), order("b", 1)],
        [order("a", 3, op="d"), order("b", 2, status="delivered")],
        [order("a", 2, status="late")],
        [order("a", 4, status="back")],
        [order("a", 3, op="d"), order("never seen", 9, op="d")],
        [order("never seen", 8)],
    ]
    for batch_id, records in enumerate(steps):
        shop.land(batch_id, shop.deliver(f"orders/{batch_id}.jsonl", lines(records)))

    actual = shop.rows("orders", "order_id", "status")

    assert actual == [("a", "back"), ("b", "delivered")]


def test_records_outside_the_bounds_of_event_time_are_dead_letters(tmp_path: Path) -> None:
    bounds: dict[str, Any] = {"horizon": timedelta(days=2), "max_future": timedelta(minutes=30)}
    shop = Shop(None, tmp_path, [source("orders", keys=("order_id",), **bounds)])
    records = [
        order(name, ordered_at=(NOON + offset).isoformat())
        for name, offset in {
            "oldest": -timedelta(days=2),
            "too old": -timedelta(days=2, microseconds=1),
            "newest": timedelta(minutes=30),
            "too new": timedelta(minutes=30, microseconds=1),
        }.items()
    ]

    counts = shop.land(0, shop.deliver("orders/1.jsonl", lines(records))).counts["bronze.orders"]

    assert shop.rows("orders", "order_id") == [("newest",), ("oldest",)]
    assert (counts.produced, counts.landed, counts.dead_letters) == (4, 2, 2)
    letters = shop.rows("_dead_letters", "source", "origin", "reason", "record", "landed_at")
    assert letters == [
        ("bronze.orders", "orders/1.jsonl:2", "TOO_LATE", json.dumps(records[1]), NOON),
        ("bronze.orders", "orders/1.jsonl:4", "FUTURE_EVENT_TIME", json.dumps(records[3]), NOON),
    ]
    details = [detail for (detail,) in shop.rows("_dead_letters", "detail")]
    assert all("ordered_at" in detail for detail in details)


def test_hidden_files_are_not_read_and_a_link_out_of_the_folder_is_refused(shop: Shop) -> None:
    secret = shop.root / "secret.jsonl"
    secret.write_text("\n".join(lines([order("secret")])))
    hidden = shop.deliver("orders/_1.jsonl", lines([order("hidden")]))
    link = shop.folder / "orders" / "link.jsonl"
    os.symlink(secret, link)

    batch = shop.land(0, hidden, link)

    assert batch.counts["bronze.orders"].dead_letters == 1
    assert shop.rows("orders", "order_id") == []


def test_csv_and_gzip_land_as_json_does(tmp_path: Path) -> None:
    columns = {"order_id": "string", "updated_at": "timestamp", "price": "decimal(6,2)"}
    sources = [
        source("csv", columns, format="csv", path="csv/*.csv", keys=("order_id",)),
        source("json", columns, path="json/*.gz", keys=("order_id",)),
    ]
    shop = Shop(None, tmp_path, sources)
    rows = [(f"o{n % 7}", f"2026-03-01T12:00:{n:02d}Z", f"{n}.10") for n in range(40)]
    text = "\n".join(["order_id,updated_at,price", *(",".join(row) for row in rows)])
    records = [dict(zip(columns, row, strict=True)) for row in rows]

    shop.land(
        0,
        shop.deliver("csv/a.csv", gzip.compress(text.encode())),
        shop.deliver("json/a.gz", gzip.compress("\n".join(lines(records)).encode())),
    )

    assert len(shop.rows("csv", "order_id")) == 7
    assert shop.rows("csv", *columns) == shop.rows("json", *columns)


ODD = ("größe.id", "order", "日本", "İd", "a`b", "it's", "null", "50%", "_weight", "1st", 'q"q')


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_columns_of_any_name_land(tmp_path: Path, kind: str) -> None:
    columns = dict.fromkeys(ODD, "string") | {"Select": "string"}
    spec = {"keys": ODD[:1], "sequence_by": ODD[1:2], "apply_as_deletes": "`select` = 'd'"}
    shop = Shop(None, tmp_path, [source("odd", columns, format=kind, path="odd/*", **spec)])

    def batch(number: int, *kinds: str) -> list[str]:
        records = [
            {name: f"{number}" for name in ODD} | {ODD[0]: f"k{place}", "Select": kind}
            for place, kind in enumerate(kinds)
        ]
        if kind == "json":
            return lines(records)
        header = ",".join(f'"{name.replace(chr(34), chr(34) * 2)}"' for name in columns)
        return [header, *(",".join(record[name] for name in columns) for record in records)]

    shop.land(0, shop.deliver("odd/1", batch(1, "c", "c", "c")))
    shop.land(1, shop.deliver("odd/2", batch(2, "c", "d")))

    assert shop.rows("odd", *columns) == [
        ("k0", *"2" * 10, "c"),
        ("k2", *"1" * 10, "c"),
    ]
    assert shop.rows("_dead_letters", "reason") == []


def test_drift_is_rescued_or_evolves_the_table_or_stops(tmp_path: Path) -> None:
    columns = {"order_id": "string", "updated_at": "timestamp"}
    sources = [
        source("rescuing", columns, keys=("order_id",), path="ok/*"),
        source("evolving", columns, keys=("order_id",), path="ok/*", schema_drift="evolve"),
        source("failing", columns, path="strict/*", schema_drift="fail"),
    ]
    shop = Shop(None, tmp_path, sources)
    record = {"order_id": "a", "updated_at": "2026-03-01T12:00:00Z"}
    drifted = order("a", 1) | {"tip": 1.5, "_batch_id": 9, "who": {"x": [1]}}
    drifted = {name: drifted[name] for name in (*columns, "tip", "_batch_id", "who")}
    later = record | {"order_id": "b", "tip": "2"}

    for batch_id, each in enumerate([record, drifted, later]):
        for _ in range(2):
            shop.land(batch_id, shop.deliver(f"ok/{batch_id}", lines([each])))

    assert shop.rows("rescuing", "order_id", "_rescued_data") == [
        ("a", [("_batch_id", "9"), ("tip", "1.5"), ("who", '{"x":[1]}')]),
        ("b", [("tip", "2")]),
    ]
    assert shop.rows("evolving", "order_id", "tip", "who", "_rescued_data") == [
        ("a", "1.5", '{"x":[1]}', [("_batch_id", "9")]),
        ("b", "2", None, None),
    ]
    with pytest.raises(SourceError, match=r"SCHEMA_DRIFT: bronze.failing: strict/1:1"):
        shop.land(3, shop.deliver("strict/1", lines([drifted])))


def test_a_batch_tells_in_which_ways_its_records_drifted_and_a_replay_tells_the_same(
    tmp_path: Path,
) -> None:
    columns = {
        "id": "string",
        "status": "string",
        "n": "int",
        "who": "struct<x:int>",
        "at": "bigint",
    }
    spec: dict[str, Any] = {"path": "x/*", "keys": ("id",), "sequence_by": ("at",)}
    sources = [
        source("keeping", columns, apply_as_deletes="status = 'gone'", **spec),
        source("evolving", columns, schema_drift="evolve", **spec),
    ]
    shop = Shop(None, tmp_path, sources)
    plain = {"id": "a", "status": "new", "n": 1, "at": 1}
    drifted: list[dict[str, Any]] = [
        {"id": "b", "Status": "new", "at": 2, "tip": 1, "who": {"x": 1, "y": 2}},
        plain | {"id": "c", "n": 3_000_000_000},
        plain | {"id": "d", "n": "many"},
    ]

    quiet = shop.land(0, shop.deliver("x/0", lines([plain, plain])))
    path = shop.deliver("x/1", lines(drifted))
    batch, again = shop.land(1, path), shop.land(1, path)

    assert quiet.drift == {}
    common = [
        ("case-changed", "Status (the column is status)"),
        ("incompatible", "n (with int)"),
        ("missing", "n"),
        ("missing", "status"),
        ("nested", "who.y"),
        ("wider", "n (than int: declare bigint)"),
    ]
    told = {
        name: [(str(field.kind), str(field)) for field in drift]
        for name, drift in batch.drift.items()
    }
    assert told == {"bronze.keeping": [("added", "tip"), *common], "bronze.evolving": common}
    assert again == batch


def test_a_delete_that_holds_no_more_than_its_key_lacks_nothing(tmp_path: Path) -> None:
    columns = {"id": "string", "op": "string", "n": "int", "at": "bigint"}
    spec: dict[str, Any] = {"path": "x/*", "keys": ("id",), "sequence_by": ("at",)}
    sources = [
        source("deleting", columns, apply_as_deletes="op = 'd'", **spec),
        source("keeping", columns, **spec),
    ]
    shop = Shop(None, tmp_path, sources)
    shop.land(0, shop.deliver("x/0", lines([{"id": "a", "op": "c", "n": 1, "at": 1}])))

    batch = shop.land(1, shop.deliver("x/1", lines([{"id": "a", "op": "d", "at": 2}])))

    assert batch.drift == {"bronze.keeping": (DriftedField(DriftKind.MISSING, "n"),)}


def test_a_wider_type_goes_on_with_stored_rows_and_remembered_deletes(tmp_path: Path) -> None:
    spec: dict[str, Any] = {"keys": ("id",), "path": "sales/*", "apply_as_deletes": "n is null"}
    narrow = source("sales", {"id": "int", "updated_at": "smallint", "n": "decimal(4,2)"}, **spec)
    wide = source("sales", {"id": "bigint", "updated_at": "bigint", "n": "decimal(9,3)"}, **spec)
    shop = Shop(None, tmp_path, [narrow])
    first = [(1, 1, "1.50"), (2, 5, "2"), (2, 6, None), (3, 1, "3")]
    then = [(1, 2, "9.125"), (2, 4, "2.125"), (2**40, 70_000, "123456.789"), (3, 2, None)]

    def write(rows: list[tuple[int, int, str | None]]) -> list[str]:
        return lines(dict(zip(("id", "updated_at", "n"), row, strict=True)) for row in rows)

    shop.land(0, shop.deliver("sales/0", write(first)))
    shop.sources = [wide]
    shop.restart()
    batch = shop.land(1, shop.deliver("sales/1", write(then)))

    assert shop.rows("sales", "id", "n") == [(1, Decimal("9.125")), (2**40, Decimal("123456.789"))]
    assert shop.rows("_deletes_sales", "id", "updated_at") == [(2, 6), (3, 2)]
    counts = batch.counts["bronze.sales"]
    assert (counts.produced, counts.landed, counts.superseded, counts.dead_letters) == (4, 3, 1, 0)


def test_a_batch_that_was_begun_with_narrower_types_is_replayed_with_wider_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec: dict[str, Any] = {"keys": ("id",), "path": "sales/*"}
    narrow = source("sales", {"id": "int", "updated_at": "int"}, **spec)
    wide = source("sales", {"id": "bigint", "updated_at": "bigint"}, **spec)
    shop = Shop(None, tmp_path, [narrow])
    shop.land(0, shop.deliver("sales/0", lines([{"id": 1, "updated_at": 1}])))
    path = shop.deliver("sales/1", lines([{"id": 1, "updated_at": 2}, {"id": 2**40}]))
    with monkeypatch.context() as patched, pytest.raises(OSError, match="no disk"):
        patched.setattr(MicroBatch, "land", Mock(side_effect=OSError("no disk")))
        shop.land(1, path)

    shop.sources = [wide]
    shop.restart()
    shop.land(1, path)

    assert shop.rows("sales", "id", "updated_at", "_origin") == [(1, 2, "sales/1:1")]


def test_a_value_of_a_column_that_is_no_longer_declared_is_judged_as_before(
    tmp_path: Path,
) -> None:
    columns = {"id": "string", "amount": "decimal(10,2)"}
    shop = Shop(None, tmp_path, [source("sales", columns, path="sales/*")])
    shop.sources = [source("sales", {"id": "string"}, path="sales/*")]
    shop.restart()
    records: list[dict[str, Any]] = [{"id": "a", "amount": 1.5}, {"id": "b", "amount": "many"}]

    shop.land(0, shop.deliver("sales/0", lines(records)))

    assert shop.rows("sales", "id", "amount") == [("a", Decimal("1.50"))]
    assert shop.rows("_dead_letters", "reason", "detail") == [
        ("TYPE_MISMATCH", 'amount: "many" does not fit decimal(10,2)')
    ]


def test_fields_named_as_landing_names_its_own_columns_stay_rescued(tmp_path: Path) -> None:
    columns = {"order_id": "string", "updated_at": "timestamp"}
    shop = Shop(
        None,
        tmp_path,
        [source("evolving", columns, keys=("order_id",), path="x/*", schema_drift="evolve")],
    )
    names = ("_change_type", "_code_0", "_kind", "_record")

    for minute in range(3):
        record = {"order_id": "a", "updated_at": f"2026-03-01T12:0{minute}:00Z"}
        shop.land(minute, shop.deliver(f"x/{minute}", lines([record | dict.fromkeys(names, "x")])))

    assert shop.rows("evolving", "_batch_id", "_rescued_data") == [
        (2, [(name, "x") for name in names])
    ]


def test_a_fixed_event_time_that_moves_is_a_dead_letter(tmp_path: Path) -> None:
    fixed = source("orders", keys=("order_id",), event_time_is_fixed=True, max_future=None)
    shop = Shop(None, tmp_path, [fixed])
    moved = "2026-03-02T12:00:00Z"
    first = [order("a", 1), order("b", 2, ordered_at=moved), order("b", 1)]
    second = [order("a", 2, ordered_at=moved), order("a", 3, status="delivered")]

    shop.land(0, shop.deliver("orders/0.jsonl", lines(first)))
    batch = shop.land(1, shop.deliver("orders/1.jsonl", lines(second)))

    assert shop.rows("orders", "order_id", "status", "ordered_at") == [
        ("a", "delivered", NOON),
        ("b", "placed", NOON),
    ]
    assert batch.counts["bronze.orders"].dead_letters == 1
    assert shop.rows("_dead_letters", "reason", "origin", "record", "record_bytes") == [
        ("EVENT_TIME_MOVED", f"orders/{file}.jsonl:{line}", raw, len(raw))
        for file, line, raw in [(0, 2, lines(first)[1]), (1, 1, lines(second)[0])]
    ]


@pytest.mark.parametrize("seed", range(6))
def test_of_several_first_event_times_the_earliest_is_the_keys(tmp_path: Path, seed: int) -> None:
    """Neither line nor text of `_origin` (`:10` is before `:2`) decides between equal sequences."""
    fixed = source("orders", keys=("order_id",), event_time_is_fixed=True)
    shop = Shop(None, tmp_path, [fixed])
    earlier = "2026-02-28T00:00:00+00:00"
    records = [
        order("o64", 0),
        order("o64", 0, ordered_at=earlier),
        order("o64", 3),
        order("o278", 3, ordered_at=None),
        order("o278", 3),
        order("o278", 4, ordered_at=None),
        *(order(f"o{number}", 0, ordered_at=None) for number in range(6)),
    ]
    random.Random(seed).shuffle(records)

    batch = shop.land(0, shop.deliver("orders/0.jsonl", lines(records)))

    letters = [json.loads(record) for (record,) in shop.rows("_dead_letters", "record")]
    assert sorted((each["order_id"], each["ordered_at"] or "") for each in letters) == [
        ("o278", ""),
        ("o278", ""),
        ("o64", NOON.isoformat()),
        ("o64", NOON.isoformat()),
    ]
    assert dict(shop.rows("orders", "order_id", "ordered_at")) == {
        **{f"o{number}": None for number in range(6)},
        "o64": NOON - timedelta(hours=36),
        "o278": NOON,
    }
    counts = batch.counts["bronze.orders"]
    assert (counts.produced, counts.landed, counts.superseded, counts.dead_letters) == (12, 8, 0, 4)


def test_a_column_declared_later_is_added_and_another_type_is_refused(shop: Shop) -> None:
    shop.land(0, shop.deliver("orders/0.jsonl", lines([order("a")])))

    shop.sources = [source("orders", COLUMNS | {"note": "string"}, keys=("order_id",))]
    shop.restart()
    shop.land(1, shop.deliver("orders/1.jsonl", lines([order("a", 1, note="hot"), order("b")])))
    shop.sources = [source("orders", COLUMNS | {"status": "int"}, keys=("order_id",))]

    assert shop.rows("orders", "order_id", "note") == [("a", "hot"), ("b", None)]
    with pytest.raises(StateError, match="LANDED_COLUMN_CHANGED"):
        shop.restart()


def test_a_thousand_fuzzed_records_are_all_accounted_for(shop: Shop) -> None:
    chance = random.Random(20260301)
    good = lines(order(f"o{chance.randrange(400)}", chance.randrange(9)) for _ in range(600))
    broken = [_fuzz(chance, json.dumps(order(f"x{number}")).encode()) for number in range(400)]
    every = [*(line.encode() for line in good), *broken]
    chance.shuffle(every)
    path = shop.deliver("orders/1.jsonl", b"\n".join(every))

    batch = shop.land(0, path)
    after = shop.land(1, shop.deliver("orders/2.jsonl", lines([order("after")])))

    for name, counts in batch.counts.items():
        total = counts.landed + counts.superseded + counts.dead_letters
        assert (counts.produced, total) == (1_000, 1_000), name
    letters = len(shop.rows("_dead_letters", "reason"))
    assert letters == sum(counts.dead_letters for counts in batch.counts.values()) > 300
    assert after.counts["bronze.orders"].landed == 1


def _fuzz(chance: random.Random, raw: bytes) -> bytes:
    fragments = [
        b"\xff\xfe",
        b"\x00",
        b"{",
        b'"',
        b"null",
        b"NaN",
        b"1e999",
        b"\\u0000",
        b"[" * 200,
    ]
    mutated = bytearray(raw)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(mutated))
        mutated[place : place + chance.randint(0, 9)] = chance.choice(fragments)
    return bytes(mutated).replace(b"\n", b" ").strip() or b"?"


def _landed(root: Path, batches: list[list[dict[str, Any]]]) -> Shop:
    root.mkdir()
    shop = Shop(None, root)
    for batch_id, records in enumerate(batches):
        shop.land(batch_id, shop.deliver(f"orders/{batch_id}.jsonl", lines(records)))
    return shop


def limits(shop: Shop, **spec: Any) -> Limits:
    """Return the lag that the stream would report for a source."""
    shop.sources = [source("orders", keys=("order_id",), **spec)]
    shop.restart()
    return shop.landing._limits(["bronze.orders"])


def test_a_source_without_a_limit_is_taken_in_steps_of_a_gibibyte(shop: Shop) -> None:
    assert limits(shop) == Limits(max_bytes=1 << 30)
    assert limits(shop, max_files_per_trigger=3) == Limits(max_files=3)
    assert limits(shop, max_bytes_per_trigger=9) == Limits(max_bytes=9)


def test_a_limit_by_records_takes_the_bytes_that_so_many_had_before(shop: Shop) -> None:
    content = lines([order(f"o{number}") for number in range(4)])
    size = len(content[0]) + 1
    before = limits(shop, max_records_per_trigger=100)
    shop.landing._limited = [(Slot("orders/*.jsonl", ("bronze.orders",)), before)]
    is_off = [shop.landing.has_other_limits()]

    shop.land(0, shop.deliver("orders/1.jsonl", content))
    is_off.append(shop.landing.has_other_limits())
    after = limits(shop, max_records_per_trigger=100)

    # The size of the first file's records is unknown.
    assert before == Limits(max_files=1)
    assert after == Limits(max_bytes=100 * size)
    assert is_off == [False, True]


def test_a_stream_is_started_anew_if_records_are_more_than_twice_as_large(shop: Shop) -> None:
    spec = {"max_records_per_trigger": 10}
    limits(shop, **spec)
    shop.landing._record_sizes.add("bronze.orders", 1_000_000, 100_000_000)
    used = shop.landing._limits(["bronze.orders"])
    shop.landing._limited = [(Slot("orders/*.jsonl", ("bronze.orders",)), used)]
    is_off = []
    for size in (190_000_000, 250_000_000, 40_000_000):
        shop.landing._record_sizes.add("bronze.orders", 100_000_000, 100 * size)
        is_off.append(shop.landing.has_other_limits())

    assert used == Limits(max_bytes=1_000)
    assert is_off == [False, True, True]


def test_records_that_turn_out_larger_than_the_driver_holds_go_to_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Staged(Exception):
        """Raised where Spark would begin to read."""

    def stage(*_: object) -> None:
        raise Staged

    monkeypatch.setattr(micro_batch, "stage", stage)
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]"))
    shop = Shop(spark, tmp_path, limit=Limit(100_000, most_cores=0))
    records = lines([order("a", status="x" * 100)] * 9_000)
    packed = gzip.compress("\n".join(records).encode())
    few = shop.deliver("orders/1.jsonl", gzip.compress("\n".join(records[:100]).encode()))
    many = shop.deliver("orders/2.jsonl", packed)

    assert shop.land(0, few).has_records
    # By its size on the disk it would be little.
    assert len(packed) * 8 < 100_000
    with pytest.raises(Staged):
        shop.land(1, many)
