"""The errors and texts that one invocation of dbt gives livemart."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from livemart.errors import ConfigError
from livemart.project.dbt_invocations import DbtInvocations, render_in_project


def invocations(folder: Path) -> DbtInvocations:
    return DbtInvocations(folder, None, folder, target=None, vars={}, warehouse=None, progress=None)


def event(level: str, message: str) -> Any:
    return SimpleNamespace(info=SimpleNamespace(level=level, msg=message, name="Any"), data=None)


def test_an_error_has_each_reason_that_dbt_gave_before_once(tmp_path: Path) -> None:
    dbt = invocations(tmp_path)
    for level, message in (
        ("error", "no table raw.orders"),
        ("info", "1 of 2 started"),
        ("error", " no table raw.orders\n"),
        ("error", "the whole: it failed"),
    ):
        dbt._on_event(event(level, message))

    error = dbt.failed(f"it failed at {tmp_path}/models/a.sql")

    assert (error.code, error.message.splitlines()) == (
        "DBT_FAILED",
        ["it failed at models/a.sql", "no table raw.orders", "the whole: it failed"],
    )


def test_a_project_that_asks_while_it_is_compiled_needs_spark(tmp_path: Path) -> None:
    error = invocations(tmp_path).failed("the project asks the database while it is compiled: x")

    assert error.code == "DBT_NEEDS_SPARK"


def test_a_text_is_rendered_with_the_variables_of_the_command(tmp_path: Path) -> None:
    assert render_in_project("{{ var('place') }}/t", tmp_path, {"place": "out"}) == "out/t"

    with pytest.raises(ConfigError, match="DBT_FAILED"):
        render_in_project("{{ var('missing') }}", tmp_path, {})
