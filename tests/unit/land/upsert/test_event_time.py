"""A key keeps the event time that is stored, or that of its lowest sequence, in whatever order."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest

from livemart.land.upsert.event_time import find_moved, moved_detail
from tests.deliveries import source

ORDERS = source(
    "orders",
    {"id": "string", "ordered_at": "timestamp", "updated_at": "timestamp"},
    keys=("id",),
    event_time_is_fixed=True,
)
# Key, event time, sequence, whether it deletes, whether it moves its key's time.
ROWS = [
    # The stored row stays, although its sequence is the highest.
    ("stored", 1, 5, False, True),
    ("stored", 2, 6, False, False),
    ("stored", None, 7, True, False),
    ("new", 4, 2, False, True),
    ("new", 3, 1, False, False),
    ("new", None, 3, False, True),
    ("tie", 8, 1, False, True),
    ("tie", 7, 1, False, False),
    ("gone", 9, 0, True, False),
    ("gone", 6, 1, False, False),
]
STORED = pa.table({"id": ["stored"], "ordered_at": [2], "updated_at": [9]})


@pytest.mark.parametrize("order", [*permutations(range(3)), *permutations(range(3, 6))])
def test_the_order_of_arrival_decides_nothing(order: tuple[int, ...]) -> None:
    rows = [*(ROWS[place] for place in order), *ROWS]
    arrived = pa.table(
        {
            "id": [row[0] for row in rows],
            "ordered_at": [row[1] for row in rows],
            "updated_at": [row[2] for row in rows],
        }
    )

    moved = find_moved(
        ORDERS.row_rules, "ordered_at", STORED, arrived, np.array([row[3] for row in rows])
    )

    assert moved.tolist() == [row[4] for row in rows]


def test_a_dead_letter_names_the_column() -> None:
    assert moved_detail(ORDERS).startswith("ordered_at differs from the key's")
