"""Shared by all tests: tiers, kinds by folder, one Spark session and one Hypothesis profile."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.skipped import keep_skips

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.shared_spark import SharedSpark

# A mistake of livemart is an error here, and not a slower refresh; processes that tests start, too.
os.environ["LIVEMART_OWN_FAULTS"] = "raise"
# Every JVM of the tests ends within minutes: the first compiler, and the archive that set-up made.
os.environ.setdefault("LIVEMART_JVM_OPTIONS", "short")

# Which tests run: the gate, everything that is certain, or what is random and long as well.
TIER = os.environ.get("LIVEMART_TESTS", "gate")
IS_NIGHTLY = TIER == "nightly"
IS_GATE = TIER == "gate"
# A test that takes longer hangs.
_LONGEST_S = 300
_LEFT_OUT = {"gate": {"extended", "nightly"}, "all": {"nightly"}, "nightly": set[str]()}
if TIER not in _LEFT_OUT:
    raise pytest.UsageError(f"LIVEMART_TESTS: found {TIER}; use one of {', '.join(_LEFT_OUT)}")
_KINDS = frozenset(
    {
        "unit",
        "serve",
        "attacks",
        "store",
        "publish",
        "e2e",
        "integration",
        "equivalence",
        "faults",
        "dbt",
    }
)

# By day the same examples each time, at night new ones; a failing one prints how to repeat it.
# No deadline and no health check of time: a machine under load is not a wrong result.
settings.register_profile(
    "livemart",
    derandomize=not IS_NIGHTLY,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("livemart")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test with its folder; leave out those of longer tiers, unless a test is named."""
    root = Path(__file__).parent
    cases = Counter[str]()
    passed_over = set[pytest.Item]()
    for item in items:
        if IS_GATE and (every := item.get_closest_marker("gate_takes_every")) is not None:
            test = item.nodeid.partition("[")[0]
            if cases[test] % every.args[0]:
                passed_over.add(item)
            cases[test] += 1
        if item.path.is_relative_to(root):
            kind = item.path.relative_to(root).parts[0]
            if kind in _KINDS:
                item.add_marker(kind)
            limit = item.get_closest_marker("timeout")
            is_left_out = any(map(item.get_closest_marker, _LEFT_OUT["gate"]))
            if limit and limit.args[0] > _LONGEST_S and not is_left_out:
                raise pytest.UsageError(f"{item.nodeid}: a test of the gate ends in {_LONGEST_S} s")
    # The longest are those that wait for processes: first, or a worker would be alone at the end.
    items.sort(key=lambda item: item.get_closest_marker("processes") is None)
    if os.environ.get("LIVEMART_TESTS_REVERSED"):
        items.reverse()
    if any("::" in argument for argument in config.args):
        return
    kept, left_out = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        is_left_out = item in passed_over or any(map(item.get_closest_marker, _LEFT_OUT[TIER]))
        (left_out if is_left_out else kept).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    keep_skips(config, terminalreporter.stats.get("skipped", ()))


@pytest.fixture(scope="session", autouse=True)
def _nothing_waits_for_the_disk() -> Iterator[None]:
    """Let each write end before it is on the disk: no test cuts the power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session")
def shared_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedSpark]:
    from tests.shared_spark import SharedSpark

    shared = SharedSpark(tmp_path_factory.mktemp("catalog"))
    yield shared
    shared.session.stop()


@pytest.fixture
def spark(shared_spark: SharedSpark) -> SparkSession:
    """The session of all tests, as it was when it had just started."""
    return shared_spark.emptied()
