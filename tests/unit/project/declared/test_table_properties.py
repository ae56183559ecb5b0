"""Properties that would give a table other rows are refused by name; all others hold."""

from __future__ import annotations

import pytest

from livemart.project.declared.table_properties import (
    property_mistakes,
    session_mistakes,
    why_refused,
)
from livemart.project.hooks.dbt_hooks import NOT_RENDERED, Hooks
from livemart.project.yaml_places import Where

REFUSED = [
    ("delta.enableDeletionVectors", "true"),
    ("delta.enabledeletionvectors", True),
    ("delta.columnMapping.mode", "name"),
    ("delta.columnMapping.mode", "id"),
    ("delta.enableTypeWidening", "TRUE"),
    ("delta.checkpointPolicy", "v2"),
    ("delta.appendOnly", "true"),
    ("delta.setTransactionRetentionDuration", "interval 30 days"),
    ("delta.enableVariantShredding", "true"),
    ("delta.universalFormat.enabledFormats", "iceberg"),
    ("delta.enableIcebergCompatV1", "true"),
    ("delta.enableIcebergCompatV2", "true"),
    ("delta.enableIcebergCompatV3", "true"),
    ("delta.coordinatedCommits.commitCoordinator-preview", "dynamodb"),
    ("delta.feature.deletionVectors", "supported"),
    ("delta.feature.columnMapping", "supported"),
    ("delta.feature.typeWidening", "supported"),
    ("delta.feature.v2Checkpoint", "supported"),
    ("delta.feature.catalogManaged", "supported"),
    ("delta.feature.vacuumProtocolCheck", "supported"),
    ("delta.feature.variantShredding-preview", "supported"),
    ("delta.feature.somethingNew", "supported"),
]
HELD = [
    ("delta.enableDeletionVectors", "false"),
    ("delta.columnMapping.mode", "none"),
    ("delta.checkpointPolicy", "classic"),
    ("delta.appendOnly", False),
    ("delta.enableRowTracking", "true"),
    ("delta.enableInCommitTimestamps", "true"),
    ("delta.enableChangeDataFeed", "false"),
    ("delta.randomizeFilePrefixes", "true"),
    ("delta.dataSkippingNumIndexedCols", "0"),
    ("delta.dataSkippingStatsColumns", "id"),
    ("delta.autoOptimize.optimizeWrite", "true"),
    ("delta.autoOptimize.autoCompact", "true"),
    ("delta.logRetentionDuration", "interval 1 days"),
    ("delta.deletedFileRetentionDuration", "interval 1 days"),
    ("delta.checkpointInterval", "2"),
    ("delta.minReaderVersion", "3"),
    ("delta.minWriterVersion", "7"),
    ("delta.constraints.positive", "id > 0"),
    ("delta.feature.domainMetadata", "supported"),
    ("delta.feature.rowTracking", "supported"),
    ("delta.feature.variantType", "supported"),
    ("owner", "sales"),
]


@pytest.mark.parametrize(("name", "value"), REFUSED)
def test_a_property_that_changes_what_readers_find_is_refused(name: str, value: object) -> None:
    assert why_refused(name, value)


@pytest.mark.parametrize(("name", "value"), HELD)
def test_a_property_that_keeps_the_rows_holds(name: str, value: object) -> None:
    assert why_refused(name, value) is None


def test_each_property_is_told_with_its_place_and_value() -> None:
    where = Where("models/a.yml", "model a", {("tblproperties",): 7})
    properties = {"delta.enableDeletionVectors": True, "owner": "b", "delta.appendOnly": "true"}

    first, second = property_mistakes(properties, where)

    assert first.code == "TABLE_PROPERTY_REFUSED"
    assert first.message.startswith(
        "models/a.yml:7: model a: tblproperties: found delta.enableDeletionVectors: True: deleted "
    )
    assert "delta.appendOnly" in second.message
    assert not property_mistakes(None, where)


def test_what_a_profile_or_a_hook_gives_to_tables_is_refused_as_well() -> None:
    default = "spark.databricks.delta.properties.defaults"
    parameters = {
        f"{default}.enableDeletionVectors": "true",
        f"{default}.checkpointInterval": "5",
        "spark.sql.ansi.enabled": "false",
    }
    hooks = Hooks(
        on_run_start=(f"set {default}.columnMapping.mode = name", f"set {default}.a = b"),
        before={"model.a": ("alter table x set tblproperties (a = 'b')",)},
        after={
            "model.b": (
                "alter table b set tblproperties ('delta.appendOnly' = 'true', "
                "'delta.enableTypeWidening'='true')",
                "alter table b unset tblproperties ('delta.setTransactionRetentionDuration')",
                "select 'tblproperties'",
            )
        },
    )

    places = [error.message.split(": found ") for error in session_mistakes(parameters, hooks)]

    assert [(place.split(": ")[0], found.split(": ")[0]) for place, found in places] == [
        ("profiles.yml", "delta.enableDeletionVectors"),
        ("on-run-start", "delta.columnMapping.mode"),
        ("post-hook of model.b", "delta.appendOnly"),
        ("post-hook of model.b", "delta.enableTypeWidening"),
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "alter table mart.sunset set tblproperties ('delta.appendOnly' = 'true')",
        "alter table b set tblproperties ('note' = 'unset', 'delta.appendOnly' = 'true')",
        "alter table b set tblproperties (`delta`.`appendOnly` = true)",
        "alter table b set tblproperties (delta.`appendOnly` true)",
        "replace table b using delta tblproperties ('delta.appendOnly' = 'true') as select 1 as n",
    ],
)
def test_a_hook_gives_a_property_however_it_writes_that(statement: str) -> None:
    (error,) = session_mistakes({}, Hooks(before={"model.a": (statement,)}))

    assert ": found delta.appendOnly: true: " in error.message


def test_a_hook_that_takes_properties_away_is_not_refused() -> None:
    names = "('delta.appendOnly', 'delta.columnMapping.mode')"
    sent = (
        f"alter table mart.sunset unset tblproperties {names}",
        f"alter table b UNSET\n  TBLPROPERTIES {names}",
        f"alter table b unset tblproperties if exists {names}",
    )

    assert session_mistakes({}, Hooks(before={"model.a": sent})) == []


def test_a_hook_that_only_a_build_can_render_is_read_as_it_is_written() -> None:
    ended = (
        "alter table {{ ref('a') }} set tblproperties ('delta.appendOnly' = 'true')",
        "alter table a set tblproperties ('delta.appendOnly' = '{{ var(\"append\") }}')",
        "{{ a_macro() }}",
    )

    (error,) = session_mistakes({}, Hooks(on_run_end=tuple(f"{NOT_RENDERED} {it}" for it in ended)))

    assert error.message.startswith("on-run-end: alter table {{ ref('a') }} set tblproperties (")
