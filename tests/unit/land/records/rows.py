"""Groups and readings that the parser's tests share."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from livemart.land.records.judge import Group, Rules
from livemart.land.records.schema import RecordSchema
from livemart.land.sources.files.parts import FilePart
from livemart.project.graph import RecordRules, RowRules
from livemart.project.spark_types import parse_type

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def group_of(columns: dict[str, str], format: str = "json", *rules: Rules) -> Group:
    schema = RecordSchema(tuple((name, parse_type(kind)) for name, kind in columns.items()))
    record_rules = RecordRules(format)  # type: ignore[arg-type]
    return Group(record_rules, schema, rules or (Rules(RowRules()),), NOON)


def read(group: Group, path: Path, content: bytes | str) -> pa.Table:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    tables = [group.judged.empty_table(), *FilePart(path.name, path).read(group)]
    return pa.concat_tables(tables).sort_by("_origin")


def good(table: pa.Table, *names: str) -> list[Any]:
    rows = [row for row in table.to_pylist() if row["_code_0"] is None]
    return [
        row[names[0]] if len(names) == 1 else tuple(row[name] for name in names) for row in rows
    ]


def codes(table: pa.Table) -> list[str | None]:
    return table.column("_code_0").to_pylist()  # type: ignore[no-any-return]
