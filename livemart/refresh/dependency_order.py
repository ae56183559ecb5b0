"""Runs work along a graph: each node once all its parents are done, several at a time.

Used for the models of a batch, along their inputs. All others would wait in the end for a chain of
dear nodes that begins last. So the node with the longest way ahead begins first (list scheduling by
the critical path: Graham 1969).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Set
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from graphlib import TopologicalSorter
from types import MappingProxyType
from typing import TypeVar

_Result = TypeVar("_Result")
_NO_COSTS: Mapping[str, float] = MappingProxyType({})


def in_dependency_order(
    parents: Mapping[str, Set[str]],
    work: Callable[[str], _Result],
    threads: int,
    costs: Mapping[str, float] = _NO_COSTS,
) -> Iterator[tuple[str, _Result]]:
    """Yield each node with the result of its work, as it ends.

    Among several ready nodes, the one with the most work behind it begins first, one after the
    other; among equal ones the first in `parents`. The nodes that depend on a node begin after the
    caller has taken that node's result. The first error cancels the nodes that have not begun, and
    is raised when the running ones are over.

    Args:
        parents: by node, those that must be done before; all of them nodes, without a cycle.
        work: done in a separate thread for each node.
        threads: how many at a time.
        costs: by node, how long its work may take; 0 if it is not there.
    """
    left = _left_after(parents, costs)
    graph = TopologicalSorter(parents)
    graph.prepare()
    # The sorter takes parents in the order of their sets, which differs from process to process.
    place = {node: number for number, node in enumerate(parents)}
    ready: list[tuple[float, int, str]] = []
    running: dict[Future[_Result], str] = {}
    with ThreadPoolExecutor(threads, thread_name_prefix="refresh") as pool:
        while graph.is_active():
            for node in graph.get_ready():
                heapq.heappush(ready, (-left[node], place[node], node))
            while ready and len(running) < threads:
                node = heapq.heappop(ready)[-1]
                running[pool.submit(work, node)] = node
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                node = running.pop(future)
                yield node, future.result()
                graph.done(node)


def _left_after(parents: Mapping[str, Set[str]], costs: Mapping[str, float]) -> dict[str, float]:
    """Return, for each node, the cost of the dearest chain that begins with it."""
    left = dict.fromkeys(parents, 0.0)
    for node in reversed(list(TopologicalSorter(parents).static_order())):
        left[node] += costs.get(node, 0)
        for parent in parents[node]:
            left[parent] = max(left[parent], left[node])
    return left
