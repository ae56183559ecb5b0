"""Whatever the blocks a stream comes in, files hold its whole records, each once and in order."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from livemart.land.spool import Spool, SpoolCounts
from tests.deliveries import Shop, source

COLUMNS = {"id": "bigint", "note": "string"}


def spool(tmp_path: Path, record_format: str = "json", **options: Any) -> tuple[Spool, SpoolCounts]:
    counts = SpoolCounts()
    columns = {"line": "bigint"} if record_format == "text" else COLUMNS
    table = source("notes", columns, format=record_format, path=f"{record_format}/*.in")
    return Spool(tmp_path / "landing", table, counts, **options), counts


def files(tmp_path: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted((tmp_path / "landing").glob("*/*"))]


def landed(tmp_path: Path, record_format: str) -> tuple[list[tuple[Any, ...]], int]:
    """Land what was handed over; return the rows by origin, and how many letters there are."""
    table = source("notes", COLUMNS, format=record_format, path=f"{record_format}/*.in")
    shop = Shop(None, tmp_path, [table])
    batch = shop.land(0, *sorted(shop.folder.glob("*/*")))
    return shop.rows("notes", "id", "note"), batch.counts["bronze.notes"].dead_letters


def written(record_format: str, rows: list[tuple[int, str]]) -> bytes:
    if record_format == "csv":
        quoted = [(number, note.replace('"', '""')) for number, note in rows]
        return "".join(["id,note\n", *(f'{it},"{note}"\r\n' for it, note in quoted)]).encode()
    records = [{"id": number, "note": note} for number, note in rows]
    if record_format == "array":
        return ("\ufeff " + json.dumps(records, indent=1)).encode()
    return "".join(json.dumps(record) + "\n\n" for record in records).encode()


@pytest.mark.parametrize("record_format", ["json", "csv", "array"])
@pytest.mark.parametrize("seed", range(5))
def test_records_come_out_whole_however_they_come_in(
    tmp_path: Path, record_format: str, seed: int
) -> None:
    chance = random.Random(seed)
    notes = ["", "plain", "a, b", "two\nlines", 'with "quotes"', "[{]}", "größe", "x" * 90]
    rows = [(number, chance.choice(notes)) for number in range(60)]
    content = written(record_format, rows)
    name = "csv" if record_format == "csv" else "json"
    out, counts = spool(tmp_path, name, max_bytes=chance.choice([150, 700, 1 << 20]))
    if record_format == "csv":
        out, counts = spool(tmp_path, name, max_bytes=chance.choice([400, 1 << 20]))

    while content:
        size = chance.randint(1, 200)
        out.write(content[:size])
        content = content[size:]
        if chance.random() < 0.2:
            out.flush()
    out.close()

    assert landed(tmp_path, name) == (sorted(rows, key=str), 0)
    assert counts.records == 60
    assert counts.files == len(files(tmp_path))
    assert out.waiting_since is None


def test_what_is_no_whole_line_waits(tmp_path: Path) -> None:
    out, counts = spool(tmp_path)

    out.write(b'{"id":1}\n{"id"')
    out.flush()
    assert files(tmp_path) == [b'{"id":1}\n']
    assert (counts.records, counts.files, counts.size) == (1, 1, 9)
    out.write(b":2}")
    out.flush()
    assert len(files(tmp_path)) == 1
    out.close()

    assert files(tmp_path)[1] == b'{"id":2}'
    assert counts.records == 2


def test_a_line_that_never_ends_is_cut_and_nothing_of_it_is_lost(tmp_path: Path) -> None:
    out, _ = spool(tmp_path, max_bytes=100)

    for _ in range(5):
        out.write(b"x" * 30)
    out.write(b"\n")
    out.close()

    assert b"".join(files(tmp_path)) == b"x" * 150 + b"\n"


def test_a_stray_quote_keeps_no_other_row(tmp_path: Path) -> None:
    out, counts = spool(tmp_path, "csv", max_bytes=60)
    rows = [f"{number},plain\n" for number in range(20)]

    for row in ["id,note\n", '98,"open\n', *rows]:
        out.write(row.encode())
    out.close()

    assert landed(tmp_path, "csv") == (sorted([(n, "plain") for n in range(20)], key=str), 1)
    assert counts.records == 21


def test_blanks_alone_make_no_file(tmp_path: Path) -> None:
    out, counts = spool(tmp_path)

    out.write(b"\n \n")
    out.flush()
    out.close()

    assert files(tmp_path) == []
    assert counts == SpoolCounts()


@pytest.mark.parametrize(
    ("record_format", "content", "records", "refused"),
    [
        ("json", b'{"id":1}\n{"id":"x"}\n{broken\n', 3, 2),
        ("csv", b"id,note\n1,a\nx,b\n", 2, 1),
        ("text", b"7\nseven\n\n", 2, 1),
    ],
)
def test_records_are_judged_as_landing_will(
    tmp_path: Path, record_format: str, content: bytes, records: int, refused: int
) -> None:
    out, counts = spool(tmp_path, record_format, judges=True)

    out.write(content)
    out.close()

    assert (counts.records, counts.refused.total()) == (records, refused)
