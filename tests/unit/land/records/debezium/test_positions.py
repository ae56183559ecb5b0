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


@pytest.mark.parametrize("connector", ["mysql", "mariadb"])
def test_changes_of_one_position_are_in_the_order_of_their_transaction(connector: str) -> None:
    def at(pos: str, row: str, order: str | None, operation: str = "u") -> str:
        transaction = None if order is None else {"id": "x", "total_order": Number(order)}
        place = binlog("mysql-bin.000010", pos, row, connector)
        return sequence_of(place, operation, transaction)

    log = [
        at("4", "0", None, "r"),
        at("4", "0", "1", "c"),
        at("4", "1", "2"),
        # The rows of the next event of a compressed transaction.
        at("4", "0", "3"),
        at("4", "0", "10", "d"),
        at("4", "0", "100000000"),
        at("157", "0", None, "r"),
        at("157", "0", "1"),
    ]

    assert sorted(log) == log
    assert len(set(log)) == len(log)


def test_a_number_in_a_transaction_that_is_none_is_refused() -> None:
    with pytest.raises(MalformedError, match=r"transaction.total_order: found '-1'"):
        sequence_of(binlog("b.1"), "u", {"total_order": Number("-1")})


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
