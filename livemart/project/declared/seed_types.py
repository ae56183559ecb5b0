"""Says which types of a seed's `column_types` Spark does not know.

Used when the project is read: dbt writes the words into a statement, whose error shows the rows of
the file and not the place of the word.
"""

from __future__ import annotations

from collections.abc import Mapping

from livemart.errors import ConfigError
from livemart.project.declared_columns import outer_type
from livemart.project.spark_types import TYPE_WORDS, TYPES_ELSEWHERE, type_instead
from livemart.project.yaml_places import Mistakes, Where

_SIZED = ("char", "character", "varchar")
_WORDS = (*TYPE_WORDS, *_SIZED, "interval", "variant", "void", "time", "geometry", "geography")
_HINT = (
    "write a type of Spark: string, bigint, decimal(10,2), timestamp; for several databases by "
    "target: \"{{ 'string' if target.type == 'spark' else 'text' }}\""
)


def seed_type_mistakes(types: Mapping[str, object], where: Where) -> list[ConfigError]:
    """Return a mistake for each column of a seed whose type Spark does not know.

    Args:
        types: as written, by the name of the column.
        where: the seed.
    """
    mistakes = Mistakes(where)
    for name, kind in types.items():
        if finding := _finding(str(kind)):
            mistakes.refuse("SEED_TYPE_UNKNOWN", ("column_types", name), finding, _HINT)
    return mistakes.errors


def _finding(kind: str) -> str | None:
    """Return the mistake in a type; only its first word is looked at.

    >>> _finding("decimal(18, 2)"), _finding("Bigin")
    (None, 'found Bigin, did you mean bigint?')
    """
    word = outer_type(kind)
    if word not in _WORDS:
        return f"found {kind}{type_instead(word, _WORDS, TYPES_ELSEWHERE)}"
    if word in _SIZED and "(" not in kind:
        return f"found {kind} without a length"
    return None
