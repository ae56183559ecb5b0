"""A worker of Spark parses its spans as the driver would; it needs nothing but the parser."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from livemart.errors import ConfigError
from livemart.land.records.judge import Group
from livemart.land.records.runs import Span
from livemart.land.records.worker import StageParts, require_staged, stage_tables
from livemart.land.sources.files.parts import FilePart
from livemart.land.sources.log_deliveries import unreadable_log
from livemart.run.replays import is_retriable
from livemart.storage.location import StoragePlace
from livemart.storage.scratch import drop_folder, empty_folder
from tests.storages import bucket_server, place  # noqa: F401
from tests.unit.land.records.rows import group_of, read


class Away:
    """A part of a log that cannot be read."""

    def read(self, group: Group) -> Iterator[pa.Table]:
        raise unreadable_log("outbox", "orders-0", ConnectionError("no route to host"))


def test_a_pickled_task_gives_the_rows_of_its_spans(tmp_path: Path) -> None:
    group = group_of({"text": "string"})
    first, second = '{"text":"a"}\n{broken\n', '{"text":"b"}\n'
    path = tmp_path / "a.jsonl"
    whole = read(group, path, first + second)
    spans = [Span(0, len(first)), Span(len(first), None, first_line=3)]
    parts = [FilePart(path.name, path, span) for span in spans]
    numbered = [{"number": it, "part": pickle.dumps(part)} for it, part in enumerate(parts)]
    tasks = pa.RecordBatch.from_pylist(numbered)
    folder = tmp_path / "staged"
    folder.mkdir()

    task = pickle.loads(pickle.dumps(StageParts(group, folder)))
    first_try, second_try = (pa.Table.from_batches(task(iter([tasks]))) for _ in range(2))

    assert first_try.to_pylist() == [
        {"number": 0, "records": 2, "failure": None},
        {"number": 1, "records": 1, "failure": None},
    ]
    assert second_try.equals(first_try)
    staged = [pq.read_table(path) for path in sorted(folder.iterdir())]
    assert len(staged) == 2
    assert pa.concat_tables(staged).sort_by("_origin").equals(whole)


def test_the_error_of_a_part_reaches_the_driver_as_it_is(tmp_path: Path) -> None:
    group = group_of({"text": "string"})
    away = unreadable_log("outbox", "orders-0", ConnectionError("no route to host"))
    gone = FilePart("a.jsonl", tmp_path / "a.jsonl")
    parts = enumerate((Away(), gone))
    numbered = [{"number": it, "part": pickle.dumps(part)} for it, part in parts]

    staged = pa.Table.from_batches(
        StageParts(group, tmp_path)(iter([pa.RecordBatch.from_pylist(numbered)]))
    )

    of_log, of_file = map(pickle.loads, staged.column("failure").to_pylist())
    assert (type(of_log), str(of_log), is_retriable(of_log)) == (type(away), str(away), True)
    assert (type(of_file), of_file.filename) == (FileNotFoundError, str(gone.path))


def test_a_worker_imports_no_engine() -> None:
    used = "livemart.land.sources.files.parts, livemart.land.letters.dead_letters"
    code = f"import sys, {used}; print(*sys.modules)"

    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()

    assert not {"pyspark", "deltalake", "dbt", "sqlalchemy"} & set(modules)


def test_rows_of_workers_are_counted_where_the_driver_reads_them(
    place: StoragePlace,  # noqa: F811
) -> None:
    folder = empty_folder(place / "staged")
    rows = pa.table({"n": [1, 2, 3]})

    for number, count in ((0, 2), (1, 3), (1, 1)):
        assert stage_tables(folder, number, rows.schema, [rows.slice(0, count)]) == count

    require_staged(folder, 3)
    with pytest.raises(ConfigError, match=r"EXECUTOR_UNFIT.*found 3 of the 5 records"):
        require_staged(folder, 5)
    drop_folder(folder)
    require_staged(folder, 0)
