"""A refresh has nothing to do as long as all that the last pass looked at is as it was."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from livemart.delta.tags import Tag
from livemart.delta.warehouse import Warehouse
from livemart.errors import StateError
from livemart.land.sources.log_looks import LogLooks, log_looks
from livemart.plan.project_plans import ProjectPlans
from livemart.project.graph import Project, SourceTable, StreamSpec
from livemart.run.idle import has_nothing_to_do, note_pass
from livemart.run.input_files import project_files, waiting_files
from livemart.run.runtime import Runtime
from livemart.settings import Settings, load_settings
from livemart.state.checkpoint import open_checkpoint, read_epoch
from livemart.state.last_pass import keep_pass, kept_pass, last_pass_at
from livemart.state.lock import hold_warehouse
from livemart.state.places import StateFolder
from livemart.state.snapshots import ModelState, SetAside, Snapshot, SnapshotLog
from tests.models import make_model, stream_spec
from tests.record_logs import FolderLog, install_folder_logs, write_partition

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass
class Shop:
    """A project and its warehouse after a pass."""

    root: Path
    settings: Settings
    runtime: Any
    snapshot: Snapshot

    def write(self, relation: str) -> None:
        rows = pa.table({"n": [1]})
        self.runtime.warehouse.overwrite(relation, rows, Tag(f"e/{relation}/0", 1, {}))

    def note(self, *, is_published: bool = True) -> None:
        """End a pass, which began now."""
        self.runtime.read_at = project_files(self.settings).look()
        note_pass(self.runtime, waiting_files(self.settings), is_published=is_published)

    def is_idle(self, at: datetime = NOON) -> bool:
        return has_nothing_to_do(self.settings, lambda: at)


def _source(name: str, stream: StreamSpec | None, *, is_clock: bool = False) -> SourceTable:
    key = f"source.m.{name}"
    return SourceTable(key, "raw", name, "raw", name, (), None, None, stream, "", is_clock=is_clock)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    project_dir = tmp_path / "project"
    (project_dir / "models").mkdir(parents=True)
    (project_dir / "dbt_project.yml").write_text("name: m\nprofile: m\n")
    (project_dir / "profiles.yml").write_text("m: {schema: \"{{ env_var('SHOP_SCHEMA', '') }}\"}\n")
    (project_dir / "models" / "totals.sql").write_text("select 1")
    (tmp_path / "landing" / "orders").mkdir(parents=True)
    (tmp_path / "landing" / "orders" / "1.jsonl").write_text("{}")
    flags = {
        "project_dir": project_dir,
        "warehouse": tmp_path / "warehouse",
        "landing": tmp_path / "landing",
        "store": "none",
    }
    settings = load_settings(flags, environ={})
    orders = _source("orders", stream_spec(path="orders/*.jsonl"))
    sources = [orders, _source("rates", None), _source("clock", None, is_clock=True)]
    totals = make_model("model.mart.totals")
    project = Project(
        "m", ".", "m", {it.unique_id: it for it in sources}, {totals.unique_id: totals}, {}, {}
    )
    warehouse = Warehouse(settings.warehouse)
    runtime = SimpleNamespace(
        settings=settings,
        project=project,
        plans=ProjectPlans(project),
        warehouse=warehouse,
        log=SnapshotLog(settings.warehouse),
        read_at={},
        files=project_files(settings),
        dbt=SimpleNamespace(files_read=lambda: {str(project_dir / "models" / "totals.sql")}),
    )
    runtime.is_as_looked_at = lambda: Runtime.is_as_looked_at(runtime)  # type: ignore[arg-type]
    open_checkpoint(StateFolder(warehouse.root).checkpoint, None, new_epoch=False)
    epoch = read_epoch(StateFolder(warehouse.root).checkpoint)
    offsets = StateFolder(warehouse.root).checkpoint / "offsets"
    offsets.mkdir()
    for batch_id in range(2):
        (offsets / str(batch_id)).write_text("v1\n{}\n")
    assert epoch is not None
    versions = {
        name: warehouse.overwrite(name, pa.table({"n": [0]}), Tag(f"e/{name}/0", 0, {})).version
        for name in ("raw.orders", "raw.clock", "mart.totals")
    }
    table_id = warehouse.table_id("mart.totals")
    state = ModelState(versions.pop("mart.totals"), "f", "signed", None, 1, 2, 0, table_id)
    snapshot = Snapshot(
        snapshot_id=1,
        epoch=epoch.id,
        batch_id=0,
        kind="build",
        as_of=NOON + timedelta(minutes=5),
        sources=versions,
        models={totals.unique_id: state},
        tests={},
        status="published",
        started_at=NOON,
        finished_at=NOON,
    )
    runtime.log.append(snapshot)
    shop = Shop(tmp_path, settings, runtime, snapshot)
    shop.note()
    return shop


def test_a_pass_that_would_find_the_same_has_nothing_to_do_and_leaves_its_time(shop: Shop) -> None:
    before = last_pass_at(shop.settings.warehouse)

    assert shop.is_idle()
    assert shop.is_idle(NOON + timedelta(minutes=4))

    ended = last_pass_at(shop.settings.warehouse)
    assert before is not None and ended is not None and ended > before


def _deliver(shop: Shop) -> None:
    (shop.root / "landing" / "orders" / "2.jsonl").write_text("{}")


def _deliver_below(shop: Shop) -> None:
    (shop.root / "landing" / "orders" / "eu").mkdir()
    (shop.root / "landing" / "orders" / "eu" / "2.jsonl").write_text("{}")


def _deliver_again(shop: Shop) -> None:
    (shop.root / "landing" / "orders" / "1.jsonl").write_text("{ }")


def _edit(shop: Shop) -> None:
    (shop.root / "project" / "models" / "totals.sql").write_text("select 2")


def _add_model(shop: Shop) -> None:
    (shop.root / "project" / "models" / "more.sql").write_text("select 2")


def _edit_profile(shop: Shop) -> None:
    (shop.root / "project" / "profiles.yml").write_text("m: {}\n")


def _other_settings(shop: Shop) -> None:
    shop.settings = shop.settings.model_copy(update={"vars": {"pane_minutes": 10}})


def _fix_as_of(shop: Shop) -> None:
    shop.settings = shop.settings.model_copy(update={"as_of": NOON})


def _append_snapshot(shop: Shop) -> None:
    shop.runtime.log.append(replace(shop.snapshot, snapshot_id=2, batch_id=1))


@pytest.mark.parametrize(
    "change",
    [
        *(
            _deliver,
            _deliver_below,
            _deliver_again,
            _edit,
            _add_model,
            _edit_profile,
            _other_settings,
        ),
        *(_fix_as_of, _append_snapshot),
        pytest.param(lambda shop: shop.write("raw.orders"), id="source"),
        pytest.param(lambda shop: shop.write("mart.totals"), id="model"),
        pytest.param(lambda shop: shop.write("raw.rates"), id="new table"),
    ],
)
def test_whatever_else_it_would_find_is_something_to_do(
    shop: Shop, change: Callable[[Shop], None]
) -> None:
    change(shop)

    assert not shop.is_idle()


def test_a_variable_of_the_project_or_of_dbt_is_looked_at(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANOTHER", "1")
    assert shop.is_idle()
    monkeypatch.setenv("SHOP_SCHEMA", "x")
    assert not shop.is_idle()
    monkeypatch.delenv("SHOP_SCHEMA")
    monkeypatch.setenv("DBT_TARGET", "x")
    assert not shop.is_idle()


def test_the_clock_is_news_for_a_project_that_has_one(shop: Shop) -> None:
    assert not shop.is_idle(NOON + timedelta(minutes=5))

    project = shop.runtime.project
    sources = {key: it for key, it in project.sources.items() if not it.is_clock}
    shop.runtime.project = replace(project, sources=sources)
    shop.note()

    assert shop.is_idle(NOON + timedelta(days=5))


@pytest.mark.parametrize(
    "change",
    [
        {"status": "held"},
        {"set_aside": {"model.mart.totals": SetAside(1, None, "f", "model.mart.totals", "bad")}},
    ],
    ids=["held", "set aside"],
)
def test_a_pass_that_leaves_something_to_do_keeps_nothing(
    shop: Shop, change: dict[str, Any]
) -> None:
    before = kept_pass(shop.settings.warehouse)
    shop.runtime.log.append(replace(shop.snapshot, snapshot_id=2, batch_id=1, **change))

    shop.note()

    assert kept_pass(shop.settings.warehouse) == before
    assert not shop.is_idle()


def test_readers_are_told_and_a_store_without_the_snapshot_is_something_to_do(shop: Shop) -> None:
    last = kept_pass(shop.settings.warehouse)
    assert last is not None
    keep_pass(shop.settings.warehouse, replace(last, is_served=True))
    shop.settings = shop.settings.model_copy(update={"store": f"sqlite:///{shop.root}/s.db"})

    assert not shop.is_idle()


@pytest.mark.parametrize(
    "change",
    [
        {"questions": {"model.mart.totals": ("a question",)}},
        {"files_read": lambda: {"/elsewhere/macros/x.sql"}},
        {"is_published": False},
        {"files": None},
    ],
    ids=["asks the warehouse", "reads files elsewhere", "a model not served", "many files"],
)
def test_where_it_cannot_be_told_nothing_is_kept(shop: Shop, change: dict[str, Any]) -> None:
    (StateFolder(shop.runtime.warehouse.root).last_pass).unlink()
    if questions := change.get("questions"):
        shop.runtime.project = replace(shop.runtime.project, questions=questions)
    if files_read := change.get("files_read"):
        shop.runtime.dbt = SimpleNamespace(files_read=files_read)
    files = waiting_files(shop.settings) if "files" not in change else None

    note_pass(shop.runtime, files, is_published=change.get("is_published", True))

    assert kept_pass(shop.settings.warehouse) is None


def _read_a_log(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the orders come from a log of two records, both of which a pass has read."""
    install_folder_logs(shop.root / "site", monkeypatch)
    write_partition(shop.root / "log", "orders", ["{}", "{}"])
    spec = stream_spec(kind="folder", path="", options=(("folder", str(shop.root / "log")),))
    project = shop.runtime.project
    orders = _source("orders", spec)
    shop.runtime.project = replace(project, sources={**project.sources, orders.unique_id: orders})
    _looked(shop, {"orders": 2})


def _looked(shop: Shop, after: dict[str, int]) -> None:
    looks = LogLooks(shop.settings.warehouse, ["raw.orders"])
    looks.answered(["raw.orders"], NOON, {"orders": 2}, after, None)
    looks.keep()


def test_a_record_log_is_asked_and_what_it_got_is_something_to_do(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    _read_a_log(shop, monkeypatch)
    shop.note()

    assert shop.is_idle(NOON + timedelta(minutes=3))
    # A later question about waiting records gets this look.
    assert log_looks(shop.settings.warehouse)["raw.orders"].at == NOON + timedelta(minutes=3)
    write_partition(shop.root / "log", "orders", ["{}", "{}", "{}"])
    assert not shop.is_idle()
    write_partition(shop.root / "log", "orders", ["{}", "{}"])
    write_partition(shop.root / "log", "orders-1", [])
    assert not shop.is_idle()


def test_a_record_log_that_is_away_is_something_to_do(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    _read_a_log(shop, monkeypatch)
    shop.note()
    monkeypatch.setattr(FolderLog, "fails", "no route to host")

    assert not shop.is_idle()


@pytest.mark.parametrize("reason", ["records wait", "options may hold a secret", "never asked"])
def test_a_record_log_that_cannot_be_kept_keeps_the_pass_from_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    StateFolder(shop.runtime.warehouse.root).last_pass.unlink()
    _read_a_log(shop, monkeypatch)
    match reason:
        case "records wait":
            _looked(shop, {"orders": 1})
        case "never asked":
            StateFolder(shop.runtime.warehouse.root).log_looks.unlink()
        case _:
            monkeypatch.setattr(FolderLog, "has_plain_options", False)

    shop.note()

    assert kept_pass(shop.settings.warehouse) is None


def test_an_edit_while_a_pass_runs_is_work_for_the_next(shop: Shop) -> None:
    _edit(shop)
    note_pass(shop.runtime, waiting_files(shop.settings), is_published=True)

    assert not shop.is_idle()


def test_a_checkpoint_that_is_lost_is_told_as_a_full_pass_tells_it(shop: Shop) -> None:
    shutil.rmtree(StateFolder(shop.runtime.warehouse.root).checkpoint)

    with pytest.raises(StateError, match="CHECKPOINT_LOST"):
        shop.is_idle()


def test_what_fails_on_the_way_is_something_to_do(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Settings) -> None:
        raise PermissionError("no")

    monkeypatch.setattr("livemart.run.idle.waiting_files", fail)

    assert not shop.is_idle()


def test_a_clone_with_other_times_is_the_same_project(shop: Shop) -> None:
    for path in (shop.root / "project").rglob("*.*"):
        os.utime(path, (1, 1))

    assert shop.is_idle()


def test_a_commit_that_changes_no_row_is_no_news(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.write("mart.totals")
    shop.note()
    assert not shop.is_idle()
    # As of OPTIMIZE.
    monkeypatch.setattr(Warehouse, "data_changed_between", lambda *_: [])

    shop.note()

    assert shop.is_idle()


def test_it_does_not_look_beside_a_runner(shop: Shop) -> None:
    with (
        hold_warehouse(shop.settings.warehouse),
        pytest.raises(StateError, match="RUNNER_LIVES"),
    ):
        shop.is_idle()
