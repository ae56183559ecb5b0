"""Positions of a database's log sort as the log does."""

from __future__ import annotations

from typing import Any

import pytest

from livemart.land.records.debezium.positions import sequence_of
from livemart.land.records.exact_values import MalformedError
from livemart.land.records.untyped_values import Number


def lsn(position: str, commit: str | None = None) -> dict[str, Any]:
    place = {"connector": "postgresql", "lsn": Number(position)}
    return place if commit is None else place | {"sequence": f'[{commit},"{position}"]'}


def binlog(file: str, pos: str = "4", row: str = "0", connector: str = "mysql") -> dict[str, Any]:
    return {"connector": connector, "file": file, "pos": Number(pos), "row": Number(row)}


def test_text_order_is_the_order_of_the_log() -> None:
    log = [
        sequence_of(lsn("9"), "u"),
        sequence_of(lsn("10"), "r"),
        sequence_of(lsn("10"), "d"),
        sequence_of(lsn("11"), "r"),
        sequence_of(lsn("18446744073709551615"), "c"),
    ]

    assert sorted(log) == log


def test_the_log_of_postgresql_is_in_the_order_of_commits() -> None:
    log = [
        sequence_of(lsn("30", "null"), "r"),
        sequence_of(lsn("31", "null"), "u"),
        sequence_of(lsn("31", '"40"'), "r"),
        sequence_of(lsn("20", '"40"'), "d"),
        sequence_of(lsn("39", '"40"'), "c"),
        sequence_of(lsn("50", "null"), "r"),
        sequence_of(lsn("45", '"60"'), "u"),
        sequence_of(lsn("11", '"18446744073709551615"'), "u"),
    ]

    assert sorted(log) == log


@pytest.mark.parametrize("connector", ["mysql", "mariadb"])
def test_files_positions_and_rows_are_numbers(connector: str) -> None:
    log = [
        binlog("mysql-bin.000009", "4294967295", "99"),
        binlog("mysql-bin.000010", "4", "9"),
        binlog("mysql-bin.000010", "4", "10"),
        binlog("mysql-bin.000010", "157"),
        binlog("mysql-bin.999999"),
        binlog("mysql-bin.1000000"),
    ]

    actual = [sequence_of(place | {"connector": connector}, "c") for place in log]

    assert sorted(actual) == actual


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ({"connector": "oracle"}, "source.connector: found 'oracle'"),
        ({"connector": ["mysql"]}, r"source.connector: found \['mysql'\]"),
        ({}, "source.connector: found None"),
        (lsn("-1"), "source.lsn: found '-1'"),
        (lsn("1.5"), "source.lsn: found '1.5'"),
        (lsn("1" * 21), "source.lsn: found"),
        ({"connector": "postgresql", "lsn": "12"}, "source.lsn: found '12'"),
        (lsn("1") | {"sequence": "7"}, "source.sequence: found '7', which names no commit"),
        (lsn("1") | {"sequence": Number("7")}, "source.sequence: found '7'"),
        (lsn("1", '"x"'), "source.sequence: found"),
        (binlog("mysql-bin"), "source.file: found 'mysql-bin'"),
        (binlog("mysql-bin.000001") | {"row": None}, "source.row: found None"),
        (binlog(f"b.{'1' * 11}"), "source.file: found"),
    ],
)
def test_what_is_no_position_is_refused(place: dict[str, Any], expected: str) -> None:
    with pytest.raises(MalformedError, match=expected):
        sequence_of(place, "c")
