"""One process of the kill test: finishes what the last one left, takes new records, is killed.

Arguments: root folder, step, failpoint and, if it is at a URL, the warehouse. Ends with 0 only if
nothing killed it.
"""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from livemart.failpoints import arm
from livemart.run.pipeline import Pipeline
from livemart.run.runtime import load_runtime
from livemart.settings import Settings, load_settings
from livemart.spark.session import open_session
from livemart.state.lock import hold_warehouse
from livemart.storage.location import Location
from tests.integration.mini import PROJECT, sale, visit
from tests.project_run import NOON, Silent, copy_project, hand_over_records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def records(step: int) -> dict[str, list[dict[str, Any]]]:
    """Return what is delivered at a step: new, corrected, deleted and refused sales, and visits."""
    shop = "abc"[step % 3]
    sales = [
        sale(f"{step}-1", shop, f"{step}.25", minutes=step * 5),
        sale(f"{step}-2", "a", "3.00", minutes=step * 5 - 1),
        # Without its key a record is a dead letter.
        sale(f"{step}-3") | {"sale_id": None},
    ]
    if step:
        # The sale before moves to another shop, the other one is deleted.
        moved = sale(f"{step - 1}-1", "b", "9.00", minutes=step * 5 - 5, updated=step * 5)
        gone = sale(f"{step - 1}-2", updated=step * 5, op="d")
        sales += [moved, gone]
    return {"sales": sales, "visits": [visit(shop, step * 5), visit("a", step * 5)]}


def now(step: int) -> datetime:
    """Return the wall clock at a step; each step is in a separate pane."""
    return NOON + timedelta(minutes=5 * step + 1)


def deliver(landing: Path, step: int) -> None:
    for source, rows in records(step).items():
        hand_over_records(landing / source, f"{step:04}", rows)


def main(root: Path, step: int, failpoint: str, warehouse: str = "") -> None:
    place = Location.parse(warehouse or root / "warehouse").place
    settings = Settings(warehouse=place, master="local[2]", memory="1g")
    with hold_warehouse(settings.warehouse) as lock:
        spark = open_session(settings, lock=lock)
        refresh_steps(spark, root, range(step, step + 1), failpoint, warehouse)
        spark.stop()


def refresh_steps(
    spark: SparkSession, root: Path, steps: range, failpoint: str = "", warehouse: str = ""
) -> None:
    """Finish what was begun before each step, let its records arrive, and refresh.

    `warehouse`: path or URL; empty for a folder below the root.
    """
    flags = {
        "project_dir": str(root / "project"),
        "warehouse": warehouse or str(root / "warehouse"),
        "landing": str(root / "landing"),
    }
    if not (root / "project").exists():
        copy_project(PROJECT, root / "project")
    (root / "landing").mkdir(exist_ok=True)
    if not warehouse:
        (root / "warehouse").mkdir(exist_ok=True)
    report = Silent().handle
    runtime = load_runtime(load_settings(flags, environ={}), lambda: spark, report)
    for step in steps:
        if step:
            Pipeline(runtime, report, now=partial(now, step - 1)).refresh()
        deliver(root / "landing", step)
        arm(failpoint)
        Pipeline(runtime, report, now=partial(now, step)).refresh()
        arm("")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
