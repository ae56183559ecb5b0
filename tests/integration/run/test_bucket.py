"""A warehouse in a bucket holds the rows of one on a disk, whichever lane writes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from livemart.delta.warehouse import Warehouse
from livemart.state.snapshots import SnapshotLog
from livemart.storage.location import Location
from tests.commands import Commands
from tests.integration.mini import PROJECT, sale, visit
from tests.services.bucket import Buckets
from tests.storages import bucket_server  # noqa: F401

pytestmark = pytest.mark.extended


class InBucket(Commands):
    """The commands of a project whose tables and state are at a URL."""

    def rows(self, relation: str) -> list[tuple[object, ...]]:
        """Return the rows of a table, sorted."""
        rows = Warehouse(Location.parse(self.url)).read(relation).to_pylist()
        return sorted(tuple(row.values()) for row in rows)

    def refresh(self, lane: str) -> None:
        """Refresh all models in a lane."""
        running = self.start("refresh", LIVEMART_LANE=lane)
        assert running.ended() == 0, running.output()

    def succeed(self, *words: str) -> str:
        """Run a command, which must succeed; return what it says."""
        ended = self.run(*words)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout + ended.stderr


@pytest.fixture
def mart(
    bucket_server: Buckets,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[InBucket]:
    bucket_server.make("mart-of-mini")
    own = tmp_path / "own"
    environ = {**bucket_server.environment, "XDG_STATE_HOME": str(own), "LIVEMART_MEMORY": "1g"}
    for name, value in bucket_server.environment.items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "mini"
    folder.mkdir()
    yield InBucket(folder, PROJECT, environ, url="s3://mart-of-mini/eu")


def test_both_lanes_keep_tables_and_state_in_a_bucket(mart: InBucket) -> None:
    mart.deliver("sales", "1.jsonl", [sale("1", "a", "2.00"), sale("2", "b", "3.00")])
    mart.deliver("visits", "1.jsonl", [visit("a"), visit("c")])
    mart.succeed("build")
    mart.deliver("sales", "2.jsonl", [sale("1", "a", "5.00", updated=1), sale("3", "a", "1.00")])
    mart.refresh("small")
    mart.deliver("sales", "3.jsonl", [sale("2", "b", op="d", updated=2), sale("4", "c", "7.00")])
    mart.refresh("large")

    totals = {row[0]: (row[1], str(row[2])) for row in mart.rows("mini.shop_totals")}
    assert totals == {"a": (2, "6.00"), "c": (1, "7.00")}
    newest = SnapshotLog(Location.parse(mart.url)).newest()
    assert newest is not None and newest.snapshot_id == 3
    assert "mini.shop_totals" in mart.succeed("tables")
    mart.succeed("verify")
    # Nothing of it is on this machine but what is its own.
    assert list(mart.warehouse.iterdir()) == []
    assert not (mart.root / "s3:").exists()
