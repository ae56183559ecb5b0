"""Finds words that may change the rows of a text which the planner cannot take apart.

Used by `verify` for SQL that Spark reads and the planner's parser does not: near one of these
words, rows that differ are no certain fault.
"""

from __future__ import annotations

import re

from livemart.plan.relations.aggregate_calls import ORDER_DEPENDENT
from livemart.plan.sql.determinism import (
    APPROXIMATE_AGGREGATES,
    BARE_FUNCTIONS,
    FILE_COLUMN,
    SPECIAL_TIMES,
    VOLATILE_FUNCTIONS,
)

_WORD = re.compile(r"[a-z_]\w*")
_CALL = re.compile(r"([a-z_]\w*)\s*\(")
_TIME = re.compile(rf"'\s*({'|'.join(sorted(SPECIAL_TIMES))})\b")
# These take some of the rows that tie, or one order of several.
_TYING = frozenset({"limit", "offset", "over", "nearest", "tablesample"})
_UNSURE_WORDS = _TYING | BARE_FUNCTIONS | {FILE_COLUMN}
_UNSURE_CALLS = VOLATILE_FUNCTIONS | ORDER_DEPENDENT | APPROXIMATE_AGGREGATES | {"unix_timestamp"}


def unsure_words(text: str) -> tuple[str, ...]:
    """Return the words of a text for which two runs over the same rows may differ, sorted.

    They may be more than really do: a column, a text or a comment may hold one of them.

    >>> unsure_words("from t |> extend Rand (7) as r |> aggregate max(first) |> limit 3")
    ('limit', 'rand')
    >>> unsure_words("select js:a from t where x > date'2026-01-01'")
    ()
    """
    text = text.lower()
    words = _UNSURE_WORDS.intersection(_WORD.findall(text))
    calls = _UNSURE_CALLS.intersection(_CALL.findall(text))
    return tuple(sorted({*words, *calls, *_TIME.findall(text)}))
