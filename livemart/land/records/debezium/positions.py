"""Writes the position of a change in its database's log as a text that sorts as the log does.

Used for `_sequence`, by which the versions of a key are ordered. A row that a snapshot read comes
before a change at the same position: the change was made after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from livemart.land.records.values import MalformedError
from livemart.land.records.written import Number

_DIGITS = re.compile(r"[0-9]+\Z")
_BINLOG = re.compile(r".*\.([0-9]+)\Z", re.S)


def sequence_of(source: Mapping[str, Any], operation: str) -> str:
    """Return the position of a change.

    Args:
        source: the record's `source`.
        operation: its `op`; `r` is a row that a snapshot read.

    Raises:
        MalformedError: another connector, or no position.

    >>> sequence_of({"connector": "postgresql", "lsn": Number("24023128")}, "u")
    '00000000000024023128.1'
    >>> binlog = {"file": "binlog.000010", "pos": Number("4"), "row": Number("0")}
    >>> sequence_of({"connector": "mysql"} | binlog, "r")
    '0000000010.0000000000000004.00000000.0'
    """
    connector = source.get("connector")
    if not isinstance(connector, str) or connector not in _POSITIONS:
        raise MalformedError(
            f"source.connector: found {connector!r}, known are {', '.join(_POSITIONS)}"
        )
    return f"{_POSITIONS[connector](source)}.{int(operation != 'r')}"


def _of_write_ahead_log(source: Mapping[str, Any]) -> str:
    return _padded(source, "lsn", source.get("lsn"), 20)


def _of_binlog(source: Mapping[str, Any]) -> str:
    """Return file, position and row: `mysql-bin.000010` comes after `mysql-bin.000009`."""
    file = source.get("file")
    match = _BINLOG.match(file) if type(file) is str else None
    if match is None:
        raise MalformedError(f"source.file: found {file!r}, which has no number")
    parts = (
        _padded(source, "file", Number(match[1]), 10),
        _padded(source, "pos", source.get("pos"), 16),
        _padded(source, "row", source.get("row"), 8),
    )
    return ".".join(parts)


def _padded(source: Mapping[str, Any], name: str, value: Any, width: int) -> str:
    if not isinstance(value, Number) or not _DIGITS.match(value) or len(value) > width:
        raise MalformedError(f"source.{name}: found {source.get(name)!r}, which is no position")
    return value.zfill(width)


_POSITIONS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "postgresql": _of_write_ahead_log,
    "mysql": _of_binlog,
    "mariadb": _of_binlog,
}
