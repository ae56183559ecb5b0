"""The small examples come out as expected: as one batch, and as a stream of pieces."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from livemart.land.hand_over import hand_over
from livemart.land.ingest import Spool, SpoolCounts
from tests.deliveries import Shop, source
from tests.project_run import ROOT, ProjectRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = ROOT / "examples" / "small"


def inputs() -> Iterator[tuple[str, str, list[bytes]]]:
    """Yield source, file name and lines of each input."""
    for path in sorted((EXAMPLES / "input").glob("*/*")):
        yield path.parent.name, path.name, path.read_bytes().splitlines(keepends=True)


def deliver(run: ProjectRun, piece: int, pieces: int) -> None:
    """Deliver one piece of each input; of CSV each piece has the header."""
    for name, file, lines in inputs():
        header = lines[:1] if file.endswith(".csv") else []
        records = lines[len(header) :][piece::pieces]
        hand_over(run.landing / name, f"{piece}-{file}", b"".join(header + records))


def shown(value: Any) -> str:
    return value.isoformat() if isinstance(value, date | datetime) else str(value)


def actual(run: ProjectRun, name: str) -> list[tuple[str, ...]]:
    if name == "dead_letters":
        rows = run.warehouse.read("bronze._dead_letters", columns=["source", "reason", "record"])
    else:
        rows = run.warehouse.read(f"small_mart.{name}")
    return sorted(tuple(map(shown, row.values())) for row in rows.to_pylist())


def expected(path: Path) -> list[tuple[str, ...]]:
    with path.open(newline="") as file:
        _, *rows = csv.reader(file)
    return sorted(map(tuple, rows))


def check(run: ProjectRun) -> None:
    for path in sorted((EXAMPLES / "expected").glob("*.csv")):
        assert actual(run, path.stem) == expected(path), path.stem
    assert run.differing() == []


# 25 s.
@pytest.mark.extended
def test_a_stream_of_pieces_comes_out_as_expected(spark: SparkSession, tmp_path: Path) -> None:
    run = ProjectRun(spark, tmp_path, EXAMPLES)
    deliver(run, 0, 3)
    run.build()
    for piece in (1, 2):
        deliver(run, piece, 3)
        run.refresh()

    check(run)


@pytest.mark.extended
def test_one_batch_comes_out_as_expected(spark: SparkSession, tmp_path: Path) -> None:
    run = ProjectRun(spark, tmp_path, EXAMPLES)
    deliver(run, 0, 1)
    run.build()

    check(run)


def test_numbers_are_the_same_from_one_file_many_files_or_a_pipe(tmp_path: Path) -> None:
    lines = (EXAMPLES / "input" / "numbers" / "numbers.txt").read_bytes()
    table = source("numbers", {"line": "bigint"}, format="text", path="numbers/*.txt")
    outcomes = []
    for way in ("one", "many", "pipe"):
        (tmp_path / way).mkdir()
        shop = Shop(None, tmp_path / way, [table])
        if way == "one":
            shop.deliver("numbers/all.txt", lines)
        elif way == "many":
            for number, line in enumerate(lines.splitlines(keepends=True)):
                shop.deliver(f"numbers/{number}.txt", line)
        else:
            spool = Spool(shop.folder, table, SpoolCounts(), max_bytes=16)
            for place in range(0, len(lines), 5):
                spool.write(lines[place : place + 5])
            spool.close()
        counts = shop.land(0, *shop.folder.glob("numbers/*")).counts["bronze.numbers"]
        outcomes.append(
            (counts, shop.rows("numbers", "line"), shop.rows("_dead_letters", "record"))
        )

    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert outcomes[0][0].dead_letters == 2
