"""An origin is text that tells place and number apart, whatever the place is called."""

from __future__ import annotations

import pyarrow as pa

from livemart.land.records.origin import (
    Origin,
    Place,
    highest_numbers,
    in_arrival_order,
    read_origin,
)


def test_numbers_are_ordered_as_numbers() -> None:
    origins = pa.chunked_array([["b:2", "a:10", "a:9"], ["a:b\n:1"]])

    order = in_arrival_order(origins)

    assert origins.take(order).to_pylist() == ["a:9", "a:10", "a:b\n:1", "b:2"]


def test_the_highest_number_of_each_place_is_told() -> None:
    origins = pa.chunked_array([["x@1.json:9", "x@1.json:10", "orders/0@7"], ["orders/0@11", None]])

    highest = highest_numbers(origins)

    assert highest == {Place("x@1.json"): 10, Place("orders/0", "@"): 11}
    assert highest_numbers(pa.chunked_array([], pa.string())) == {}


def test_an_origin_is_read_as_it_was_written() -> None:
    place = Place("orders/0", "@")

    origins = [read_origin(text) for text in place.origins([3, 40]).to_pylist()]

    assert origins == [Origin(place, 3), Origin(place, 40)]
