"""Which models a publication writes, and whether by their change or whole."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from livemart.arrow.bags import WEIGHT
from livemart.errors import RefreshError
from livemart.publish.exposures import ServedSpec
from livemart.publish.writes import base_of, form_of, is_published, plan_writes
from livemart.state.snapshots import Snapshot
from livemart.store.schema import Layout
from livemart.store.served import Published, ServedModel
from livemart.store.store import StoredModel, StoreState
from tests.store.served_tables import Versions
from tests.store.stores import make_snapshot

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SPEC = ServedSpec("sales", "model.test.sales", "gold.sales", ("n",))
COLUMNS = (("n", "bigint"), ("shop", "string"))
STORED = StoredModel(
    layout=Layout("served_sales", ServedModel("sales", COLUMNS, ("n",), "shop")),
    relation="gold.sales",
    table_version=1,
    table_id="table-sales",
    fingerprint="f",
    declared_key=("n",),
    event_time=None,
    row_count=1,
    copied_at=1,
)
ROWS = pa.table({"n": pa.array([1], pa.int64()), "shop": ["a"], WEIGHT: pa.array([1], pa.int64())})


def state(snapshot_id: int = 1, *, epoch: str = "epoch", **stored: Any) -> StoreState:
    published = Published(snapshot_id, NOON, NOON, epoch, NOON)
    models = {"sales": replace(STORED, **stored)}
    return StoreState("store", published, models, frozenset({"served_sales"}))


def plan(
    base: StoreState, number: int = 2, *, change: pa.Table | None = ROWS, spec: ServedSpec = SPEC
) -> list[str]:
    """Return how each model is written: by its change or whole."""

    def read(relation: str, from_version: int | None, to_version: int) -> pa.Table:
        if from_version is not None and change is None:
            raise RefreshError("CDF_UNAVAILABLE", "gone", hint="")
        return ROWS if from_version is None else change

    snapshot = make_snapshot(number, ["sales"])
    writes = plan_writes(base, snapshot, [spec], Versions(read), "shop")
    return ["change" if write.change is not None else "whole" for write in writes]


def test_a_model_is_written_by_its_net_change() -> None:
    assert plan(state()) == ["change"]


def test_a_model_at_the_version_of_the_snapshot_is_not_written() -> None:
    assert plan(state(2, table_version=2)) == []


@pytest.mark.parametrize(
    "stored",
    [
        {"table_id": "another"},
        {"fingerprint": "another"},
        {"relation": "gold.another"},
        {"declared_key": ()},
        {"event_time": "at"},
        {"table_version": 3},
    ],
)
def test_a_model_that_differs_from_the_stored_one_is_copied_whole(stored: dict[str, Any]) -> None:
    assert plan(state(**stored)) == ["whole"]


@pytest.mark.parametrize("change", [None, ROWS.drop(["shop"])])
def test_a_change_that_is_gone_or_does_not_fit_is_copied_whole(change: pa.Table | None) -> None:
    assert plan(state(), change=change) == ["whole"]


def test_a_model_that_the_store_lacks_is_copied_whole_and_one_without_state_is_left_out() -> None:
    empty = StoreState("store", None, {}, frozenset())

    assert plan(empty) == ["whole"]
    assert plan(empty, spec=replace(SPEC, unique_id="model.test.unbuilt")) == []


@pytest.mark.parametrize(
    ("snapshot_id", "epoch", "is_start", "expected"),
    [
        (1, "epoch", False, "builds upon it"),
        (2, "epoch", False, "builds upon it"),
        (3, "epoch", False, "nothing to do"),
        (3, "epoch", True, "anew"),
        (1, "another", False, "builds upon it"),
        (2, "another", False, "anew"),
        (3, "another", False, "anew"),
    ],
)
def test_a_store_of_another_log_has_nothing_to_build_upon(
    snapshot_id: int, epoch: str, is_start: bool, expected: str
) -> None:
    base = base_of(state(snapshot_id, epoch=epoch), snapshot(2), is_start=is_start)

    if base is None:
        actual = "nothing to do"
    else:
        actual = "anew" if base.published is None and not base.models else "builds upon it"
    assert actual == expected


def test_a_model_whose_table_is_gone_is_none_to_build_upon() -> None:
    base = base_of(replace(state(), table_names=frozenset()), snapshot(2), is_start=False)

    assert base is not None and base.published is not None
    assert base.models == {}


def test_a_snapshot_is_published_in_its_own_epoch_only() -> None:
    assert is_published(state(2), snapshot(2))
    assert not is_published(state(1), snapshot(2))
    assert not is_published(state(2, epoch="another"), snapshot(2))


@pytest.mark.parametrize(
    ("tenant_type", "key", "expected"),
    [
        (pa.string(), ("N", "at"), (("n", "at"), "shop", "day")),
        (pa.int64(), ("n",), (("n",), "shop", "day")),
        (pa.float64(), ("n", "unknown"), ((), None, "day")),
        (pa.string(), ("n", "nested"), ((), "shop", "day")),
    ],
)
def test_a_model_is_served_with_the_key_and_tenant_that_its_columns_allow(
    tenant_type: pa.DataType,
    key: tuple[str, ...],
    expected: tuple[tuple[str, ...], str | None, str | None],
) -> None:
    rows = pa.schema(
        [
            ("n", pa.int64()),
            ("shop", tenant_type),
            ("at", pa.timestamp("us", tz="UTC")),
            ("day", pa.date32()),
            ("nested", pa.list_(pa.int64())),
            (WEIGHT, pa.int64()),
        ]
    ).empty_table()

    served = form_of(replace(SPEC, row_key=key, event_time="DAY"), rows.schema, "SHOP")

    assert (served.row_key, served.tenant_column, served.time_column) == expected
    assert [name for name, _ in served.columns] == ["n", "shop", "at", "day", "nested"]


def snapshot(number: int) -> Snapshot:
    return make_snapshot(number, ["sales"])
