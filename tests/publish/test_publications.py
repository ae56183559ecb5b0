"""The runner's end of publication, on Delta tables of the small lane."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from structlog.testing import capture_logs

from livemart.arrow.bags import NEW_COUNT, OLD_COUNT, WEIGHT
from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.errors import RefreshError
from livemart.project.declared.model_page import PageSpec
from livemart.project.graph import Exposure, Materialized, Model, Policy, Project
from livemart.publish.publications import Publications, WarehouseTables
from livemart.settings import load_settings
from livemart.state.snapshots import ModelState, Snapshot, SnapshotLog
from livemart.store.reader import StoreReader
from livemart.store.served import ModelDescription, Published
from tests.models import make_model
from tests.ports import silent_port
from tests.store.stores import changes_of
from tests.unit.arrow.test_variants import NESTED, nested
from tests.unit.delta.test_table_schema import diff, logged

SALES = "model.shop.sales"
VIEW = "model.shop.sales_view"
POLICY: Policy = "auto"
SCHEMA = pa.schema(
    [("restaurant_id", pa.string()), ("day", pa.date32()), ("amount", pa.decimal128(18, 2))]
)
MOMENT = datetime(2026, 3, 2, tzinfo=UTC)


class Shop:
    """A warehouse with one served model."""

    def __init__(self, root: Path, *, store: str | None = None) -> None:
        flags: dict[str, object] = {"warehouse": str(root / "warehouse"), "store": store}
        flags |= {"stop_timeout": "10m", "tenant_column": "restaurant_id"}
        self.settings = load_settings(flags, environ={}, directory=root)
        self.project = make_project()
        self.warehouse = Warehouse(self.settings.warehouse)
        self.log = SnapshotLog(self.settings.warehouse)
        self.warehouse.create("gold.sales", SCHEMA)
        self.snapshots = 0
        self._commits = 0

    @property
    def store_file(self) -> Path:
        return self.warehouse.root / "_livemart" / "serving.db"

    def publications(self) -> Publications:
        return Publications(self.project, self.warehouse, self.log, self.settings, Event())

    def change(self, *rows: tuple[str, int, str, int, int]) -> None:
        """Commit rows of restaurant, day of March, amount, old and new count."""
        diff = pa.Table.from_pylist(
            [
                {
                    "restaurant_id": restaurant,
                    "day": MOMENT.date().replace(day=day),
                    "amount": pa.scalar(amount).cast(pa.decimal128(18, 2)).as_py(),
                    OLD_COUNT: old,
                    NEW_COUNT: new,
                }
                for restaurant, day, amount, old, new in rows
            ],
            schema=SCHEMA.append(pa.field(OLD_COUNT, pa.int64())).append(
                pa.field(NEW_COUNT, pa.int64())
            ),
        )
        self._commits += 1
        tag = Tag("epoch/gold.sales/0", self._commits, {})
        self.warehouse.commit("gold.sales", diff, tag)

    def append_snapshot(self, *, is_held: bool = False) -> Snapshot:
        """Append a row to the log that names the newest version."""
        self.snapshots += 1
        state = ModelState(
            version=self.warehouse.version("gold.sales"),
            fingerprint="f",
            strategy="signed",
            reason=None,
            rows_changed=1,
            took_ms=1,
            generation=0,
            table_id=self.warehouse.table_id("gold.sales"),
        )
        snapshot = Snapshot(
            snapshot_id=self.snapshots,
            epoch="epoch",
            batch_id=self.snapshots,
            kind="refresh",
            as_of=MOMENT,
            sources={},
            models={SALES: state},
            tests={},
            status="held" if is_held else "published",
            started_at=MOMENT,
            finished_at=MOMENT,
        )
        self.log.append(snapshot)
        return snapshot

    def served(self) -> tuple[int, list[tuple[str, int, str]]]:
        """Return the snapshot that readers see, and its rows."""
        reader = StoreReader.open(f"sqlite:///{self.store_file}")
        try:
            with reader.snapshot() as view:
                rows = view.rows("sales", tenants=None)
                found = [(r["restaurant_id"], r["day"].day, str(r["amount"])) for r in rows]
                return view.published.snapshot_id, found
        finally:
            reader.close()

    def described(self) -> ModelDescription | None:
        """Return how the store describes the model."""
        reader = StoreReader.open(f"sqlite:///{self.store_file}")
        with closing(reader), reader.snapshot() as view:
            return view.description("sales")

    def title(self) -> str:
        """Return the title that the store has for the page of the model."""
        reader = StoreReader.open(f"sqlite:///{self.store_file}")
        with closing(reader), reader.snapshot() as view:
            return view.pages().models["sales"].title

    def describe(self, text: str) -> None:
        """Edit the description of the model and the title of its page, and nothing else."""
        models = dict(self.project.models)
        page = PageSpec(title=text)
        models[SALES] = replace(models[SALES], description=text, page=page)
        self.project = replace(self.project, models=models)

    def published(self) -> Published:
        """Return what readers see."""
        with closing(StoreReader.open(f"sqlite:///{self.store_file}")) as reader:
            found = reader.newest()
        assert found is not None
        return found

    def changes(self, after: int) -> tuple[str, list[str]]:
        reader = StoreReader.open(f"sqlite:///{self.store_file}")
        try:
            page = changes_of(reader, "sales", after, None, 1000)
            return page.kind, [change.op for change in page.changes]
        finally:
            reader.close()


def make_project(named: Sequence[str] = (SALES, VIEW)) -> Project:
    models = {
        SALES: gold_model("sales", "table", ("restaurant_id", "day")),
        VIEW: gold_model("sales_view", "view", ()),
    }
    exposures = {"exposure.shop.page": Exposure("exposure.shop.page", "page", tuple(named))}
    return Project("shop", "", "gold", {}, models, {}, exposures if named else {})


def gold_model(name: str, materialized: Materialized, key: tuple[str, ...]) -> Model:
    return make_model(
        f"model.shop.{name}",
        schema="gold",
        materialized=materialized,
        primary_key=key,
        policy=POLICY,
    )


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_every_published_snapshot_reaches_the_store_as_its_net_change(shop: Shop) -> None:
    shop.change(("r1", 1, "10.00", 0, 1), ("r2", 1, "5.00", 0, 1))
    with shop.publications() as publications:
        publications.offer(shop.append_snapshot())
    shop.change(("r1", 1, "10.00", 1, 0), ("r1", 1, "12.50", 0, 1), ("r2", 2, "1.00", 0, 1))

    with shop.publications() as publications:
        publications.offer(shop.append_snapshot())

    assert shop.served() == (2, [("r1", 1, "12.50"), ("r2", 1, "5.00"), ("r2", 2, "1.00")])
    assert shop.changes(after=1) == ("changes", ["update", "insert"])


def test_skipped_snapshots_are_published_as_one_net_change(shop: Shop) -> None:
    shop.change(("r1", 1, "1.00", 0, 1))
    with shop.publications() as publications:
        publications.offer(shop.append_snapshot())
    for amount, before in (("2.00", "1.00"), ("3.00", "2.00"), ("1.00", "3.00")):
        shop.change(("r1", 1, before, 1, 0), ("r1", 1, amount, 0, 1))
        shop.append_snapshot()
    shop.change(("r2", 1, "9.00", 0, 1))
    newest = shop.append_snapshot()

    with shop.publications() as publications:
        publications.offer(newest)

    assert shop.served() == (5, [("r1", 1, "1.00"), ("r2", 1, "9.00")])
    assert shop.changes(after=1) == ("changes", ["insert"])


def test_what_the_log_has_and_the_store_lacks_is_published_at_the_start(shop: Shop) -> None:
    shop.change(("r1", 1, "10.00", 0, 1))
    shop.append_snapshot()

    with shop.publications():
        pass

    assert shop.served() == (1, [("r1", 1, "10.00")])


def test_a_held_snapshot_leaves_readers_where_they_were(shop: Shop) -> None:
    shop.change(("r1", 1, "10.00", 0, 1))
    shop.append_snapshot()
    shop.change(("r1", 2, "66.00", 0, 1))

    with shop.publications() as publications:
        publications.offer(shop.append_snapshot(is_held=True))
    with shop.publications():
        pass

    assert shop.served() == (1, [("r1", 1, "10.00")])


def test_a_pass_that_found_nothing_new_says_that_readers_see_the_newest(shop: Shop) -> None:
    shop.change(("r1", 1, "10.00", 0, 1))
    with shop.publications() as publications:
        publications.offer(shop.append_snapshot())
    before = shop.published()

    with shop.publications() as publications:
        publications.offer(None)

    after = shop.published()
    assert after == before
    assert before.checked_at == before.published_at < after.checked_at


def test_readers_of_a_snapshot_before_a_held_one_are_told_nothing(shop: Shop) -> None:
    shop.change(("r1", 1, "10.00", 0, 1))
    with shop.publications() as publications:
        publications.offer(shop.append_snapshot())
    before = shop.published()
    shop.change(("r1", 2, "66.00", 0, 1))
    shop.append_snapshot(is_held=True)

    with shop.publications() as publications:
        publications.offer(None)

    assert shop.published().checked_at == before.checked_at


def test_a_change_that_cannot_be_read_any_more_copies_the_model_whole(shop: Shop) -> None:
    shop.change(("r1", 1, "10.00", 0, 1))
    with shop.publications() as publications:
        publications.offer(shop.append_snapshot())
    shop.change(("r1", 2, "2.00", 0, 1))
    lost = shop.warehouse.version("gold.sales")
    shop.change(("r1", 3, "3.00", 0, 1))
    shop.append_snapshot()
    # Another process, which kept nothing in memory; the log entry in between is cleaned up.
    shop.warehouse = Warehouse(shop.settings.warehouse)
    clean_up(shop.warehouse.path("gold.sales"), lost)

    with shop.publications():
        pass

    assert shop.served() == (2, [("r1", 1, "10.00"), ("r1", 2, "2.00"), ("r1", 3, "3.00")])
    assert shop.changes(after=1) == ("reset", [])


def clean_up(table: Path, version: int) -> None:
    """Make a checkpoint of the newest version and remove the log entry of an older one."""
    DeltaTable(str(table)).create_checkpoint()
    (table / "_delta_log" / f"{version:020}.json").unlink()


def test_a_project_without_exposures_opens_no_store(shop: Shop) -> None:
    shop.project = make_project(named=())
    shop.change(("r1", 1, "10.00", 0, 1))

    with shop.publications() as publications:
        publications.offer(shop.append_snapshot())

    assert not shop.store_file.exists()


def test_the_store_named_none_is_no_store(tmp_path: Path) -> None:
    shop = Shop(tmp_path, store="none")
    shop.change(("r1", 1, "10.00", 0, 1))

    with shop.publications() as publications:
        publications.offer(shop.append_snapshot())

    assert not shop.store_file.exists()


def test_a_command_ends_by_a_last_attempt_though_the_store_is_down(tmp_path: Path) -> None:
    with silent_port() as port:
        shop = Shop(tmp_path, store=f"postgresql://joe:s3cret@127.0.0.1:{port}/none")
        shop.change(("r1", 1, "10.00", 0, 1))

        with capture_logs() as logs, shop.publications() as publications:
            publications.offer(shop.append_snapshot())

    events = [each["event"] for each in logs if each["log_level"] == "warning"]
    assert [event for event in events if event != "model_not_served"] == [
        "store_unreachable",
        "store_behind",
    ]
    assert "s3cret" not in str(logs)
    # One that hangs would be given up and left behind.
    assert "publisher" not in [thread.name for thread in threading.enumerate()]


def test_a_view_of_an_exposure_is_said_not_to_be_served(shop: Shop) -> None:
    with capture_logs() as logs, shop.publications():
        pass

    assert [each["model"] for each in logs if each["event"] == "model_not_served"] == [VIEW]


def test_a_new_exposure_is_served_without_a_new_snapshot(shop: Shop) -> None:
    shop.change(("r1", 1, "10.00", 0, 1))
    with shop.publications() as publications:
        publications.offer(shop.append_snapshot())
    other = replace(gold_model("takings", "table", ()), identifier="sales")
    project = make_project((SALES, other.unique_id))
    models = {**project.models, other.unique_id: other}
    shop.project = replace(project, models=models)
    newest = shop.log.newest()
    assert newest is not None
    state = newest.models[SALES]
    shop.snapshots += 1
    shop.log.append(
        replace(newest, snapshot_id=2, batch_id=2, models={SALES: state, other.unique_id: state})
    )

    with shop.publications():
        pass
    with shop.publications():
        pass

    reader = StoreReader.open(f"sqlite:///{shop.store_file}")
    with reader.snapshot() as view:
        assert view.models().keys() == {"sales", "takings"}
    reader.close()


def test_without_the_extra_that_serves_nothing_is_served_and_a_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("livemart.extras.find_spec", lambda _: None)
    shop = Shop(tmp_path)
    shop.change(("a", 1, "1.00", 0, 1))

    with capture_logs() as logs, shop.publications() as publications:
        publications.offer(shop.append_snapshot())

    assert not shop.store_file.exists()
    assert [(line["event"], line["next"]) for line in logs] == [
        ("nothing_served", "pip install 'livemart[serve]'")
    ]


def test_an_edited_description_is_published_without_a_new_snapshot(shop: Shop) -> None:
    shop.change(("r1", 1, "10.00", 0, 1))
    shop.describe("Sales by day")
    with shop.publications() as publications:
        publications.offer(shop.append_snapshot())
    assert shop.described() == ModelDescription("Sales by day", compiled_sql="select 1")
    assert shop.title() == "Sales by day"
    before = shop.published()

    shop.describe("Sales by day and restaurant")
    with shop.publications():
        pass

    assert shop.described() == ModelDescription(
        "Sales by day and restaurant", compiled_sql="select 1"
    )
    assert shop.title() == "Sales by day and restaurant"
    assert shop.published() == before


def test_a_model_with_variants_is_copied_whole(tmp_path: Path) -> None:
    (tmp_path / "gold").mkdir()
    DeltaTable.create(str(tmp_path / "gold" / "events"), logged())
    warehouse = Warehouse(tmp_path)
    rows = nested('{"n": [1, null]}', "null", None)
    warehouse.commit("gold.events", diff(rows.slice(0, 0), rows), Tag("e/gold.events/0", 1, {}))

    tables = WarehouseTables(warehouse)
    none, stored = tables.rows("gold.events", warehouse.version("gold.events"))

    # The table of the store is made by the types of the first rows, also where a model has none.
    assert (none.num_rows, none.schema.types) == (0, stored.schema.types)
    assert stored.column("v").type == NESTED.field("v").type
    assert stored.column(WEIGHT).to_pylist() == [1, 1, 1]


def test_a_model_whose_struct_has_gained_a_field_is_copied_whole(tmp_path: Path) -> None:
    warehouse, relation = Warehouse(tmp_path), "gold.places"
    place = pa.struct([("city", pa.string())])
    cities = [{"city": "x"}, {"city": "y"}]
    rows = pa.table({"id": [1, 2], "place": pa.array(cities, place)})
    warehouse.overwrite(relation, rows, Tag("e/gold.places/0", 1, {}))
    before = warehouse.version(relation)
    wider = pa.struct([("city", pa.string()), ("zip", pa.string())])
    rows = pa.table({"id": [1, 2], "place": pa.array(cities, wider)})
    write_deltalake(str(warehouse.path(relation)), rows, mode="overwrite", schema_mode="overwrite")

    with pytest.raises(RefreshError, match="CDF_UNAVAILABLE"):
        WarehouseTables(warehouse).change(relation, before, warehouse.version(relation))
