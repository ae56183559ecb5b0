from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from livemart.land.upsert.winners import KeyVersions, _ranks, canonical_text, decide

SCHEMA = pa.schema([("key", pa.string()), ("at", pa.int64()), ("text", pa.string())])
Row = tuple[str, int, str]


def test_the_newest_sequence_wins_whatever_arrives_when() -> None:
    outcome = _decide(stored=[("a", 5, "x")], arrived=[("a", 4, "y"), ("b", 1, "z"), ("b", 2, "w")])

    assert (list(outcome.written), list(outcome.removed)) == ([2], [])


def test_nan_is_above_all_numbers_and_null_above_nan() -> None:
    ranks = _ranks(pa.chunked_array([[float("nan"), 0.0, None], [-0.0, float("nan")]]))

    assert ranks.tolist() == [2, 1, 3, 1, 2]


def test_a_delete_wins_at_an_equal_sequence_and_is_remembered() -> None:
    outcome = _decide(stored=[("a", 5, "x")], arrived=[("a", 5, "y"), ("a", 5, "-")], deletes=[1])

    assert (list(outcome.written), list(outcome.deleting), list(outcome.removed)) == ([], [1], [0])


def test_an_older_version_of_a_deleted_key_stays_deleted_and_a_newer_one_returns() -> None:
    remembered = [("a", 5), ("b", 5)]

    outcome = _decide(remembered=remembered, arrived=[("a", 5, "x"), ("b", 6, "y")])

    assert (list(outcome.written), list(outcome.deleting)) == ([1], [])


def test_the_greater_text_wins_a_tie_and_a_repeat_changes_nothing() -> None:
    repeat = _decide(stored=[("a", 5, "m")], arrived=[("a", 5, "m"), ("a", 5, "b")])
    greater = _decide(stored=[("a", 5, "m")], arrived=[("a", 5, "z"), ("a", 5, "n")])

    assert (list(repeat.written), list(repeat.removed)) == ([], [])
    assert (list(greater.written), list(greater.removed)) == ([0], [0])


@pytest.mark.parametrize(
    ("kind", "lesser", "greater"),
    [
        (pa.map_(pa.string(), pa.int64()), [("a", 2), ("b", 1)], [("b", 1), ("a", 2)]),
        (pa.float64(), -0.0, 0.0),
        (pa.list_(pa.float64()), [-0.0], [0.0]),
    ],
)
def test_equal_rows_that_are_not_identical_tie_whichever_arrives_first(
    kind: pa.DataType, lesser: object, greater: object
) -> None:
    schema = pa.schema([("key", pa.string()), ("at", pa.int64()), ("value", kind)])
    one, other = (
        pa.Table.from_pylist([{"key": "a", "at": 5, "value": value}], schema)
        for value in (lesser, greater)
    )
    names, known = tuple(schema.names), one.slice(1).select(["key", "at"])

    def written(stored: pa.Table, arrived: pa.Table) -> list[int]:
        no_delete = np.zeros(1, dtype=bool)
        versions = KeyVersions(("key",), ("at",), names, stored, known, arrived, no_delete)
        return list(decide(versions).written)

    assert (written(one, other), written(other, one)) == ([0], [])
    assert (written(one, one), written(other, other)) == ([], [])


def test_nothing_known_and_nothing_arrived_is_no_change() -> None:
    outcome = _decide()

    assert [len(part) for part in (outcome.written, outcome.deleting, outcome.removed)] == [0, 0, 0]


@pytest.mark.parametrize("seed", range(40))
def test_any_split_and_order_of_arrivals_gives_the_same_rows(seed: int) -> None:
    source = random.Random(seed)
    versions = [
        (
            (source.choice("abc"), source.randrange(4), source.choice(["p", "q", "r"])),
            source.random() < 0.25,
        )
        for _ in range(20)
    ]
    expected = _land([versions])

    shuffled = source.sample(versions, len(versions))
    cuts = sorted(source.sample(range(1, 20), 4))
    pieces = [shuffled[start:end] for start, end in zip([0, *cuts], [*cuts, 20], strict=True)]
    actual = _land([*pieces, shuffled[:5]])

    assert actual == expected


def test_the_canonical_text_leaves_nulls_out_and_sorts_names() -> None:
    actual = canonical_text({"b": 1, "a": [{"d": None, "c": "ü"}], "n": None})

    assert actual == '{"a":[{"c":"ü","d":null}],"b":1}'


def _land(batches: list[list[tuple[Row, bool]]]) -> tuple[list[Row], list[tuple[str, int]]]:
    """A table and its remembered deletes after some batches."""
    stored: list[Row] = []
    remembered: dict[str, int] = {}
    for batch in batches:
        arrived = [row for row, _ in batch]
        deletes = [position for position, (_, is_delete) in enumerate(batch) if is_delete]
        outcome = _decide(stored, list(remembered.items()), arrived, deletes)
        removed = set(outcome.removed.tolist())
        stored = [row for position, row in enumerate(stored) if position not in removed]
        stored += [arrived[position] for position in outcome.written]
        remembered |= {arrived[position][0]: arrived[position][1] for position in outcome.deleting}
    return sorted(stored), sorted(
        (key, at) for key, at in remembered.items() if key not in {row[0] for row in stored}
    )


def _decide(
    stored: list[Row] = [],  # noqa: B006
    remembered: list[tuple[str, int]] = [],  # noqa: B006
    arrived: list[Row] = [],  # noqa: B006
    deletes: list[int] = [],  # noqa: B006
) -> Any:
    mask = np.zeros(len(arrived), dtype=bool)
    mask[deletes] = True
    return decide(
        KeyVersions(
            ("key",),
            ("at",),
            ("key", "at", "text"),
            _table(stored),
            _table([(*row, "") for row in remembered]).select(["key", "at"]),
            _table(arrived),
            mask,
        )
    )


def _table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
