"""Lays out the graph of a project: columns from sources to exposures, and lines between boxes.

Used by the console. The picture has the size in pixels that it is drawn in: text keeps its size.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from livemart.state.project_graph import GraphNode

BOX_WIDTH, BOX_HEIGHT = 248, 74
_GAP_ACROSS, _GAP_DOWN = 56, 14
_MARGIN = 4
# Each box moves to the middle of its neighbors, forth and back.
_SWEEPS = 4


@dataclass(frozen=True, slots=True)
class GraphPicture:
    """A picture of a graph: its size, the corner of each box by unique id, and a path of lines."""

    width: int
    height: int
    places: Mapping[str, tuple[int, int]]
    lines: str


def draw_graph(nodes: Sequence[GraphNode]) -> GraphPicture:
    """Return the picture of nodes, each behind those that it reads; others are left out."""
    columns = _columns(nodes)
    most = max((len(column) for column in columns), default=0)
    height = most * (BOX_HEIGHT + _GAP_DOWN) - _GAP_DOWN
    places: dict[str, tuple[int, int]] = {}
    for number, column in enumerate(columns):
        spare = height - (len(column) * (BOX_HEIGHT + _GAP_DOWN) - _GAP_DOWN)
        for row, name in enumerate(column):
            places[name] = (
                _MARGIN + number * (BOX_WIDTH + _GAP_ACROSS),
                _MARGIN + spare // 2 + row * (BOX_HEIGHT + _GAP_DOWN),
            )
    width = max(len(columns) * (BOX_WIDTH + _GAP_ACROSS) - _GAP_ACROSS, 0)
    lines = "".join(
        _line(places[name], places[node.unique_id])
        for node in nodes
        for name in node.reads
        if name in places
    )
    return GraphPicture(width + 2 * _MARGIN, max(height, 0) + 2 * _MARGIN, places, lines)


def around(nodes: Sequence[GraphNode], unique_id: str) -> list[GraphNode]:
    """Return a node with all that it reads and all that reads it, directly or through others."""
    by_id = {node.unique_id: node for node in nodes}
    above: set[str] = set()
    stack = [unique_id]
    while stack:
        for name in by_id[stack.pop()].reads:
            if name in by_id and name not in above:
                above.add(name)
                stack.append(name)
    below = {unique_id}
    # Each node comes behind those that it reads.
    for node in nodes:
        if not below.isdisjoint(node.reads):
            below.add(node.unique_id)
    return [node for node in nodes if node.unique_id in above | below]


def _columns(nodes: Sequence[GraphNode]) -> list[list[str]]:
    """Return the unique ids of each column, from the top: as far right as its inputs allow."""
    depths: dict[str, int] = {}
    for node in nodes:
        depths[node.unique_id] = 1 + max((depths.get(it, -1) for it in node.reads), default=-1)
    last = max(depths.values(), default=-1)
    for node in nodes:
        if node.kind == "exposure":
            depths[node.unique_id] = last
    columns: list[list[str]] = [[] for _ in range(last + 1)]
    for name, depth in depths.items():
        columns[depth].append(name)
    readers: dict[str, list[str]] = {}
    for node in nodes:
        for name in node.reads:
            readers.setdefault(name, []).append(node.unique_id)
    reads = {node.unique_id: node.reads for node in nodes}
    for sweep in range(_SWEEPS):
        is_forth = sweep % 2 == 0
        for column in columns if is_forth else reversed(columns):
            heights = {name: row for it in columns for row, name in enumerate(it)}
            neighbors = reads if is_forth else readers
            column.sort(key=lambda name: _middle(name, neighbors.get(name, ()), heights))
    return columns


def _middle(name: str, neighbors: Collection[str], heights: Mapping[str, int]) -> float:
    rows = [heights[it] for it in neighbors if it in heights]
    return sum(rows) / len(rows) if rows else float(heights[name])


def _line(start: tuple[int, int], end: tuple[int, int]) -> str:
    x1, y1 = start[0] + BOX_WIDTH, start[1] + BOX_HEIGHT // 2
    x2, y2 = end[0], end[1] + BOX_HEIGHT // 2
    half = (x2 - x1) // 2
    return f"M{x1} {y1}C{x1 + half} {y1} {x2 - half} {y2} {x2} {y2}"
