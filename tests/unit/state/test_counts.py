"""Counts add up."""

from __future__ import annotations

from livemart.state.counts import Counts, TableCounts


def test_counts_of_two_batches_add_up() -> None:
    assert Counts(5, 3, 1, 1) + Counts(2, 1, 1, 0) == Counts(7, 4, 2, 1)


def test_a_table_keeps_its_id_beside_the_counts() -> None:
    counts = TableCounts(1, 1, 0, 0, "id")

    assert (counts.produced, counts.table_id) == (1, "id")
