"""Every statement of docs/dbt.md about dbt has a test that would fail if it were false."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

_REFUSED = (
    "unit/project/declared/table_properties::a_property_that_changes_what_readers_find_is_refused",
)
_HELD = (
    "unit/project/declared/table_properties::a_property_that_keeps_the_rows_holds",
    "integration/table_features::models_with_properties_that_hold_have_the_rows_of_a_build",
)
_OF_OTHERS = (
    "integration/table_features::sources_of_others_are_read_rightly_whatever_features_they_have",
)
# By the first words of a bullet or a row, `folder/file::test` below tests/, without `test_`.
_FUNCTIONS = (
    "integration/run/functions::functions_are_there_in_each_process_and_a_new_body_makes_new_rows"
)
TESTS: dict[str, tuple[str, ...]] = {
    "free": ("unit/spark/terminal::a_free_warehouse_is_held_until_dbt_ends",),
    "held by a `stream`": (
        "integration/spark/dbt_terminal::a_dbt_build_beside_the_stream_succeeds_and_never_stops_it",
        "unit/spark/terminal::the_next_dbt_joins_the_stream_that_has_begun_meanwhile",
        "unit/state/lock::the_token_is_readable_by_its_owner_only",
    ),
    "held by anything else": (
        "integration/spark/dbt_terminal::beside_a_runner_that_nobody_can_join_dbt_is_refused",
        "integration/spark/dbt_terminal::a_command_that_asks_nothing_takes_no_lock",
    ),
    "tables, views, ephemeral": (
        "unit/project/dbt::an_incremental_model_is_compiled_as_for_a_full_refresh",
        "unit/project/dbt::an_ephemeral_model_is_compiled_by_itself_and_into_its_users",
        "integration/run/dbt_features::a_model_of_microbatches_is_its_select_over_all_rows",
    ),
    "seeds": ("integration/run/pipeline::another_seed_is_loaded_and_its_readers_follow",),
    "data tests": (
        "unit/project/dbt::a_test_says_what_it_is_attached_to_and_when_it_fails",
        "integration/run/pipeline::a_failed_test_holds_the_snapshot_until_the_data_is_right_again",
        "integration/run/pipeline::a_failing_test_of_severity_warn_is_recorded_only",
    ),
    "`vars`, `env_var`": (
        "unit/project/dbt::vars_change_the_compiled_code",
        "unit/project/dbt::the_environment_and_the_target_change_the_compiled_code",
        "integration/run/pipeline::a_new_model_is_built_and_a_removed_one_leaves_the_log",
    ),
    "`partition_by`": (
        "unit/project/dbt::policies_partitions_and_contracts_are_read",
        "unit/project/manifest::every_table_is_delta_and_a_partition_of_bigquery_is_none",
    ),
    "an enforced contract": (
        "integration/run/dbt_features::a_model_that_breaks_its_contract_is_refused_as_dbt_refuses_it",
        "unit/refresh/full::each_column_that_differs_is_named",
    ),
    "exposures": ("unit/project/dbt::exposures_are_read",),
    "hooks that define": ("unit/project/session_spec::the_list_of_what_defines_is_closed",),
    "hooks that act": (
        "integration/run/dbt_features::hooks_that_act_run_where_dbt_runs_the_node",
        "unit/run/dbt_builds::"
        "hooks_of_on_run_end_run_after_the_tests_and_one_that_fails_fails_the_build",
        "unit/inspect/plan_report::"
        "what_defines_the_session_and_what_only_a_build_does_are_told_once",
    ),
    "`persist_docs`": (
        "integration/run/dbt_features::what_a_build_sets_stays_and_what_it_makes_by_itself_is_read",
    ),
    "dbt snapshots": (
        "integration/run/dbt_features::a_dbt_snapshot_is_made_when_it_is_new_and_then_left_to_dbt",
        "unit/refresh/models::a_dbt_snapshot_is_taken_over_as_dbt_leaves_it",
    ),
    "custom materializations": (
        "integration/run/dbt_features::what_a_build_sets_stays_and_what_it_makes_by_itself_is_read",
    ),
    "`full_refresh: false`": (
        "unit/project/questions::a_model_is_told_that_its_own_table_is_absent",
    ),
    "files of Spark up to 3.0": (
        "unit/delta/table_schema::days_of_the_calendar_of_spark_2_are_left_to_spark",
    ),
    "columns of type `char(n)`": (
        "unit/delta/features::texts_that_spark_compares_with_their_blanks_are_its_own",
    ),
    "columns with a collation": (
        "unit/delta/features::texts_that_spark_compares_by_a_collation_are_its_own",
    ),
    "a shallow clone": ("unit/delta/version::files_of_another_table_are_read_by_spark_alone",),
    "`delta.enableDeletionVectors`": (
        *_REFUSED,
        *_OF_OTHERS,
        "integration/table_features::a_property_set_from_outside_brings_no_deleted_row_back",
    ),
    "`delta.columnMapping.mode`": (
        *_REFUSED,
        *_OF_OTHERS,
        "unit/delta/features::mapped_columns_are_refused_and_not_read_as_nothing",
    ),
    "`delta.enableTypeWidening`": (*_REFUSED, *_OF_OTHERS),
    "`delta.checkpointPolicy`": (*_REFUSED, *_OF_OTHERS),
    "`delta.appendOnly`": _REFUSED,
    "`delta.setTransactionRetentionDuration`": _REFUSED,
    "`delta.coordinatedCommits": _REFUSED,
    "`delta.feature.*`": (*_REFUSED, "unit/delta/features::a_feature_that_changes_files_is_named"),
    "`delta.enableRowTracking`": (*_HELD, *_OF_OTHERS),
    "CHECK constraints": (*_HELD, *_OF_OTHERS),
    "`delta.enableChangeDataFeed`": _HELD,
    "`delta.logRetentionDuration`": _HELD,
    "`delta.checkpointInterval`": _HELD,
    "An edit that cannot": (
        "integration/run/stream::a_stream_follows_an_edit_of_its_project",
        "unit/observe/progress::an_edit_that_is_refused_is_told_in_red",
    ),
    "While that is so": (
        "integration/run/stream::"
        "a_table_built_beside_the_stream_is_not_put_back_while_an_edit_is_refused",
    ),
    "`livemart.yml`, flags": (
        "unit/run/input_files::what_the_analyst_writes_is_looked_at_and_nothing_else",
    ),
    "`as_of()`": ("unit/project/clock_macros::a_project_that_declares_no_clock_has_livemarts",),
    "`window_start": ("unit/project/clock_macros::a_project_that_declares_no_clock_has_livemarts",),
    "`is_final": ("unit/project/clock_macros::a_model_asks_whether_its_windows_are_final",),
    "`watermark": ("unit/project/clock_macros::a_watermark_that_no_source_can_give_is_told",),
    "`pane_start": ("unit/project/clock_macros::the_pane_is_the_projects_variable",),
    "Every table is Delta": (
        "unit/project/dbt::livemarts_macros_come_before_dbt_sparks_and_after_the_projects",
    ),
    "Tables and seeds are replaced": (
        "integration/run/dbt_builds::"
        "a_foreign_project_builds_again_after_a_restart_and_keeps_its_history",
    ),
    "Seeds keep": ("integration/run/dbt_builds::seeds_keep_text_numbers_times_and_nulls",),
    "`server_side_parameters`": (
        "unit/project/session_spec::the_profile_beats_what_a_hook_sets",
        "integration/run/sessions::days_and_windows_are_those_of_the_time_zone_of_the_profile",
    ),
    "statements of `on-run-start`": (
        "unit/project/hooks/dbt_hooks::the_hooks_of_a_project_give_its_models_their_sessions",
    ),
    "statements of a `pre-hook`": (
        "unit/project/node_sessions::what_is_set_up_above_a_model_holds_for_it_and_for_no_other",
    ),
    "statements of a `post-hook`": (
        "unit/project/node_sessions::what_is_set_up_above_a_model_holds_for_it_and_for_no_other",
    ),
    "A setting is part": (
        "integration/run/sessions::a_setting_of_a_hook_is_part_of_what_a_model_is",
        "unit/project/session_spec::what_cannot_change_a_row",
    ),
    "A temporary view": ("unit/project/session_spec::what_a_text_does_not_name_is_left_out",),
    "A view has the session": (
        "unit/plan/project_plans::a_view_is_read_as_sql_only_where_it_means_the_same",
    ),
    "With another time zone": (
        "integration/run/sessions::days_and_windows_are_those_of_the_time_zone_of_the_profile",
        "unit/arrow/time_zone::a_frame_of_days_is_not_as_long_each_time",
    ),
    "A model that [groups by maps": (
        "unit/project/node_sessions::what_groups_by_maps_with_numbers_is_interpreted_in_builds_and_refreshes",
        "integration/true_rows::groups_by_a_map_keep_its_null_values",
    ),
    "A setting that may change": ("unit/project/session_spec::what_may_change_how_sql_is_read",),
    "The statement is part": (
        "unit/project/hooks/dbt_hooks::the_functions_of_a_project_are_part_of_what_names_them",
        _FUNCTIONS,
    ),
    "A model that calls one": (_FUNCTIONS,),
    "`create function` and": (
        "unit/project/session_spec::a_function_that_exists_is_made_all_the_same",
        _FUNCTIONS,
    ),
    "All sessions share": (_FUNCTIONS,),
    "Statements of a model that is *not*": (
        "unit/project/node_sessions::what_is_set_up_above_a_model_holds_for_it_and_for_no_other",
    ),
    "dbt-spark itself sets": (
        "unit/spark/session::the_settings_that_results_depend_on_are_pinned",
    ),
    "`is_incremental()` is false": (
        "unit/project/questions::a_model_is_told_that_its_own_table_is_absent",
    ),
    "A refresh goes on with": (
        "integration/run/batch_questions::"
        "a_model_is_compiled_again_when_the_warehouse_answers_otherwise",
    ),
    "In a refresh, the stream": (
        "integration/run/batch_questions::"
        "a_new_column_of_a_pivot_is_served_in_the_micro_batch_of_its_first_row",
        "unit/refresh/frontier::other_sql_of_a_model_that_asks_the_warehouse_has_its_own_reason",
    ),
    "The rows of a question": (
        "unit/project/questions::rows_that_spark_gives_in_any_order_have_one",
    ),
    "A model that dbt cannot": (
        "integration/run/batch_questions::a_model_that_cannot_be_compiled_costs_itself_alone",
    ),
    "Views, ephemeral models": (
        "integration/run/batch_questions::every_question_is_answered_as_in_a_build",
        "integration/run/dbt_features::"
        "verify_compiles_on_the_tables_and_in_the_run_of_the_snapshot",
        "unit/inspect/plan_report::what_a_model_asks_and_what_stamps_its_rows_is_told",
    ),
    "`manifest.json`": ("unit/project/dbt::the_manifest_is_written_beside_what_dbt_keeps",),
    "`run_results.json`": (
        "unit/run/artifacts/run_results::a_refresh_is_read_by_dbt_as_a_run",
        "unit/run/artifacts/run_results::a_build_tells_of_its_views_and_hooks_too",
        "unit/run/artifacts/run_results::a_refresh_that_failed_leaves_no_success_of_before",
        "integration/run/pipeline::a_build_and_a_refresh_leave_artifacts_that_dbt_reads",
    ),
    "`sources.json`": (
        "unit/run/artifacts/source_freshness::sources_are_as_fresh_as_their_newest_landing",
    ),
    "A data test whose macros write": (
        "integration/run/filled_tables::"
        "hooks_of_on_run_end_see_models_and_tests_and_samples_write_nothing",
        "unit/check/checks::a_test_that_dbt_cannot_compile_is_an_error_whatever_it_was_before",
    ),
    "A question about a table": (
        "integration/run/batch_questions::"
        "a_model_is_compiled_again_when_the_warehouse_answers_otherwise",
    ),
    "A column that only stamps": (
        "integration/run/run_values::a_row_is_stamped_by_the_run_that_wrote_it",
    ),
    "A column is a stamp if": ("unit/plan/sql/stamps::a_column_that_no_row_depends_on_is_a_stamp",),
    "Everything else": (
        "integration/run/run_values::a_row_is_stamped_by_the_run_that_wrote_it",
        "integration/run/dbt_features::"
        "verify_compiles_on_the_tables_and_in_the_run_of_the_snapshot",
    ),
    "Hooks that define are rendered once": (
        "unit/project/compiled_project::a_model_that_says_something_of_the_run_is_known",
        "unit/project/hooks/run_end::hooks_name_the_run_of_their_models_and_their_clock_goes_on",
    ),
    "To see what differs": (
        "integration/run/filled_tables::"
        "hooks_of_on_run_end_see_models_and_tests_and_samples_write_nothing",
    ),
    "A difference from run": (
        "unit/plan/project_plans::what_differs_and_is_not_selected_changes_nothing",
        "unit/project/dbt::the_environment_and_the_target_change_the_compiled_code",
    ),
    "A refresh takes it over": (
        "integration/run/filled_tables::"
        "a_refresh_takes_over_what_hooks_wrote_and_its_readers_follow",
        "unit/refresh/frontier::a_table_that_hooks_fill_is_taken_over_whoever_has_written_it",
    ),
    "dbt makes it, with its hooks": (
        "integration/run/filled_tables::"
        "a_refresh_takes_over_what_hooks_wrote_and_its_readers_follow",
        "unit/refresh/models::a_dbt_snapshot_is_taken_over_as_dbt_leaves_it",
    ),
    "`verify` says": (
        "integration/run/filled_tables::"
        "a_refresh_takes_over_what_hooks_wrote_and_its_readers_follow",
    ),
    "its SQL shows that it has no rows": (
        "unit/project/hooks/filled_tables::an_empty_select_yields_nothing_whatever_its_tables_hold",
        "unit/project/hooks/filled_tables::an_empty_table_that_dbt_never_makes_anew_is_filled_by_hooks",
        "unit/project/hooks/filled_tables::a_macro_of_a_hook_may_fill_an_empty_table_that_reads_nothing",
    ),
    "it is `incremental` with": (
        "unit/project/hooks/filled_tables::what_dbt_adds_to_without_reading_anything_is_filled_partly",
    ),
    "a hook is known to write": (
        "unit/project/hooks/filled_tables::a_statement_of_any_hook_that_writes_into_a_table_fills_it",
        "integration/run/filled_tables::"
        "a_model_that_its_own_hook_corrects_is_made_by_dbt_when_its_inputs_change",
    ),
    "A profile of": (
        "unit/project/profiles::profiles_are_looked_for_in_order",
        "unit/project/dbt_invocations::another_connection_method_is_refused",
    ),
    "Packages that are installed": ("unit/project/dbt::a_package_that_is_not_installed_is_told",),
    "Models in SQL": (
        "unit/project/dbt::a_model_in_python_is_refused_with_its_file_before_anything_runs",
    ),
}


def statements() -> list[str]:
    text = (ROOT / "docs" / "dbt.md").read_text(encoding="utf-8")
    headers = re.findall(r"(?m)^\|(.*)\n\|---", text)
    rows = [row for row in re.findall(r"(?m)^\|(.*)", text) if row[0] != "-" and row not in headers]
    return [row.strip() for row in rows] + re.findall(r"(?m)^- (.*)", text)


@cache
def names_in(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_each_statement_has_its_tests_and_each_entry_its_statement() -> None:
    known = {text: [it for it in TESTS if text.startswith(it)] for text in statements()}

    assert [text for text, entries in known.items() if len(entries) != 1] == []
    assert TESTS.keys() == {entry for entries in known.values() for entry in entries}


def test_the_tests_are_there() -> None:
    missing = []
    for name in {name for names in TESTS.values() for name in names}:
        place, _, test = name.partition("::")
        folder, _, file = place.rpartition("/")
        if f"test_{test}" not in names_in(ROOT / "tests" / folder / f"test_{file}.py"):
            missing.append(name)

    assert missing == []
