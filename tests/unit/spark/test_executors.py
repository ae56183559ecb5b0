"""Executors that cannot do the work of a project are named before they get any."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from livemart.errors import ConfigError
from livemart.spark.executors import require_fit_executors
from tests.waits import PATIENCE_S

Look = Callable[[Iterable[int]], Iterable[tuple[str, str]]]


def check(
    warehouse: Path,
    collect: Callable[[Look], list[tuple[str, str]]],
    wait_s: float = 9,
    cancel: Callable[[], None] = lambda: pytest.fail("a job was cancelled"),
) -> None:
    """Check the executors of a cluster whose tasks answer so."""
    tasks = SimpleNamespace(
        mapPartitions=lambda look: SimpleNamespace(collect=lambda: collect(look))
    )
    context = SimpleNamespace(
        master="spark://head:7077",
        defaultParallelism=2,
        parallelize=lambda *_: tasks,
        cancelAllJobs=cancel,
    )
    spark: Any = SimpleNamespace(sparkContext=context)
    (warehouse / "_livemart").mkdir(exist_ok=True)
    try:
        require_fit_executors(spark, warehouse, wait_s)
    finally:
        assert list((warehouse / "_livemart").iterdir()) == []


def test_executors_that_see_the_warehouse_are_fit(tmp_path: Path) -> None:
    check(tmp_path, lambda look: list(look(())))


def test_an_executor_that_sees_another_folder_is_unfit(tmp_path: Path) -> None:
    def look_elsewhere(look: Look) -> list[tuple[str, str]]:
        (probe,) = (tmp_path / "_livemart").iterdir()
        probe.unlink()
        return list(look(()))

    with pytest.raises(ConfigError, match=r"it does not see .*/_livemart as this machine does"):
        check(tmp_path, look_elsewhere)


def test_the_first_executor_is_named_that_is_not(tmp_path: Path) -> None:
    answers = [("b", "it does not see x"), ("a", "it has livemart 0.0"), ("b", "it does not see x")]

    with pytest.raises(ConfigError, match="EXECUTOR_UNFIT: master spark://head:7077: ") as caught:
        check(tmp_path, lambda _: answers)

    assert caught.value.message.endswith("executor on a: it has livemart 0.0")


def test_an_executor_without_python_is_unfit(tmp_path: Path) -> None:
    def fail(_: Look) -> list[tuple[str, str]]:
        raise OSError("error=2, No such file or directory")

    with pytest.raises(ConfigError, match=r"EXECUTOR_UNFIT: .*: its first task failed: .*No such"):
        check(tmp_path, fail)


def test_executors_that_never_come_are_missing(tmp_path: Path) -> None:
    cancelled = Event()

    def wait(_: Look) -> list[tuple[str, str]]:
        cancelled.wait(PATIENCE_S)
        return []

    with pytest.raises(ConfigError, match=r"EXECUTOR_MISSING: .* for 0\.01 s"):
        check(tmp_path, wait, 0.01, cancelled.set)

    assert cancelled.is_set()
