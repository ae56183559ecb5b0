"""Files read again and again stay in memory, within a bound."""

from __future__ import annotations

import pyarrow as pa
import pytest

from livemart.delta.cache import FileCache, usual_bytes

ROWS = pa.table({"n": list(range(100))})


def test_the_file_used_least_recently_makes_room() -> None:
    cache = FileCache(2 * ROWS.nbytes)
    for name in ("a", "b"):
        cache.keep(name, ROWS)
    cache.rows("a")

    cache.keep("c", ROWS)

    kept = [name for name in ("a", "b", "c") if cache.rows(name) is not None]
    assert kept == ["a", "c"]


def test_a_file_beyond_the_bound_is_not_kept() -> None:
    cache = FileCache(ROWS.nbytes - 1)

    cache.keep("a", ROWS)

    assert cache.rows("a") is None


def test_a_file_is_worth_keeping_when_it_is_asked_for_again() -> None:
    cache = FileCache()

    asked = [cache.is_worth_keeping("a") for _ in range(2)]

    assert asked == [False, True]


def test_a_file_that_was_replaced_makes_room_first() -> None:
    cache = FileCache(9 * ROWS.nbytes)
    names = [str(number) for number in range(9)]
    for name in names:
        cache.keep(name, ROWS)

    cache.replaced(["8", "never kept"])
    assert cache.rows("8") is not None
    cache.keep("new", ROWS)

    kept = [name for name in (*names, "new") if cache.rows(name) is not None]
    assert kept == [*names[:8], "new"]


def test_replaced_files_have_an_eighth_of_the_room() -> None:
    """A stream replaces files all day long: without it memory grows to the bound of all files."""
    cache = FileCache(16 * ROWS.nbytes)
    for number in range(5):
        cache.keep(str(number), ROWS)
        cache.replaced([str(number)])

    kept = [number for number in range(5) if cache.rows(str(number)) is not None]
    assert kept == [3, 4]


def test_replaced_files_take_no_more_memory_than_those_of_the_newest_versions() -> None:
    """A stream over a small warehouse grew by what each batch replaced, for an hour."""
    cache = FileCache(1024**3)
    rows = pa.table({"n": pa.array(range(1024**2 // 8))})

    def kept_after_batches(live: int) -> int:
        """Return the megabytes of replaced files after 60 batches beside so many live ones."""
        for number in range(live):
            cache.keep(f"live {number}", rows)
        for number in range(60):
            cache.keep(f"{live}/{number}", rows)
            cache.replaced([f"{live}/{number}"])
        return sum(cache.rows(f"{live}/{number}") is not None for number in range(60))

    assert [kept_after_batches(live) for live in (1, 30)] == [16, 30]


@pytest.mark.parametrize(("gigabytes", "megabytes"), [(1, 256), (8, 512), (23, 1024)])
def test_the_bound_grows_with_the_machine(
    monkeypatch: pytest.MonkeyPatch, gigabytes: int, megabytes: int
) -> None:
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": gigabytes * 1024**3 // 4096}
    monkeypatch.setattr("os.sysconf", pages.__getitem__)

    assert usual_bytes() == megabytes * 1024**2
