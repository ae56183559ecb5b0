"""A worker of Spark parses its spans as the driver would; it needs nothing but the parser."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

from livemart.land.records.worker import ParseSpans
from tests.unit.land.records.rows import group_of, read


def test_a_pickled_task_gives_the_rows_of_its_spans(tmp_path: Path) -> None:
    group = group_of({"text": "string"})
    first, second = '{"text":"a"}\n{broken\n', '{"text":"b"}\n'
    path = tmp_path / "a.jsonl"
    whole = read(group, path, first + second)
    spans = pa.RecordBatch.from_pylist(
        [
            {"name": path.name, "path": str(path), "start": 0, "end": len(first), "first_line": 1},
            {"name": path.name, "path": str(path), "start": len(first), "end": None}
            | {"first_line": 3},
        ]
    )

    task = pickle.loads(pickle.dumps(ParseSpans(group)))
    batches = list(task(iter([spans])))

    assert pa.Table.from_batches(batches).sort_by("_origin").equals(whole)


def test_a_worker_imports_no_engine() -> None:
    code = "import sys, livemart.land.records.worker; print(*sys.modules)"

    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()

    assert not {"pyspark", "deltalake", "dbt", "sqlalchemy"} & set(modules)
