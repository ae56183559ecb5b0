"""A dbt project with its own warehouse and landing folder, run in the tests' process."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Self

import yaml

from livemart.delta.warehouse import Warehouse
from livemart.inspect.verify import Comparison, verify_models
from livemart.land.hand_over import hand_over
from livemart.project.dbt import Dbt
from livemart.refresh.context import BatchMemory
from livemart.run.events import BatchRetried, EditRefused, EditTaken, RunEvent
from livemart.run.pipeline import Pipeline, RunOutcome
from livemart.run.runtime import Runtime, load_runtime
from livemart.run.stream import Stream
from livemart.settings import load_settings
from livemart.spark.catalog import register
from livemart.state.checkpoint import logged_batches
from livemart.state.snapshots import Snapshot, SnapshotLog
from livemart.storage.opening import open_storage
from tests.waits import PATIENCE_S

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]
PROJECTS = ROOT / "tests" / "projects"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

# The reference mart is a project among many other things.
_MART = (
    *("models", "macros", "seeds", "profiles", "tests/dbt"),
    *("dbt_project.yml", "selectors.yml", "livemart.yml"),
)
_RESULTS = shutil.ignore_patterns("target", "logs")
# dbt's parsed project: parsing takes half of a test's start.
_PARTIAL_PARSE = Path("target", "livemart", "partial_parse.msgpack")


class Silent:
    """A watcher that only remembers the retries and the edits."""

    def __init__(self) -> None:
        self.retries: list[str] = []
        self.edits: list[str] = []
        self.refusals: list[str] = []

    def handle(self, event: RunEvent) -> None:
        match event:
            case BatchRetried(error):
                self.retries.append(str(error))
            case EditTaken(_, changes):
                self.edits += [
                    f"{it.unique_id.split('.')[2]} {it.word} {it.strategy}" for it in changes
                ]
            case EditRefused(_, error):
                self.refusals.append(str(error))


@dataclass
class ProjectRun:
    """A copy of a project below `root`. The wall clock stops until `now` is set.

    Args:
        spark: the session, with an empty catalog.
        root: new, or where another run was put back.
        source: folder of the project; it is copied, since dbt writes into a project.
        flags: settings of every command.
    """

    spark: SparkSession
    root: Path
    source: Path
    now: datetime = NOON + timedelta(minutes=1)
    flags: Mapping[str, object] = field(default_factory=dict)
    watcher: Silent = field(default_factory=Silent)
    _runtime: Runtime | None = None
    _files: int = 0

    def __post_init__(self) -> None:
        if self.project.exists():
            return
        copy_project(self.source, self.project)
        path = self.project / _PARTIAL_PARSE
        path.parent.mkdir(parents=True)
        path.write_bytes(_parsed(self.source))
        self.landing.mkdir()

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
        """The warm process, started if it is not."""
        if self._runtime is None:
            self._runtime = self._started()
        return self._runtime

    @property
    def newest(self) -> Snapshot:
        newest = self.log.newest()
        assert newest is not None
        return newest

    def deliver(self, source: str, *records: Mapping[str, Any]) -> Path:
        """Put one file of JSON lines below the landing folder, by rename."""
        self._files += 1
        return hand_over_records(self.landing / source, f"{self._files:04}", records)

    def edit(self, path: str, text: str) -> None:
        """Change a file of the project, as an analyst between two runs."""
        (self.project / path).write_text(text)
        self.restart()

    def set_zone(self, zone: str) -> None:
        """Let the project's SQL mean what it means in a time zone."""
        path = self.project / "profiles" / "profiles.yml"
        profiles = yaml.safe_load(path.read_text())
        for profile in profiles.values():
            for output in profile["outputs"].values():
                output["server_side_parameters"] = {"spark.sql.session.timeZone": zone}
        self.edit("profiles/profiles.yml", yaml.safe_dump(profiles))

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

    def keep(self) -> None:
        """Keep everything as it is now, for `restored`."""
        shutil.copytree(self.root, self._kept)

    def restored(self) -> Self:
        """Return a warm run that goes on from what was kept, and knows of nothing later.

        It has the place of this one: Spark's log of files holds absolute paths. The session must
        have been emptied.
        """
        shutil.rmtree(self.root)
        shutil.copytree(self._kept, self.root)
        run = replace(self, watcher=Silent())
        # dbt has read this very project already; the catalog is new.
        kept = self.runtime
        register(self.spark, run.root / "warehouse", kept.project)
        run._runtime = replace(
            kept,
            warehouse=run.warehouse,
            log=run.log,
            read_at=kept.files.look(),
            between_batches=BatchMemory(),
        )
        return run

    @property
    def _kept(self) -> Path:
        return self.root.with_name(f"{self.root.name}-kept")

    def pipeline(self, stop: Event | None = None, **flags: object) -> Pipeline:
        if flags:
            self._runtime = self._started(**flags)
        leaves_out = bool({"select", "exclude"} & flags.keys())
        return Pipeline(
            self.runtime,
            self.watcher.handle,
            now=lambda: self.now,
            stop=stop or Event(),
            leaves_out=leaves_out,
        )

    def _started(self, **flags: object) -> Runtime:
        places = {
            "project_dir": str(self.project),
            "warehouse": str(self.root / "warehouse"),
            "landing": str(self.landing),
        }
        settings = load_settings({**places, **self.flags, **flags}, environ={})
        (self.root / "warehouse").mkdir(exist_ok=True)
        return load_runtime(settings, lambda: self.spark, self.watcher.handle)

    def build(self, **options: Any) -> RunOutcome:
        return self.pipeline().build(**options)

    def refresh(self, **options: Any) -> RunOutcome:
        return self.pipeline().refresh(**options)

    @contextmanager
    def streaming(self, **flags: object) -> Iterator[None]:
        """Stream in a thread until the block ends; what ended it early is raised."""
        stop, errors = Event(), list[BaseException]()
        pipeline = self.pipeline(stop=stop, **flags)

        def run() -> None:
            try:
                Stream(pipeline).run(timedelta(seconds=1))
            except BaseException as error:
                errors.append(error)

        thread = Thread(target=run)
        thread.start()
        try:
            yield
            assert errors == []
        except AssertionError as error:
            told = f"told: {self.watcher.edits} {self.watcher.refusals} {errors}"
            error.add_note(told)
            raise
        finally:
            stop.set()
            thread.join(PATIENCE_S)
        assert not thread.is_alive(), "the stream does not stop"
        assert errors == []

    def replay(self) -> RunOutcome:
        """Run the last micro-batch again, as after a crash before the checkpoint knew of it."""
        storage = open_storage(self.runtime.checkpoint / "commits")
        newest = max(logged_batches(self.runtime.checkpoint / "commits"))
        storage.delete([str(newest), f".{newest}.crc"])
        return self.refresh()

    def rows(self, relation: str) -> list[dict[str, Any]]:
        """Return the rows that readers see, sorted."""
        published = self.log.newest_published()
        assert published is not None
        name = relation.rpartition(".")[2]
        by_name = (it for key, it in published.models.items() if key.endswith(f".{name}"))
        if (state := next(by_name, None)) is None:
            # Its table has another name: an alias, or one for each version.
            models = self.runtime.project.models.items()
            state = next(published.models[key] for key, it in models if it.relation == relation)
        rows = self.warehouse.read(relation, state.version).to_pylist()
        return sorted(rows, key=lambda row: str(sorted(row.items(), key=str)))

    def verify(self) -> Iterator[Comparison]:
        """Yield the comparison of each model with a recomputation, in dependency order.

        The newest snapshot must be published: the one before it says nothing about a batch that
        its tests hold back.
        """
        newest = self.newest
        assert newest.status == "published", newest
        yield from verify_models(self.spark, self.warehouse, self.runtime.project, newest)

    def differing(self) -> list[str]:
        """Return the models that differ from a recomputation out of the landed tables."""
        return [comparison.model for comparison in self.verify() if not comparison.is_equal]


def copy_project(project: Path, copy: Path) -> None:
    """Copy what makes up a dbt project, without what dbt has written into it."""
    if project != ROOT:
        shutil.copytree(project, copy, ignore=_RESULTS)
        return
    for name in _MART:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        if (project / name).is_dir():
            shutil.copytree(project / name, copy / name)
        else:
            shutil.copy2(project / name, copy / name)


def hand_over_records(folder: Path, name: str, records: Iterable[Mapping[str, Any]]) -> Path:
    """Put a file of JSON lines into a folder of landing."""
    lines = "".join(json.dumps(record) + "\n" for record in records)
    return hand_over(folder, f"{name}.jsonl", lines.encode())


@cache
def _parsed(project: Path) -> bytes:
    """Return what dbt keeps of a parsed project, the same whichever test comes first."""
    with TemporaryDirectory() as folder:
        copy = Path(folder, "project")
        copy_project(project, copy)
        Dbt(copy).parse()
        return (copy / _PARTIAL_PARSE).read_bytes()


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
