"""The parts of a Parquet file together are its rows, with their numbers."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from livemart.land.records.judge import Rules
from livemart.land.records.runs import WHOLE
from livemart.land.records.typed import parquet_rows
from livemart.land.records.typed.calendars import ISO, Calendar
from livemart.land.records.typed.parquet_rows import parquet_spans, record_values
from livemart.land.records.typed.typed_records import as_in_json
from livemart.land.records.untyped_values import RepeatedKeys, Unreadable
from livemart.land.sources.files.parts import FilePart
from livemart.project.graph import RowRules
from tests.unit.land.records.rows import codes, good, group_of

INFINITY = 2**63 - 1


def test_parts_are_runs_of_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_rows, "_PART_ROWS", 25)
    monkeypatch.setattr(parquet_rows, "_RUN_RECORDS", 4)
    path = tmp_path / "a"
    pq.write_table(pa.table({"n": range(97)}), path, row_group_size=10)
    group = group_of({"n": "bigint"}, "parquet")

    spans = parquet_spans(path)
    tables = [FilePart("a", path, span).read(group) for span in spans]
    parts = [pa.concat_tables(part) for part in tables]

    assert [part.num_rows for part in parts] == [30, 30, 30, 7]
    whole = pa.concat_tables(FilePart("a", path).read(group))
    assert pa.concat_tables(parts).equals(whole)
    assert whole.column("_origin").to_pylist() == [f"a:{number}" for number in range(1, 98)]


def test_a_broken_file_is_one_part(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"PAR1")

    assert parquet_spans(path) == [WHOLE]


def test_a_column_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["n", "n"]), path)

    (table,) = FilePart("a", path).read(group_of({"n": "bigint"}, "parquet"))

    assert table.column("_detail_0").to_pylist() == ["the file has column n twice"]


def test_rows_without_columns_are_one_refusal(tmp_path: Path) -> None:
    path = tmp_path / "a"
    rows = 3
    # The footer in Thrift's compact form: version, a root without children, and one row group.
    count = bytes([2 * rows])
    root = b"\x48\x01r\x15\x00\x00"
    row_group = b"\x19\x0c\x16\x00\x16" + count + b"\x00"
    footer = b"\x15\x02\x19\x1c" + root + b"\x16" + count + b"\x19\x1c" + row_group + b"\x00"
    path.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    assert pq.read_metadata(path).num_rows == rows

    (table,) = FilePart("a", path).read(group_of({"n": "bigint"}, "parquet"))

    assert table.column("_detail_0").to_pylist() == ["the file has no columns"]


OPEN_END = datetime(9999, 12, 31, tzinfo=UTC)
OLD = datetime(1200, 2, 29, 1, 2, 3, 456_789, tzinfo=UTC)


@pytest.mark.parametrize("kind", ["timestamp", "array<timestamp>"])
@pytest.mark.parametrize("is_drifted", [False, True])
def test_days_of_int96_are_the_days_that_spark_wrote(
    tmp_path: Path, kind: str, is_drifted: bool
) -> None:
    """Spark 4.2 writes TIMESTAMP as INT96 by default.

    pyarrow 26 reads it as nanoseconds: 9999-12-31 would be 1816-03-30, in silence.
    """
    instants: Any = [OPEN_END, OLD, None]
    if kind != "timestamp":
        instants = [[it] for it in instants]
    table = pa.table({"x": instants})
    if is_drifted:
        # A field that no column names: the exact reader reads such rows.
        table = table.append_column("more", pa.array([1, 2, 3]))
    path = tmp_path / "a"
    pq.write_table(table, path, use_deprecated_int96_timestamps=True)
    assert "int96" in str(pq.ParquetFile(path).schema)

    (rows,) = FilePart("a", path).read(group_of({"x": kind}, "parquet"))

    assert good(rows, "x") == instants


def int96_file(path: Path, told: dict[bytes, bytes]) -> None:
    table = pa.table({"x": [OPEN_END, OLD], "d": [date(1582, 10, 15), date(1582, 10, 14)]})
    schema = table.schema.with_metadata(told)
    pq.write_table(table.cast(schema), path, use_deprecated_int96_timestamps=True)


@pytest.mark.parametrize(
    "told",
    [
        {b"org.apache.spark.version": b"3.0.3"},
        {b"org.apache.spark.version": b"2.4.8"},
        {b"org.apache.spark.version": b"4.2.0", b"org.apache.spark.legacyINT96": b""},
        {b"org.apache.spark.version": b"4.2.0", b"org.apache.spark.legacyDateTime": b""},
        {b"org.apache.spark.sql.parquet.row.metadata": b"{}"},
    ],
)
def test_old_days_in_the_calendar_of_spark_2_are_letters_and_land_as_no_other_days(
    tmp_path: Path, told: dict[bytes, bytes]
) -> None:
    """Spark's `DataSourceUtils.datetimeRebaseSpec` tells by the same marks which calendar it is."""
    int96_file(tmp_path / "a", told)

    (rows,) = FilePart("a", tmp_path / "a").read(group_of({"x": "timestamp"}, "parquet"))
    (days,) = FilePart("a", tmp_path / "a").read(group_of({"d": "date"}, "parquet"))

    assert codes(rows) == [None, "TYPE_MISMATCH"] == codes(days)
    detail = days.column("_detail_0")[1].as_py()
    assert detail.startswith('d: "1582-10-14 is of the calendar of Spark 2')
    assert detail.endswith(" does not fit date")


@pytest.mark.parametrize(
    "told",
    [
        {},
        {b"org.apache.spark.version": b"4.2.0", b"org.apache.spark.sql.parquet.row.metadata": b""},
        {b"org.apache.spark.version": b"3.1.0"},
    ],
)
def test_old_days_of_all_other_files_land(tmp_path: Path, told: dict[bytes, bytes]) -> None:
    int96_file(tmp_path / "a", told)

    (rows,) = FilePart("a", tmp_path / "a").read(group_of({"x": "timestamp"}, "parquet"))

    assert good(rows, "x") == [OPEN_END, OLD]


@pytest.mark.parametrize("is_drifted", [False, True])
@pytest.mark.parametrize(
    ("kind", "stored", "infinite", "written"),
    [
        ("timestamp", pa.timestamp("us", "UTC"), 2**63 - 1, "+294247-01-10T04:00:54.775807+00:00"),
        ("timestamp", pa.timestamp("us"), -(2**63) + 1, "-290308-12-21T19:59:05.224193"),
        ("timestamp_ntz", pa.timestamp("ms"), 253_402_300_800_000, "+10000-01-01T00:00:00"),
        ("timestamp", pa.timestamp("ms"), 2**63 - 1, "+292278994-08-17T07:12:55.807000"),
        ("date", pa.date32(), 2**31 - 1, "+5881580-07-11"),
        ("date", pa.date32(), -719_163, "0000-12-31"),
    ],
)
def test_a_time_beyond_the_calendar_is_a_letter_and_the_rows_beside_it_land(
    tmp_path: Path, kind: str, stored: Any, infinite: int, written: str, is_drifted: bool
) -> None:
    """DuckDB 2.0 writes `infinity` of a timestamp as the largest number, that of a date, too."""
    width = pa.int32() if stored == pa.date32() else pa.int64()
    columns = {"x": pa.array([0, infinite, 1], width).view(stored)}
    if is_drifted:
        columns["more"] = pa.array([1, 2, 3])
    path = tmp_path / "a"
    pq.write_table(pa.table(columns), path)

    (rows,) = FilePart("a", path).read(group_of({"x": kind}, "parquet"))

    rows = rows.sort_by("_origin")
    assert codes(rows) == [None, "TYPE_MISMATCH", None]
    assert rows.column("_detail_0")[1].as_py() == f'x: "{written}" does not fit {kind}'
    assert rows.column("_record")[1].as_py().startswith(f'{{"x":"{written}"')
    assert rows.column("_origin")[1].as_py() == "a:2"


def test_the_record_of_a_letter_is_written_though_it_holds_a_time_beyond_the_calendar(
    tmp_path: Path,
) -> None:
    """A rule refuses it here, and no column takes the time."""
    table = pa.table({"id": [None, "a"], "x": pa.array([2**63 - 1, None]).view(pa.timestamp("us"))})
    path = tmp_path / "a"
    pq.write_table(table, path)
    group = group_of({"id": "string"}, "parquet", Rules(RowRules(("id",))))

    (rows,) = FilePart("a", path).read(group)

    assert codes(rows) == ["NULL_KEY", None]
    assert rows.column("_record")[0].as_py() == '{"id":null,"x":"+294247-01-10T04:00:54.775807"}'


def test_a_text_that_is_no_utf_8_is_a_letter(tmp_path: Path) -> None:
    """pyarrow 26 reads such bytes as a string without a word."""
    path = tmp_path / "a"
    pq.write_table(pa.table({"x": pa.array([b"a", b"b\xff", b"c"]).view(pa.string())}), path)

    (rows,) = FilePart("a", path).read(group_of({"x": "string"}, "parquet"))

    rows = rows.sort_by("_origin")
    assert codes(rows) == [None, "MALFORMED_RECORD", None]
    assert rows.column("_detail_0")[1].as_py().startswith("invalid UTF-8")


def test_nanoseconds_before_1970_are_cut_as_those_after_it(tmp_path: Path) -> None:
    """A cast of pyarrow 26 cuts towards 1970, so -1 would be 1970-01-01T00:00:00."""
    path = tmp_path / "a"
    pq.write_table(pa.table({"x": pa.array([-1, 1_999]).view(pa.timestamp("ns", "UTC"))}), path)
    group = group_of({"x": "timestamp", "more": "bigint"}, "parquet")

    (rows,) = FilePart("a", path).read(group)

    assert rows.column("x").cast(pa.int64()).to_pylist() == [-1, 1]


def test_a_decimal_of_more_digits_than_its_file_says_is_a_letter(tmp_path: Path) -> None:
    """pyarrow 26 writes and reads such digits without a word."""
    path = tmp_path / "a"
    digits = b"".join(number.to_bytes(16, "little") for number in (99_999, 100_000))
    column = pa.Array.from_buffers(pa.decimal128(5, 2), 2, [None, pa.py_buffer(digits)])
    pq.write_table(pa.table({"x": column}), path)

    for kind, fits in (("decimal(5,2)", False), ("decimal(6,2)", True)):
        (rows,) = FilePart("a", path).read(group_of({"x": kind}, "parquet"))

        rows = rows.sort_by("_origin")
        assert codes(rows) == [None, None if fits else "TYPE_MISMATCH"]
        assert rows.column("x")[1].as_py() == (Decimal("1000.00") if fits else None)


def test_a_decimal_that_does_not_fit_is_no_other_number(tmp_path: Path) -> None:
    """A cast of pyarrow 26 gives -7477896957.91..."""
    path = tmp_path / "a"
    pq.write_table(pa.table({"x": [Decimal("-3784612169780.3273923")]}), path)

    (rows,) = FilePart("a", path).read(group_of({"x": "decimal(38,28)"}, "parquet"))

    assert codes(rows) == ["TYPE_MISMATCH"]


def values(column: pa.Array, calendar: Calendar = ISO) -> list[Any]:
    batch = pa.record_batch({"x": column})
    return [as_in_json(row["x"]) for row in record_values(batch, calendar)]


def count(values: list[Any], kind: pa.DataType) -> pa.Array:
    width = pa.int32() if kind.bit_width == 32 else pa.int64()
    return pa.array(values, width).view(kind)


@pytest.mark.parametrize(
    ("column", "written"),
    [
        # The values that DuckDB and PostgreSQL write for `infinity`.
        (count([INFINITY], pa.timestamp("us")), "+294247-01-10T04:00:54.775807"),
        (count([2**31 - 1], pa.date32()), "+5881580-07-11"),
        (count([-62_135_596_800_000_001], pa.timestamp("us", "UTC")), "0000-12-31T23:59:59.999999"),
        (count([INFINITY], pa.timestamp("ms")), "+292278994-08-17T07:12:55.807000"),
        (count([INFINITY], pa.timestamp("s")), "+292277026596-12-04T15:30:07"),
        (count([-1], pa.timestamp("ns")), "1969-12-31T23:59:59.999999999"),
        (count([-1], pa.date64()), "1969-12-31"),
        (count([86_400_000_000], pa.time64("us")), "24:00:00"),
        (count([1], pa.time64("ns")), "00:00:00.000000001"),
        (count([1_500], pa.time32("ms")), "00:00:01.500000"),
        (count([1_001], pa.duration("ns")), "1001"),
    ],
)
def test_a_time_that_python_does_not_have_is_written_out(column: pa.Array, written: str) -> None:
    zone = "+00:00" if getattr(column.type, "tz", None) else ""

    assert values(column) == [f"{written}{zone}"]


def test_values_keep_their_places_in_every_nesting() -> None:
    instants = pa.timestamp("us", "UTC")
    members = pa.struct([("at", instants), ("tags", pa.map_(pa.int32(), pa.list_(instants)))])
    rows = [None, {"at": None, "tags": None}, {"at": 1, "tags": [(7, [2, None]), (8, None)]}]
    column = pa.array([None, [], rows, rows[2:]], pa.list_(members))
    first, second = "1970-01-01T00:00:00.000001+00:00", "1970-01-01T00:00:00.000002+00:00"
    last = {"at": first, "tags": {"7": [second, None], "8": None}}
    expected = [None, [], [None, {"at": None, "tags": None}, last], [last]]

    assert values(column) == expected
    for start in range(4):
        assert values(column.slice(start)) == expected[start:]
        assert values(column.slice(start, 1)) == expected[start : start + 1]
    fixed = pa.array([[1, 2], None, [3, None]], pa.list_(instants, 2))
    assert values(fixed)[1:] == [None, ["1970-01-01T00:00:00.000003+00:00", None]]


def test_a_map_that_holds_a_key_twice_keeps_all_its_entries() -> None:
    maps = pa.array([[("k", 1), ("a", 2)], [("k", 1), ("k", 2)]], pa.map_(pa.string(), pa.int32()))

    assert values(maps) == [{"k": "1", "a": "2"}, RepeatedKeys([("k", "1"), ("k", "2")])]
    assert list(values(maps)[0]) == ["k", "a"]


def test_a_struct_that_holds_a_field_twice_keeps_both() -> None:
    parts = [pa.array([1, 3, 5]), pa.array([2, 4, 6])]
    structs = pa.StructArray.from_arrays(parts, ["x", "x"], mask=pa.array([False, True, False]))

    assert values(structs) == [
        RepeatedKeys([("x", "1"), ("x", "2")]),
        None,
        RepeatedKeys([("x", "5"), ("x", "6")]),
    ]


def test_a_text_that_is_no_utf_8_is_marked_and_takes_no_other_with_it() -> None:
    """pyarrow 26 reads a string column of Parquet without a look at its bytes."""
    column = pa.array([b"a", b"b\xff", None]).view(pa.string())

    assert values(column) == ["a", "b\udcff", None]
    assert values(column.cast(pa.large_string(), safe=False)) == values(column)
    views = column.view(pa.binary()).cast(pa.binary_view()).view(pa.string_view())
    assert values(views) == values(column)


def test_days_of_another_calendar_are_no_values() -> None:
    calendar = Calendar(-10, -1_000, "the old calendar")

    days, local = count([-11, -10], pa.date32()), count([-1_001, -1_000], pa.timestamp("us"))
    for column in (days, local):
        old, new = values(column, calendar)
        assert isinstance(old, Unreadable) and "is of the old calendar" in old.detail
        assert new == values(column)[1]
