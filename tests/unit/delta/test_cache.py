"""Files read again and again stay in memory, within a bound."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from livemart.delta.cache import FileCache, usual_bytes

ROWS = pa.table({"n": list(range(100))})


def test_the_file_used_least_recently_makes_room() -> None:
    cache = FileCache(2 * ROWS.nbytes)
    for name in ("a", "b"):
        cache.keep(Path(name), ROWS)
    cache.rows(Path("a"))

    cache.keep(Path("c"), ROWS)

    kept = [name for name in ("a", "b", "c") if cache.rows(Path(name)) is not None]
    assert kept == ["a", "c"]


def test_a_file_beyond_the_bound_is_not_kept() -> None:
    cache = FileCache(ROWS.nbytes - 1)

    cache.keep(Path("a"), ROWS)

    assert cache.rows(Path("a")) is None


def test_a_file_is_worth_keeping_when_it_is_asked_for_again() -> None:
    cache = FileCache()

    asked = [cache.is_worth_keeping(Path("a")) for _ in range(2)]

    assert asked == [False, True]


def test_a_file_that_was_replaced_makes_room_first() -> None:
    cache = FileCache(2 * ROWS.nbytes)
    for name in ("a", "b"):
        cache.keep(Path(name), ROWS)

    cache.replaced([Path("b"), Path("never kept")])
    cache.keep(Path("c"), ROWS)

    kept = [name for name in ("a", "b", "c") if cache.rows(Path(name)) is not None]
    assert kept == ["a", "c"]


@pytest.mark.parametrize(("gigabytes", "megabytes"), [(1, 256), (8, 512), (23, 1024)])
def test_the_bound_grows_with_the_machine(
    monkeypatch: pytest.MonkeyPatch, gigabytes: int, megabytes: int
) -> None:
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": gigabytes * 1024**3 // 4096}
    monkeypatch.setattr("os.sysconf", pages.__getitem__)

    assert usual_bytes() == megabytes * 1024**2
