"""The project of docs/first-project.md, from its own text, and the one that `init` writes."""

from __future__ import annotations

import re
import runpy
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from livemart.inspect.plan_report import describe_plans
from livemart.inspect.verify import verify_models
from livemart.run.pipeline import Pipeline, RunOutcome
from livemart.run.runtime import Runtime, load_runtime
from livemart.settings import load_settings
from livemart.starter.new_project import write_project
from tests.integration.starter_orders import orders_by_shop
from tests.project_run import Silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "first-project.md"
_FILE = re.compile(r"^`([^`\n]+)`\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class _Project:
    """A project with the folders that livemart takes by default, in a Spark that is open."""

    folder: Path
    runtime: Runtime

    def run(self, command: str) -> RunOutcome | None:
        """Do what a line `livemart ...` of the document does."""
        pipeline = Pipeline(self.runtime, Silent().handle)
        match command:
            case "build":
                return pipeline.build()
            case "refresh":
                return pipeline.refresh()
            case "verify":
                published = self.runtime.log.newest_published()
                assert published is not None
                runtime = self.runtime
                compared = list(
                    verify_models(runtime.spark, runtime.warehouse, runtime.project, published)
                )
                assert compared and all(comparison.is_equal for comparison in compared)
                return None
            case "plan":
                plans = self.runtime.plans
                report = describe_plans(self.runtime.project, plans.models, plans.stored)
                assert {model["strategy"] for model in report["models"]} <= {
                    "signed",
                    "region",
                    "view",
                }
                return None
        raise AssertionError(f"the test knows no livemart {command}")

    def rows(self, relation: str) -> list[tuple[Any, ...]]:
        """Return the rows of the newest version, sorted."""
        return sorted(
            tuple(row.values()) for row in self.runtime.warehouse.read(relation).to_pylist()
        )


def _open(folder: Path, spark: SparkSession) -> _Project:
    settings = load_settings({}, environ={}, directory=folder)
    (folder / "warehouse").mkdir()
    return _Project(folder, load_runtime(settings, lambda: spark, Silent().handle))


@pytest.mark.extended
def test_the_documents_project_builds_refreshes_and_verifies(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = _DOCUMENT.read_text(encoding="utf-8")
    for name, content in _FILE.findall(text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    project = _open(tmp_path, spark)

    for block in _COMMANDS.findall(text):
        script = [line for line in block.splitlines() if not line.startswith("livemart ")]
        subprocess.run(["bash", "-ec", "\n".join(script)], cwd=tmp_path, check=True)
        for line in block.splitlines():
            if line.startswith("livemart "):
                project.run(line.partition("#")[0].split()[1])

    assert project.rows("mart.sales_last_day") == [
        ("a", 1, Decimal("5.00")),
        ("b", 2, Decimal("5.50")),
    ]


@pytest.mark.extended
def test_the_project_of_init_builds_refreshes_and_verifies(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "my shop"
    write_project(folder)
    project = _open(folder, spark)

    project.run("plan")
    built = project.run("build")
    runpy.run_path(str(folder / "deliver.py"), run_name="__main__")
    refreshed = project.run("refresh")
    project.run("verify")

    assert built is not None and refreshed is not None
    assert built.exit_code == refreshed.exit_code == 0
    assert [row[1] for row in project.rows("mart.shop_top_products")] == [1, 2, 3] * 3
    (snapshot,) = [outcome.snapshot for outcome in refreshed.outcomes]
    assert snapshot is not None and snapshot.as_of is not None
    assert {state.strategy for state in snapshot.models.values()} <= {"signed", "region", "view"}
    assert datetime.now(UTC) < snapshot.as_of
    counts = {shop: count for shop, count, *_ in project.rows("mart.shop_last_day")}
    assert counts == orders_by_shop(folder, snapshot.as_of)
