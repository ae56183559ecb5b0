"""Distinguishes a tie from a difference: whether SQL allows the stored rows as an answer.

Used by `verify`, of models whose orders may tie. The SQL is run with its ties broken in several
ways: what comes out differently ties, and the answers that come out are right ones.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import isclose
from typing import Any, Literal

from livemart.inspect.comparison import DOUBLE_TOLERANCE, ZERO_TOLERANCE
from livemart.plan.strategies.ties import Computed

# All six orders of three rows come out in so many ways, but once in 400 times.
WAYS = 46
_FIRST, _THEN = 5, 8

Row = tuple[Any, ...]
GroupRows = Sequence[Row]
Verdict = Literal["right", "wrong", "unknown"]


@dataclass(slots=True)
class _Group:
    """The rows of one group: as stored, and in each answer that is known to be right."""

    stored: GroupRows
    answers: list[GroupRows] = field(default_factory=list)
    candidates: GroupRows = ()
    """Rows, each of which is in some right answer."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on the groups that differ."""

    tied: Sequence[Row]
    """Groups that store another right answer."""
    wrong: Sequence[Row]
    """Groups that store no right answer."""
    unknown: Sequence[Row]
    """Groups that tie in more ways than were tried, and may be right."""


def judge_groups(
    stored: Iterable[Row],
    answers: Iterator[Iterable[Row]],
    candidates: Callable[[], Iterable[Row]],
    keys: Sequence[int],
    computed: Mapping[int, Computed],
) -> Judgement:
    """Return which groups tie, and which are wrong.

    A group is right if its rows are those of an answer. If all answers have been met more than
    once, it is wrong otherwise.

    A group that ties in many ways must only meet three conditions. Each row but for its computed
    values is a row of some answer, not more often than there. If such a row has the same values
    beside it in all answers, it has these. Each other value occurs in some answer or, if it is
    computed from several rows, is between two that do.

    Args:
        stored: rows of the groups that differ.
        answers: rows of the same groups, in each way to break ties; the first is what came out
            without any. No more are asked for than are needed.
        candidates: gives rows of the same groups, each of which is in some right answer.
        keys: the places of the columns that tell groups apart.
        computed: by place, the columns that a function of the rows that tie computes.
    """
    canon = _Canon()
    groups = {key: _Group(rows) for key, rows in canon.by_key(stored, keys).items()}
    verdicts: dict[Row, Verdict] = {}
    for ways in (_FIRST, _THEN, WAYS):
        for answer in islice(answers, ways):
            rows_by_key = canon.by_key(answer, keys)
            for key in rows_by_key.keys() - groups.keys():
                groups[key] = _Group([])
            for key, group in groups.items():
                group.answers.append(rows_by_key.get(key, []))
        is_last = ways == WAYS
        if is_last:
            for key, rows in canon.by_key(candidates(), keys).items():
                if key in groups:
                    groups[key].candidates = rows
        verdicts = {
            key: _verdict(group, computed, is_last=is_last) for key, group in groups.items()
        }
        if "unknown" not in verdicts.values():
            break
    of = {
        word: [key for key, verdict in verdicts.items() if verdict == word]
        for word in ("right", "wrong", "unknown")
    }
    tied = [
        key for key in of["right"] if Counter(groups[key].stored) != Counter(groups[key].answers[0])
    ]
    return Judgement(tied, of["wrong"], of["unknown"])


def _verdict(group: _Group, computed: Mapping[int, Computed], *, is_last: bool) -> Verdict:
    stored = _bag(group.stored)
    answers = Counter(map(_bag, group.answers))
    if stored in answers:
        return "right"
    if len(answers) == 1:
        return "wrong"
    if not is_last:
        return "unknown"
    width = max(len(row) for rows in (group.stored, *group.answers) for row in rows)
    held = [place for place in range(width) if place not in computed]
    allowed = Counter(row for rows in (*group.answers, group.candidates) for row in rows)
    rows_held = _held_allowed(group, held)
    if not computed and set(map(len, (group.stored, *group.answers))) == {1}:
        # One row is one decision: it is a candidate or it is not.
        if group.stored[0] in set(group.candidates):
            return "right"
        return "wrong" if _is_saturated(allowed) else "unknown"
    if _is_saturated(answers):
        return "wrong"
    sizes = [len(rows) for rows in group.answers]
    if not min(sizes) <= len(group.stored) <= max(sizes):
        return "wrong"
    counts = Counter(_parts(group.stored, held))
    if any(count > rows_held.get(part, 0) for part, count in counts.items()):
        return "wrong" if _is_saturated(Counter(_parts(allowed.elements(), held))) else "unknown"
    return _verdict_on_values(group, held, computed)


def _verdict_on_values(
    group: _Group, held: Sequence[int], computed: Mapping[int, Computed]
) -> Verdict:
    beside: dict[Row, set[Any]] = defaultdict(set)
    for rows in group.answers:
        for part, values in _computed_beside(rows, held, computed).items():
            beside[part].add(_bag(values))
    fixed = {part for part, bags in beside.items() if len(bags) == 1}
    stored = _computed_beside(group.stored, held, computed)
    if any(_bag(stored[part]) not in beside[part] for part in fixed & stored.keys()):
        return "wrong"
    verdicts = set()
    for place, kind in computed.items():
        right = Counter(
            row[place]
            for rows in group.answers
            for row in rows
            if tuple(row[other] for other in held) not in fixed
        )
        others = {
            row[place] for row in group.stored if tuple(row[other] for other in held) not in fixed
        } - right.keys()
        if others and not (kind == "made" and _lie_between(others, right)):
            verdicts.add("wrong" if kind == "made" or _is_saturated(right) else "unknown")
    return "wrong" if "wrong" in verdicts else "unknown" if verdicts else "right"


def _computed_beside(
    rows: GroupRows, held: Sequence[int], computed: Iterable[int]
) -> dict[Row, list[Row]]:
    """Return the computed values of rows by their other values."""
    beside: dict[Row, list[Row]] = defaultdict(list)
    for row in rows:
        beside[tuple(row[other] for other in held)].append(tuple(row[other] for other in computed))
    return beside


def _held_allowed(group: _Group, held: Sequence[int]) -> dict[Row, int]:
    """Return how often, at most, a row but for its computed values occurs in an answer."""
    most: dict[Row, int] = {}
    for rows in group.answers:
        for part, count in Counter(_parts(rows, held)).items():
            most[part] = max(most.get(part, 0), count)
    for part in _parts(group.candidates, held):
        most.setdefault(part, 1)
    return most


def _parts(rows: Iterable[Row], places: Sequence[int]) -> Iterator[Row]:
    return (tuple(row[place] for place in places) for row in rows)


def _bag(rows: GroupRows) -> frozenset[tuple[Row, int]]:
    return frozenset(Counter(rows).items())


def _is_saturated(counts: Counter[Any]) -> bool:
    """Return True if nothing was seen once alone, so that little is likely to be still unseen.

    Source: the Good-Turing estimate of what was not sampled.
    """
    return 1 not in counts.values()


def _lie_between(others: Iterable[Any], right: Iterable[Any]) -> bool:
    ends = [value for value in right if value is not None]
    try:
        return all(min(ends) < value < max(ends) for value in others)
    except (TypeError, ValueError):
        return False


class _Canon:
    """Gives values that can be counted; doubles that are equal within a tolerance are one value."""

    def __init__(self) -> None:
        self._doubles: list[float] = []

    def by_key(self, rows: Iterable[Row], keys: Sequence[int]) -> Mapping[Row, list[Row]]:
        by_key: dict[Row, list[Row]] = defaultdict(list)
        for row in rows:
            plain = tuple(map(self._plain, row))
            by_key[tuple(plain[place] for place in keys)].append(plain)
        return by_key

    def _plain(self, value: Any) -> Any:
        if isinstance(value, float):
            return self._double(value)
        if isinstance(value, dict):
            return tuple((name, self._plain(part)) for name, part in sorted(value.items()))
        return tuple(map(self._plain, value)) if isinstance(value, list | tuple) else value

    def _double(self, value: float) -> Any:
        if value != value:
            return "NaN"
        place = bisect_left(self._doubles, value)
        for double in self._doubles[max(0, place - 1) : place + 1]:
            if isclose(double, value, rel_tol=DOUBLE_TOLERANCE, abs_tol=ZERO_TOLERANCE):
                return double
        self._doubles.insert(place, value)
        return value
