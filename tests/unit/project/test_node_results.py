from __future__ import annotations

from types import SimpleNamespace

import pytest

from livemart.project.node_results import NodeProgress, NodeResult, node_progress, node_result


@pytest.mark.parametrize(
    ("word", "expected"),
    [("success", "success"), ("pass", "success"), ("warn", "warn"), ("skipped", "skipped")],
)
def test_a_result_has_one_word_for_models_and_tests(word: str, expected: str) -> None:
    node = SimpleNamespace(unique_id="model.m.totals", name="totals", resource_type="model")
    result = SimpleNamespace(
        node=node, status=word, message=None, execution_time=0.25, failures=None
    )

    actual = node_result(result)

    assert actual == NodeResult("model.m.totals", "totals", "model", expected, "", 250, None)  # type: ignore[arg-type]


def _event(name: str, status: str) -> SimpleNamespace:
    node_info = SimpleNamespace(unique_id="model.m.totals", node_status=status)
    data = SimpleNamespace(node_info=node_info)
    return SimpleNamespace(info=SimpleNamespace(name=name), data=data)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (_event("NodeStart", "started"), NodeProgress("model.m.totals", None)),
        (_event("NodeFinished", "no-op"), NodeProgress("model.m.totals", "success")),
        (_event("NodeFinished", "a word of tomorrow"), NodeProgress("model.m.totals", "error")),
        (_event("LogLine", "success"), None),
    ],
)
def test_events_tell_when_a_node_begins_and_how_it_ends(
    event: SimpleNamespace, expected: NodeProgress | None
) -> None:
    assert node_progress(event) == expected
