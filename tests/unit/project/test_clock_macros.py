"""README's first SQL in anybody's project: the clock's macros and its source come with livemart."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from livemart.errors import ConfigErrors
from livemart.project.dbt import Dbt
from livemart.project.graph import Project

_ROOT = Path(__file__).resolve().parents[3]
_WINDOW = "select 1 as n where {{ window_start(24) }} < {{ as_of() }}"


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of one model that asks for the time, and says nothing of a clock; dbt knows it."""
    folder = tmp_path_factory.mktemp("parsed") / "shop"
    _write(
        folder,
        {
            "dbt_project.yml": "name: shop\nversion: '1.0'\nprofile: shop\n",
            "profiles.yml": (
                "shop: {target: local, outputs: {local: "
                "{type: spark, method: session, host: NA, schema: mart}}}\n"
            ),
            "models/windowed.sql": _WINDOW,
        },
    )
    Dbt(folder).parse()
    return folder


@pytest.fixture
def shop(parsed: Path, tmp_path: Path) -> Path:
    """A copy of the project, with what dbt keeps of the files that stay as they are."""
    return shutil.copytree(parsed, tmp_path / "shop")


def _write(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _code(project: Project, name: str = "windowed") -> str:
    return " ".join(str(project.models[f"model.shop.{name}"].compiled_code).split())


def test_a_project_that_declares_no_clock_has_livemarts(shop: Path) -> None:
    _write(
        shop, {"models/panes.sql": "select {{ pane_start('t') }} as p from {{ ref('windowed') }}"}
    )

    project = Dbt(shop).load()

    clock = "(select clock.as_of from livemart.clock as clock)"
    assert _code(project) == f"select 1 as n where {clock} - interval '24' hour < {clock}"
    assert "pmod(unix_seconds(t), 300)" in _code(project, "panes")
    assert project.clock is not None
    assert project.clock.relation == "livemart.clock"
    assert [column.name for column in project.clock.columns] == ["as_of"]


def test_the_pane_is_the_projects_variable(shop: Path) -> None:
    _write(shop, {"models/panes.sql": "select {{ pane_start('t') }} as p"})

    project = Dbt(shop, vars={"pane_minutes": 15}).load()

    assert "pmod(unix_seconds(t), 900)" in _code(project, "panes")


def test_a_project_that_never_asks_for_the_time_has_no_clock(shop: Path) -> None:
    _write(shop, {"models/windowed.sql": "select 1 as n"})

    assert Dbt(shop).load().clock is None


@pytest.mark.extended
def test_a_clock_and_macros_of_the_projects_own_come_first(shop: Path) -> None:
    _write(
        shop,
        {
            "models/_sources.yml": (
                "sources: [{name: livemart, schema: own, tables: [{name: clock, columns: "
                "[{name: as_of, data_type: timestamp}]}]}]\n"
            ),
            "macros/window_start.sql": (
                "{% macro window_start(hours) %}{{ as_of() }} - interval {{ hours }} hours"
                "{% endmacro %}"
            ),
        },
    )

    project = Dbt(shop).load()

    clock = "(select clock.as_of from own.clock as clock)"
    assert _code(project) == f"select 1 as n where {clock} - interval 24 hours < {clock}"
    assert list(project.sources) == ["source.shop.livemart.clock"]


def test_a_macro_that_comes_or_goes_later_is_noticed(shop: Path) -> None:
    first = Dbt(shop).load()
    _write(
        shop,
        {
            "models/_sources.yml": "sources: [{name: raw, tables: [{name: now}]}]\n",
            "macros/as_of.sql": "{% macro as_of() %}{{ source('raw', 'now') }}{% endmacro %}",
        },
    )
    second = Dbt(shop).load()
    (shop / "macros" / "as_of.sql").unlink()
    third = Dbt(shop).load()

    projects = (first, second, third)
    inputs = [project.models["model.shop.windowed"].depends_on for project in projects]
    assert inputs == [
        ("source.livemart_clock.livemart.clock",),
        ("source.shop.raw.now",),
        ("source.livemart_clock.livemart.clock",),
    ]
    assert [project.clock is None for project in projects] == [False, True, False]


def test_plain_dbt_in_any_terminal_knows_them(shop: Path) -> None:
    shutil.rmtree(shop / "target")

    ran = subprocess.run(
        [sys.executable, "-c", "from dbt.cli.main import cli; cli()", "parse"],
        cwd=shop,
        env={"PATH": os.environ["PATH"], "HOME": str(shop), "PYTHONPATH": str(_ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )

    assert ran.returncode == 0, ran.stdout
    manifest = json.loads((shop / "target" / "manifest.json").read_text())
    assert manifest["nodes"]["model.shop.windowed"]["depends_on"]["nodes"] == [
        "source.livemart_clock.livemart.clock"
    ]
    # Macros that store tables in a warehouse are for terminals that have one.
    assert not any(".livemart_spark." in name for name in manifest["macros"])


_LATE = """
version: 2
sources:
  - name: raw
    tables:
      - name: orders
        config: {event_time: at, meta: {livemart: {path: o/*.jsonl, lateness: 10 minutes}}}
        columns: [{name: at, data_type: timestamp}]
      - name: shops
        config: {meta: {livemart: {path: s/*.jsonl}}}
        columns: [{name: shop, data_type: string}]
"""


def test_a_model_asks_whether_its_windows_are_final(shop: Path) -> None:
    _write(
        shop,
        {
            "models/_sources.yml": _LATE,
            "models/windowed.sql": (
                "select {{ is_final('t') }} as f, {{ is_final('t', 'raw', 'orders') }}"
            ),
        },
    )

    project = Dbt(shop).load()

    table = "from livemart.watermarks as watermarks"
    assert _code(project) == (
        f"select coalesce(t <= (select watermarks.complete_to {table}), false) as f, "
        f"coalesce(t <= (select watermarks.raw__orders {table}), false)"
    )
    assert project.watermarks is not None
    assert [source.watermark for source in project.with_lateness] == ["raw__orders"]


@pytest.mark.parametrize(
    ("sources", "ask", "message"),
    [
        (_LATE, "is_final('t', 'raw', 'shops')", r"raw\.shops declares no lateness.*raw__orders"),
        (
            _LATE.replace(", lateness: 10 minutes", ""),
            "is_final('t')",
            "add `lateness: 10 minutes`",
        ),
    ],
)
def test_a_watermark_that_no_source_can_give_is_told(
    shop: Path, sources: str, ask: str, message: str
) -> None:
    _write(shop, {"models/_sources.yml": sources, "models/windowed.sql": f"select {{{{ {ask} }}}}"})

    with pytest.raises(ConfigErrors, match=message):
        Dbt(shop).load()
