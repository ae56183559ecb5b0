"""`status` and `doctor` report the state of the serving store."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
import sqlalchemy as sa

from livemart.inspect.doctor import check_store
from livemart.inspect.status import read_status, render_status
from livemart.inspect.store_standing import look_at_store
from livemart.state.snapshots import Snapshot, SnapshotLog
from livemart.store.connections import open_engine
from livemart.store.schema import STORE_IDENTITY
from tests.ports import silent_port
from tests.store.stores import NOON, fill_store, make_snapshot, reference_tables

LATER = NOON + timedelta(minutes=3)
EVERY = timedelta(minutes=5)


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    """The URL of a store that does not exist yet."""
    return f"sqlite:///{tmp_path}/warehouse/_livemart/serving.db"


def newest(snapshot_id: int, epoch: str = "epoch") -> Snapshot:
    return make_snapshot(snapshot_id, (), epoch=epoch)


def test_a_store_at_the_newest_snapshot_is_current(store_url: str) -> None:
    fill_store(store_url, reference_tables([]), snapshot_id=4)

    standing = look_at_store(store_url, newest(4), LATER)

    assert (standing.state, standing.snapshot_id, standing.behind_s) == ("current", 4, None)
    assert (standing.message, standing.hint) == ("at snapshot 4, the newest", None)


@pytest.mark.parametrize("epoch", ["epoch", "a new checkpoint"])
def test_a_store_that_lacks_a_snapshot_says_for_how_long(store_url: str, epoch: str) -> None:
    fill_store(store_url, reference_tables([]), snapshot_id=4)

    standing = look_at_store(store_url, newest(6, epoch), LATER)

    assert (standing.state, standing.snapshot_id, standing.behind_s) == ("behind", 4, 180)
    assert standing.message == "at snapshot 4; snapshot 6 has waited for 3m"
    assert standing.hint is not None


def test_an_empty_store_is_well_as_long_as_the_log_is_empty(store_url: str) -> None:
    before, after = (
        look_at_store(store_url, None, LATER),
        look_at_store(store_url, newest(2), LATER),
    )

    assert (before.state, before.hint) == ("empty", None)
    assert (after.state, after.behind_s) == ("empty", 180)
    assert after.message == "empty; snapshot 2 has waited for 3m"


def test_a_store_without_a_model_to_serve_waits_for_no_snapshot(store_url: str) -> None:
    empty = look_at_store(store_url, newest(2), LATER, is_served=False)
    fill_store(store_url, reference_tables([]), snapshot_id=4)
    earlier = look_at_store(store_url, newest(6), LATER, is_served=False)

    reason = "no exposure of the project names a model that has a table, so nothing is served"
    assert (empty.message, empty.hint, empty.behind_s) == (f"empty: {reason}", None, None)
    assert (earlier.message, earlier.hint) == (f"at snapshot 4: {reason}", None)


@pytest.mark.parametrize("known", [None, newest(4, "another log"), newest(3)])
def test_a_store_of_another_warehouse_is_named(store_url: str, known: Snapshot | None) -> None:
    fill_store(store_url, reference_tables([]), snapshot_id=4)

    standing = look_at_store(store_url, known, LATER)

    assert (standing.state, standing.snapshot_id) == ("foreign", 4)
    assert "filled from another warehouse" in standing.message


def test_a_store_of_another_version_is_named(store_url: str) -> None:
    fill_store(store_url, reference_tables([]))
    engine = open_engine(store_url, writes=True)
    with engine.begin() as connection:
        connection.execute(sa.update(STORE_IDENTITY).values(schema_version=99))
    engine.dispose()

    standing = look_at_store(store_url, newest(1), LATER)

    assert (standing.state, standing.snapshot_id) == ("other_version", None)
    assert standing.message.startswith("STORE_OF_ANOTHER_VERSION: ")


def test_a_store_that_is_away_is_named_without_its_password() -> None:
    with silent_port() as port:
        url = f"postgresql+psycopg://me:secret@127.0.0.1:{port}/db"
        standing = look_at_store(url, newest(1), LATER)

    assert standing.state == "unreachable"
    assert standing.message.startswith("STORE_UNREACHABLE: ")
    assert "secret" not in standing.place + standing.message


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "serving.db"
    path.write_bytes(b"no database at all " * 1000)

    assert look_at_store(f"sqlite:///{path}", newest(1), LATER).state == "unreachable"


def test_looking_makes_nothing(tmp_path: Path) -> None:
    look_at_store(f"sqlite:///{tmp_path}/folder/serving.db", None, LATER)

    assert list(tmp_path.iterdir()) == []


def test_doctor_and_status_tell_of_the_store(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/serving.db"
    fill_store(url, reference_tables([]), snapshot_id=1)
    log = SnapshotLog(tmp_path)
    log.append(newest(1))

    well = check_store(url, tmp_path)
    log.append(newest(2))
    log.append(replace(newest(3), status="held"))
    behind = check_store(url, tmp_path)
    status = read_status(tmp_path, every=EVERY, pane=EVERY, store_url=url, now=LATER)
    served_nowhere = read_status(tmp_path, every=EVERY, pane=EVERY, now=LATER)

    assert (well.level, behind.level) == ("ok", "warning")
    assert well.message.endswith("serving.db: at snapshot 1, the newest")
    assert "at snapshot 1; snapshot 2 has waited for " in behind.message
    waiting = "serving.db: at snapshot 1; snapshot 2 has waited for 3m\n  next: "
    assert waiting in render_status(status)
    store = asdict(status)["store"]
    assert (store["state"], store["snapshot_id"], store["behind_s"]) == ("behind", 1, 180.0)
    assert check_store(None, tmp_path).level == "ok"
    assert served_nowhere.store is None


def test_status_and_doctor_say_which_model_is_not_served_and_why(
    tmp_path: Path, store_url: str
) -> None:
    beyond = pa.array([253_402_300_800_000_000], pa.int64()).view(pa.timestamp("us", "UTC"))
    terms = pa.table({"id": ["b"], "ends_at": beyond})
    fill_store(store_url, {"terms": terms}, {"terms": ("id",)}, snapshot_id=4)
    why = "terms is not served: ends_at: +10000-01-01T00:00:00 is outside of the years 1 to 9999"

    standing = look_at_store(store_url, newest(4), LATER)
    status = read_status(tmp_path, every=EVERY, pane=EVERY, now=LATER)
    finding = check_store(store_url, tmp_path / "warehouse")

    assert (standing.state, list(standing.refused)) == ("current", ["terms"])
    lines = render_status(replace(status, store=standing))
    assert f"{why}, in the row id = b" in lines
    assert "next: change the models that are not served" in lines
    assert asdict(standing)["refused"] == dict(standing.refused)
    assert finding.level == "warning" and why in finding.message
