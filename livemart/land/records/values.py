"""One value of a record to one typed value, exactly: every faster path must equal this."""

from __future__ import annotations

import base64
from typing import Any

from livemart.land.records.numbers import decimal, double, integer, single
from livemart.land.records.times import day, local_timestamp, timestamp
from livemart.land.records.written import Convert, Number, Rescued, compact, misfit
from livemart.project.spark_types import SparkType

# The type of a column that drift brought: a string that takes any value. Never declared.
TEXT = "text"


def converter(kind: SparkType) -> Convert:
    """Return the function that converts a value to `kind`.

    It takes the value (a JSON value with numbers as `Number`, or the text of a CSV field), its path
    and the dictionary of rescued fields; it returns None for a null and raises MisfitError.
    """
    match kind.name:
        case "array":
            return _array(kind)
        case "map":
            return _map(kind)
        case "struct":
            return _struct(kind)
        case "decimal":
            return decimal(kind)
        case "tinyint" | "smallint" | "int" | "bigint":
            return integer(kind)
        case _:
            return _SIMPLE[kind.name]


def _string(value: Any, path: str, rescued: Rescued) -> str | None:
    if type(value) is str:
        return value
    if value is None:
        return None
    if isinstance(value, Number):
        return str(value)
    if value is True or value is False:
        return "true" if value else "false"
    raise misfit(path, value, "string")


def _boolean(value: Any, path: str, rescued: Rescued) -> bool | None:
    if value is None or value is True or value is False:
        return value
    if type(value) is str and (word := value.lower()) in ("true", "false"):
        return word == "true"
    raise misfit(path, value, "boolean")


def _binary(value: Any, path: str, rescued: Rescued) -> bytes | None:
    if value is None:
        return None
    if type(value) is str:
        try:
            return base64.b64decode(value, validate=True)
        except ValueError:
            pass
    raise misfit(path, value, "binary (base64)")


def _array(kind: SparkType) -> Convert:
    assert kind.element is not None
    inner = converter(kind.element)

    def convert(value: Any, path: str, rescued: Rescued) -> list[Any] | None:
        if value is None:
            return None
        if type(value) is not list:
            raise misfit(path, value, kind)
        return [inner(item, f"{path}[{index}]", rescued) for index, item in enumerate(value)]

    return convert


def _map(kind: SparkType) -> Convert:
    assert kind.element is not None
    inner = converter(kind.element)

    def convert(value: Any, path: str, rescued: Rescued) -> list[tuple[str, Any]] | None:
        if value is None:
            return None
        if type(value) is not dict:
            raise misfit(path, value, kind)
        # Sorted: two maps that are equal are then equal rows.
        return [
            (_string(name, path, rescued) or "", inner(item, f"{path}.{name}", rescued))
            for name, item in sorted(value.items())
        ]

    return convert


def _struct(kind: SparkType) -> Convert:
    members = {name: converter(each) for name, each in kind.fields}

    def convert(value: Any, path: str, rescued: Rescued) -> dict[str, Any] | None:
        if value is None:
            return None
        if type(value) is not dict:
            raise misfit(path, value, kind)
        for name in value.keys() - members.keys():
            rescued[f"{path}.{name}"] = compact(value[name])
        return {
            name: member(value.get(name), f"{path}.{name}", rescued)
            for name, member in members.items()
        }

    return convert


def _text(value: Any, path: str, rescued: Rescued) -> str | None:
    """A column that drift brought: whatever the field holds, as it would have been rescued."""
    return compact(value)


_SIMPLE: dict[str, Convert] = {
    TEXT: _text,
    "string": _string,
    "boolean": _boolean,
    "float": single,
    "double": double,
    "date": day,
    "timestamp": timestamp,
    "timestamp_ntz": local_timestamp,
    "binary": _binary,
}
