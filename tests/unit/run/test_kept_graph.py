"""A run keeps the graph of its project for the console."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from livemart.run.pipeline import Pipeline
from livemart.settings import load_settings
from livemart.state.project_graph import graph_of, read_graph
from tests.unit.state.test_project_graph import PROJECT


def test_a_pipeline_keeps_the_graph_of_its_project(tmp_path: Path) -> None:
    settings = load_settings({"warehouse": str(tmp_path)}, environ={}, directory=tmp_path)
    runtime: Any = SimpleNamespace(settings=settings, project=PROJECT, warehouse=None, log=None)

    Pipeline(runtime, lambda event: None)

    assert read_graph(tmp_path) == graph_of(PROJECT)
