"""A terminal shows a live table and one lasting line a snapshot; anything else gets log events."""

from __future__ import annotations

import ast
import io
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click
import pytest
from rich.console import Console

from livemart.check.checks import TestResult
from livemart.observe.logs import LogWatcher
from livemart.observe.progress import TerminalWatcher, describe_snapshot, make_console, open_watcher
from livemart.project.node_results import NodeProgress
from livemart.run.events import (
    BatchBegan,
    BatchEnded,
    BatchOutcome,
    BatchRetried,
    CheckEnded,
    CopyBegan,
    CopyEnded,
    EditRefused,
    EditTaken,
    LandingBegan,
    ModelChanged,
    PlanChange,
    RecordsLanded,
    StepBegan,
)
from livemart.state.drift import DriftedField, DriftKind
from livemart.state.snapshots import SetAside
from tests.unit.observe.outcomes import make_held_outcome, make_landed, make_snapshot
from tests.waits import PATIENCE_S

PACKAGE = Path(__file__).resolve().parents[3] / "livemart"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


BACKGROUND = """
import fcntl, os, pty, signal, sys, termios
from livemart.observe.progress import open_watcher
main, side = pty.openpty()
os.setsid()
fcntl.ioctl(side, termios.TIOCSCTTY, 0)
terminal = os.fdopen(side, "w")
with open_watcher("text", stream=terminal) as watcher:
    print(type(watcher).__name__, flush=True)
if (child := os.fork()) == 0:
    # As a shell does for `up &`.
    os.setpgid(0, 0)
    with open_watcher("text", stream=terminal) as watcher:
        print(type(watcher).__name__, flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


def show(outcome: BatchOutcome) -> str:
    console = Console(file=io.StringIO(), record=True, width=200)

    TerminalWatcher(console).handle(BatchEnded(outcome))

    return console.export_text()


@pytest.mark.extended
def test_in_the_background_of_a_terminal_plain_lines_are_logged() -> None:
    with subprocess.Popen([sys.executable, "-c", BACKGROUND], stdout=subprocess.PIPE) as process:
        told, _ = process.communicate(timeout=PATIENCE_S)

    assert told.decode().split() == ["TerminalWatcher", "LogWatcher"]


def test_a_snapshot_is_described_in_one_line() -> None:
    expected = (
        "snapshot 7 published | as of 2026-03-01 12:05 | 1,000 landed, 1 superseded, 2 dead letters"
        " | 118 rows changed in 1 of 2 models | 2.1 s"
    )

    actual = describe_snapshot(make_snapshot())

    assert actual == expected


def test_an_edit_is_shown_with_what_becomes_of_each_model() -> None:
    console = Console(file=io.StringIO(), record=True, width=200)
    changes = [
        PlanChange("model.m.totals", "changed", "signed"),
        PlanChange("test.m.unique_totals.1", "gone"),
    ]

    TerminalWatcher(console).handle(EditTaken(["models/totals.sql"], changes))

    assert console.export_text().splitlines() == [
        "project edited: models/totals.sql",
        "  totals changed, signed",
        "  unique_totals gone",
    ]


def test_an_edit_that_is_refused_is_told_in_red() -> None:
    console = Console(file=Terminal(), record=True, width=200, color_system="standard")

    TerminalWatcher(console).handle(EditRefused(["models/totals.sql"], ValueError("no\ncolumn x")))

    text = console.export_text(styles=True)
    assert text.splitlines() == [
        "\x1b[31medit refused, the previous project keeps running: models/totals.sql\x1b[0m",
        "\x1b[31m  no\x1b[0m",
        "\x1b[31m  column x\x1b[0m",
    ]


def test_a_build_counts_the_models_it_made() -> None:
    actual = describe_snapshot(make_snapshot(kind="build"))

    assert "| 2 models built, 118 rows |" in actual


def test_a_held_snapshot_names_the_test_that_holds_it_and_what_was_rebuilt() -> None:
    expected = [
        describe_snapshot(make_snapshot(status="held")),
        "  panes rebuilt: FINGERPRINT_CHANGED, the SQL is another",
        "  test.livemart.unique_panes: fail, 3 rows",
        "    models/panes.yml:9",
        "    pane=7, n=2",
        "    pane=9, n=2",
    ]

    actual = show(make_held_outcome()).splitlines()

    assert actual == expected


def test_drift_is_told_below_the_snapshot_that_brought_it() -> None:
    drift = {"bronze.orders": (DriftedField(DriftKind.ADDED, "tip"),)}
    snapshot = replace(make_snapshot(), drift=drift)

    actual = show(BatchOutcome(42, snapshot)).splitlines()

    assert actual == [
        describe_snapshot(snapshot),
        "  drift bronze.orders: added tip",
        f"    {DriftKind.ADDED.next_step}",
    ]


def test_a_batch_without_change_leaves_no_line() -> None:
    actual = show(BatchOutcome(43, None))

    assert actual == ""


def test_the_live_table_shows_each_model_with_its_word_and_time() -> None:
    now = 10.0
    console = Console(file=io.StringIO(), record=True, width=80)
    watcher = TerminalWatcher(console, clock=lambda: now)
    watcher.handle(BatchBegan(42))
    watcher.handle(ModelChanged("model.livemart.panes", "refreshing"))
    now = 10.8
    watcher.handle(ModelChanged("model.livemart.panes", "signed"))
    now = 11.0
    watcher.handle(ModelChanged("model.livemart.top_dishes", "refreshing"))
    now = 12.5

    console.print(watcher._render())

    lines = [line.split() for line in console.export_text().splitlines()]
    assert lines[0][-2:] == ["micro-batch", "42"]
    assert lines[1] == ["panes", "signed", "0.8", "s"]
    assert lines[2] == ["top_dishes", "refreshing", "1.5", "s"]


def test_tests_are_shown_only_while_they_run() -> None:
    console = Console(file=io.StringIO(), record=True, width=80)
    watcher = TerminalWatcher(console, clock=lambda: 1.0)
    for node in ("model.livemart.panes", "test.livemart.unique_panes.1a", "unit_test.livemart.tie"):
        watcher.handle(NodeProgress(node, None))
        watcher.handle(NodeProgress(node, "success"))

    console.print(watcher._render())

    assert [line.split()[0] for line in console.export_text().splitlines()[1:]] == ["panes"]


def test_data_tests_are_counted_while_they_run() -> None:
    console = Console(file=io.StringIO(), record=True, width=80)
    watcher = TerminalWatcher(console, clock=lambda: 1.0)
    for name in ("unique_panes", "not_null_panes"):
        watcher.handle(CheckEnded(f"test.livemart.{name}.1a", TestResult("pass", 0, "full")))

    console.print(watcher._render())

    assert "running the data tests: 2 ended" in console.export_text()


def test_a_copy_into_the_store_is_shown_beside_what_goes_on() -> None:
    console = Console(file=io.StringIO(), record=True, width=100)
    watcher = TerminalWatcher(console, clock=lambda: 1.0)
    watcher.handle(LandingBegan(42, 0))
    watcher.handle(CopyBegan(7))

    console.print(watcher._render())
    watcher.handle(CopyEnded())
    console.print(watcher._render())

    first, second = filter(str.strip, console.export_text().splitlines())
    assert first.endswith(
        "landing records of micro-batch 42, copying snapshot 7 into the serving store"
    )
    assert second.endswith("landing records of micro-batch 42")


def test_a_retry_says_why_in_one_line() -> None:
    console = Console(file=io.StringIO(), record=True, width=200)

    TerminalWatcher(console).handle(BatchRetried(ValueError("first\nsecond"), 1, 3))

    assert console.export_text() == "  run again (1 of 3 attempts failed): first\n"


def test_a_terminal_gets_the_live_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")

    with open_watcher("text", stream=Terminal()) as watcher:
        assert isinstance(watcher, TerminalWatcher)


def test_what_goes_into_a_pipe_does_not_come_out_at_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    terminal = Terminal()

    with TerminalWatcher(Console(file=terminal, force_terminal=True)) as watcher:
        watcher.handle(StepBegan("recomputing the models"))
        click.echo('{"models": []}')

    assert capsys.readouterr().out == '{"models": []}\n'
    assert "models" not in terminal.getvalue().replace("recomputing the models", "")


@pytest.mark.parametrize(
    ("log_format", "stream"),
    [("text", io.StringIO()), ("json", Terminal()), ("json", io.StringIO())],
)
def test_everything_else_gets_log_events(log_format: str, stream: io.StringIO) -> None:
    with open_watcher("json" if log_format == "json" else "text", stream=stream) as watcher:
        assert isinstance(watcher, LogWatcher)


def test_colour_is_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        make_console(stream).print("held", style="red")

    assert "\x1b[" in terminal.getvalue()
    assert pipe.getvalue() == "held\n"


def test_nothing_in_the_package_prints_on_its_own() -> None:
    expected: list[str] = []

    actual = [
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name) and node.id == "print"
    ]

    assert actual == expected


def test_refused_records_stay_on_the_screen_with_their_reasons() -> None:
    console = Console(file=io.StringIO(), record=True, width=200)

    TerminalWatcher(console).handle(
        RecordsLanded(make_landed({"MALFORMED_RECORD": 3, "KEY_MISSING": 1}))
    )

    assert console.export_text() == (
        "  4 dead letters of bronze.orders: 1 KEY_MISSING, 3 MALFORMED_RECORD; "
        "`livemart dead-letters show`\n"
    )


def test_an_edit_and_its_refusal_are_shown() -> None:
    console = Console(file=io.StringIO(), record=True, width=200)
    watcher = TerminalWatcher(console)

    watcher.handle(
        EditTaken(
            ["models/panes.sql"],
            [
                PlanChange("model.livemart.panes", "changed", "signed"),
                PlanChange("test.livemart.unique_panes.1a", "gone"),
            ],
        )
    )
    watcher.handle(EditRefused(["models/panes.sql"], ValueError("first\nsecond")))

    assert console.export_text().splitlines() == [
        "project edited: models/panes.sql",
        "  panes changed, signed",
        "  unique_panes gone",
        "edit refused, the previous project keeps running: models/panes.sql",
        "  first",
        "  second",
    ]


def test_a_model_that_waits_for_one_of_its_own_name_is_shown_as_waiting() -> None:
    cause, waiting = "model.crm.panes", "model.livemart.panes"
    aside = {
        unique_id: SetAside(7, None, "f", cause, "division by zero")
        for unique_id in (cause, waiting)
    }

    text = show(BatchOutcome(42, replace(make_snapshot(), set_aside=aside)))

    assert "  crm.panes set aside: cannot be computed" in text
    assert "  livemart.panes set aside: waits for crm.panes" in text
