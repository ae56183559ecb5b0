"""Files that arrive in a bucket land as from a disk: once, by every name, and with a reason."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from livemart.delta.warehouse import Warehouse
from livemart.storage.location import Location
from livemart.storage.opening import open_storage
from tests.commands import RUNNER, Commands
from tests.integration.mini import PROJECT, sale, visit
from tests.services.bucket import Buckets
from tests.storages import bucket_server  # noqa: F401

pytestmark = pytest.mark.extended


@dataclass
class FromBucket(Commands):
    """The commands of a project whose files arrive at a URL."""

    landing_url: str = "s3://orders-that-arrive/in"

    @property
    def places(self) -> list[str]:
        return [*super().places[:-1], self.landing_url]

    def put(self, name: str, records: Iterable[Mapping[str, Any]]) -> None:
        """Put an object of JSON lines below the landing folder."""
        lines = "".join(f"{json.dumps(record)}\n" for record in records)
        open_storage(self.landing_url).put(name, lines.encode())

    def succeed(self, *words: str) -> str:
        """Run a command, which must succeed; return what it says."""
        ended = self.run(*words)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout + ended.stderr

    def rows(self, relation: str, *columns: str) -> list[tuple[Any, ...]]:
        """Return columns of a table's rows, sorted."""
        table = Warehouse(Location.of(self.url or self.warehouse).place).read(relation)
        return sorted(zip(*(table[name].to_pylist() for name in columns), strict=True))

    def totals(self) -> dict[str, tuple[int, str]]:
        """Return count and amount of `shop_totals` by shop."""
        rows = self.rows("mini.shop_totals", "shop_id", "sale_count", "sales_amount")
        return {shop: (count, str(amount)) for shop, count, amount in rows}


@pytest.fixture
def mart(
    bucket_server: Buckets,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> FromBucket:
    bucket_server.make("orders-that-arrive")
    environ = {
        **bucket_server.environment,
        "XDG_STATE_HOME": str(tmp_path / "own"),
        "LIVEMART_MEMORY": "1g",
    }
    for name, value in bucket_server.environment.items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "mini"
    folder.mkdir()
    url = f"s3://orders-that-arrive/{tmp_path.name}"
    return FromBucket(folder, PROJECT, environ, landing_url=url)


def test_files_of_every_name_land_once_and_a_changed_one_is_a_dead_letter(
    mart: FromBucket,
) -> None:
    mart.succeed("build")
    mart.put("sales/a b%20#?&+ü.jsonl", [sale("1", "a", "2.00"), sale("2", "b", "3.00")])
    mart.put("visits/1.jsonl", [visit("a")])
    mart.put("visists/2.jsonl", [visit("a")])
    said = mart.succeed("refresh")
    assert "unread visists/2.jsonl" in said
    # Hadoop's globs refuse a colon, and all names beside it.
    mart.put("sales/2026-03-04T10:30:00Z.jsonl", [sale("3", "a", "1.00")])
    mart.put("sales/_not-yet.jsonl", [sale("4", "a", "1.00")])
    mart.put("visits/1.jsonl", [visit("a"), visit("b")])
    mart.succeed("refresh")

    assert mart.totals() == {"a": (2, "3.00"), "b": (1, "3.00")}
    letters = mart.rows("bronze._dead_letters", "origin", "reason")
    assert letters == [("visits/1.jsonl", "SOURCE_FILE_CHANGED")]
    assert len(mart.rows("bronze.visits", "shop_id")) == 1
    mart.put("sales/z.jsonl", [sale("5", "a", "1.00")])
    status = json.loads(mart.succeed("status", "--output", "json"))
    waiting = {it["relation"]: it["waiting_files"] for it in status["sources"]}
    assert (waiting["bronze.sales"], waiting["bronze.visits"]) == (1, 0)
    mart.succeed("verify")
    assert "s3://orders-that-arrive" in mart.succeed("doctor")


def test_records_that_are_handed_over_and_driven_again_go_through_the_bucket(
    mart: FromBucket,
) -> None:
    mart.succeed("build")
    note = "x" * 70_000
    broken = json.dumps(sale("1", "a", "much") | {"note": note})
    ended = subprocess.run(
        [*RUNNER, "ingest", "sales", *mart.places],
        cwd=mart.root,
        env=mart._environment({}),
        input=f"{json.dumps(sale('2', 'b', '3.00'))}\n{broken}\n",
        capture_output=True,
        text=True,
    )
    assert "2 records in 1 file" in ended.stdout, ended.stderr
    mart.succeed("refresh")
    assert mart.totals() == {"b": (1, "3.00")}
    # The letter keeps the beginning of the record alone: the rest is read from the bucket again.
    exported = mart.succeed("dead-letters", "export")
    assert note in exported
    mart.succeed("dead-letters", "redrive")
    mart.succeed("refresh")
    assert len(mart.rows("bronze._dead_letters", "reason")) == 2


@pytest.mark.parametrize("lane", ["small", "large"])
def test_a_refresh_that_is_killed_lands_its_files_once(mart: FromBucket, lane: str) -> None:
    mart.url = f"{mart.landing_url}-mart"
    mart.succeed("build")
    mart.put("sales/1.jsonl", [sale("1", "a", "2.00"), sale("2", "b", "3.00")])
    mart.put("visits/1.jsonl", [visit("a"), visit("c")])
    for place in ("landing.after_deletes", "landing.after_table.1"):
        killed = mart.start("refresh", LIVEMART_FAILPOINT=place, LIVEMART_LANE=lane)
        assert killed.ended() == -signal.SIGKILL, killed.output()
    running = mart.start("refresh", LIVEMART_LANE=lane)
    assert running.ended() == 0, running.output()

    assert mart.totals() == {"a": (1, "2.00"), "b": (1, "3.00")}
    assert len(mart.rows("bronze.visits", "shop_id")) == 2
    mart.succeed("verify")
