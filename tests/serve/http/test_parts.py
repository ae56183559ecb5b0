"""A part of the server is found by its type, and nothing else passes for it."""

from __future__ import annotations

import pytest

from livemart.serve.auth.attempts import Attempts
from livemart.serve.http.measurements import Measurements
from livemart.serve.http.parts import part_of
from tests.serve.http.requests import request_of


def test_each_request_finds_the_parts_of_its_own_server() -> None:
    here, there = Measurements(), Measurements()

    assert part_of(request_of(parts={Measurements: here}), Measurements) is here
    assert part_of(request_of(parts={Measurements: there}), Measurements) is there


def test_a_part_that_a_server_does_not_have_is_a_fault_and_no_other_part() -> None:
    with pytest.raises(KeyError):
        part_of(request_of(), Measurements)
    with pytest.raises(AssertionError):
        part_of(request_of(parts={Measurements: Attempts()}), Measurements)
