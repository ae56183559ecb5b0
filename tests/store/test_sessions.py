"""Silent, read-only and overloaded PostgreSQL: callers get an error in time, and recover."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

import pytest
import sqlalchemy as sa

from livemart.errors import PublishError
from livemart.store.reader import StoreReader
from livemart.store.store import Store
from tests.store.postgres import Postgres
from tests.store.silent_proxy import SilentProxy, silent_proxy
from tests.store.stores import fill_store, reference_tables

SILENT_S = 0.3


@pytest.fixture
def proxy(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> Iterator[SilentProxy]:
    """A proxy before the shared server; who meets it loses patience sooner."""
    monkeypatch.setattr("livemart.store.sessions.SILENT_S", SILENT_S)
    monkeypatch.setattr("livemart.store.sessions._PROBE_S", 2)
    monkeypatch.setattr("livemart.store.connections._CONNECT_SECONDS", 2)
    with silent_proxy(postgres) as opened:
        yield opened


def test_a_silent_server_is_given_up_and_its_locks_are_no_hindrance_afterwards(
    postgres: Postgres, proxy: SilentProxy
) -> None:
    """A firewall that forgot the connection: both ends receive nothing, and no error.

    libpq's `tcp_user_timeout` and keepalives see a living peer, because the proxy's own kernel
    acknowledges every byte.
    """
    direct = postgres.new_store()
    fill_store(direct, reference_tables([]))
    store, reader = Store.open(proxy.url(direct)), StoreReader.open(proxy.url(direct))
    assert reader.newest() is not None

    started = monotonic()
    with pytest.raises(PublishError, match="STORE_UNREACHABLE") as raised, store.begin() as held:
        held.execute(sa.text("lock table livemart_published"))
        proxy.silence()
        held.execute(sa.text("select 1"))
    took_s = monotonic() - started
    proxy.speak()
    # The session that was given up would hold both locks until the server misses its client.
    with store.begin() as again:
        again.execute(sa.text("lock table livemart_published"))
    found = reader.newest()

    store.close()
    reader.close()
    assert "has said nothing for 0.3 s" in raised.value.message
    assert took_s < 10
    assert found is not None and found.snapshot_id == 1


def test_a_silent_server_that_is_at_work_is_waited_for(
    postgres: Postgres, proxy: SilentProxy
) -> None:
    store = Store.open(proxy.url(postgres.new_store()))

    with store.begin() as connection:
        found: int = connection.execute(sa.text("select 7 from pg_sleep(0.8)")).scalar_one()

    store.close()
    assert found == 7


@pytest.mark.extended
def test_a_reader_is_refused_by_a_server_that_takes_too_long(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("livemart.store.connections._READ_SECONDS", 1)
    url = postgres.new_store()
    fill_store(url, reference_tables([]))
    reader, owner = StoreReader.open(url), Store.open(url)

    with owner.begin() as connection:
        connection.execute(sa.text("lock table livemart_published"))
        with pytest.raises(PublishError, match="statement timeout") as raised:
            reader.newest()
    found = reader.newest()

    reader.close()
    owner.close()
    assert raised.value.code == "STORE_UNREACHABLE"
    assert found is not None


def test_a_server_that_takes_no_writes_is_left_for_one_that_does(postgres: Postgres) -> None:
    """A primary becomes a standby: the session that is open goes on, and refuses every write."""
    store = Store.open(postgres.new_store())
    with store.begin() as connection:
        connection.execute(sa.text("create table t (n int)"))
        session: int = connection.execute(sa.text("select pg_backend_pid()")).scalar_one()

    with pytest.raises(PublishError, match="read-only transaction") as raised, store.begin() as old:
        old.execute(sa.text("set transaction read only"))
        old.execute(sa.text("insert into t values (1)"))
    with store.begin() as connection:
        connection.execute(sa.text("insert into t values (2)"))
        other: int = connection.execute(sa.text("select pg_backend_pid()")).scalar_one()

    store.close()
    assert raised.value.code == "STORE_UNREACHABLE"
    assert session != other


@pytest.mark.extended
def test_of_several_hosts_a_writer_takes_the_one_that_takes_writes(
    postgres: Postgres, proxy: SilentProxy
) -> None:
    """The first host is silent, as after a failover; libpq tries the next one."""
    with silent_proxy(postgres) as away:
        away.silence()
        ports = f"{away.port},{proxy.port}"
        url = proxy.url(postgres.new_store())
        hosts = f"postgresql+psycopg://postgres@/postgres?host=127.0.0.1,127.0.0.1&port={ports}"
        store = Store.open(f"{hosts}&options={url.partition('options=')[2]}")

        with store.begin() as connection:
            standby: str = connection.execute(sa.text("show transaction_read_only")).scalar_one()

        store.close()
    assert standby == "off"
