from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from livemart.project.cursors import Connection, NoCursor
from livemart.project.dbt_attachment import SPARK_MACROS, attached, is_attached
from livemart.project.questions import QuestionLog
from livemart.project.run_values import CANONICAL


def test_dbt_spark_opens_our_connection_only_as_long_as_it_is_attached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dbt.adapters.factory import FACTORY
    from dbt.adapters.spark import session

    monkeypatch.setenv("LIVEMART_WAREHOUSE", "another")
    theirs = session.Connection
    ours: Any = Connection(lambda parameters: NoCursor())

    with attached(ours, tmp_path, QuestionLog(CANONICAL)):
        assert session.Connection is ours
        assert is_attached()
        assert os.environ["LIVEMART_WAREHOUSE"] == str(tmp_path)
        assert FACTORY.packages["livemart_spark"] == SPARK_MACROS

    assert session.Connection is theirs
    assert os.environ["LIVEMART_WAREHOUSE"] == "another"
