"""Writes the position of a change in its database's log as a text that sorts as the log does.

Used for `_sequence`, by which the versions of a key are ordered. A row that a snapshot read comes
before a change at the same position: the change was made after it.

PostgreSQL writes a change into its log when it is made, and shows it when it is committed. So the
log alone does not say whether a snapshot saw a change. A change that was made before the snapshot
and committed after it is before the snapshot in the log.

The commit that the connector sent before, in `source.sequence`, says it: changes are sent in the
order of their commits. The rows of a snapshot with which a connector begins, and the first
transaction after it, have none. There the position itself takes its place.

MySQL and MariaDB may give all changes of a transaction one position: those of a compressed one, and
from MariaDB 11.4 on others, are written before their position is known. Each event counts its rows
from 0. `transaction.total_order` says the order of the changes, if the connector writes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from livemart.land.records.exact_values import MalformedError
from livemart.land.records.untyped_values import Number

_DIGITS = re.compile(r"[0-9]+\Z")
_SEQUENCE = re.compile(r'\[(?:"([0-9]{1,20})"|null), ?(?:"([0-9]{1,20})"|null)\]\Z')
_BINLOG = re.compile(r".*\.([0-9]+)\Z", re.S)


def sequence_of(source: Mapping[str, Any], operation: str, transaction: Any = None) -> str:
    """Return the position of a change from a record's `source`; `r` is a row of a snapshot.

    Args:
        source: where the change is.
        operation: of the change.
        transaction: the record's block of this name, if it has one.

    Raises:
        MalformedError: another connector, or no position.

    >>> place = {"lsn": Number("24023128"), "sequence": '["24023119","24023128"]'}
    >>> sequence_of({"connector": "postgresql"} | place, "u")
    '00000000000024023119.1.00000000000024023128'
    >>> binlog = {"file": "binlog.000010", "pos": Number("4"), "row": Number("0")}
    >>> sequence_of({"connector": "mysql"} | binlog, "r")
    '0000000010.0000000000000004.00000000.0'
    """
    connector = source.get("connector")
    if not isinstance(connector, str) or connector not in _POSITIONS:
        raise MalformedError(
            f"source.connector: found {connector!r}, expected one of {', '.join(_POSITIONS)}"
        )
    place = transaction if isinstance(transaction, Mapping) else {}
    return _POSITIONS[connector](source, place, int(operation != "r"))


def _of_write_ahead_log(
    source: Mapping[str, Any], transaction: Mapping[str, Any], is_change: int
) -> str:
    commit, sent = _sequence(source)
    # An incremental snapshot leaves `lsn` out.
    lsn = Number(sent) if sent and source.get("lsn") is None else source.get("lsn")
    position = _padded("source.lsn", lsn, 20)
    return f"{(commit or position).zfill(20)}.{is_change}.{position}"


def _sequence(source: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the commit that was sent before, and the position; old connectors say neither."""
    sequence = source.get("sequence")
    if sequence is None:
        return None, None
    match = _SEQUENCE.match(sequence) if type(sequence) is str else None
    if match is None:
        raise MalformedError(f"source.sequence: found {sequence!r}, which names no commit")
    return match[1], match[2]


def _of_binlog(source: Mapping[str, Any], transaction: Mapping[str, Any], is_change: int) -> str:
    """Return file, position and row: `mysql-bin.000010` comes after `mysql-bin.000009`.

    In place of the row comes the number of the change in its transaction, if it is known.
    """
    file = source.get("file")
    match = _BINLOG.match(file) if type(file) is str else None
    if match is None:
        raise MalformedError(f"source.file: found {file!r}, which has no number")
    order = transaction.get("total_order")
    parts = (
        _padded("source.file", Number(match[1]), 10),
        _padded("source.pos", source.get("pos"), 16),
        _padded("source.row", source.get("row"), 8)
        if order is None
        else _padded("transaction.total_order", order, 12),
    )
    return f"{'.'.join(parts)}.{is_change}"


def _padded(place: str, value: Any, width: int) -> str:
    if not isinstance(value, Number) or not _DIGITS.match(value) or len(value) > width:
        raise MalformedError(f"{place}: found {value!r}, which is not a position")
    return value.zfill(width)


_POSITIONS: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any], int], str]] = {
    "postgresql": _of_write_ahead_log,
    "mysql": _of_binlog,
    "mariadb": _of_binlog,
}
