"""A record log lands through the stream, in Spark's workers as in the driver, and in steps."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from livemart.errors import SourceError
from livemart.land.micro_batch import Limit
from livemart.run.replays import is_retriable
from tests.deliveries import Shop, lines, order, source
from tests.integration.mini import Mini
from tests.project_run import NOON
from tests.record_logs import install_kind, write_partition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCES = """
version: 2
sources:
  - name: shop
    schema: bronze
    tables:
      - name: sales
        config:
          meta:
            livemart:
              kind: folder
              options: {{folder: "{log}"}}
              max_records_per_trigger: 2
        columns:
          - {{name: sale_id, data_type: string}}
          - {{name: amount, data_type: int}}
"""


@pytest.fixture(autouse=True)
def kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_kind(tmp_path / "site", monkeypatch, "folder", "tests.record_logs:FolderLog")


# 15 s.
def test_workers_land_what_the_driver_lands_and_fail_as_it_fails(
    spark: SparkSession, tmp_path: Path
) -> None:
    log: dict[str, Any] = {
        "path": "",
        "kind": "folder",
        "options": (("folder", str(tmp_path / "log")),),
    }
    records = lines([order("a"), order("b"), order("a", 1), order("c")])
    write_partition(tmp_path / "log", "orders-1", [*records[2:], ""], start=40)
    tables = [source("orders", keys=("order_id",), **log), source("order_events", **log)]
    rows = []
    for number, limit in enumerate((Limit(), Limit.of("large"))):
        root = tmp_path / str(number)
        root.mkdir()
        shop = Shop(spark, root, tables, limit=limit)
        # No text: to read it is an error of the log.
        write_partition(tmp_path / "log", "orders-0", [7] * 4)  # type: ignore[list-item]
        with pytest.raises(SourceError, match="SOURCE_UNREADABLE: folder: orders-0") as caught:
            shop.run()
        assert is_retriable(caught.value)
        write_partition(tmp_path / "log", "orders-0", [*records[:2], None, "{broken"])
        shop.restart()
        batches = [*shop.run(), *shop.run()]
        # The replay, the stream's own tick, and a run without news.
        assert [batch.has_records for batch in batches] == [True, False, False]
        rows.append(
            [
                shop.rows("orders", "order_id", "updated_at", "_origin"),
                shop.rows("order_events", "order_id", "_origin"),
                shop.rows("_dead_letters", "source", "origin", "reason", "record"),
            ]
        )

    assert rows[0] == rows[1]
    assert [origin for _, origin in rows[0][1]] == [
        *("orders-0@0", "orders-1@40", "orders-0@1", "orders-1@41"),
    ]
    assert len(rows[0][2]) == 4


# 15 s.
def test_a_refresh_ends_when_all_that_waited_has_landed(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    mini = Mini(spark, tmp_path / "run")
    mini.replace(
        SOURCES.format(log=log),
        totals="select count(*) as sales, sum(amount) as amount from {{ source('shop', 'sales') }}",
    )
    records: list[str | None] = [json.dumps({"sale_id": f"{it}", "amount": it}) for it in range(3)]
    write_partition(log, "sales", records)
    mini.build()
    write_partition(log, "sales", records + records + records[:1])
    mini.now = NOON + timedelta(minutes=2)
    mini.refresh()

    table = mini.warehouse.read("mini.totals")
    assert table.to_pylist() == [{"sales": 7, "amount": 6}]
    assert mini.differing() == []


# 15 s.
def test_a_backlog_of_files_lands_in_steps_of_about_so_many_records(
    spark: SparkSession, tmp_path: Path
) -> None:
    mini = Mini(spark, tmp_path / "run")
    mini.replace(
        SOURCES.replace("kind: folder", "path: sales/*.jsonl")
        .replace('options: {{folder: "{log}"}}', "format: json")
        .replace("max_records_per_trigger: 2", "max_records_per_trigger: 4")
        .format(),
        totals="select count(*) as sales from {{ source('shop', 'sales') }}",
    )
    mini.build()
    for number in range(7):
        mini.deliver("sales", *({"sale_id": f"{number}{it}", "amount": it} for it in (1, 2)))
    mini.refresh()

    rows = sorted(mini.log.rows(20), key=lambda row: row.snapshot_id)
    steps = [row.landed["bronze.sales"].produced for row in rows[1:]]
    # The first file says how large a record is. By the time it stops, Spark may have begun the
    # second one, and may have logged the third as the next.
    assert steps in ([2, 4, 4, 4], [2, 2, 4, 4, 2], [2, 2, 2, 4, 4])
    assert mini.rows("mini.totals") == [{"sales": 14}]
