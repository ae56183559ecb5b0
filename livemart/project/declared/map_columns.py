"""Finds SQL that groups by maps whose values Spark's generated code would not keep.

Used when sessions are chosen. In Spark 4.2 generated code sorts the entries of a map that is a key
of GROUP BY without a look at which values are NULL. A number, boolean or time that is NULL then
becomes 0, or, read from Parquet, the value of another row. The interpreter keeps it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from livemart.project.graph import Column
from livemart.project.spark_types import SparkType, TypeSyntaxError, parse_type

# Generated code asks by itself whether these are NULL.
_KEPT = frozenset({"string", "decimal", "binary", "array", "struct", "map"})
_GROUPS = re.compile(r"\bgroup\s+by\b|\bpivot\b", re.IGNORECASE)
_MAKES = re.compile(
    r"\b(?:map|map_from_arrays|map_from_entries|map_zip_with|transform_values)\s*(?=\()|\bmap\s*<",
    re.IGNORECASE,
)
# Calls that give, or hold, the map that they are given.
_HANDS_ON = re.compile(
    r"\b(?:any_value|array|array_agg|coalesce|collect_list|explode|explode_outer|first|first_value|"
    r"if|ifnull|inline|lag|last|last_value|lead|map_concat|map_filter|max_by|min_by|mode|"
    r"named_struct|nth_value|nullif|nvl|nvl2|posexplode|struct|transform_keys)\s*(?=\()",
    re.IGNORECASE,
)
_NAMED = re.compile(r"`?\s+as\s+`?(\w+)", re.IGNORECASE)
_STEPS = re.compile(r"(\()|(\))|\bas\s+`?(\w+)|\bfrom\b", re.IGNORECASE)


class MapColumns:
    """Names of columns that hold such maps, as far as a project's types and texts show it."""

    def __init__(self, declared: Iterable[Column]) -> None:
        self._names = {it.name.lower() for it in declared if _is_lost(it.data_type or "")}

    def add(self, text: str) -> None:
        """Learn the names that a text gives to such maps; texts come in dependency order."""
        while not self._names >= (given := {name.lower() for name in self._given(text)}):
            self._names |= given

    def groups(self, text: str) -> bool:
        """Return True if a text may group by such a map.

        >>> columns = MapColumns([Column("tags", "map<string,int>"), Column("words", "string")])
        >>> columns.groups("select tags, count(*) from t group by tags")
        True
        >>> columns.groups("select words, count(*) from t group by words")
        False
        """
        if not _GROUPS.search(text):
            return False
        return any(pattern.search(text) for pattern in (_MAKES, self._word()))

    def _given(self, text: str) -> Iterator[str]:
        word = self._word()
        for match in word.finditer(text):
            if named := _NAMED.match(text, match.end()):
                yield named[1]
        for match in _MAKES.finditer(text):
            yield from _names_behind(text, match.end())
        for match in _HANDS_ON.finditer(text):
            if any(word.search(argument) for argument in _arguments(text, match.end())):
                yield from _names_behind(text, match.end())

    def _word(self) -> re.Pattern[str]:
        """Return the pattern of any of the names; of no text without one."""
        names = "|".join(map(re.escape, sorted(self._names)))
        return re.compile(rf"\b(?:{names})\b" if names else "(?!)", re.IGNORECASE)


def _names_behind(text: str, start: int) -> Iterator[str]:
    """Yield the name, if any, of the selected value that the call or type at a place is in."""
    depth = 0
    for step in _STEPS.finditer(text, start):
        depth += bool(step[1]) - bool(step[2])
        if depth <= 0 and not (step[1] or step[2]):
            if step[3]:
                yield step[3]
            return


def _arguments(text: str, start: int) -> Iterator[str]:
    """Yield the content of the brackets that open at a place."""
    depth = 0
    for step in _STEPS.finditer(text, start):
        depth += bool(step[1]) - bool(step[2])
        if depth == 0:
            yield text[start : step.start()]
            return


def _is_lost(declared: str) -> bool:
    """Return True for a type of which a part is a map with values that are not kept."""
    try:
        kinds: Iterable[SparkType] = parse_type(declared).walk()
    except TypeSyntaxError:
        return False
    return any(
        kind.name == "map" and kind.element is not None and kind.element.name not in _KEPT
        for kind in kinds
    )
