"""Writes one file of dbt's artifacts, with the metadata that each begins with.

Used for the results of a run and for the freshness of sources. It needs neither dbt nor Spark.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

import structlog

from livemart import __version__
from livemart.state.atomic_files import replace_file

_SCHEMAS = "https://schemas.getdbt.com/dbt"

Entry = dict[str, Any]


def artifact_metadata(schema: str, at: datetime) -> Entry:
    """Return the metadata of an artifact, such as `run-results/v6`, that is written now."""
    return {
        "dbt_schema_version": f"{_SCHEMAS}/{schema}.json",
        "dbt_version": version("dbt-core"),
        "generated_at": artifact_time(at),
        "invocation_id": str(uuid4()),
        "invocation_started_at": artifact_time(at),
        "env": {"livemart_version": __version__},
    }


def artifact_time(at: datetime) -> str:
    """Return an instant as dbt writes it, UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def write_artifact(path: Path, content: Entry) -> None:
    """Write a file whole or not at all; a folder that is full or was removed stops nothing."""
    try:
        replace_file(path, json.dumps(content, default=str))
    except OSError as error:
        structlog.get_logger().warning("artifact_not_written", path=path, error=str(error))
