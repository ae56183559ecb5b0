"""Open tables notice what becomes of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from unittest.mock import Mock

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from livemart.delta.log import log_name
from livemart.delta.properties import is_checkpointed
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.errors import RefreshError
from livemart.storage.local import LocalStorage
from livemart.storage.storage import ObjectEntry
from tests.unit.delta.small_tables import RELATION, SMALL, diff, tag


def test_a_table_made_anew_is_seen_as_another(warehouse: Warehouse) -> None:
    warehouse.overwrite(RELATION, pa.table({"id": [1], "name": ["a"]}, schema=SMALL), tag(1))
    first = warehouse.table_id(RELATION)
    shutil.rmtree(warehouse.path(RELATION))
    Warehouse(warehouse.root).overwrite(
        RELATION, pa.table({"id": [2], "name": ["b"]}, schema=SMALL), tag(1)
    )

    assert warehouse.table_id(RELATION) != first
    assert warehouse.read(RELATION, 1).to_pylist() == [{"id": 2, "name": "b"}]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that were looked at, each a request in a bucket."""
    names: list[str] = []
    head = LocalStorage.head

    def noting(self: LocalStorage, name: str) -> ObjectEntry | None:
        names.append(name)
        return head(self, name)

    monkeypatch.setattr(LocalStorage, "head", noting)
    return names


def _filled(warehouse: Warehouse) -> Warehouse:
    warehouse.create(RELATION, SMALL)
    warehouse.commit(RELATION, diff((1, "a", 0, 1)), tag(1))
    return warehouse


def _ask(warehouse: Warehouse) -> int:
    """Ask for a table as a batch does, and return its version."""
    version = warehouse.version(RELATION)
    assert warehouse.exists(RELATION)
    assert warehouse.is_tagged(RELATION, tag(1))
    assert warehouse.changes(RELATION, 0, 1).num_rows == 1
    assert warehouse.read(RELATION, 1).num_rows == 1
    assert len(warehouse.data_changed_between(RELATION, 0, 1)) == 1
    return version


def test_the_only_writer_looks_at_a_table_once(warehouse: Warehouse, looks: list[str]) -> None:
    _filled(warehouse)

    with warehouse.only_writer(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalStorage, "names", lambda *args, **kinds: pytest.fail("a list"))
        assert warehouse.exists(RELATION)
        _ask(warehouse)
        looks.clear()
        assert [_ask(warehouse) for _ in range(3)] == [1, 1, 1]
        assert looks == []
    _ask(warehouse)

    assert log_name(2) in looks


def test_the_only_writer_sees_its_commits(warehouse: Warehouse) -> None:
    with _filled(warehouse).only_writer():
        _ask(warehouse)
        warehouse.commit(RELATION, diff((2, "b", 0, 1)), tag(2))
        assert warehouse.version(RELATION) == 2
        assert warehouse.changes(RELATION, 1, 2).num_rows == 1
        warehouse.add_columns(RELATION, [pa.field("more", pa.int64())], tag(3))
        assert warehouse.arrow_schema(RELATION).names == ["id", "name", "more"]


def _remade(warehouse: Warehouse) -> None:
    shutil.rmtree(warehouse.path(RELATION))
    other = Warehouse(warehouse.root)
    other.create(RELATION, SMALL)
    other.commit(RELATION, diff((3, "c", 0, 1)), tag(1))


def _committed(warehouse: Warehouse) -> None:
    Warehouse(warehouse.root).commit(RELATION, diff((3, "c", 0, 1)), tag(2))


@pytest.mark.parametrize("written", [_remade, _committed])
@pytest.mark.parametrize("notice", [Warehouse.look_again, Warehouse.written_beside])
def test_the_only_writer_notices_other_writers(
    warehouse: Warehouse,
    written: Callable[[Warehouse], None],
    notice: Callable[[Warehouse], None],
) -> None:
    with _filled(warehouse).only_writer():
        _ask(warehouse)
        before = warehouse.table_id(RELATION), warehouse.version(RELATION)
        notice(warehouse)
        written(warehouse)
        assert (warehouse.table_id(RELATION), warehouse.version(RELATION)) != before
        assert {"id": 3, "name": "c"} in warehouse.read(RELATION).to_pylist()


def test_the_only_writer_looks_before_it_commits(warehouse: Warehouse) -> None:
    with _filled(warehouse).only_writer():
        _ask(warehouse)
        _committed(warehouse)
        warehouse.commit(RELATION, diff((2, "b", 0, 1)), tag(3))
        assert warehouse.version(RELATION) == 3
    assert warehouse.read(RELATION).num_rows == 3


def test_the_only_writer_leaves_no_log_with_a_gap(warehouse: Warehouse) -> None:
    """A table without its first commits could not be opened, nor made again."""
    with _filled(warehouse).only_writer():
        _ask(warehouse)
        shutil.rmtree(warehouse.path(RELATION))
        with pytest.raises(RefreshError, match="TABLE_MISSING"):
            warehouse.commit(RELATION, diff((2, "b", 0, 1)), tag(3))
        assert not warehouse.exists(RELATION)
    assert not warehouse.exists(RELATION)


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Counts the questions to deltalake that read all commits since the checkpoint."""
    asked = Mock(side_effect=DeltaTable.transaction_version)
    monkeypatch.setattr(DeltaTable, "transaction_version", lambda *args: asked(*args))
    return asked


def test_only_new_commits_are_read_for_their_tags(warehouse: Warehouse, replays: Mock) -> None:
    _filled(warehouse)
    other = Warehouse(warehouse.root)
    for number in range(2, 15):
        writer = warehouse if number % 3 else other
        assert not warehouse.is_tagged(RELATION, tag(number))
        assert not writer.commit(RELATION, diff((number, "a", 0, 1)), tag(number)).skipped
        assert warehouse.is_tagged(RELATION, tag(number))
        assert warehouse.commit(RELATION, diff((9, "b", 0, 1)), tag(number)).skipped
    assert not warehouse.is_tagged(RELATION, Tag("e2/mart.totals/0", 2))

    of_each = [name for _, name in (asked.args for asked in replays.call_args_list)]
    assert sorted(of_each) == [*["e1/mart.totals/0"] * 2, "e2/mart.totals/0"]


def test_a_table_made_again_has_no_tag_of_the_one_before(warehouse: Warehouse) -> None:
    _filled(warehouse).commit(RELATION, diff((2, "b", 0, 1)), tag(2))
    assert warehouse.is_tagged(RELATION, tag(2))

    _remade(warehouse)

    assert [warehouse.is_tagged(RELATION, tag(number)) for number in (1, 2)] == [True, False]


@pytest.mark.parametrize("commits", [5, 28])
def test_tags_of_commits_whose_entries_are_gone_are_found_at_once(
    warehouse: Warehouse, replays: Mock, commits: int
) -> None:
    last = next(it for it in range(commits + 3, commits + 13) if is_checkpointed(RELATION, it))
    other = _filled(Warehouse(warehouse.root))
    for number in range(2, last - commits + 1):
        other.commit(RELATION, diff((number, "a", 0, 1)), Tag("other", number))
    assert not warehouse.is_tagged(RELATION, tag(2))
    for number in range(last - commits + 1, last + 1):
        of_batch = tag(2) if number == last - commits + 1 else Tag("other", number)
        other.commit(RELATION, diff((number, "a", 0, 1)), of_batch)
    replays.reset_mock()
    warehouse.storage(RELATION).delete(map(log_name, range(last - 1)))

    assert warehouse.is_tagged(RELATION, tag(2))
    assert replays.call_count == 1


def test_commits_of_few_files_are_read_once(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    get = LocalStorage.get

    def noting(self: LocalStorage, name: str) -> bytes:
        read.append(name)
        return get(self, name)

    monkeypatch.setattr(LocalStorage, "get", noting)
    _filled(warehouse)
    for _ in range(3):
        assert len(warehouse.data_changed_between(RELATION, 0, 1)) == 1

    assert read.count(log_name(1)) == 1
