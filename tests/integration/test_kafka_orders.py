"""examples/kafka: every message is counted once after every round, and models are right. 60 s."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.kafka.__main__ import PROJECT, run
from tests.project_run import copy_project
from tests.services.fixtures import told_where_absent
from tests.services.kafka import running_kafka

pytestmark = [pytest.mark.extended, pytest.mark.processes]


def test_every_round_counts_each_message_once(tmp_path: Path) -> None:
    copy_project(PROJECT, tmp_path / "project")
    (tmp_path / "kafka").mkdir()

    with told_where_absent(), running_kafka(tmp_path / "kafka") as kafka:
        assert run(kafka.address, tmp_path, tmp_path / "project", rounds=2) == 0
