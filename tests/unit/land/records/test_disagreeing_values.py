"""Values on which engines disagree land exactly as they were sent, whatever the format."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from livemart.land.records import halves
from tests.disagreeing_values import KINDS, array, landed_value
from tests.unit.land.records.rows import good, group_of, read

# No field of CSV that holds JSON, and no number that is none in JSON.
PLAIN = [name for name, kind in KINDS.items() if not pa.types.is_nested(kind.arrow)]


def columns_of(format: str) -> dict[str, list[Any]]:
    """Return the values of each type that a format can hold, and NULL: a row has one of each."""
    names = PLAIN if format == "csv" else list(KINDS)
    # An empty text is NULL in a column that holds none.
    left_out = () if format == "parquet" else (b"",)
    values = {
        name: [it for it in KINDS[name].values if _is_finite(it) and it not in left_out]
        for name in names
    }
    length = max(map(len, values.values())) + 1
    return {name: [*it, *[None] * (length - len(it))] for name, it in values.items()}


def _is_finite(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else value
    if isinstance(parts, str | bytes) or not hasattr(parts, "__iter__"):
        return not isinstance(value, float) or math.isfinite(value)
    return all(map(_is_finite, parts))


def content_of(format: str, columns: dict[str, list[Any]]) -> bytes:
    """Return a file of records that have a number, too."""
    count = len(next(iter(columns.values())))
    if format == "parquet":
        file = io.BytesIO()
        numbers = {"n": pa.array(range(count), pa.int32())}
        rows = {name: array(name, values) for name, values in columns.items()}
        pq.write_table(pa.table({**numbers, **rows}), file)
        return file.getvalue()
    records = [
        {
            "n": n,
            **{name: landed_value(it[n], KINDS[name].arrow) for name, it in columns.items()},
        }
        for n in range(count)
    ]
    if format == "json":
        return "\n".join(map(json.dumps, records)).encode()
    lines = [
        ",".join("" if field is None else f'"{_doubled(str(field))}"' for field in record.values())
        for record in records
    ]
    return "\n".join([",".join(records[0]), *lines]).encode()


def _doubled(text: str) -> str:
    return text.replace('"', '""')


@pytest.mark.parametrize("format", ["json", "csv", "parquet"])
@pytest.mark.parametrize("is_fast", [True, False])
def test_every_value_lands_as_it_was_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, is_fast: bool
) -> None:
    columns = columns_of(format)
    group = group_of({"n": "int", **{name: KINDS[name].spark for name in columns}}, format)
    if not is_fast:
        monkeypatch.setattr(halves, "_fast_rows", lambda *_: None)

    table = read(group, tmp_path / f"a.{format}", content_of(format, columns)).sort_by("n")

    for name, values in columns.items():
        sent = array(name, values).to_pylist()
        # As text -0.0 is another one than 0.0.
        assert list(map(str, good(table, name))) == list(map(str, sent)), name
