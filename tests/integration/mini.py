"""The project of `tests/projects/mini` with a warehouse and a landing folder of its own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from livemart.delta.warehouse import Warehouse
from livemart.inspect.verify import Comparison, verify_models
from livemart.run.batch import BatchOutcome
from livemart.run.follower import PlanChange
from livemart.run.pipeline import Pipeline, RunOutcome
from livemart.run.runtime import Runtime, load_runtime
from livemart.settings import load_settings
from livemart.state.snapshots import Snapshot, SnapshotLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = Path(__file__).resolve().parents[1] / "projects" / "mini"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


# What dbt knows of the project once it has parsed it: half of the time a test needs to begin.
_PARTIAL_PARSE = Path("target", "livemart", "partial_parse.msgpack")
_parsed: list[bytes] = []


class Silent:
    """A watcher that only remembers the retries and the edits."""

    def __init__(self) -> None:
        self.retries: list[str] = []
        self.edits: list[str] = []
        self.refusals: list[str] = []

    def step(self, text: str) -> None: ...
    def node_changed(self, unique_id: str, status: str | None) -> None: ...
    def batch_began(self, batch_id: int) -> None: ...
    def model_changed(self, unique_id: str, word: str) -> None: ...
    def batch_ended(self, outcome: BatchOutcome) -> None: ...
    def retrying(self, error: BaseException, failures: int, attempts: int) -> None:
        self.retries.append(str(error))

    def project_edited(self, files: Sequence[str], changes: Sequence[PlanChange]) -> None:
        self.edits += [f"{it.unique_id.split('.')[2]} {it.word} {it.strategy}" for it in changes]

    def project_refused(self, files: Sequence[str], error: Exception) -> None:
        self.refusals.append(str(error))


@dataclass
class Mini:
    """One warehouse. The wall clock stands still until `now` is set."""

    spark: SparkSession
    root: Path
    now: datetime = NOON + timedelta(minutes=1)
    watcher: Silent = field(default_factory=Silent)
    _runtime: Runtime | None = None
    _files: int = 0

    def __post_init__(self) -> None:
        shutil.copytree(PROJECT, self.project, ignore=shutil.ignore_patterns("target", "logs"))
        self.landing.mkdir()
        if _parsed:
            path = self.project / _PARTIAL_PARSE
            path.parent.mkdir(parents=True)
            path.write_bytes(_parsed[0])

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def landing(self) -> Path:
        return self.root / "landing"

    @property
    def warehouse(self) -> Warehouse:
        return Warehouse(self.root / "warehouse")

    @property
    def log(self) -> SnapshotLog:
        return SnapshotLog(self.root / "warehouse")

    @property
    def runtime(self) -> Runtime:
        """The project as it was loaded last."""
        assert self._runtime is not None
        return self._runtime

    @property
    def newest(self) -> Snapshot:
        newest = self.log.newest()
        assert newest is not None
        return newest

    def deliver(self, source: str, *records: dict[str, Any]) -> Path:
        """Put one file of JSON lines below the landing folder, by rename."""
        self._files += 1
        folder = self.landing / source
        folder.mkdir(exist_ok=True)
        draft, path = folder / f".{self._files}", folder / f"{self._files:04}.jsonl"
        draft.write_text("".join(json.dumps(record) + "\n" for record in records))
        draft.rename(path)
        return path

    def edit(self, path: str, text: str) -> None:
        """Change a file of the project, as an analyst between two runs."""
        (self.project / path).write_text(text)
        self._runtime = None

    def replace(self, sources: str, **models: str) -> None:
        """Make it a project of these models alone; `sources` is YAML."""
        for folder in ("models", "seeds", "tests"):
            for path in (self.project / folder).iterdir():
                path.unlink()
        self.edit("models/_sources.yml", sources)
        for name, text in models.items():
            self.edit(f"models/{name}.sql", text)

    def restart(self) -> None:
        """Forget everything that a process keeps warm."""
        self._runtime = None

    def pipeline(self, **flags: object) -> Pipeline:
        if self._runtime is None or flags:
            settings = load_settings(
                {
                    "project_dir": str(self.project),
                    "warehouse": str(self.root / "warehouse"),
                    "landing": str(self.landing),
                    **flags,
                },
                environ={},
            )
            (self.root / "warehouse").mkdir(exist_ok=True)
            self._runtime = load_runtime(settings, self.spark, self.watcher)
            if not _parsed:
                _parsed.append((self.project / _PARTIAL_PARSE).read_bytes())
        return Pipeline(self._runtime, self.watcher, now=lambda: self.now)

    def build(self, **options: Any) -> RunOutcome:
        return self.pipeline().build(**options)

    def refresh(self, **options: Any) -> RunOutcome:
        return self.pipeline().refresh(**options)

    def rows(self, relation: str) -> list[dict[str, Any]]:
        """Return the rows that readers see, sorted."""
        published = self.log.newest_published()
        assert published is not None
        state = next(
            state
            for unique_id, state in published.models.items()
            if unique_id.endswith("." + relation.rpartition(".")[2])
        )
        rows = self.warehouse.read(relation, state.version).to_pylist()
        return sorted(rows, key=lambda row: str(sorted(row.items(), key=str)))

    def totals(self) -> dict[str, tuple[int, str]]:
        """Return count and amount of `shop_totals` by shop."""
        return {
            row["shop_id"]: (row["sale_count"], str(row["sales_amount"]))
            for row in self.rows("mini.shop_totals")
        }

    def verify(self) -> list[Comparison]:
        runtime = self._runtime
        assert runtime is not None
        published = self.log.newest_published()
        assert published is not None
        return list(verify_models(self.spark, self.warehouse, runtime.project, published))

    def differing(self) -> list[str]:
        return [comparison.model for comparison in self.verify() if not comparison.is_equal]


def sale(
    sale_id: str,
    shop_id: str = "a",
    amount: str = "1.00",
    *,
    minutes: float = -10,
    updated: float | None = None,
    op: str = "c",
) -> dict[str, Any]:
    """Return a record of `sales`; minutes count from noon."""
    return {
        "sale_id": sale_id,
        "shop_id": shop_id,
        "amount": amount,
        "sold_at": (NOON + timedelta(minutes=minutes)).isoformat(),
        "updated_at": (
            NOON + timedelta(minutes=minutes if updated is None else updated)
        ).isoformat(),
        "op": op,
    }


def visit(shop_id: str, minutes: float = -10) -> dict[str, Any]:
    """Return a record of `visits`."""
    return {"shop_id": shop_id, "visited_at": (NOON + timedelta(minutes=minutes)).isoformat()}


def strategies(snapshot: Snapshot) -> dict[str, str]:
    """Return the strategy of each model by name."""
    return {
        unique_id.rpartition(".")[2]: state.strategy for unique_id, state in snapshot.models.items()
    }


def reasons(snapshot: Snapshot) -> dict[str, str | None]:
    """Return the reason of each model by name."""
    return {
        unique_id.rpartition(".")[2]: state.reason for unique_id, state in snapshot.models.items()
    }


__all__: Sequence[str] = ("NOON", "Mini", "Silent", "reasons", "sale", "strategies", "visit")
