"""Tokens: hashed at rest, read in memory, expiring, revocable, in both databases."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from livemart.errors import PublishError, StateError
from livemart.serve.auth.book import TokenBook
from livemart.serve.auth.tokens import TokenStore
from livemart.store.connections import open_engine
from tests.ports import silent_port
from tests.store.stores import fill_store, reference_tables
from tests.waits import PATIENCE_S

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


Open = Callable[[str], TokenStore]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Open the tokens of a store; closed at the end of the test."""
    with ExitStack() as stack:

        def open_(url: str) -> TokenStore:
            store = TokenStore(url, now=lambda: NOW)
            stack.callback(store.close)
            return store

        yield open_


def book_of(store: TokenStore) -> TokenBook:
    book = TokenBook(store)
    book.refresh()
    return book


def test_a_token_is_found_by_its_text_alone(store_url: str, opened: Open) -> None:
    store = opened(store_url)
    text, made = store.create("till", tenants=["r1", "r2"], lasts=timedelta(days=1))

    book = book_of(store)

    assert book.find(text) == made
    assert made.tenants == {"r1", "r2"}
    assert made.is_valid(NOW) and not made.is_valid(NOW + timedelta(days=1))
    wrong = [
        text[:-1],
        text + "A",
        text.replace("lm_", "lm-"),
        "",
        "lm_",
        "ü",
        "\udc80",
        "x" * 9999,
    ]
    wrong.append(text[:20] + ("B" if text[20] != "B" else "C") + text[21:])
    assert [book.find(each) for each in wrong] == [None] * len(wrong)


def test_the_store_holds_no_secret(store_url: str, opened: Open) -> None:
    text, made = opened(store_url).create("till", tenants=["r1"])
    secret = text.split("_", 2)[2]

    engine = open_engine(store_url)
    with engine.begin() as connection:
        rows = connection.execute(sa.text("select * from livemart_access_tokens")).all()
    engine.dispose()

    assert made.token_hash in str(rows)
    assert secret not in str(rows)


def test_a_revoked_token_is_not_valid_and_stays_in_the_list(store_url: str, opened: Open) -> None:
    store = opened(store_url)
    text, made = store.create("till", is_admin=True)
    book = book_of(store)
    before = book.version

    store.revoke(made.token_id)
    book.refresh()

    found = book.find(text)
    assert found is not None and not found.is_valid(NOW)
    assert book.version > before
    assert [token.state(NOW) for token in store.tokens()] == ["revoked"]
    assert store.revoke(made.token_id).revoked_at == NOW


def test_an_unknown_token_cannot_be_revoked(store_url: str, opened: Open) -> None:
    with pytest.raises(StateError, match="TOKEN_UNKNOWN"):
        opened(store_url).revoke("nobody")


def test_reading_makes_no_store(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "serving.db"
    store = opened(f"sqlite:///{path}")

    assert (store.tokens(), store.version()) == ([], 0)
    assert not path.exists()


def test_tokens_and_served_models_live_in_one_store(store_url: str, opened: Open) -> None:
    store = opened(store_url)
    text, _ = store.create("first", is_admin=True)

    fill_store(store_url, reference_tables([]))
    fill_store(store_url, reference_tables([]), snapshot_id=2, epoch="another")

    assert book_of(store).find(text) is not None


def test_every_writer_raises_the_version(store_url: str, opened: Open) -> None:
    first = opened(store_url)
    first.create("first", is_admin=True)
    before = first.version()
    stores = [opened(store_url) for _ in range(8)]
    threads = [
        threading.Thread(target=each.create, args=("more",), kwargs={"is_admin": True})
        for each in stores
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)

    store = opened(store_url)
    assert (store.version() - before, len(store.tokens())) == (8, 9)


def test_a_lost_store_does_not_open_a_door_that_needed_a_key(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "serving.db"
    store = opened(f"sqlite:///{path}")
    store.create("first", is_admin=True)
    book = book_of(store)

    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(PublishError, match="STORE_UNREACHABLE"):
        book.refresh()

    assert store.tokens() == []
    assert not book.is_empty


def test_nobody_is_trusted_when_the_store_is_away_for_long(tmp_path: Path, opened: Open) -> None:
    store = opened(f"sqlite:///{tmp_path}/serving.db")
    store.create("first", is_admin=True)
    passed = [0.0]
    book = TokenBook(store, clock=lambda: passed[0])
    assert not book.is_trusted

    book.refresh()

    found = []
    for passed[0] in (59.0, 60.0):
        found.append(book.is_trusted)
    assert found == [True, False]


def test_a_database_that_does_not_answer_is_an_error_with_a_code(opened: Open) -> None:
    with silent_port() as port:
        store = opened(f"postgresql+psycopg://nobody:hidden@127.0.0.1:{port}/none")

        with pytest.raises(PublishError, match="STORE_UNREACHABLE") as raised:
            store.version()

    assert "hidden" not in str(raised.value)


def test_a_token_waits_until_a_first_copy_is_done(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/serving.db"
    is_copying, has_waited = threading.Event(), threading.Event()

    def step(name: str) -> None:
        if name == "publish.in_transaction":
            is_copying.set()
            assert has_waited.wait(PATIENCE_S)

    copying = threading.Thread(target=lambda: fill_store(url, reference_tables(), step=step))
    copying.start()
    assert is_copying.wait(PATIENCE_S)
    with closing(TokenStore(url, now=lambda: NOW, waits=has_waited.set)) as store:
        text, made = store.create("till", tenants=["r1"])
        copying.join(PATIENCE_S)

        assert book_of(store).find(text) == made


def test_a_token_gives_up_after_its_patience(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/serving.db"
    writing = open_engine(url, writes=True)
    told: list[str] = []
    patience = timedelta(seconds=1)

    with closing(
        TokenStore(url, now=lambda: NOW, patience=patience, waits=lambda: told.append("waits"))
    ) as store:
        with writing.begin(), pytest.raises(PublishError, match="STORE_BUSY") as raised:
            store.create("till", tenants=["r1"])
        writing.dispose()

        assert "another process has been writing for 1s" in raised.value.message
        assert told == []
        assert store.version() == 0
