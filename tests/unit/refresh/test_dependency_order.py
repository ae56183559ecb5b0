from __future__ import annotations

import threading

import pytest

from livemart.refresh.dependency_order import in_dependency_order
from tests.waits import PATIENCE_S

DIAMOND = {"bottom": {"left", "right"}, "left": {"top"}, "right": {"top"}, "top": set[str]()}


def test_a_node_begins_when_all_it_depends_on_was_taken() -> None:
    taken: list[str] = []
    seen: dict[str, set[str]] = {}

    def work(node: str) -> str:
        seen[node] = set(taken)
        return node.upper()

    for node, result in in_dependency_order(DIAMOND, work, 4):
        assert result == node.upper()
        taken.append(node)

    assert taken[0] == "top"
    assert taken[-1] == "bottom"
    assert all(DIAMOND[node] <= seen[node] for node in DIAMOND)


def test_nodes_without_an_order_run_beside_each_other() -> None:
    meeting = threading.Barrier(2, timeout=PATIENCE_S)

    ended = dict(in_dependency_order({"a": set(), "b": set()}, lambda _: meeting.wait(), 2))

    assert sorted(ended.values()) == [0, 1]


def test_an_error_ends_it_and_nothing_behind_it_begins() -> None:
    begun: list[str] = []

    def work(node: str) -> None:
        begun.append(node)
        if node == "left":
            raise ValueError(node)

    with pytest.raises(ValueError, match="left"):
        list(in_dependency_order(DIAMOND, work, 1))

    assert "bottom" not in begun


def test_an_empty_graph_is_done() -> None:
    assert list(in_dependency_order({}, str, 1)) == []


def test_of_nodes_that_are_ready_the_first_named_begins_first() -> None:
    names = [f"model {number}" for number in (7, 3, 9, 1, 5)]
    parents: dict[str, set[str]] = {name: set() for name in names}
    parents = {"last": set(names)} | parents
    begun: list[str] = []

    list(in_dependency_order(parents, begun.append, 1))

    assert begun == [*names, "last"]


def test_of_nodes_that_are_ready_the_longest_way_begins_first() -> None:
    parents = {"short": set[str](), "first": set[str](), "last": {"first"}, "long": set[str]()}
    begun: list[str] = []

    costs = {"short": 1, "first": 2, "last": 4, "long": 5}
    list(in_dependency_order(parents, begun.append, 1, costs))

    assert begun == ["first", "long", "last", "short"]
