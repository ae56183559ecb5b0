"""Streams of NATS land as record logs; with a separate server and no JVM, 10 s in all."""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from livemart.errors import ConfigError, SourceError
from livemart.land.micro_batch import Limit
from livemart.land.sources.nats import client as nats_client
from livemart.land.sources.nats.client import NatsDeniedError, NatsUnreadableError
from livemart.land.sources.nats.log import NatsLog
from livemart.run.replays import is_retriable
from tests.deliveries import Shop, lines, order, source
from tests.project_run import ROOT
from tests.services.certificates import make_certificates
from tests.services.fixtures import not_installed, told_where_absent
from tests.services.maven import NotInstalledError
from tests.services.nats import Nats, running_nats
from tests.waits import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.extended

_NAMES = (f"S{number}" for number in count())
# The messages of eight that a bucket keeps, two at each of two looks.
_LEFT = ((2, "a"), (4, "b"), (6, "a"), (8, "b"))
# Lands one micro-batch in a separate process, which a failpoint may kill.
_LAND = """
import sys
from pathlib import Path
from tests.integration.land.test_nats import shop_of

shop_of(Path(sys.argv[1]), *sys.argv[2:]).land(0)
"""


@contextmanager
def own_server(root: Path, settings: str = "", **admin: Any) -> Iterator[Nats]:
    """Yield a server that a test may kill."""
    folder = root / "nats"
    folder.mkdir()
    with ExitStack() as stack:
        try:
            server = stack.enter_context(running_nats(folder, settings, **admin))
        except NotInstalledError as error:
            not_installed(str(error))
        yield server


@pytest.fixture
def stream(nats_server: Nats) -> str:
    """The name of an empty stream."""
    name = next(_NAMES)
    nats_server.make_stream(name)
    return name


def shop_of(
    root: Path, servers: str, stream: str, spark: SparkSession | None = None, **options: Any
) -> Shop:
    """Orders by key and as events, from one stream."""
    after_loss = options.pop("after_loss", "stop")
    given = {"servers": servers, "stream": stream} | options
    log: dict[str, Any] = {"path": "", "kind": "nats", "after_loss": after_loss}
    log["options"] = tuple(sorted(given.items()))
    root.mkdir(exist_ok=True)
    events = source("order_events", **log)
    return Shop(spark, root, (source("orders", keys=("order_id",), **log), events))


def origins(shop: Shop) -> list[tuple[str, str]]:
    return [(origin, key) for origin, key in shop.rows("order_events", "_origin", "order_id")]


def test_messages_land_once_though_landing_is_killed(
    nats_server: Nats, stream: str, tmp_path: Path
) -> None:
    publish = nats_server.publish
    publish(f"{stream}.placed", [*lines([order("a"), order("b")]), "{broken", ""])
    command = [sys.executable, "-c", _LAND, str(tmp_path), nats_server.address, stream]
    environment = os.environ | {"LIVEMART_FAILPOINT": "landing.after_table.1"}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == -signal.SIGKILL, run.stderr
    # Messages that arrive meanwhile belong to the next batch.
    publish(f"{stream}.placed", lines([order("a", 1)]))
    shop = shop_of(tmp_path, nats_server.address, stream)

    counts = [shop.land(batch).counts["bronze.order_events"].produced for batch in range(3)]

    assert counts == [4, 1, 0]
    assert origins(shop) == [(f"{stream}@1", "a"), (f"{stream}@2", "b"), (f"{stream}@5", "a")]
    assert [key for (key,) in shop.rows("orders", "order_id")] == ["a", "b"]
    assert shop.rows("_dead_letters", "source", "origin", "reason") == [
        (f"bronze.{name}", f"{stream}@{number}", "MALFORMED_RECORD")
        for name in ("order_events", "orders")
        for number in (3, 4)
    ]


def test_a_key_value_bucket_lands_though_all_its_keys_were_written_again(
    nats_server: Nats, tmp_path: Path
) -> None:
    # nats-server 2.15: the first sequence rises with the oldest message that no newer one replaced.
    name = next(_NAMES)
    nats_server.make_stream(name, max_msgs_per_subject=1)
    shop = shop_of(tmp_path, nats_server.address, name)
    for number, minutes in enumerate((0, 5)):
        for key in ("a", "b"):
            for version in range(2):
                record = order(key, minutes + version)
                nats_server.publish(f"{name}.{key}", lines([record]))
        shop.land(number)

    assert origins(shop) == [(f"{name}@{number}", key) for number, key in _LEFT]
    assert [key for (key,) in shop.rows("orders", "order_id")] == ["a", "b"]
    assert shop.rows("_dead_letters", "origin") == []


def test_workers_land_what_the_driver_lands(
    spark: SparkSession, nats_server: Nats, stream: str, tmp_path: Path
) -> None:
    nats_server.publish(f"{stream}.placed", lines([order(f"o{it}") for it in range(9)]))
    rows = []
    for name, limit in (("driver", Limit()), ("workers", Limit.of("large"))):
        shop = shop_of(tmp_path / name, nats_server.address, stream, spark)
        shop.limit = limit
        shop.restart()
        shop.run()
        rows.append(origins(shop))

    assert rows[0] == rows[1]
    assert len(rows[0]) == 9


def test_what_stands_beside_a_message_lands_in_columns(
    nats_server: Nats, stream: str, tmp_path: Path
) -> None:
    before = datetime.now(UTC)
    nats_server.publish(f"{stream}.placed.7", lines([order("a")]), till="7")
    options = (("servers", nats_server.address), ("stream", stream))
    columns = {
        "order_id": "string",
        "subject": "string",
        "headers": "map<string,string>",
        "stored_at": "timestamp",
    }
    parts = (("headers", "headers"), ("timestamp", "stored_at"), ("topic", "subject"))
    how: dict[str, Any] = {"path": "", "kind": "nats", "options": options, "message": parts}
    shop = Shop(None, tmp_path, (source("order_events", columns, **how),))

    shop.land(0)

    ((subject, headers, stored_at),) = shop.rows("order_events", *list(columns)[1:])
    assert (subject, headers) == (f"{stream}.placed.7", [("till", "7")])
    assert before <= stored_at <= datetime.now(UTC)


def test_numbers_that_a_stream_leaves_out_hold_nothing_up(
    nats_server: Nats, stream: str, tmp_path: Path
) -> None:
    publish = nats_server.publish
    for number in range(4):
        publish(f"{stream}.placed", lines([order(f"o{number}")]))
        publish(f"{stream}.refunded", lines([order(f"r{number}")]))
    nats_server.do(lambda jetstream: jetstream.delete_msg(stream, 3))
    nats_server.do(lambda jetstream: jetstream.delete_msg(stream, 8))
    whole = shop_of(tmp_path / "whole", nats_server.address, stream)
    one = shop_of(tmp_path / "one", nats_server.address, stream, subjects=(f"{stream}.placed",))
    none = shop_of(tmp_path / "none", nats_server.address, stream, subjects=(f"{stream}.no",))

    for shop in (whole, one, none):
        shop.land(0)
        assert not shop.land(1).has_records

    assert [key for _, key in origins(whole)] == ["o0", "r0", "r1", "o2", "r2", "o3"]
    assert [key for _, key in origins(one)] == ["o0", "o2", "o3"]
    assert origins(none) == []


def test_several_subjects_are_read_unless_the_server_is_too_old_for_it(
    nats_server: Nats, stream: str
) -> None:
    for kind in ("placed", "changed", "refunded"):
        nats_server.publish(f"{stream}.{kind}", [kind])
    subjects = [f"{stream}.placed", f"{stream}.refunded"]
    read = NatsLog(nats_server.address, stream, subjects).read(stream, 1, 4)

    if nats_server.version < (2, 10):
        with pytest.raises(NatsUnreadableError, match="cannot filter by several subjects"):
            list(read)
    else:
        assert [message.topic for message in read] == subjects


def test_a_large_message_is_read_by_itself(
    nats_server: Nats, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = ["1", "2" * 5_000, "3", "4", "5" * 5_000, "6" * 5_000]
    nats_server.publish(f"{stream}.placed", contents)
    monkeypatch.setattr(nats_client, "_PULL_BYTES", 1_000)
    log = NatsLog(nats_server.address, stream)

    read = [(it.offset, (it.content or b"").decode()) for it in log.read(stream, 1, 7)]

    assert read == list(enumerate(contents, 1))


def test_a_range_is_read_in_pulls_and_ends_where_it_should(
    nats_server: Nats, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nats_server.publish(f"{stream}.placed", [str(number) for number in range(1, 12)])
    monkeypatch.setattr(nats_client, "_PULL_RECORDS", 3)
    log = NatsLog(nats_server.address, stream)
    cut = log.read(stream, 1, 12)
    next(cut)
    cut.close()  # type: ignore[attr-defined]

    read = [it.offset for it in log.read(stream, 2, 11)]

    assert read == [*range(2, 11)]
    # Nothing is left at the server.
    assert nats_server.do(lambda it: it.stream_info(stream)).state.consumer_count == 0


def test_a_server_that_does_not_hand_out_all_that_is_there_is_asked_again(
    nats_server: Nats, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nats_server.publish(f"{stream}.placed", ["1"])

    async def lag(*_: object) -> AsyncIterator[list[Any]]:
        messages: list[list[Any]] = []
        for message in messages:
            yield message

    monkeypatch.setattr(nats_client.NatsClient, "_range", lag)

    with pytest.raises(NatsUnreadableError, match="message 1 was not delivered"):
        list(NatsLog(nats_server.address, stream).read(stream, 1, 2))


def test_a_server_that_is_away_is_waited_for_and_nothing_is_lost(tmp_path: Path) -> None:
    with own_server(tmp_path) as server:
        server.make_stream("ORDERS")
        server.publish("ORDERS.placed", lines([order("a")]))
        shop = shop_of(tmp_path / "shop", server.address, "ORDERS")
        shop.land(0)
        server.publish("ORDERS.placed", lines([order("b")]))
        server.kill()

        with pytest.raises(
            SourceError, match=r"SOURCE_UNREADABLE.*no server of `options` can be reached"
        ) as caught:
            shop.land(1)
        server.start()
        shop.land(1)

    assert is_retriable(caught.value)
    assert origins(shop) == [("ORDERS@1", "a"), ("ORDERS@2", "b")]


def test_what_was_purged_before_it_was_read_stops_landing_until_somebody_says_how_to_go_on(
    nats_server: Nats, stream: str, tmp_path: Path
) -> None:
    nats_server.publish(f"{stream}.placed", lines([order("a")]))
    shop = shop_of(tmp_path, nats_server.address, stream)
    shop.land(0)
    nats_server.publish(f"{stream}.placed", lines([order(key) for key in "bcd"]))
    nats_server.do(lambda jetstream: jetstream.purge_stream(stream, seq=4))
    with pytest.raises(SourceError, match=r"SOURCE_RECORDS_LOST.*records 2 to 3"):
        shop.land(1)

    shop = shop_of(tmp_path, nats_server.address, stream, after_loss="earliest")
    shop.land(1)
    nats_server.do(lambda jetstream: jetstream.purge_stream(stream))
    nats_server.publish(f"{stream}.placed", lines([order("e")]))
    shop.land(2)

    assert [key for _, key in origins(shop)] == ["a", "d", "e"]
    letters = shop.rows("_dead_letters", "origin", "reason", "detail")
    assert {letter[:2] for letter in letters} == {(f"{stream}@2", "RECORDS_EXPIRED")}
    assert "records 2 to 3" in letters[0][2]


def test_a_stream_whose_messages_go_when_they_are_read_is_refused(
    nats_server: Nats, tmp_path: Path
) -> None:
    name = next(_NAMES)
    nats_server.make_stream(name, retention="workqueue")

    with pytest.raises(SourceError, match=f"stream {name} has the retention workqueue"):
        shop_of(tmp_path, nats_server.address, name).land(0)


def test_times_and_bounds_are_the_streams(nats_server: Nats, stream: str) -> None:
    log = NatsLog(nats_server.address, stream, name="shop")
    empty = log.starts(), log.ends(), log.written_at(f"shop/{stream}", 1)
    before = datetime.now(UTC)
    nats_server.publish(f"{stream}.placed", ["1", "2"])
    nats_server.do(lambda jetstream: jetstream.delete_msg(stream, 1))

    written_at = log.written_at(f"shop/{stream}", 1)

    assert empty == ({f"shop/{stream}": 1}, {f"shop/{stream}": 1}, None)
    assert (log.starts(), log.ends()) == ({f"shop/{stream}": 2}, {f"shop/{stream}": 3})
    assert written_at is not None
    assert before <= written_at <= datetime.now(UTC)


def test_a_stream_that_is_made_anew_stops_landing(
    nats_server: Nats, stream: str, tmp_path: Path
) -> None:
    nats_server.publish(f"{stream}.placed", lines([order("a")]))
    shop = shop_of(tmp_path, nats_server.address, stream)
    shop.land(0)
    nats_server.do(lambda jetstream: jetstream.delete_stream(stream))
    with pytest.raises(SourceError, match=f"SOURCE_UNREADABLE.*no stream {stream}"):
        shop.land(1)
    nats_server.make_stream(stream)
    # It ends behind what was read of the one before.
    nats_server.publish(f"{stream}.placed", lines([order(key) for key in "bc"]))

    with pytest.raises(SourceError, match=r"SOURCE_RECORDS_LOST.*another partition has its name"):
        shop.land(1)
    shop = shop_of(tmp_path, nats_server.address, stream, after_loss="earliest")
    shop.land(1)

    assert [key for _, key in origins(shop)] == ["a", "b", "c"]


def test_a_stream_that_is_made_anew_is_another_one(nats_server: Nats, stream: str) -> None:
    log = NatsLog(nats_server.address, stream)
    before = log.identities()
    nats_server.publish(f"{stream}.placed", ["1"])
    assert log.identities() == before
    nats_server.do(lambda jetstream: jetstream.delete_stream(stream))

    with pytest.raises(NatsUnreadableError, match=f"no stream {stream} in this account"):
        log.identities()

    nats_server.make_stream(stream)
    assert log.identities().keys() == before.keys() == {stream}
    assert log.identities() != before
    assert log.is_selected(stream)


def test_secrets_come_from_the_environment_and_are_shown_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    users = "authorization {users: [{user: livemart, password: hunter2}]}"
    options: dict[str, Any] = {
        "client": frozenset({("user", "livemart")}),
        "secrets": frozenset({("password", "SHOP_PASSWORD")}),
    }
    with own_server(tmp_path, users, user="livemart", password="hunter2") as server:
        server.make_stream("ORDERS")
        server.publish("ORDERS.placed", lines([order("a")]))
        monkeypatch.delenv("SHOP_PASSWORD", raising=False)
        with pytest.raises(ConfigError) as absent:
            shop_of(tmp_path / "shop", server.address, "ORDERS", **options)
        monkeypatch.setenv("SHOP_PASSWORD", "hunter3")
        shop = shop_of(tmp_path / "shop", server.address, "ORDERS", **options)
        with pytest.raises(SourceError) as refused:
            shop.land(0)
        monkeypatch.setenv("SHOP_PASSWORD", "hunter2")
        shop.land(0)
        texts = [str(absent.value), str(refused.value)]
        # Another server than the expected one gets no secret.
        encrypted = replace_servers(shop, server.address.replace("nats://", "tls://"))
        with pytest.raises(SourceError) as caught:
            encrypted.land(1)
        texts.append(str(caught.value))

    assert "no environment variable SHOP_PASSWORD" in texts[0]
    assert "Authorization Violation" in texts[1]
    assert {it.value.code for it in (refused, caught)} == {"SOURCE_ACCESS_DENIED"}
    assert "does not encrypt" in texts[2]
    assert [key for _, key in origins(shop)] == ["a"]
    kept = [path.read_bytes() for path in tmp_path.glob("shop/**/*") if path.is_file()]
    shown = "".join([*texts, *capfd.readouterr(), repr(shop.landing._logs)])
    assert "hunter" not in shown
    assert not any(b"hunter" in content for content in kept)


def test_an_encrypted_server_is_checked_and_checks_the_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "hunter2")
    with told_where_absent():
        authority, certificate, key = make_certificates(tmp_path / "tls")
    server_files = f'cert_file: "{certificate}", key_file: "{key}"'
    settings = f'tls {{{server_files}, ca_file: "{authority}", verify: true}}'
    settings += "\nauthorization {token: hunter2}"
    context = ssl.create_default_context(cafile=authority)
    context.load_cert_chain(certificate, key)
    whole = {"tls_ca": authority, "tls_cert": certificate, "tls_key": key}
    without_authority = {name: path for name, path in whole.items() if name != "tls_ca"}
    ends: list[str] = []

    def has_answered(log: NatsLog) -> bool:
        try:
            ends.append(str(log.ends()))
        except NatsDeniedError as error:
            ends.append(str(error))
        except NatsUnreadableError:
            # The server may close before the client has read why: then a stream asks again.
            return False
        return True

    with own_server(tmp_path, settings, tls=context, token="hunter2") as server:
        server.make_stream("ORDERS")
        for client in (whole, {"tls_ca": authority}, without_authority):
            log = NatsLog(
                server.address.replace("nats://", "tls://"),
                "ORDERS",
                client=client,
                secrets={"token": "SHOP_TOKEN"},
            )
            wait_until(partial(has_answered, log))

    assert ends[0] == "{'ORDERS': 1}"
    assert "certificate required" in ends[1]
    assert "certificate verify failed" in ends[2]


def replace_servers(shop: Shop, servers: str) -> Shop:
    """Return a shop that reads the same from other servers."""
    sources = []
    for each in shop.sources:
        assert each.stream is not None
        options = tuple({**dict(each.arrival.options), "servers": servers}.items())
        arrival = replace(each.arrival, options=options)
        sources.append(replace(each, stream=replace(each.stream, arrival=arrival)))
    return Shop(None, shop.root, sources)
