"""Failures in a row are counted across processes, until other SQL or a success."""

from __future__ import annotations

from pathlib import Path

import pytest

from livemart.state.atomic_files import replace_file
from livemart.state.failures import ModelFailures
from livemart.state.places import StateFolder
from livemart.storage.location import StoragePlace


def test_another_process_goes_on_counting(place: StoragePlace) -> None:
    assert ModelFailures(place).count("model.m.a", "f") == 1
    assert ModelFailures(place).count("model.m.b", "f") == 1
    assert ModelFailures(place).count("model.m.a", "f") == 2


def test_other_sql_and_a_success_begin_anew(place: StoragePlace) -> None:
    failures = ModelFailures(place)
    for unique_id in ("model.m.a", "model.m.b"):
        failures.count(unique_id, "f")

    assert failures.count("model.m.a", "g") == 1
    failures.keep_only({"model.m.b"})
    assert failures.count("model.m.a", "g") == 1
    assert failures.count("model.m.b", "f") == 2


@pytest.mark.parametrize("content", ["", "{", "[]", '{"model.m.a": 3}', '{"model.m.a": []}'])
def test_a_file_that_cannot_be_read_counts_nothing(place: StoragePlace, content: str) -> None:
    replace_file(StateFolder(place).failures, content)

    assert ModelFailures(place).count("model.m.a", "f") == 1


def test_without_a_failure_nothing_is_written(tmp_path: Path) -> None:
    ModelFailures(tmp_path).keep_only(())

    assert list(tmp_path.iterdir()) == []
