"""Checks the names and types of the columns that a source declares.

Used by the reader of sources. The columns are the schema of the landed table, so they must hold.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from livemart.errors import nearest
from livemart.project.declared.name_clashes import names_in_two_cases
from livemart.project.graph import Column
from livemart.project.landing_columns import LANDING_COLUMNS
from livemart.project.spark_types import (
    TYPE_WORDS,
    TYPES_ELSEWHERE,
    SparkType,
    TypeSyntaxError,
    parse_type,
    type_instead,
)
from livemart.project.yaml_places import Mistakes

# Names that landed rows are given on their way into a table.
_INTERNAL_COLUMN = re.compile(
    r"_(record|record_bytes|(code|detail)_[0-9]+|kind|is_delete|action|position)|__livemart.*"
    # Those of Delta's change feed.
    r"|_(change_type|commit_version|commit_timestamp)",
    re.S,
)
# Characters that Delta refuses in a name, or that no header or YAML can spell.
_FORBIDDEN = re.compile(r"[ ,;{}()\n\t=\x00-\x1f\x7f]")
_UNORDERED = ("array", "map", "struct", "binary")

# A landed column has no length, and a time without a zone is taken as UTC.
_ELSEWHERE = TYPES_ELSEWHERE | {
    "datetime": "timestamp",
    "varchar": "string",
    "char": "string",
    "character": "string",
}
_NO_TYPE = "declare a Spark type: string, bigint, decimal(10,2), timestamp, array<...>"
ONE_COLUMN = "Spark ignores letter case in column names: keep one of them"
_NO_VARIANT = "declare string, which takes any JSON, and write parse_json in a model"
STORABLE = "a table of Delta takes any name without blanks and without any of ,;{}()="


def is_storable(name: str) -> bool:
    """Return True if a table of Delta, without column mapping, takes a column of this name.

    >>> is_storable("größe"), is_storable("order"), is_storable("order total")
    (True, True, False)
    """
    return bool(name) and _FORBIDDEN.search(name) is None


class DeclaredColumns:
    """The columns of one source table; their mistakes go to `mistakes`."""

    def __init__(self, columns: Sequence[Column], mistakes: Mistakes) -> None:
        self.by_name = {column.name: column for column in columns}
        self._refuse = mistakes.refuse

    def check(self) -> None:
        """Find the mistakes in names and types."""
        twins = dict(names_in_two_cases(self.by_name))
        for name, column in self.by_name.items():
            path = ("columns", name)
            if name.lower() in LANDING_COLUMNS:
                self._refuse(
                    "SOURCE_COLUMN_RESERVED",
                    path,
                    f"found column {name}",
                    f"landing adds {', '.join(LANDING_COLUMNS)} itself: do not declare them",
                )
            elif _INTERNAL_COLUMN.fullmatch(name.lower()):
                self._refuse(
                    "SOURCE_COLUMN_RESERVED",
                    path,
                    f"found column {name}",
                    "landing works with a column of this name: choose another",
                )
            elif not is_storable(name):
                self._refuse("SOURCE_COLUMN_INVALID", path, f"found {name!r}", STORABLE)
            if name in twins:
                self._refuse(
                    "SOURCE_COLUMN_INVALID", path, f"found {name} beside {twins[name]}", ONE_COLUMN
                )
            self._check_type(column)
        if not self.by_name:
            self._refuse(
                "SOURCE_COLUMN_INVALID",
                ("columns",),
                "no columns",
                "declare each column with its data_type: they are the schema",
            )

    def _check_type(self, column: Column) -> None:
        path = ("columns", column.name, "data_type")
        if not column.data_type:
            self._refuse("SOURCE_COLUMN_INVALID", path, "no data_type", _NO_TYPE)
            return
        try:
            kind = parse_type(column.data_type)
        except TypeSyntaxError as error:
            word = error.word.lower()
            finding = f"{column.data_type}: {error}{type_instead(word, TYPE_WORDS, _ELSEWHERE)}"
            hint = _NO_VARIANT if word == "variant" else _NO_TYPE
            self._refuse("SOURCE_COLUMN_INVALID", path, finding, hint)
            return
        for name in (name for part in kind.walk() for name, _ in part.fields):
            if not is_storable(name):
                finding = f"found a field named {name!r}"
                self._refuse("SOURCE_COLUMN_INVALID", path, finding, STORABLE)

    def types(self) -> dict[str, SparkType]:
        """Return the types of the columns that have a right one."""
        kinds = {}
        for name, column in self.by_name.items():
            with suppress(TypeSyntaxError):
                kinds[name] = parse_type(column.data_type or "")
        return kinds

    def require_ordered(self, name: str, path: tuple[str, ...]) -> None:
        """Find the reasons why a column, named at `path`, cannot be a key or a sequence."""
        if name not in self.by_name:
            self._refuse(
                "SOURCE_COLUMN_UNKNOWN",
                path,
                f"found column {name}{nearest(name, self.by_name)}",
                "declare it under `columns` with its data_type, or name one that is declared",
            )
        elif (kind := self.by_name[name].data_type) and outer_type(kind) in _UNORDERED:
            self._refuse(
                "SOURCE_COLUMN_INVALID",
                path,
                f"found column {name} of type {kind}",
                "choose a column whose values can be compared: a number, a string, a time",
            )


def outer_type(data_type: str) -> str:
    """Return the first word of a type: `array` of `array<string>`."""
    return re.split(r"[<(\s]", data_type.strip().lower(), maxsplit=1)[0]
