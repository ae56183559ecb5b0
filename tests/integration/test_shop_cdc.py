"""examples/shop_cdc: tables and models are those of the shop's database after every round. 90 s."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.shop_cdc.__main__ import PROJECT, run
from examples.shop_cdc.services import running_services
from tests.project_run import copy_project
from tests.services.fixtures import not_installed
from tests.services.maven import NotInstalledError

pytestmark = [pytest.mark.extended, pytest.mark.processes]


def test_every_round_ends_with_the_rows_of_the_database(tmp_path: Path) -> None:
    copy_project(PROJECT, tmp_path / "project")
    try:
        with running_services(tmp_path / "services") as services:
            code = run(services, tmp_path, tmp_path / "project", rounds=2)
    except NotInstalledError as error:
        not_installed(str(error))

    assert code == 0
