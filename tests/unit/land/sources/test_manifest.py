"""A manifest comes back as it was written, or is an error."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from livemart.errors import StateError
from livemart.land.sources.delivery import Delivery
from livemart.land.sources.manifest import Manifest, ManifestStore
from livemart.state.atomic_files import numbers_of, replace_file
from livemart.storage.location import StoragePlace

IDENTITY = {"path": "orders/a.jsonl", "size": 5, "mtime_ns": 7, "digest": "ab"}


def test_a_manifest_comes_back_as_it_was_written(place: StoragePlace) -> None:
    files = Delivery(
        "files",
        ("bronze.orders",),
        {"files": [IDENTITY], "changed": []},
        datetime(2026, 3, 1, 11, tzinfo=UTC),
    )
    log = Delivery("outbox", ("bronze.sales",), {"read": {"0": [1, 2]}, "lost": []})
    expected = Manifest(
        3,
        datetime(2026, 3, 1, 12, 0, 0, 1, tzinfo=UTC),
        {"bronze.orders": 4},
        [files, log],
        {"bronze.sales": {"0": 2}},
    )
    store = ManifestStore(place, "epoch")

    store.write(expected)

    assert store.read(3) == expected
    assert list(store.newest_first()) == [expected]
    assert store.read(4) is None
    assert expected.relations == ["bronze.orders", "bronze.sales"]


def test_a_source_that_is_taken_out_goes_on_where_it_was() -> None:
    lost = [{"partition": "0", "start": 4}, {"partition": "1", "start": 2}]
    receipt = {"read": {"0": [5, 9]}, "lost": lost}
    both = Delivery("outbox", ("bronze.sales", "bronze.events"), receipt)
    offsets = {name: {"0": 9, "1": 3} for name in both.relations}
    manifest = Manifest(3, datetime(2026, 3, 1, tzinfo=UTC), {}, [both], offsets)

    left = manifest.without(["bronze.sales"])

    assert left.relations == ["bronze.events"]
    assert left.offsets == offsets | {"bronze.sales": {"0": 4, "1": 2}}
    assert left.without(["bronze.events"]).deliveries == []
    assert left.without(["bronze.sales"]) == left


def test_only_the_newest_manifests_are_kept(
    place: StoragePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("livemart.land.sources.manifest._KEPT", 3)
    store = ManifestStore(place, "epoch")

    for batch_id in (0, 1, 3, 5, 6, 70):
        store.write(Manifest(batch_id, datetime(2026, 3, 1, tzinfo=UTC), {}))

    assert numbers_of(place / "epoch") == [70, 6, 5]


def test_a_torn_manifest_is_an_error_with_its_path(place: StoragePlace) -> None:
    replace_file(place / "epoch" / "3.json", '{"landed_at": ')

    with pytest.raises(StateError, match=r"3\.json") as caught:
        ManifestStore(place, "epoch").read(3)

    assert caught.value.code == "MANIFEST_TORN"


def test_a_batch_was_delivered_when_its_oldest_file_was() -> None:
    def manifest(*seconds: int) -> Manifest:
        times = [datetime.fromtimestamp(second, UTC) for second in seconds]
        deliveries = [Delivery("files", ("a",), {}, time) for time in (*times, None)]
        return Manifest(0, datetime.fromtimestamp(1_000, UTC), {}, deliveries)

    assert manifest().delivered_at is None
    assert manifest(900, 700).delivered_at == datetime.fromtimestamp(700, UTC)
    # The writer's clock is fast.
    assert manifest(2_000).delivered_at == datetime.fromtimestamp(1_000, UTC)
