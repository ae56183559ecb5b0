"""The key of sessions is its owner's alone: no store holds it, and no file that others can read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from itsdangerous import BadSignature, TimestampSigner
from structlog.testing import capture_logs

from livemart.serve.auth.signing_key import SessionSigner, SigningKey
from livemart.store.connections import open_engine
from livemart.store.store import Store
from tests.serve.apps import site
from tests.serve.auth.callers import session
from tests.store.postgres import Postgres
from tests.store.stores import fill_store, reference_tables

TILES = "/v1/restaurants/r1/metrics"


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_the_key_is_kept_for_its_owner_and_is_the_same_for_all_who_start_at_once(
    tmp_path: Path,
) -> None:
    path = tmp_path / "warehouse" / "_livemart" / "session_key"
    keys = [SigningKey(path=path) for _ in range(8)]

    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda key: key.text, keys))

    assert len(found) == 1 and len(found.pop()) >= 64
    assert (mode_of(path), [each.name for each in path.parent.iterdir()]) == (0o600, [path.name])


def test_nothing_is_made_before_a_session_needs_the_key(tmp_path: Path) -> None:
    with site(tmp_path) as one:
        assert one.client.get("/healthz").status_code == 200

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("key", "mode", "reason"), [("k" * 64, 0o640, "others could read it"), ("k", 0o600, "short")]
)
def test_a_key_that_others_could_read_or_guess_is_replaced(
    tmp_path: Path, key: str, mode: int, reason: str
) -> None:
    path = tmp_path / "session_key"
    path.write_text(key)
    path.chmod(mode)

    with capture_logs() as logs:
        found = SigningKey(path=path).text

    assert found != key and path.read_text() == found and mode_of(path) == 0o600
    assert reason in logs[0]["reason"]


def test_a_key_that_cannot_be_kept_holds_as_long_as_its_server(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file, not a folder")
    key = SigningKey(path=tmp_path / "taken" / "session_key")

    with capture_logs() as logs:
        found = {key.text, key.text}

    assert len(found) == 1 and len(found.pop()) >= 64
    assert [each["event"] for each in logs] == ["session_key_not_kept"]


def test_sessions_outlive_the_server_and_the_store_by_the_file_or_the_setting(
    tmp_path: Path,
) -> None:
    for given in (None, "a secret of the environment, long"):
        with site(tmp_path, session_key=given) as one:
            cookie = session(one)
        with site(tmp_path, session_key=given) as one:
            one.learn_tokens()
            assert one.client.get(TILES, headers=cookie).status_code != 401
        with site(tmp_path, session_key="another secret of the environment") as one:
            one.learn_tokens()
            assert one.client.get(TILES, headers=cookie).status_code == 401


def test_a_session_is_signed_by_sha_256_and_not_as_the_library_does_by_itself() -> None:
    """itsdangerous 2.2 takes SHA-1, which ASVS 5.0 does not approve for HMAC."""
    signed = SessionSigner("k" * 32).sign("a")

    with pytest.raises(BadSignature):
        TimestampSigner("k" * 32, salt="livemart.session").unsign(signed)
    assert len(signed.rpartition(b".")[2]) == 43


def test_who_reads_all_of_the_store_cannot_forge_a_session(tmp_path: Path, store_url: str) -> None:
    fill_store(store_url, reference_tables([]))
    with site(tmp_path, store=store_url) as one:
        own = session(one)
        assert one.client.get(TILES, headers=own).status_code == 200
        (token,) = one.tokens.tokens()

        for text in texts_of(store_url):
            forged = session(one, token_id=token.token_id, key=text)
            assert one.client.get(TILES, headers=forged).status_code == 401, text


def texts_of(url: str) -> set[str]:
    """Return every value of the store's own tables, as text that is not empty."""
    engine = open_engine(url)
    with engine.begin() as connection:
        names = sa.inspect(connection).get_table_names()
        rows = [
            row
            for name in names
            if name.startswith("livemart_")
            for row in connection.execute(sa.text(f"select * from {name}"))
        ]
    engine.dispose()
    texts = {str(value) for row in rows for value in row if value not in (None, "")}
    assert len(texts) > 5
    return texts


GRANTS = """
grant usage on schema {schema} to server;
alter default privileges in schema {schema} grant select on tables to server;
grant select on all tables in schema {schema} to server;
"""


@pytest.fixture
def server_role(postgres: Postgres) -> Iterator[Callable[[str], str]]:
    """Makes a role that may read the tables of a store and nothing else; returns its URL."""
    made = []

    def grant(url: str) -> str:
        with closing(Store.open(url)) as owner, owner.begin() as connection:
            schema: str = connection.exec_driver_sql("select current_schema()").scalar_one()
            connection.exec_driver_sql("create role server login")
            connection.exec_driver_sql(GRANTS.format(schema=schema))
            made.append(owner)
        return url.replace("//postgres@", "//server@")

    yield grant
    with postgres.connect() as connection:
        connection.execute("drop owned by server")
        connection.execute("drop role server")


def test_a_server_needs_rights_to_read_and_no_others(
    tmp_path: Path, postgres: Postgres, server_role: Callable[[str], str]
) -> None:
    """The role is made before the first snapshot; tables that come later are its, too."""
    url = postgres.new_store()
    read_url = server_role(url)
    fill_store(url, reference_tables([]))

    with site(tmp_path, store=url) as owner:
        token = owner.bearer()
    with site(tmp_path, page=True, store=read_url) as one:
        one.learn_tokens()
        one.until(lambda: one.shows(1))
        # A model that is copied whole gets a new table.
        changed = dict.fromkeys(reference_tables([]), "g")
        fill_store(url, reference_tables([]), snapshot_id=2, fingerprints=changed)
        one.until(lambda: one.shows(2))
        paths = (TILES, "/v1/models/order_arrivals", "/models", "/r/r1", "/readyz")
        found = [one.client.get(path, headers=token).status_code for path in paths]
        signed_in = one.client.post(
            "/login", data={"token": token["Authorization"].split()[1]}, follow_redirects=False
        )

    assert found == [200, 200, 200, 200, 200]
    assert signed_in.status_code == 303 and "livemart_session" in signed_in.headers["set-cookie"]
