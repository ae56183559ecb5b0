"""Runs work along a graph: each node as soon as all it depends on is done, several at a time.

Used for the models of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from graphlib import TopologicalSorter
from typing import TypeVar

_Result = TypeVar("_Result")


def in_dependency_order(
    parents: Mapping[str, Set[str]], work: Callable[[str], _Result], threads: int
) -> Iterator[tuple[str, _Result]]:
    """Yield each node with what its work returned, as it ends.

    Of several that are ready, the one that `parents` names first begins first. What depends on a
    node begins after the caller has taken that node's result. The first error cancels what has not
    begun, and is raised when what has begun is over.

    Args:
        parents: by node, those that must be done before; all of them nodes, without a cycle.
        work: done in a thread of its own.
        threads: how many at a time.
    """
    graph = TopologicalSorter(parents)
    graph.prepare()
    # The sorter takes parents in the order of their sets, which differs from process to process.
    place = {node: number for number, node in enumerate(parents)}
    running: dict[Future[_Result], str] = {}
    with ThreadPoolExecutor(threads, thread_name_prefix="refresh") as pool:
        try:
            while graph.is_active():
                for node in sorted(graph.get_ready(), key=place.__getitem__):
                    running[pool.submit(work, node)] = node
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    node = running.pop(future)
                    yield node, future.result()
                    graph.done(node)
        finally:
            for future in running:
                future.cancel()
