"""A worker of Spark parses its spans as the driver would; it needs nothing but the parser."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

from livemart.land.records.runs import Span
from livemart.land.records.worker import ParseParts
from livemart.land.sources.files.parts import FilePart
from tests.unit.land.records.rows import group_of, read


def test_a_pickled_task_gives_the_rows_of_its_spans(tmp_path: Path) -> None:
    group = group_of({"text": "string"})
    first, second = '{"text":"a"}\n{broken\n', '{"text":"b"}\n'
    path = tmp_path / "a.jsonl"
    whole = read(group, path, first + second)
    spans = [Span(0, len(first)), Span(len(first), None, first_line=3)]
    parts = [FilePart(path.name, path, span) for span in spans]
    tasks = pa.RecordBatch.from_pylist([{"part": pickle.dumps(part)} for part in parts])

    task = pickle.loads(pickle.dumps(ParseParts(group)))
    batches = list(task(iter([tasks])))

    assert pa.Table.from_batches(batches).sort_by("_origin").equals(whole)


def test_a_worker_imports_no_engine() -> None:
    code = "import sys, livemart.land.sources.files.parts; print(*sys.modules)"

    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()

    assert not {"pyspark", "deltalake", "dbt", "sqlalchemy"} & set(modules)
