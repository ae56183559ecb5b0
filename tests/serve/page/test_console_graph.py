"""The graph of a project is drawn from the left to the right, without boxes upon each other."""

from __future__ import annotations

from itertools import combinations

from livemart.serve.page.console_graph import BOX_HEIGHT, BOX_WIDTH, around, draw_graph
from livemart.state.project_graph import GraphNode

NODES = [
    GraphNode("s.orders", "source", "orders"),
    GraphNode("s.shops", "source", "shops"),
    GraphNode("m.stg", "view", "stg", reads=("s.orders",)),
    GraphNode("m.hours", "table", "hours", reads=("m.stg", "s.shops")),
    GraphNode("m.days", "table", "days", reads=("m.hours", "s.gone")),
    GraphNode("m.alone", "table", "alone"),
    GraphNode("e.page", "exposure", "page", reads=("m.hours",)),
]


def test_a_node_is_right_of_all_that_it_reads_and_upon_none() -> None:
    picture = draw_graph(NODES)

    places = picture.places
    assert set(places) == {node.unique_id for node in NODES}
    for node in NODES:
        for name in node.reads:
            if name in places:
                assert places[name][0] + BOX_WIDTH < places[node.unique_id][0]
    for (x1, y1), (x2, y2) in combinations(places.values(), 2):
        assert x1 != x2 or abs(y1 - y2) >= BOX_HEIGHT
    for x, y in places.values():
        assert 0 <= x <= picture.width - BOX_WIDTH and 0 <= y <= picture.height - BOX_HEIGHT
    # Readers of no model are at the right edge with the rest of the last column.
    assert places["e.page"][0] == max(x for x, _ in places.values())
    assert picture.lines.count("M") == 5


def test_nothing_is_a_picture_of_nothing() -> None:
    assert draw_graph([]).places == {}


def test_around_a_node_is_what_it_reads_and_what_reads_it() -> None:
    def names(unique_id: str) -> list[str]:
        return [node.name for node in around(NODES, unique_id)]

    assert names("m.stg") == ["orders", "stg", "hours", "days", "page"]
    assert names("s.shops") == ["shops", "hours", "days", "page"]
    assert names("m.days") == ["orders", "shops", "stg", "hours", "days"]
    assert names("m.alone") == ["alone"]


def test_a_thousand_models_are_laid_out_at_once() -> None:
    chain = [GraphNode("m.0", "table", "0")]
    chain += [
        GraphNode(f"m.{number}", "table", str(number), reads=(f"m.{number // 3}",))
        for number in range(1, 1000)
    ]

    assert len(draw_graph(chain).places) == 1000
