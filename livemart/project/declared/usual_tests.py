"""Says whether a data test asks what its name says, as dbt's and dbt_utils' tests of that name do.

Used when the project is read. A project or a package may define another test under such a name:
then neither a key nor a proof follows from it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_NAME = r"(?:`[^`]+`|\w+)"
_QUOTED = re.compile(r"`(?:[^`]|``)+`")
_TABLE = rf"{_NAME}(?:\.{_NAME}){{0,2}}"
_VALUES = r"\((?:[^()']|'(?:[^'\\]|\\.)*')+\)"
_PAIRS = (
    rf"select {{0}}(?:, count\(\*\) as \w+)? from {_TABLE} group by {{0}} having count\(\*\) > 1"
)
# By the name of the test, as the macros write it; {0} is the column, or the columns.
_FORMS = {
    "not_null": rf"select (?:\*|{{0}}) from {_TABLE} where {{0}} is null",
    "unique": (
        rf"select {{0}} as unique_field, count\(\*\) as n_records from {_TABLE}"
        rf"(?: where {{0}} is not null)? group by {{0}} having count\(\*\) > 1"
    ),
    "accepted_values": (
        r"with all_values as \( ?select {0} as value_field, count\(\*\) as n_records "
        rf"from {_TABLE} group by {{0}} ?\) "
        rf"select \* from all_values where value_field not in {_VALUES}"
    ),
    "unique_combination": _PAIRS,
    "unique_combination_of_columns": (
        rf"{_PAIRS}|with validation_errors as \( ?{_PAIRS} ?\) select \* from validation_errors"
    ),
}


def is_usual(kind: str | None, columns: Sequence[str], code: str) -> bool:
    """Return True unless a test has a name that says something, and SQL that asks something else.

    Args:
        kind: name of the test.
        columns: that it names, as written.
        code: its SQL; empty while it is not compiled, and the name is believed.

    A test of the rows that a `where` leaves is not usual: it says nothing of the others. Nor is one
    of `a.b` without quotes: that is a field of a struct, whatever column has the name.

    >>> is_usual("not_null", ["city"], "select city from m.shops where city is null")
    True
    >>> is_usual("not_null", ["city"], "select city from m.shops where trim(city) = ''")
    False
    """
    form = _FORMS.get(kind or "")
    if form is None:
        return True
    if not code:
        return all("." not in column or _QUOTED.fullmatch(column) for column in columns)
    names = [re.escape(" ".join(column.split()).strip("`")) for column in columns]
    named = ", ?".join(f"`{name}`" if "." in name else f"`?{name}`?" for name in names)
    text = " ".join(code.split()).rstrip("; ")
    return bool(names) and re.fullmatch(form.replace("{0}", named), text, re.IGNORECASE) is not None
