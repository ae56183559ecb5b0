"""Tokens are judged in memory, by id and secret, and believed for a minute at most."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from livemart.errors import PublishError
from livemart.serve.auth.book import TokenBook
from livemart.serve.auth.tokens import TokenStore
from livemart.store.store import Store, make_tables


class Clock:
    """Seconds that a test moves."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TokenStore]:
    with closing(TokenStore(f"sqlite:///{tmp_path}/serving.db")) as store:
        yield store


def test_a_token_is_found_by_its_whole_text_alone(store: TokenStore) -> None:
    text, token = store.create("till", tenants=("r1",))
    _, other = store.create("other", is_admin=True)
    book = TokenBook(store)
    book.refresh()

    assert book.find(text) == token == book.by_id(token.token_id)
    changed = text[:-1] + ("a" if text[-1] != "a" else "b")
    for wrong in (changed, text.replace(token.token_id, other.token_id), f"{text} ", "", "lm_"):
        assert book.find(wrong) is None
    # Only one that may have been made a moment ago is worth another look.
    assert not book.is_unknown(changed) and not book.is_unknown("lm_")
    assert book.is_unknown(text.replace(token.token_id, "0" * 12))


def test_who_made_a_token_has_a_lock_even_when_it_is_revoked(store: TokenStore) -> None:
    book = TokenBook(store)
    is_empty = [book.is_empty]
    book.refresh()
    is_empty.append(book.is_empty)

    text, token = store.create("till", is_admin=True)
    store.revoke(token.token_id)
    book.refresh()
    is_empty.append(book.is_empty)
    revoked = book.find(text)

    assert is_empty == [False, True, False]
    assert revoked is not None and revoked.revoked_at is not None


def test_a_token_of_a_store_that_is_away_for_a_moment_is_not_revoked(
    store: TokenStore, tmp_path: Path
) -> None:
    """The file is moved away, another one without tokens takes its place, and then it is back."""
    clock = Clock()
    book = TokenBook(store, clock=clock)
    text, token = store.create("till", is_admin=True)
    book.refresh()
    file, aside = tmp_path / "serving.db", tmp_path / "aside.db"

    found = []
    file.rename(aside)
    for is_other in (False, True):
        if is_other:
            with closing(Store.open(f"sqlite:///{file}")) as other, other.begin() as connection:
                make_tables(connection)
        clock.now += 30.0
        with pytest.raises(PublishError, match="STORE_UNREACHABLE"):
            book.refresh()
        found.append((book.find(text), book.is_trusted, book.is_empty))
    aside.rename(file)
    book.refresh()
    found.append((book.find(text), book.is_trusted, book.is_empty))

    assert found == [(token, True, False), (token, False, False), (token, True, False)]


def test_a_store_that_takes_the_place_of_another_has_its_own_tokens_alone(
    store: TokenStore, tmp_path: Path
) -> None:
    text, _ = store.create("till", is_admin=True)
    book = TokenBook(store)
    book.refresh()

    for file in tmp_path.iterdir():
        file.unlink()
    later, _ = store.create("till", is_admin=True)
    book.refresh()

    assert book.find(text) is None
    assert book.find(later) is not None


def test_tokens_that_cannot_be_read_are_believed_for_a_minute(
    store: TokenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    book = TokenBook(store, clock=clock)
    is_trusted = [book.is_trusted]
    book.refresh()

    def be_away() -> int:
        raise PublishError("STORE_UNREACHABLE", "away", hint="wait")

    monkeypatch.setattr(store, "version", be_away)
    for seconds in (59.0, 1.0):
        clock.now += seconds
        with pytest.raises(PublishError):
            book.refresh()
        is_trusted.append(book.is_trusted)

    assert is_trusted == [False, True, False]
