"""What all tests share: tiers by folder, the nightly switch and one Hypothesis profile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A mistake of livemart is an error here, and not a slower refresh; processes that tests start, too.
os.environ["LIVEMART_OWN_FAULTS"] = "raise"

IS_NIGHTLY = os.environ.get("LIVEMART_NIGHTLY") == "1"
_TIERS = frozenset({"unit", "integration", "equivalence", "faults", "dbt", "e2e"})

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
    """Mark each test with the tier of its folder; leave the nightly ones out by day."""
    root = Path(__file__).parent
    for item in items:
        tier = item.path.relative_to(root).parts[0] if item.path.is_relative_to(root) else ""
        # dbt's own commands are slow, and dbt reads the folder tests/dbt: so some go by name.
        if tier == "integration" and item.path.name.startswith("test_dbt_"):
            tier = "dbt"
        if tier in _TIERS:
            item.add_marker(tier)
    if not IS_NIGHTLY:
        left_out = [item for item in items if item.get_closest_marker("nightly")]
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def is_nightly() -> bool:
    """True if every count is to be run in full."""
    return IS_NIGHTLY
