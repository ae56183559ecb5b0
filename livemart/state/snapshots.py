"""Reads and appends the snapshot log: one row names the version of every table.

Used by the runner, which appends, and by all who need to know what is published. The row is the
moment at which all models change together (ADR-0005); a crash between models leaves no row, so the
batch is replayed from the row before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import UTC, datetime
from itertools import takewhile
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pds
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import DeltaError
from deltalake.schema import Schema as DeltaSchema
from pydantic import AfterValidator, BeforeValidator, TypeAdapter

from livemart.errors import PublishError, StorageError
from livemart.state.counts import TableCounts
from livemart.state.drift import Drift
from livemart.state.places import StateFolder
from livemart.storage.fence import require_right_to_write
from livemart.storage.location import StoragePlace
from livemart.storage.opening import open_storage

_PROPERTIES = {
    "delta.checkpointInterval": "10",
    # No reader asks for an older version of the log: short, or checkpoints drag removed files
    # along.
    "delta.logRetentionDuration": "interval 7 days",
    "delta.deletedFileRetentionDuration": "interval 1 days",
}
# A snapshot is a file of one row until then; ten thousand files would take a second to list.
_COMPACT_EVERY = 64
_SPAN = 8

# Shown wherever a held snapshot is.
RELEASE = (
    "  readers stay on the snapshot before; the next refresh publishes as soon as the test passes, "
    "its rows are corrected, or it is edited or removed"
)

# The reason of a model that a command was not asked for, and of those that read it.
LEFT_OUT = "left out by the selection"

# Converted from any zone that a reader of the log gives it.
_Moment = Annotated[datetime, AfterValidator(lambda moment: moment.astimezone(UTC))]

# NULL in rows of a log that began without this column.
_OR_NONE = BeforeValidator(lambda value: value or {})

Kind = Literal["build", "refresh"]
Status = Literal["published", "held"]


@dataclass(frozen=True, slots=True)
class ModelState:
    """The state of one model in a snapshot."""

    version: int
    """Version of the model's table."""
    fingerprint: str
    strategy: str
    reason: str | None
    rows_changed: int
    """See `Commit`."""
    took_ms: int
    """Milliseconds that the refresh took."""
    generation: int
    """Number of rebuilds."""
    table_id: str


@dataclass(frozen=True, slots=True)
class SetAside:
    """A model that a snapshot leaves unchanged: it or one that it reads fails, or is left out."""

    since: int
    """The first snapshot without the model."""
    refreshed_at: _Moment | None
    """When the last snapshot with it was finished; None if it never was in one."""
    fingerprint: str
    """Hash of the SQL that failed or waits."""
    cause: str
    """Unique id of the model that failed or is left out."""
    message: str
    """The message of that model, or LEFT_OUT."""

    @property
    def is_left_out(self) -> bool:
        """True if nothing is wrong: the next pass that is asked for the model brings it back."""
        return self.message == LEFT_OUT


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One row of the log; times are UTC."""

    snapshot_id: int
    epoch: str
    batch_id: int
    kind: Kind
    as_of: _Moment | None
    sources: Mapping[str, int]
    """Version by relation."""
    models: Mapping[str, ModelState]
    """State by unique id."""
    tests: Mapping[str, str]
    """Outcome by unique id."""
    status: Status
    started_at: _Moment
    finished_at: _Moment
    landed: Mapping[str, TableCounts] = field(default_factory=dict)
    test_fingerprints: Annotated[Mapping[str, str], _OR_NONE] = field(default_factory=dict)
    """Hash of the SQL and settings that had this outcome, by unique id."""
    set_aside: Annotated[Mapping[str, SetAside], _OR_NONE] = field(default_factory=dict)
    """Models whose state is that of an earlier snapshot, or that have none, by unique id."""
    delivered_at: _Moment | None = None
    """When the oldest file that it has landed was delivered; None if it has landed none."""
    drift: Annotated[Mapping[str, Drift], _OR_NONE] = field(default_factory=dict)
    """How records that it has landed differ from the declared columns, by relation."""
    stages: Annotated[Mapping[str, ModelState], _OR_NONE] = field(default_factory=dict)
    """State of the parts of models that have their own table, by unique id."""
    stages_aside: Annotated[Mapping[str, SetAside], _OR_NONE] = field(default_factory=dict)
    """Those of which the same is true as of the models in `set_aside`."""

    @property
    def stored(self) -> dict[str, ModelState]:
        """State of all that has a table, models and stages, by unique id."""
        return {**self.models, **self.stages}

    @property
    def aside(self) -> dict[str, SetAside]:
        """All that is set aside, models and stages, by unique id."""
        return {**self.set_aside, **self.stages_aside}


def _arrow_type(kind: Any) -> pa.DataType:
    """Return how the log stores values of an annotated type; each may be NULL."""
    origin, arguments = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return pa.struct(_arrow_schema(kind))
    if origin is Mapping:
        return pa.map_(*map(_arrow_type, arguments))
    if origin is tuple:
        return pa.list_(pa.field("element", _arrow_type(arguments[0])))
    if NoneType in arguments:
        return _arrow_type(arguments[0])
    if kind is datetime:
        return pa.timestamp("us", tz="UTC")
    return pa.int64() if kind is int else pa.string()


def _arrow_schema(row: Any) -> pa.Schema:
    return pa.schema([(name, _arrow_type(kind)) for name, kind in get_type_hints(row).items()])


SCHEMA = _arrow_schema(Snapshot)
_ROW = TypeAdapter(Snapshot)


class SnapshotLog:
    """The log at `root/_livemart/snapshots`. One writer, any number of readers."""

    def __init__(self, root: StoragePlace) -> None:
        self._storage = open_storage(StateFolder(root).snapshots)
        self._url = self._storage.location.url
        self._table: DeltaTable | None = None
        self._tail: tuple[str, int, tuple[Snapshot, ...]] = ("", -1, ())

    def newest(self) -> Snapshot | None:
        """Return the newest row, the frontier of all models; None before the first build."""
        rows = self.rows(1)
        return rows[0] if rows else None

    def newest_published(self) -> Snapshot | None:
        """Return the row that readers use: the newest that no failed test holds back."""
        newest = self.newest()
        if newest is None or newest.status == "published":
            return newest
        table = self._open()
        assert table is not None
        rows = self._read(table, pds.field("status") == "published", limit=1)
        return rows[0] if rows else None

    def rows(self, limit: int) -> list[Snapshot]:
        """Return up to `limit` rows, newest first."""
        table = self._open()
        if table is None or limit <= 0:
            return []
        state = (str(table.metadata().id), int(table.version()))
        if self._tail[:2] != state or len(self._tail[2]) < limit:
            self._tail = (*state, tuple(self._read(table, None, limit)))
        return list(self._tail[2][:limit])

    def row(self, snapshot_id: int) -> Snapshot | None:
        """Return a snapshot by its number; None if there is none."""
        table = self._open()
        if table is None:
            return None
        rows = self._read(table, pds.field("snapshot_id") == snapshot_id, limit=1)
        return rows[0] if rows else None

    def since(self, moment: datetime) -> list[Snapshot]:
        """Return the snapshots from a moment on and the one before them, the newest first."""
        limit = _SPAN
        while len(rows := self.rows(limit)) == limit and rows[-1].finished_at >= moment:
            limit *= 8
        late = sum(1 for _ in takewhile(lambda row: row.finished_at >= moment, rows))
        return rows[: late + 1]

    def model_tables(self) -> dict[str, str]:
        """Return the unique id of every model that a row names, by the id of its table."""
        table = self._open()
        if table is None:
            return {}
        models = self._dataset(table).to_table(columns=["models"]).column("models")
        tables: dict[str, str] = {}
        for chunk in models.chunks:
            # As columns: a log of thousands of rows names each model thousands of times.
            names = pa.table([chunk.items.field("table_id"), chunk.keys], ["table_id", "model"])
            distinct = names.group_by(["table_id", "model"]).aggregate([]).to_pydict()
            tables.update(zip(distinct["table_id"], distinct["model"], strict=True))
        return tables

    def forget(self, before: datetime, others: Collection[int] = ()) -> None:
        """Remove the rows of snapshots that were finished before a moment.

        The newest stays, the one that readers see, and the last one that names a table of a model:
        by it the tables of models that are no more are known.

        Args:
            before: UTC.
            others: numbers of snapshots that stay as well.

        Raises:
            DeltaError, OSError: the log cannot be read or written.
        """
        rows = (self.newest(), self.newest_published())
        stay = {row.snapshot_id for row in rows if row is not None} | set(others)
        table = self._open()
        if table is None or not stay:
            return
        newest_old = -1
        last = pa.table({"table_id": pa.array([], pa.string()), "last": pa.array([], pa.int64())})
        columns = ["snapshot_id", "finished_at", "models"]
        for batch in self._dataset(table).to_table(columns=columns).to_batches():
            ids, times, models = batch.columns
            is_old = pc.less(times, pa.scalar(before, times.type))
            newest_old = max(newest_old, pc.max(ids.filter(is_old)).as_py() or -1)
            offsets = models.offsets.to_numpy()
            numbers = np.repeat(ids.to_numpy(), np.diff(offsets))
            # A batch may be a slice; its items are those of the whole array.
            items = models.items.slice(offsets[0], len(numbers))
            named = pa.table([items.field("table_id"), numbers], last.column_names)
            groups = pa.concat_tables([last, named]).group_by("table_id")
            last = groups.aggregate([("last", "max")]).rename_columns(last.column_names)
        stay |= set(last.column("last").to_pylist())
        # By number: deltalake 1.6 compares no time of microseconds with one that is written out.
        listed = ", ".join(map(str, sorted(stay)))
        table.delete(f"snapshot_id <= {newest_old} and snapshot_id not in ({listed})")

    def append(self, snapshot: Snapshot) -> bool:
        """Write a row once for its epoch and batch; return False if it was there before.

        Raises:
            PublishError: SNAPSHOT_NOT_WRITTEN, if the log cannot be written.
        """
        app_id = f"{snapshot.epoch}/snapshots"
        try:
            table = self._open() or self._create()
            newest = table.transaction_version(app_id)
            if newest is not None and newest >= snapshot.batch_id:
                return False
            columns = {column.name for column in table.schema().fields}
            require_right_to_write(self._storage.location)
            write_deltalake(
                table,
                pa.Table.from_pylist([asdict(snapshot)], schema=SCHEMA),
                mode="append",
                # A log that an earlier version began is widened; its rows hold NULL there.
                schema_mode=None if columns >= set(SCHEMA.names) else "merge",
                commit_properties=CommitProperties(
                    app_transactions=[Transaction(app_id, snapshot.batch_id)],
                    custom_metadata={"userMetadata": f"snapshot {snapshot.snapshot_id}"},
                    # deltalake would commit it behind a row that it was not computed from.
                    max_commit_retries=0,
                ),
            )
            if table.version() % _COMPACT_EVERY == 0:
                table.optimize.compact()
        except StorageError:
            raise
        except (DeltaError, OSError) as error:
            raise PublishError(
                "SNAPSHOT_NOT_WRITTEN",
                f"{self._url}: {error}",
                hint="check the disk; the batch is replayed from the previous snapshot",
            ) from error
        return True

    def _open(self) -> DeltaTable | None:
        """Return the log's table at its newest version, or None if there is none yet."""
        table, options = self._table, self._storage.options()
        if table is not None and self._storage.head(f"_delta_log/{table.version():020d}.json"):
            table.update_incremental()
        elif DeltaTable.is_deltatable(self._url, options):
            self._table = DeltaTable(self._url, storage_options=options)
        else:
            self._table = None
        return self._table

    def _create(self) -> DeltaTable:
        require_right_to_write(self._storage.location)
        self._table = DeltaTable.create(
            self._url,
            DeltaSchema.from_arrow(SCHEMA),
            configuration=_PROPERTIES,
            storage_options=self._storage.options(),
        )
        return self._table

    def _read(
        self, table: DeltaTable, condition: pds.Expression | None, limit: int
    ) -> list[Snapshot]:
        """Read newest rows first, widening the range of ids until enough rows are found."""
        files = pa.table(table.get_add_actions(flatten=True))
        if files.num_rows == 0:
            return []
        highest = pc.max(files.column("max.snapshot_id")).as_py()
        span = max(limit, _SPAN)
        while True:
            dataset = self._dataset(table, f"snapshot_id > {highest - span}")
            recent = pds.field("snapshot_id") > highest - span
            rows = dataset.to_table(filter=recent if condition is None else recent & condition)
            if rows.num_rows >= limit or span > highest:
                break
            span *= 8
        order = pc.sort_indices(rows, [("snapshot_id", "descending")])
        newest_first = rows.take(order.slice(0, limit)).to_pylist(maps_as_pydicts="strict")
        return [_ROW.validate_python(row) for row in newest_first]

    def _dataset(self, table: DeltaTable, of_files: str | None = None) -> pds.Dataset:
        """Return the log's rows; `of_files`: a condition on the statistics of files to read."""
        filesystem = self._storage.filesystem()
        return table.to_pyarrow_dataset(filesystem=filesystem, file_pruning_predicate=of_files)


def how_to_show_rows(test: str) -> str:
    """Return a line that says how to see all rows that fail a data test, by its unique id.

    >>> how_to_show_rows("test.shop.positive_amounts.1a2b3c").partition("&& ")[2]
    'dbt show --select positive_amounts --limit 100'
    """
    name = test.split(".")[2] if test.count(".") > 1 else test
    return f'  its rows: eval "$(livemart env)" && dbt show --select {name} --limit 100'
