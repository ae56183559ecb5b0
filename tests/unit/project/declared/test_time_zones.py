from __future__ import annotations

import pytest

from livemart.project.declared import time_zones
from livemart.project.declared.time_zones import zone_mistake, zone_mistakes
from livemart.project.hooks.dbt_hooks import Hooks


# As Spark 4.2.0 takes `spark.sql.session.timeZone` on Java 17 and 25.
@pytest.mark.parametrize(
    "zone",
    [
        *("Europe/Lisbon", "US/Pacific", "CET", "EST", "PST", "UTC", "Z", "GMT0", "SystemV/PST8"),
        *("+1:00", "+01:00", "+0100", "-3", "UTC+1", "GMT+2:30", "UTC+01:00"),
    ],
)
def test_a_zone_that_spark_takes_passes(zone: str) -> None:
    assert zone_mistake(zone) is None


@pytest.mark.parametrize(
    ("zone", "nearest"),
    [
        ("Europe/Lisbonn", "Europe/Lisbon"),
        ("europe/lisbon", "Europe/Lisbon"),
        ("Amerika/New_York", "America/New_York"),
        ("Utc", "UTC"),
    ],
)
def test_an_unknown_zone_is_refused_with_the_nearest_name(zone: str, nearest: str) -> None:
    assert zone_mistake(zone) == f"no time zone {zone}, did you mean {nearest}?"


@pytest.mark.parametrize("zone", ["+25:00", "", " UTC"])
def test_no_region_and_no_offset_is_refused_as_well(zone: str) -> None:
    assert zone_mistake(zone) is not None


def test_a_machine_without_names_of_zones_leaves_it_to_spark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time_zones, "_regions", frozenset)

    assert zone_mistake("Europe/Lisbonn") is None


def test_profile_and_hooks_are_looked_at_all_at_once() -> None:
    parameters = {"spark.sql.session.timeZone": "Europe/Lisbonn", "spark.sql.ansi.enabled": "x"}
    hooks = Hooks(
        on_run_start=("set time zone 'Asia/Tokio';", "set time zone local", "select 1"),
        before={"model.a": ("set spark.sql.session.timezone = UTC", "set time zone 'Paris'")},
    )

    mistakes = zone_mistakes(parameters, hooks.placed())

    assert {mistake.code for mistake in mistakes} == {"SESSION_SETTING_REFUSED"}
    assert [mistake.message.split(":")[0] for mistake in mistakes] == [
        "profiles.yml",
        "on-run-start",
        "pre-hook of model.a",
    ]
    assert "did you mean Asia/Tokyo?" in mistakes[1].message
