from __future__ import annotations

import pytest

from livemart.errors import RefreshError
from livemart.project.dbt_failures import refuse_failures
from livemart.project.graph import Project
from livemart.project.node_results import NodeResult, NodeStatus
from tests.models import make_model

TOTALS = make_model("model.m.totals")
PROJECT = Project("m", ".", "m", {}, {TOTALS.unique_id: TOTALS}, {}, {})


def _result(status: NodeStatus, message: str = "") -> dict[str, NodeResult]:
    result = NodeResult(TOTALS.unique_id, "totals", "model", status, message, 1, None)
    return {TOTALS.unique_id: result}


@pytest.mark.parametrize("status", ["success", "warn", "skipped"])
def test_only_an_error_stops(status: NodeStatus) -> None:
    refuse_failures(PROJECT, _result(status))


def test_a_better_word_than_dbts_is_taken() -> None:
    with pytest.raises(RefreshError, match=r"models/totals\.sql: line 3: no such column"):
        refuse_failures(
            PROJECT, _result("error", "create or replace table"), lambda _: "line 3: no such column"
        )


def test_the_message_is_the_databases_without_its_query_plan() -> None:
    message = "cannot resolve `amuont`\nline 3\n'Project ['amuont]\n+- Relation orders\n"

    with pytest.raises(RefreshError) as caught:
        refuse_failures(PROJECT, _result("error", message))

    assert caught.value.code == "MODEL_FAILED"
    assert caught.value.message == "models/totals.sql: cannot resolve `amuont`\nline 3"
