"""Executors that cannot do the work of a project are named before they get any."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from livemart.errors import ConfigError
from livemart.spark.executors import require_fit_executors


def session(collect: Callable[[], list[tuple[str, str]]]) -> Any:
    """Return a session of a cluster whose tasks answer so."""
    tasks = SimpleNamespace(mapPartitions=lambda _: SimpleNamespace(collect=collect))
    context = SimpleNamespace(
        master="spark://head:7077", parallelize=lambda *_: tasks, cancelAllJobs=lambda: None
    )
    return SimpleNamespace(sparkContext=context)


def check(warehouse: Path, collect: Callable[[], list[tuple[str, str]]], wait_s: float = 9) -> None:
    (warehouse / "_livemart").mkdir(exist_ok=True)
    try:
        require_fit_executors(session(collect), warehouse, wait_s)
    finally:
        assert list((warehouse / "_livemart").iterdir()) == []


def test_executors_that_answer_nothing_are_fit(tmp_path: Path) -> None:
    check(tmp_path, list)


def test_the_first_executor_is_named_that_is_not(tmp_path: Path) -> None:
    answers = [("b", "it does not see x"), ("a", "it has livemart 0.0"), ("b", "it does not see x")]

    with pytest.raises(ConfigError, match="EXECUTOR_UNFIT: master spark://head:7077: ") as caught:
        check(tmp_path, lambda: answers)

    assert caught.value.message.endswith("executor on a: it has livemart 0.0")


def test_an_executor_without_python_is_unfit(tmp_path: Path) -> None:
    def fail() -> list[tuple[str, str]]:
        raise OSError("error=2, No such file or directory")

    with pytest.raises(ConfigError, match=r"EXECUTOR_UNFIT: .*: Python does not start: .*No such"):
        check(tmp_path, fail)


def test_executors_that_never_come_are_missing(tmp_path: Path) -> None:
    def wait() -> list[tuple[str, str]]:
        time.sleep(1)
        return []

    with pytest.raises(ConfigError, match=r"EXECUTOR_MISSING: .* for 0\.01 s"):
        check(tmp_path, wait, 0.01)
