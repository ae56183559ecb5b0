"""The record of a dead letter is handed over again once, mended or not, whatever is cut off."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from livemart.errors import ConfigError
from livemart.inspect.letter_export import (
    chosen_rows,
    exported_letters,
    named_letters,
    read_exported,
)
from livemart.inspect.letter_report import describe_letters
from livemart.land.letters.chosen_letters import LetterChoice
from livemart.land.records.judge import kept_text
from livemart.land.redrive import Originals, Redrive, RedriveCounts
from livemart.project.graph import SourceTable
from tests.deliveries import Shop, source
from tests.models import stream_spec
from tests.unit.land.letters.stored_letters import letter

COLUMNS = {"id": "string", "n": "int"}
NOTES = source("notes", COLUMNS, path="notes/*.jsonl")
TABLE = source("table", COLUMNS, format="csv", path="table/*.csv")
LINES = source("lines", {"line": "int"}, format="text", path="lines/*.log")
LONG = b'{"id": 2, "note": "' + b"x" * 20_000 + b'"}'
LATIN = b'{"id": "\xe9"}'


@dataclass
class Mended(Shop):
    """A shop whose dead letters are re-driven."""

    batch: int = 0
    seen: set[Path] = field(default_factory=set)

    def deliver_and_land(self, name: str, content: bytes | str) -> None:
        self.deliver(name, content)
        self.land_waiting()

    def land_waiting(self) -> None:
        waiting = [path for path in self.folder.glob("*/*") if path not in self.seen]
        self.seen |= set(waiting)
        self.land(self.batch, *waiting)
        self.batch += 1

    @property
    def by_relation(self) -> dict[str, SourceTable]:
        return {each.relation: each for each in self.sources}

    def redrive(self, exported: list[str] | None = None) -> RedriveCounts:
        contents = {} if exported is None else read_exported(exported)
        with Redrive(self.warehouse, self.folder).begun() as driver:
            letters: Any = (
                chosen_rows(self.warehouse, LetterChoice())
                if exported is None
                else named_letters(self.warehouse, contents)
            )
            return driver.redrive(self.by_relation, letters, contents)

    def export(self) -> tuple[list[str], RedriveCounts]:
        counts = RedriveCounts()
        lines = exported_letters(
            self.warehouse, self.folder, self.by_relation, LetterChoice(), counts
        )
        return list(lines), counts


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Mended]:
    yield Mended(None, tmp_path, [NOTES, TABLE, LINES])


def mend(lines: list[str], old: str, new: str) -> list[str]:
    records = [json.loads(line) for line in lines]
    return [json.dumps(it | {"record": it["record"].replace(old, new)}) for it in records]


def test_mended_records_land_once_and_their_letters_are_marked(shop: Mended) -> None:
    shop.deliver_and_land("notes/1.jsonl", '{"id":"a","n":1}\n{"id":"b","n":"x"}\n')
    shop.deliver_and_land("table/1.csv", 'n,id\n7,"a, ""b"""\nx,"two\nlines"\n')
    shop.deliver_and_land("lines/1.log", "3\nfour\n")
    lines, counts = shop.export()
    assert (counts.records, len(lines)) == (3, 3)

    mended = mend(mend(mend(lines, '"x"', "2"), "x,", "8,"), "four", "4")
    first, again = shop.redrive(mended), shop.redrive(mended)
    shop.land_waiting()

    assert (first.records, first.files, again.records) == (3, 3, 0)
    assert shop.rows("notes", "id", "n") == [("a", 1), ("b", 2)]
    assert shop.rows("table", "id", "n") == [('a, "b"', 7), ("two\nlines", 8)]
    assert shop.rows("lines", "line") == [(3,), (4,)]
    assert describe_letters(shop.warehouse.root)["total"] == 0
    assert describe_letters(shop.warehouse.root, LetterChoice(with_redriven=True))["total"] == 3
    assert shop.redrive().records == 0


def test_a_mended_rule_takes_the_records_as_they_are(tmp_path: Path) -> None:
    strict = source("orders", {"ordered_at": "timestamp"}, horizon=timedelta(days=1))
    shop = Mended(None, tmp_path, [strict])
    shop.deliver_and_land("orders/1.jsonl", '{"ordered_at":"2026-01-01"}\n{"ordered_at":"x"}\n')
    shop.sources = [replace(strict, stream=stream_spec(strict.stream, horizon=None))]
    shop.restart()

    counts = shop.redrive()
    shop.land_waiting()

    assert counts.records == 2
    assert len(shop.rows("orders", "ordered_at")) == 1
    # A record that is refused again gets a new letter.
    (letter,) = describe_letters(shop.warehouse.root)["letters"]
    assert letter["origin"].startswith("orders/redrive-")
    assert letter["record"] == '{"ordered_at":"x"}'


@pytest.mark.parametrize(
    "place", ["redrive.before_mark", "redrive.before_hand_over", "redrive.before_end"]
)
def test_a_redrive_that_was_cut_off_is_finished_by_the_next(
    shop: Mended, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    shop.deliver_and_land("notes/1.jsonl", '{"id":"b","n":"x"}\n{"id":"c","n":"x"}\n')
    lines, _ = shop.export()

    def cut(name: str) -> None:
        if name == place:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("livemart.land.redrive.failpoint", cut)
        with pytest.raises(KeyboardInterrupt):
            shop.redrive(mend(lines, '"x"', "2"))
    # Other letters are chosen now: what was begun comes first, and is not chosen again.
    counts = shop.redrive()
    shop.land_waiting()

    assert counts.records == 0
    assert shop.rows("notes", "id", "n") == [("b", 2), ("c", 2)]


def test_a_record_that_begins_like_an_array_swallows_none_behind_it(shop: Mended) -> None:
    shop.deliver_and_land("notes/1.jsonl", '{"id":"a"}\n[INFO] begin {\n{"id":"b","n":"x"}\n')

    lines, _ = shop.export()
    shop.redrive(mend(lines, '"x"', "2"))
    shop.land_waiting()

    assert shop.rows("notes", "id", "n") == [("a", None), ("b", 2)]


def test_a_long_record_is_read_again_from_its_file(shop: Mended) -> None:
    long = "y" * 20_000
    shop.deliver("notes/1.jsonl", f'[{{"id":"{long}",\n "n":"x"}}, {{"id":"b","n":"x"}}]')
    shop.land_waiting()
    lines, _ = shop.export()

    assert shop.redrive(mend(lines, '"x"', "2")).records == 2
    shop.land_waiting()

    assert shop.rows("notes", "id", "n") == [("b", 2), (long, 2)]


def test_what_cannot_be_had_again_is_left_with_a_reason(shop: Mended) -> None:
    long = "y" * 20_000
    for name, content in {
        "notes/gone.jsonl": f'{{"id":"{long}","n":"x"}}\n',
        "notes/other.jsonl": f'{{"id":"{long}","n":"x"}}\n',
        "table/gone.csv": "n,id\nx,a\n",
    }.items():
        shop.deliver_and_land(name, content)
    (shop.folder / "notes/gone.jsonl").unlink()
    (shop.folder / "table/gone.csv").unlink()
    (shop.folder / "notes/other.jsonl").write_text(f'{{"id":"{long}","n":"z"}}\n' * 2)
    shop.land(9)
    (shop.folder / "notes/other.jsonl").write_text(f'{{"id":"z{long}","n":"z"}}\n')

    counts = shop.redrive()

    assert counts.records == 0
    assert dict(counts.left) == {
        "bronze.notes: the record is not kept in full, and its file was removed": 2,
        "bronze.notes: the letter is for a whole file or range": 1,
        "bronze.table: the file with the header was removed": 1,
    }


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"kind": "outbox", "path": ""}, "its records come from kind outbox"),
        ({"format": "parquet"}, "a file of parquet is not written here"),
        ({"path": "notes.jsonl"}, "notes.jsonl matches only fixed file names"),
        (None, "the project lands no such source any more"),
    ],
)
def test_a_source_that_takes_no_file_keeps_its_letters(
    shop: Mended, changed: dict[str, Any] | None, reason: str
) -> None:
    shop.deliver_and_land("notes/1.jsonl", "{broken\n")
    stream = None if changed is None else stream_spec(NOTES.stream, **changed)
    shop.sources = [replace(NOTES, stream=stream)]

    counts = shop.redrive()

    assert [why.startswith(f"bronze.notes: {reason}") for why in counts.left] == [True]


def test_bytes_that_are_no_text_are_exported_as_they_were(shop: Mended) -> None:
    shop.deliver_and_land("notes/1.jsonl", b'{"id":"\xff","n":1}\n')

    lines, _ = shop.export()

    assert json.loads(lines[0])["record_base64"]
    assert shop.redrive(lines).records == 1
    shop.land_waiting()
    (redriven,) = shop.folder.glob("notes/redrive-*")
    assert redriven.read_bytes() == b'{"id":"\xff","n":1}\n'


def test_lines_with_blanks_around_them_are_read_again(shop: Mended) -> None:
    shop.deliver_and_land("notes/1.jsonl", b'  {"id":"\xff","n":1}\t\r\n')
    shop.deliver_and_land("table/1.csv", b"id,n\r\n\xff,1\r\n")
    shop.deliver_and_land("lines/1.log", b" \xff \r\n")

    assert shop.redrive().records == 3
    contents = [path.read_bytes() for path in sorted(shop.folder.glob("*/redrive-*"))]
    assert contents == [b" \xff \n", b'{"id":"\xff","n":1}\n', b"id,n\n\xff,1\n"]


def test_the_end_of_a_broken_array_is_read_again(shop: Mended) -> None:
    end = b'\n  {"id":"' + b"x" * 9_000 + b'"}\n'
    shop.deliver_and_land("notes/1.jsonl", b'[\n  {"id":"a","n":1},' + end)

    assert shop.redrive().records == 1
    (file,) = shop.folder.glob("notes/redrive-*")
    assert json.loads(file.read_bytes())["id"] == "x" * 9_000


def test_a_header_that_is_no_text_is_exported_as_text_that_is_read_back(shop: Mended) -> None:
    shop.deliver_and_land("table/1.csv", b"id,n,\xe9\nb\xc3\xa9,x,1\n")

    lines, _ = shop.export()
    written = "\n".join(lines).encode()

    assert "bé,x,1".encode() in written
    contents = read_exported(written.decode().splitlines())
    assert {header for _, header in contents.values()} == {b"id,n,\xe9"}


def test_a_header_is_no_row_when_its_source_knows_its_columns(tmp_path: Path) -> None:
    before, after = (
        source("t", dict.fromkeys(names, "string"), format="csv", path="t/*.csv")
        for names in ("x", ("x", "id", "n"))
    )
    shop = Mended(None, tmp_path, [before])
    shop.deliver_and_land("t/1.csv", "id,n\na,1\n")
    shop.deliver_and_land("t/2.csv", "b,2\nc,3\n")
    lines, _ = shop.export()
    # One of the files has no header: its first line is a record.
    given = [json.loads(line) for line in lines]
    given = [it | ({"header": "id,n"} if it["header"] == "b,2" else {}) for it in given]

    shop = Mended(None, tmp_path, [after], batch=shop.batch, seen=shop.seen)
    counts = shop.redrive([json.dumps(it) for it in given])
    shop.land_waiting()

    assert counts.records == 4
    assert shop.rows("t", "id", "n") == [("a", "1"), ("b", "2"), ("c", "3")]


def test_two_records_with_a_quote_each_are_not_made_one_row(shop: Mended) -> None:
    shop.deliver_and_land("table/1.csv", 'n,id\n1,"a\n')
    shop.deliver_and_land("table/2.csv", 'n,id\n2,b"\n')
    lines, _ = shop.export()

    counts = shop.redrive()
    again = shop.redrive(mend(lines, '"', ""))
    shop.land_waiting()

    reason = "bronze.table: a quote is not closed: correct the record in an export"
    assert (counts.records, counts.left) == (0, {reason: 2})
    assert again.records == 2
    assert shop.rows("table", "id", "n") == [("a", 1), ("b", 2)]


def test_an_export_that_is_none_is_refused_before_anything_is_handed_over(shop: Mended) -> None:
    shop.deliver_and_land("notes/1.jsonl", "{broken\n")
    (line,), _ = shop.export()
    other = json.dumps(json.loads(line) | {"origin": "notes/2.jsonl:1"})

    with pytest.raises(ConfigError, match=r"line 1: .*; line 3: KeyError") as caught:
        shop.redrive(["{", line, '{"source":"a"}'])
    assert caught.value.code == "LETTER_EXPORT_INVALID"
    with pytest.raises(ConfigError, match="a second time"):
        shop.redrive([line, line])
    with pytest.raises(ConfigError, match=r"no such letter: bronze\.notes notes/2\.jsonl:1"):
        shop.redrive([line, other])
    assert not list(shop.folder.glob("notes/redrive-*"))


def letter_of(origin: str, record: bytes) -> dict[str, Any]:
    """Return the letter of a record as landing keeps it: a long one is cut."""
    return letter(1, origin=origin, record=kept_text(record), record_bytes=len(record))


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "1.jsonl").write_bytes(b'{"id": 1}\n' + LONG + b"\n" + LATIN + b"\n")
    (tmp_path / "orders" / "1.csv").write_bytes(b'id,note\n1,a\n2,"b\n' + b"x" * 9_000 + b'"\n')
    return tmp_path


def test_a_record_is_read_again_where_its_letter_does_not_hold_it(landing: Path) -> None:
    letters = [
        letter_of("orders/1.jsonl:2", LONG),
        letter_of("orders/1.jsonl:3", LATIN),
        # Whole in its letter: its file may be gone.
        letter_of("orders/gone.jsonl:9", b'{"id": 9}'),
    ]

    originals = Originals(landing, "json", letters)

    assert [originals.record(it) for it in letters] == [LONG, LATIN, b'{"id": 9}']
    assert {originals.header(it) for it in letters} == {b""}


def test_a_record_that_is_not_there_any_more_is_none_and_never_another_one(landing: Path) -> None:
    letters = [
        letter_of("orders/gone.jsonl:2", LONG),
        # Its file was changed since.
        letter_of("orders/1.jsonl:2", LONG.replace(b"id", b"ID")),
        letter_of("orders/1.jsonl:2", LONG + b" "),
        # The cut is within a letter: its escape makes the text as long as the record.
        letter_of("orders/gone.jsonl:3", b"x" * 8_191 + "éab".encode()),
        # It stands for a whole file.
        letter(1, origin="orders/1.jsonl", record=None, record_bytes=None),
    ]

    originals = Originals(landing, "json", letters)

    assert [originals.record(it) for it in letters] == [None] * 5


def test_a_record_of_csv_comes_with_the_header_of_its_file(landing: Path) -> None:
    record = b'2,"b\n' + b"x" * 9_000 + b'"'
    letters = [letter_of("orders/1.csv:3", record), letter_of("orders/gone.csv:3", b"3,c")]

    originals = Originals(landing, "csv", letters)

    assert [originals.record(it) for it in letters] == [record, b"3,c"]
    assert [originals.header(it) for it in letters] == [b"id,note", None]
