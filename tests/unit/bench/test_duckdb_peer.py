"""The peer's upserted panes give the answers of a load from scratch."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.duckdb_peer import DuckDBPeer
from bench.history import END, ORDERS, History
from bench.live import make_batches


def test_upserts_end_where_a_load_of_the_newest_versions_does(tmp_path: Path) -> None:
    history = History(3_000, 1)
    batches = make_batches(history, 3, 200)
    as_of = batches[-1].now + timedelta(seconds=1)
    newest = {
        row["order_id"]: row
        for rows in (*history.chunks(), *(batch.orders for batch in batches))
        for row in rows.to_pylist()
    }
    upserted, loaded = DuckDBPeer(tmp_path / "upserted"), DuckDBPeer(tmp_path / "loaded")

    upserted.load(history.restaurants(), history.dishes(), history.chunks(), END)
    for batch in batches:
        upserted.upsert(batch.orders, batch.now + timedelta(seconds=1))
    loaded.load(
        history.restaurants(),
        history.dishes(),
        [pa.Table.from_pylist(list(newest.values()), ORDERS)],
        as_of,
    )

    actual, expected = _answers(upserted), _answers(loaded)
    upserted.close()
    loaded.close()
    assert actual == expected


def _answers(peer: DuckDBPeer) -> tuple[list[tuple[Any, ...]], ...]:
    rows = (peer.metrics(), peer.top_dishes(), peer.trend(END - timedelta(days=30)))
    return tuple(sorted(each, key=str) for each in rows)
