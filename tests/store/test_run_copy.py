"""The store carries how the runner's newest run goes, beside what is published."""

from __future__ import annotations

from contextlib import closing

import pytest

from livemart.store.connections import open_engine
from livemart.store.reader import StoreReader
from livemart.store.run_copy import read_run_copy, write_run_copy
from tests.store.stores import fill_store, reference_tables


def test_the_newest_copy_is_read_before_and_after_the_store_is_filled(store_url: str) -> None:
    engine = open_engine(store_url, writes=True)
    with closing(StoreReader.open(store_url)) as reader:
        assert reader.run_copy() is None

        write_run_copy(engine, {"command": "build", "failure": None})
        assert reader.run_copy() == {"command": "build", "failure": None}
        # It is no store yet, and filling it leaves the copy.
        assert reader.newest() is None
        fill_store(store_url, reference_tables())
        assert reader.run_copy() == {"command": "build", "failure": None}

        write_run_copy(engine, {"command": "refresh", "failure": {"code": "MODEL_FAILED"}})
        assert reader.run_copy() == {"command": "refresh", "failure": {"code": "MODEL_FAILED"}}
    engine.dispose()


@pytest.mark.parametrize("url", ["sqlite:///none/here.db", "postgresql://127.0.0.1:1/none"])
def test_of_a_store_that_is_away_nothing_is_known(url: str) -> None:
    engine = open_engine(url)

    assert read_run_copy(engine) is None
    engine.dispose()
