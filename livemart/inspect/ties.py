"""Tells a tie from a difference: whether what is stored is one of the answers that SQL allows.

Used by `verify`, of models whose orders may tie. The SQL is run with its ties broken in several
ways: what comes out differently ties, and the answers that come out are right ones.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from livemart.plan.strategies.tie_breaks import ORDERLY_WAYS
from livemart.plan.strategies.ties import Computed

# Three rows that tie are all tried as the first of them in so many ways, but once in 10^6.
WAYS = 40
_DIGITS = 9

Row = tuple[Any, ...]
GroupRows = Sequence[Row]


@dataclass(slots=True)
class _Group:
    """The rows of one group: as stored, and in each answer that is known to be right."""

    stored: GroupRows
    answers: list[GroupRows] = field(default_factory=list)


def groups_that_tie(
    stored: Iterable[Row],
    answers: Iterator[Iterable[Row]],
    keys: Sequence[int],
    computed: Mapping[int, Computed],
) -> list[Row] | None:
    """Return the groups in which another of the right answers is stored; None if one is wrong.

    A group is right if its rows differ from answer to answer, and the stored ones agree with all
    answers in what these agree in; if each row but for its computed values is a row of some answer;
    and if each of these values occurs in some answer or, where it is made of several rows, lies
    between two that do.

    Args:
        stored: rows of the groups that differ.
        answers: rows of the same groups, in each way to break ties. No more are asked for than are
            needed.
        keys: the places of the columns that tell groups apart.
        computed: by place, the columns that a function of the rows that tie computes.
    """
    groups = {key: _Group(rows) for key, rows in _by_key(stored, keys).items()}
    unexplained: set[Row] = set()
    for ways in (ORDERLY_WAYS + 1, 7, WAYS):
        for answer in islice(answers, ways):
            rows_by_key = _by_key(answer, keys)
            for key in rows_by_key.keys() - groups.keys():
                groups[key] = _Group([])
            for key, group in groups.items():
                group.answers.append(rows_by_key.get(key, []))
        unexplained = {key for key, group in groups.items() if not _is_right(group, computed)}
        if not unexplained or not all(_ties(groups[key].answers) for key in unexplained):
            break
    return None if unexplained else list(groups)


def _by_key(rows: Iterable[Row], keys: Sequence[int]) -> Mapping[Row, list[Row]]:
    by_key: dict[Row, list[Row]] = defaultdict(list)
    for row in rows:
        plain = tuple(map(_plain, row))
        by_key[tuple(plain[place] for place in keys)].append(plain)
    return by_key


def _is_right(group: _Group, computed: Mapping[int, Computed]) -> bool:
    stored = Counter(group.stored)
    if any(stored == Counter(answer) for answer in group.answers):
        return True
    if not _ties(group.answers):
        return False
    sizes = [len(answer) for answer in group.answers]
    if not min(sizes) <= len(group.stored) <= max(sizes):
        return False
    every = range(max(map(len, (row for rows in group.answers for row in rows)), default=0))
    agreed = [place for place in every if _agree(group.answers, [place])]
    if any(_bag(group.stored, [place]) != _bag(group.answers[0], [place]) for place in agreed):
        return False
    is_joint = _agree(group.answers, agreed)
    if is_joint and _bag(group.stored, agreed) != _bag(group.answers[0], agreed):
        return False
    rows = [row for answer in group.answers for row in answer]
    held = [place for place in every if place not in computed]
    if not _bag(group.stored, held).keys() <= _bag(rows, held).keys():
        return False
    return all(
        _occurs([row[place] for row in group.stored], [row[place] for row in rows], kind)
        for place, kind in computed.items()
    )


def _ties(answers: Sequence[GroupRows]) -> bool:
    return any(Counter(answer) != Counter(answers[0]) for answer in answers)


def _agree(answers: Sequence[GroupRows], places: Sequence[int]) -> bool:
    return all(_bag(answer, places) == _bag(answers[0], places) for answer in answers)


def _bag(rows: GroupRows, places: Sequence[int]) -> Counter[Row]:
    return Counter(tuple(row[place] for place in places) for row in rows)


def _occurs(stored: Sequence[Any], right: Sequence[Any], kind: Computed) -> bool:
    """Return True if each value is a right one, or was made and lies between two that are."""
    others = set(stored) - set(right)
    ends = [value for value in right if value is not None]
    try:
        return not others or (
            kind == "made" and all(min(ends) < value < max(ends) for value in others)
        )
    except (TypeError, ValueError):
        return False


def _plain(value: Any) -> Any:
    """Return a value that can be counted; of doubles what the order of a sum leaves."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict | list | set | bytearray):
        return repr(value)
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value
