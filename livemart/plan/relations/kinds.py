"""Tells of which kind the values of an expression are, as `key_kind` names the types of columns.

Used by joins and unions: a value of one kind may equal several values of another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from sqlglot import exp

from livemart.arrow.types import SIZED, key_kind
from livemart.plan.sql.determinism import function_name

# No rule knows the expression: it is like no other.
UNKNOWN = "unknown"

# None: of a table that does not exist yet.
ValueKind = str | None
# An interval, or what may be one: a difference of times, or of what may be times.
_INTERVAL = "interval"

TEXT, NUMBER = key_kind(pa.string()), key_kind(pa.int64())
_FLOATS = (key_kind(pa.float32()), key_kind(pa.float64()))
DATE, _TIMESTAMP = key_kind(pa.date32()), key_kind(pa.timestamp("us", tz="UTC"))
_FIXED = re.compile(r"int\d+|decimal128\((\d+), .*")

_CASTS = {
    **dict.fromkeys(exp.DataType.TEXT_TYPES, TEXT),
    **dict.fromkeys(exp.DataType.SIGNED_INTEGER_TYPES, NUMBER),
    exp.DataType.Type.FLOAT: _FLOATS[0],
    exp.DataType.Type.DOUBLE: _FLOATS[1],
    exp.DataType.Type.BOOLEAN: key_kind(pa.bool_()),
    exp.DataType.Type.BINARY: key_kind(pa.binary()),
    exp.DataType.Type.DATE: DATE,
    exp.DataType.Type.TIMESTAMPTZ: _TIMESTAMP,
    exp.DataType.Type.TIMESTAMPLTZ: _TIMESTAMP,
    exp.DataType.Type.TIMESTAMPNTZ: key_kind(pa.timestamp("us")),
}
TIMES = frozenset({DATE, _TIMESTAMP, _CASTS[exp.DataType.Type.TIMESTAMPNTZ]})
# By the parser's names.
_CALLS = {
    **dict.fromkeys(
        (
            "lower", "upper", "initcap", "trim", "btrim", "replace", "translate", "regexp_replace",
            "regexp_extract", "split_part", "substring_index", "concat_ws", "format", "time_to_str",
            "md5", "sha", "sha2", "hex", "to_base64", "json_extract_scalar", "json_format",
        ),
        TEXT,
    ),
    **dict.fromkeys(
        (
            "count", "row_number", "rank", "dense_rank", "ntile", "hash", "xxhash64", "crc32",
            "length", "year", "quarter", "month", "day", "hour", "minute", "datediff",
        ),
        NUMBER,
    ),
    **dict.fromkeys(
        ("ts_or_ds_to_date", "ts_or_ds_add", "date_trunc", "last_day", "next_day"), DATE
    ),
    "timestamp_trunc": _TIMESTAMP,
    **dict.fromkeys(("make_interval", "make_dt_interval", "make_ym_interval"), _INTERVAL),
}  # fmt: skip
# They give a value of their first argument, or one of its kind.
_LIKE_FIRST = frozenset(
    {
        "max", "min", "arg_max", "arg_min", "any_value", "first", "first_value", "last",
        "last_value", "nth_value", "lag", "lead", "mode", "nullif", "abs",
    }
)  # fmt: skip
# They give no time and no interval.
_NUMBERS = frozenset(
    {
        "bround", "ceil", "date_part", "day_of_week", "day_of_year", "exp", "extract", "floor",
        "intdiv", "ln", "log", "months_between", "pmod", "power", "round", "second", "sqrt",
        "str_to_unix", "time_to_unix", "unix_date", "unix_micros", "unix_millis", "unix_seconds",
        "week_of_year", "weekday",
    }
)  # fmt: skip
ARITHMETIC = (
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Div,
    exp.Mod,
    exp.SafeAdd,
    exp.SafeSubtract,
    exp.SafeMultiply,
    exp.SafeDivide,
)
# They give text, but bytes of bytes and a list of lists.
_PARTS = frozenset({"substring", "left", "right", "pad", "concat", "reverse"})
_WINDOWS = frozenset({"window", "session_window"})
_WRAPPERS = (
    exp.Paren,
    exp.Alias,
    exp.Neg,
    exp.Window,
    exp.Filter,
    exp.IgnoreNulls,
    exp.RespectNulls,
)


def are_alike(kinds: Iterable[ValueKind]) -> bool:
    """Return True if all kinds are the same; nothing is held against a table that is not there.

    >>> are_alike(["number", "string"]), are_alike(["string", None]), are_alike([UNKNOWN, UNKNOWN])
    (False, True, False)
    """
    several = set(kinds)
    return None in several or common_kind(several) not in (UNKNOWN, _INTERVAL)


def common_kind(kinds: Iterable[ValueKind]) -> ValueKind:
    """Return the one kind of values that come from several places.

    >>> common_kind(["string", "sized string"]), common_kind(["string", "number"])
    ('sized string', 'unknown')
    """
    several = set(kinds)
    if _INTERVAL in several:
        return _INTERVAL
    if None in several:
        return None
    plain = {str(kind).removeprefix(SIZED) for kind in several}
    if len(plain) != 1:
        return UNKNOWN
    return several.pop() if len(several) == 1 else SIZED + plain.pop()


def has_column_type(kind: str) -> bool:
    """Return False if Delta has no such column, or Spark reads it otherwise than it was computed.

    >>> [has_column_type(it) for it in ("interval", "sized struct<c: string>", "string")]
    [False, False, True]
    """
    return kind != _INTERVAL and not kind.startswith(SIZED)


def value_kind(expr: exp.Expr, of_column: Callable[[exp.Column], ValueKind]) -> ValueKind:
    """Return the kind of an expression.

    >>> from sqlglot import parse_one
    >>> def kind(sql):
    ...     return value_kind(parse_one(sql, read="spark"), {"a": "struct<id: int32>"}.get)
    >>> kind("coalesce(lower(x), 'none')"), kind("count(*) + 1"), kind("sqrt(2)")
    ('string', 'number', 'unknown')
    >>> kind("cast(x as date) - to_timestamp(y)"), kind("interval '1' day * 2"), kind("2 / 3")
    ('interval', 'interval', 'unknown')
    """

    def kind(part: exp.Expr) -> ValueKind:
        # The column alone has a size, no expression of it.
        return _in(value_kind(part, of_column), lambda it: it.removeprefix(SIZED))

    while isinstance(expr, _WRAPPERS):
        expr = expr.this
    if isinstance(expr, exp.Column):
        return of_column(expr)
    if isinstance(expr, exp.Cast):
        return _of_cast(expr.to)
    if isinstance(expr, exp.Interval):
        return _INTERVAL
    if isinstance(expr, exp.Literal):
        return TEXT if expr.is_string else NUMBER if expr.is_int else UNKNOWN
    if isinstance(expr, exp.Dot) and function_name(expr.this) in _WINDOWS:
        return kind(expr.this.expressions[0])
    if isinstance(expr, exp.Dot):
        return _in(kind(expr.this), lambda it: field_kind(it, expr.expression.name))
    if isinstance(expr, exp.Bracket):
        return _in(kind(expr.this), element_kind)
    if isinstance(expr, ARITHMETIC):
        return _of_arithmetic(expr, kind)
    if (values := list(_values(expr))) or isinstance(expr, exp.Case):
        return common_kind(kind(value) for value in values if not isinstance(value, exp.Null))
    return _of_call(expr, kind)


def _values(expr: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the expressions of whose values an expression gives one."""
    if isinstance(expr, exp.Coalesce | exp.Greatest | exp.Least):
        yield expr.this
        yield from expr.expressions
    elif isinstance(expr, exp.If | exp.Nvl2):
        yield expr.args["true"]
    elif isinstance(expr, exp.Case):
        yield from (branch.args["true"] for branch in expr.args["ifs"])
    other = expr.args.get("default" if isinstance(expr, exp.Case) else "false")
    if isinstance(expr, exp.If | exp.Nvl2 | exp.Case) and other is not None:
        yield other


def _of_cast(to: exp.DataType) -> ValueKind:
    if to.this == exp.DataType.Type.DECIMAL:
        digits = [int(part.name) for part in to.expressions] or [10]
        return key_kind(pa.decimal128(*digits))
    return _INTERVAL if isinstance(to.this, exp.Interval) else _CASTS.get(to.this, UNKNOWN)


def _of_arithmetic(expr: exp.Expr, kind: Callable[[exp.Expr], ValueKind]) -> ValueKind:
    operands = (expr.this, expr.expression)
    if isinstance(expr.expression, exp.Interval):
        return _in(kind(expr.this), lambda it: it if it == _TIMESTAMP else _INTERVAL)
    kinds = {kind(operand) for operand in operands}
    if any(_may_be_time(operand, kind(operand)) for operand in operands):
        return _INTERVAL
    if None in kinds:
        return None
    if isinstance(expr, exp.Add | exp.Sub | exp.Mul | exp.Mod):
        if kinds == {NUMBER}:
            return NUMBER
        if kinds <= {*_FLOATS, NUMBER} and _FLOATS[1] in kinds:
            return _FLOATS[1]
    return UNKNOWN


def _may_be_time(expr: exp.Expr, kind: ValueKind) -> bool:
    while isinstance(expr, _WRAPPERS):
        expr = expr.this
    if kind == UNKNOWN:
        # Arithmetic of an unknown kind is of numbers or texts.
        is_number = isinstance(expr, (exp.Literal, *ARITHMETIC))
        return not is_number and (function_name(expr) or expr.key) not in _NUMBERS
    return kind == _INTERVAL or kind in TIMES


def _of_call(call: exp.Expr, kind: Callable[[exp.Expr], ValueKind]) -> ValueKind:
    name = function_name(call) or call.key
    if name in _CALLS:
        return _CALLS[name]
    first = next(call.iter_expressions(), None)
    if first is None or name in _NUMBERS:
        return UNKNOWN
    if name in _LIKE_FIRST:
        return kind(first)
    if name in _PARTS or isinstance(call, exp.DPipe):
        return _in(kind(first), lambda it: TEXT if it in (TEXT, NUMBER, DATE) else UNKNOWN)
    # Such as a struct or an array that holds one.
    holds_interval = any(kind(part) == _INTERVAL for part in call.iter_expressions())
    return _INTERVAL if holds_interval else UNKNOWN


def _in(kind: ValueKind, part: Callable[[str], str]) -> ValueKind:
    return kind if kind is None or kind == _INTERVAL else part(kind)


def element_kind(kind: str) -> str:
    """Return the kind of the elements of a list, or of the values of a map.

    >>> element_kind("list<element: int32>"), element_kind("map<string, double>")
    ('number', 'unknown')
    """
    return field_kind(kind, "element") if kind.startswith("list<") else UNKNOWN


def field_kind(kind: str, name: str) -> str:
    """Return the kind of a field of a struct.

    >>> field_kind("struct<id: decimal128(10, 2), Of: struct<id: string> not null>", "of")
    'struct<id: string>'
    """
    begin, depth = kind.find("<") + 1, 0
    for place in range(begin, len(kind)):
        depth += (kind[place] in "<([") - (kind[place] in ">)]")
        if depth < 0 or (depth == 0 and kind[place] == ","):
            field, _, its_kind = kind[begin:place].strip().partition(": ")
            if field.lower() == name.lower():
                return _word(its_kind.removesuffix(" not null"))
            begin = place + 1
    return UNKNOWN


def _word(kind: str) -> str:
    """Return the word of `key_kind` for the kind of a part."""
    fixed = _FIXED.fullmatch(kind)
    if fixed is None:
        return kind
    return key_kind(pa.decimal128(int(fixed[1]), 0)) if fixed[1] else NUMBER
