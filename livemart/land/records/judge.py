"""Judges typed records: each source's verdict on each of them.

Used by the readers of every format. Sources that read the same files with the same columns form a
group. A record is parsed once, and each source of the group then judges it by its own keys,
sequence and bounds of event time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from livemart.land.reasons import LetterReason
from livemart.land.records.exact_values import PASSED_OVER, converter
from livemart.land.records.origin import Place
from livemart.land.records.runs import line_size
from livemart.land.records.schema import RESCUED_TYPE, RecordSchema
from livemart.land.records.untyped_values import Convert, Rescued, name_in_path
from livemart.project.graph import RecordRules, RowRules, SourceTable
from livemart.project.landing_columns import KEPT, ORIGIN, RESCUED

# A record beyond this is refused before it is parsed; of a refused one this much is kept.
MAX_RECORD_BYTES = 1 << 20
KEPT_RECORD_BYTES = 8 << 10
_KEPT_DETAIL_CHARACTERS = 1_000
# Behind the minutes of a time that names no zone.
_REST_WITHOUT_ZONE = r"(?::[0-9]{2}(?:[.,][0-9]+)?)?(?![0-9:.,])(?!\s?[Zz+-])"
RECORD = "_record"
SIZE = "_record_bytes"


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one source for a record beyond its types; its bounds are of `event_time`."""

    row_rules: RowRules
    event_time: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """A record that becomes no row. `code`: the dead letter's reason, or `PASSED_OVER`."""

    line: int
    code: str
    detail: str
    record: bytes


@dataclass(frozen=True)
class Group:
    """How records are read, the columns, and the rules of each source.

    Picklable for Spark's workers.
    """

    record_rules: RecordRules
    schema: RecordSchema
    rules: tuple[Rules, ...]
    arrived_at: datetime

    @classmethod
    def of(
        cls, sources: Sequence[SourceTable], schema: RecordSchema, arrived_at: datetime
    ) -> Group:
        """Return the group of sources that are `read_alike`."""
        rules = tuple(Rules(source.row_rules, source.event_time) for source in sources)
        return cls(sources[0].record_rules, schema, rules, arrived_at)

    @cached_property
    def converters(self) -> list[tuple[str, Convert]]:
        """Column names and the functions that convert their values, in order."""
        empty_is_null = self.record_rules.empty_is_null
        return [(name, converter(kind, empty_is_null)) for name, kind in self.schema.columns]

    @cached_property
    def known_names(self) -> frozenset[str]:
        """Names of the declared columns."""
        return frozenset(self.schema.names)

    @cached_property
    def of_contents(self) -> Group:
        """Return the group without the columns that are no part of the content of a message."""
        if not self.record_rules.message:
            return self
        beside = {column for _, column in self.record_rules.message}
        rules = replace(self.record_rules, message=())
        return replace(self, record_rules=rules, schema=self.schema.without(beside))

    @cached_property
    def keeps_records(self) -> bool:
        """Whether good records are kept, too: a source refuses some when it knows their keys."""
        return any(rules.row_rules.event_time_is_fixed for rules in self.rules)

    @cached_property
    def typed(self) -> pa.Schema:
        """Schema of typed rows: declared columns and `_rescued_data`."""
        return self.schema.arrow.append(pa.field(RESCUED, RESCUED_TYPE))

    @cached_property
    def judged(self) -> pa.Schema:
        """Schema of `judge`: columns, origin, rescued data, records as they arrived, verdicts.

        Records are those that are refused, or may be later.
        """
        verdicts = [
            pa.field(verdict(kind, position), pa.string())
            for position in range(len(self.rules))
            for kind in ("code", "detail")
        ]
        return pa.schema(
            [
                *self.schema.arrow,
                pa.field(ORIGIN, pa.string()),
                pa.field(RESCUED, RESCUED_TYPE),
                pa.field(RECORD, pa.string()),
                pa.field(SIZE, pa.int64()),
                *verdicts,
            ]
        )


@dataclass(frozen=True, slots=True)
class Chunk:
    """Typed rows of a run of lines, and the lines that could not become a row.

    `rows`: in the schema `Group.typed`; `lines` are theirs, in the same order; `record` returns the
    record of the n-th as it arrived.
    """

    rows: pa.Table
    lines: Sequence[int]
    record: Callable[[int], bytes]
    refused: Sequence[Refused]


def joined(group: Group, pieces: Sequence[Chunk]) -> Chunk:
    """Return runs of records as one."""
    if len(pieces) == 1:
        return pieces[0]
    raws = [piece.record(row) for piece in pieces for row in range(piece.rows.num_rows)]
    return Chunk(
        pa.concat_tables([piece.rows for piece in pieces]) if pieces else group.typed.empty_table(),
        [line for piece in pieces for line in piece.lines],
        raws.__getitem__,
        [record for piece in pieces for record in piece.refused],
    )


def malformed(group: Group, records: Sequence[tuple[int, bytes]], detail: str) -> Chunk:
    """Return records that all are refused for one reason."""
    reason = LetterReason.MALFORMED_RECORD
    refused = [Refused(number, reason, detail, raw) for number, raw in records]
    return all_refused(group, refused)


def all_refused(group: Group, refused: Sequence[Refused]) -> Chunk:
    """Return records none of which is a row."""
    return Chunk(group.typed.empty_table(), [], [].__getitem__, refused)


def read_alike(source: SourceTable) -> tuple[object, ...]:
    """Return a value that two sources share if a record has the same fields for both."""
    # Only the keys are taken from a delete that an envelope reports.
    return source.record_rules, source.row_rules.keys if source.record_rules.envelope else None


def refused_by(judged: pa.Table, position: int) -> pa.Table:
    """Return the records that the group's n-th source refuses."""
    codes = judged.column(verdict("code", position))
    return judged.filter(pc.fill_null(pc.not_equal(codes, PASSED_OVER), False))


def verdict(kind: str, position: int) -> str:
    """Return the name of the column that holds the code or detail of a group's n-th source."""
    return f"_{kind}_{position}"


def with_rescued(group: Group, columns: Sequence[pa.Array], rescued: Sequence[Rescued]) -> pa.Table:
    """Return the declared columns of records, with their other fields, as a table."""
    maps = [sorted(fields.items()) if fields else None for fields in rescued]
    return pa.table([*columns, pa.array(maps, RESCUED_TYPE)], schema=group.typed)


def unrescued(group: Group, columns: Sequence[pa.Array], count: int) -> pa.Table:
    """Return the declared columns of records that have no other fields as a table.

    Raises:
        pa.ArrowInvalid: a column has not `count` values.
    """
    return pa.table([*columns, pa.nulls(count, RESCUED_TYPE)], schema=group.typed)


def judge(group: Group, place: Place, chunk: Chunk) -> pa.Table:
    """Return the chunk's records, one row each, good and refused, in the schema `group.judged`."""
    rows, count = chunk.rows, chunk.rows.num_rows
    verdicts = [_verdict(rules, rows, group.arrived_at) for rules in group.rules]
    positions = set(range(count)) if group.keeps_records else set[int]()
    for codes, _ in verdicts:
        positions.update(pc.indices_nonzero(codes.is_valid()).to_pylist())
    # In some formats a record is written only for this.
    raws = {position: chunk.record(position) for position in sorted(positions)}
    records = {position: kept_text(raw) for position, raw in raws.items()}
    for number, rules in enumerate(group.rules):
        verdicts[number] = _with_zone_noted(rules, rows, verdicts[number], records)
    sizes = {position: len(raw) for position, raw in raws.items()}
    arrays: list[Any] = [_array(rows, name) for name in group.schema.names]
    arrays += [
        place.origins(chunk.lines),
        _array(rows, RESCUED),
        _placed(records, count, pa.string()),
        _placed(sizes, count, pa.int64()),
        *(array for pair in verdicts for array in pair),
    ]
    good = pa.table(arrays, schema=group.judged)
    if not chunk.refused:
        return good
    return pa.concat_tables([good, _refused_rows(group, place, chunk.refused)]).combine_chunks()


def _placed(values: Mapping[int, Any], count: int, kind: pa.DataType) -> pa.Array:
    """Return an array with these values at their positions, NULL at all others."""
    if not values:
        return pa.nulls(count, kind)
    return pa.array([values.get(position) for position in range(count)], kind)


def _refused_rows(group: Group, place: Place, refused: Sequence[Refused]) -> pa.Table:
    columns: dict[str, Any] = {
        ORIGIN: place.origins([record.line for record in refused]),
        RECORD: [kept_text(record.record) for record in refused],
        SIZE: [line_size(record.record) for record in refused],
    }
    for position in range(len(group.rules)):
        columns[verdict("code", position)] = [record.code for record in refused]
        columns[verdict("detail", position)] = [_legible(record.detail) for record in refused]
    none = [None] * len(refused)
    arrays = [pa.array(columns.get(field.name, none), field.type) for field in group.judged]
    return pa.table(arrays, schema=group.judged)


def kept_text(record: bytes) -> str:
    """Return the text of a record that a dead letter keeps."""
    text = record[:KEPT_RECORD_BYTES].decode("utf-8", errors="backslashreplace")
    return text.replace("\0", "\\x00")


def _legible(detail: str) -> str:
    """A detail quotes the record, so it may be as long and as broken as that."""
    shown = detail[:_KEPT_DETAIL_CHARACTERS].encode("utf-8", errors="backslashreplace").decode()
    return shown.replace("\0", "\\x00")


def _verdict(asked: Rules, rows: pa.Table, arrived_at: datetime) -> tuple[pa.Array, pa.Array]:
    """Return reason code and detail of each row, NULL where the source takes it."""
    rules = asked.row_rules
    codes = pa.nulls(rows.num_rows, pa.string())
    details = pa.nulls(rows.num_rows, pa.string())

    def refuse(mask: Any, code: LetterReason, detail: str | pa.Array) -> None:
        nonlocal codes, details
        if not pc.any(mask).as_py():
            return
        fresh = pc.and_(pc.fill_null(mask, False), codes.is_null())
        codes = pc.if_else(fresh, code, codes)
        details = pc.if_else(fresh, detail, details)

    if rules.schema_drift == "fail":
        drifting = _fields_found(rows)
        refuse(drifting.is_valid(), LetterReason.SCHEMA_DRIFT, drifting)
    for name in rules.keys:
        refuse(_array(rows, name).is_null(), LetterReason.NULL_KEY, f"{name} is NULL")
    for name in rules.sequence_by:
        refuse(_array(rows, name).is_null(), LetterReason.NULL_SEQUENCE, f"{name} is NULL")
    if asked.event_time is not None and (rules.max_future or rules.horizon):
        name = asked.event_time
        times = _instants(_array(rows, name))
        if (latest := _moved_by(arrived_at, rules.max_future)) is not None:
            bound = pa.scalar(latest, times.type)
            detail = f"{name} is more than {rules.max_future} after {arrived_at.isoformat()}"
            refuse(pc.greater(times, bound), LetterReason.FUTURE_EVENT_TIME, detail)
        if (oldest := _moved_by(arrived_at, rules.horizon, -1)) is not None:
            bound = pa.scalar(oldest, times.type)
            detail = f"{name} is more than {rules.horizon} before {arrived_at.isoformat()}"
            refuse(pc.less(times, bound), LetterReason.TOO_LATE, detail)
    return codes, details


def _with_zone_noted(
    asked: Rules,
    rows: pa.Table,
    verdict: tuple[pa.Array, pa.Array],
    records: Mapping[int, str],
) -> tuple[pa.Array, pa.Array]:
    """Say of future event times which are written without a zone: local ones often are."""
    codes, details = verdict
    positions = pc.indices_nonzero(
        pc.fill_null(pc.equal(codes, LetterReason.FUTURE_EVENT_TIME), False)
    ).to_pylist()
    if not positions or asked.event_time is None:
        return verdict
    times = _instants(_array(rows, asked.event_time))
    texts = details.to_pylist()
    for position in positions:
        name = f'"{re.escape(asked.event_time)}"\\s*:\\s*"'
        record, moment = records[position], times[position].as_py()
        written = f"{moment:%Y-%m-%d}[T ]{moment:%H:%M}{_REST_WITHOUT_ZONE}"
        if re.search(name + written if record.startswith("{") else written, record):
            texts[position] += "; no zone in the value, taken as UTC"
    return codes, pa.array(texts, pa.string())


def _fields_found(rows: pa.Table) -> pa.Array:
    """Return the details of records that have fields which they should not have, else NULL.

    A change record may say that it left such a field as it was: then it is there, with a value.
    """
    paths_by_row = [list(dict(fields or ())) for fields in _array(rows, RESCUED).to_pylist()]
    if KEPT in rows.column_names:
        columns = set(rows.column_names)
        for paths, versions in zip(paths_by_row, _array(rows, KEPT).to_pylist(), strict=True):
            paths += sorted(name_in_path(name) for name, _ in versions or () if name not in columns)
    details = [
        _legible(f"found fields {', '.join(paths)}") if paths else None for paths in paths_by_row
    ]
    return pa.array(details, pa.string())


def _moved_by(moment: datetime, interval: timedelta | None, sign: int = 1) -> datetime | None:
    """Return the bound that an interval sets; None if it sets none, or is beyond the calendar."""
    try:
        return None if interval is None else moment + sign * interval
    except OverflowError:
        return None


def _array(rows: pa.Table, name: str) -> pa.Array:
    return rows.column(name).combine_chunks()


def _instants(column: pa.Array) -> pa.Array:
    """Return times of any kind as UTC timestamps."""
    naive = column.cast(pa.timestamp("us")) if pa.types.is_date(column.type) else column
    return naive.cast(pa.int64()).cast(pa.timestamp("us", tz="UTC"))
