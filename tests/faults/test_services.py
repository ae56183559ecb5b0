"""kill -9 of the broker, the connector, the database and the runner, while a shop trades.

Afterwards everything is as if nothing had happened. Each landed table and each model holds the rows
of the same query in the database, and every message is counted once. A seed makes the choices, and
the parts themselves report when to go on: the outcome is the same on any machine.
Eight kills take three minutes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import psycopg
import pytest
from confluent_kafka import Producer

from examples.shop_cdc.__main__ import PROJECT
from examples.shop_cdc.compare import differing
from examples.shop_cdc.services import Services, running_services
from examples.shop_cdc.shop import TABLES, Shop
from livemart.state.snapshots import SnapshotLog
from tests.commands import Commands, Running
from tests.services.capture import messages_of
from tests.services.fixtures import told_where_absent
from tests.waits import PATIENCE_S, wait_until

pytestmark = pytest.mark.processes

NIGHT_ROUNDS = 63
# Each once in eight; at night in any order and number.
DISTURBANCES = (
    *("broker", "broker away", "connector", "database"),
    *("runner", "runner's group", "sent twice", "second runner"),
)


@pytest.mark.extended
@pytest.mark.timeout(3600)
def test_kills_of_services_and_runner_are_absorbed(tmp_path: Path) -> None:
    order = random.Random(7).sample(DISTURBANCES, len(DISTURBANCES))
    disturb(tmp_path, 7, order)


@pytest.mark.nightly
@pytest.mark.timeout(14_400)
@pytest.mark.parametrize("seed", range(NIGHT_ROUNDS))
def test_more_kills_of_services_and_runner(tmp_path: Path, seed: int) -> None:
    disturb(tmp_path, seed, random.Random(seed).choices(DISTURBANCES, k=8))


def disturb(folder: Path, seed: int, order: list[str]) -> None:
    """Let a shop trade and disturb what follows it; all is right after each disturbance."""
    with told_where_absent(), running_services(folder / "services") as services:
        (folder / "market").mkdir()
        market = Market(services, folder / "market", seed)
        with market.streaming():
            market.settle()
            for what in order:
                print(what)
                market.disturb(what)
                market.settle()
        verified = market.commands.run("verify")
        assert verified.returncode == 0, verified.stdout[-4000:] + verified.stderr[-4000:]
        assert "DIFFERENT" not in verified.stdout


class Market:
    """A shop that trades, what follows it, and a `stream` that lands its changes."""

    def __init__(self, services: Services, folder: Path, seed: int) -> None:
        environ = {
            **{"LIVEMART_MASTER": "local[2]", "LIVEMART_MEMORY": "1g"},
            "SHOP_SERVERS": services.kafka.address,
        }
        self.commands = Commands(folder, PROJECT, environ)
        self._services = services
        self._random = random.Random(seed)
        self._shop = Shop(lambda: services.connection(autocommit=False), seed)
        self._shop.open()
        self._shop.trade(50)
        services.follow()
        self._runner: Running | None = None
        self._snapshots: list[int] = []

    @property
    def runner(self) -> Running:
        assert self._runner is not None
        return self._runner

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """Stream until the block ends."""
        self._stream()
        try:
            yield
            assert self.runner.stop() == 143, self.runner.output()[-4000:]
        finally:
            self.runner.kill()

    def disturb(self, what: str) -> None:
        """Let something go wrong while the shop trades."""
        with self._trading():
            match what:
                case "broker":
                    self._services.kafka.kill()
                    self._services.kafka.start()
                case "broker away":
                    self._services.kafka.kill()
                    told = self._retries()
                    self.runner.wait_until(lambda: self._retries() >= told + 2)
                    self._services.kafka.start()
                case "connector":
                    self._services.connect.kill()
                    self._services.connect.start()
                case "database":
                    self._services.database.stop()
                    self._services.database.start()
                case "runner" | "runner's group":
                    self.runner.kill(is_group=what == "runner's group")
                    self._stream()
                case "sent twice":
                    self._send_again()
                case "second runner":
                    second = self.commands.run("refresh")
                    assert second.returncode == 2, second.stdout + second.stderr
                    assert "RUNNER_LIVES" in second.stdout + second.stderr

    def settle(self) -> None:
        """Wait until all that was sent is published, and see that it is right."""
        self._services.wait_for_all()
        sent = {
            f"shop.{name}": len(messages_of(self._services.kafka, f"shop.public.{name}"))
            for name in TABLES
        }
        self.runner.wait_until(lambda: self._has_landed(sent))
        rows = SnapshotLog(self.commands.warehouse).rows(100_000)
        snapshots = [row.snapshot_id for row in reversed(rows)]
        assert snapshots == sorted(set(snapshots))
        assert snapshots[: len(self._snapshots)] == self._snapshots
        batches = [(row.epoch, row.batch_id) for row in rows]
        assert len(set(batches)) == len(batches)
        self._snapshots = snapshots
        for relation in sent:
            counts = [row.landed[relation] for row in rows if relation in row.landed]
            assert sum(it.dead_letters for it in counts) == 0
            parts = sum(it.landed + it.superseded for it in counts)
            assert parts == sent[relation], relation
        with self._services.connection() as connection:
            assert differing(self.commands.warehouse, connection) == []

    def _stream(self) -> None:
        self._runner = self.commands.start("stream", "--every", "1s", LIVEMART_PANE="1s")

    def _retries(self) -> int:
        return self.runner.output().count("batch_retried")

    def _has_landed(self, sent: Mapping[str, int]) -> bool:
        """Return True once published snapshots have counted all messages; never one twice."""
        rows = SnapshotLog(self.commands.warehouse).rows(100_000)
        produced = {
            relation: sum(row.landed[relation].produced for row in rows if relation in row.landed)
            for relation in sent
        }
        assert all(produced[relation] <= sent[relation] for relation in sent), (produced, sent)
        return produced == sent and rows[0].status == "published"

    @contextmanager
    def _trading(self) -> Iterator[None]:
        """Let the shop trade beside the block; it trades on after the database was away."""
        errors = list[BaseException]()

        def trade() -> None:
            try:
                for _ in range(12):
                    try:
                        self._shop.trade(5)
                    except psycopg.OperationalError:
                        wait_until(self._is_database_there)
            except BaseException as error:
                errors.append(error)

        thread = Thread(target=trade)
        thread.start()
        try:
            yield
        finally:
            thread.join(PATIENCE_S)
        assert not thread.is_alive()
        assert errors == []

    def _is_database_there(self) -> bool:
        try:
            self._services.connection().close()
        except psycopg.OperationalError:
            return False
        return True

    def _send_again(self) -> None:
        """Send again what was sent, from some message on, as a connector does after a crash."""
        for name in TABLES:
            messages = messages_of(self._services.kafka, f"shop.public.{name}")
            producer = Producer({"bootstrap.servers": self._services.kafka.address})
            for message in messages[self._random.randrange(len(messages)) :]:
                producer.produce(
                    message.topic, message.value, message.key, partition=message.partition
                )
            assert producer.flush(PATIENCE_S) == 0
