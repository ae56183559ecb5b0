"""Defines the commands about past snapshots: `history`, `diff`, `keep`.

Used by the command line. None of them starts Spark or takes the warehouse's lock.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from livemart.cli.exits import reported_errors
from livemart.cli.flags import (
    OUTPUT,
    PLACES,
    json_or_text,
    print_answer,
    settings_folder,
    with_flags,
)
from livemart.intervals import parse_interval


def _read_interval(_: click.Context, __: click.Parameter, text: str) -> timedelta:
    try:
        return parse_interval(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.command()
@with_flags(PLACES, OUTPUT)
@json_or_text
@click.option("--limit", type=click.IntRange(1), default=10, help="Number of snapshots to list.")
@settings_folder
def history(output: str, limit: int, **flags: Any) -> None:
    """List the newest snapshots: time, rows changed and seconds, for each model."""
    with reported_errors(flags, reads_warehouse=True) as settings:
        from livemart.inspect.history import read_history, render_history

        snapshots = read_history(settings.warehouse, limit, datetime.now(UTC))
        values = {"snapshots": list(map(asdict, snapshots))}
        print_answer(output, values, render_history(snapshots))


@click.command()
@click.argument("first", type=int, metavar="SNAPSHOT")
@click.argument("second", type=int, metavar="SNAPSHOT")
@click.argument("model", required=False)
@with_flags(PLACES, OUTPUT)
@json_or_text
@settings_folder
def diff(first: int, second: int, model: str | None, output: str, **flags: Any) -> None:
    """Show which rows of each model, or of one, differ between two snapshots.

    Exits with 1 if rows differ, with 3 if none does and a model could not be compared.
    """
    with reported_errors(flags, reads_warehouse=True) as settings:
        from livemart.inspect.published_tables import snapshot_numbered
        from livemart.inspect.snapshot_diff import diff_exit_code, diff_snapshots, render_diff

        warehouse = settings.warehouse
        old, new = (snapshot_numbered(warehouse, number) for number in (first, second))
        diffs = []
        for it in diff_snapshots(warehouse, old, new, model):
            diffs.append(it)
            if output == "text":
                click.echo(render_diff(it, first, second))
        if output == "json":
            print_answer(output, {"models": list(map(asdict, diffs))}, "")
        if code := diff_exit_code(diffs):
            sys.exit(code)


@click.command()
@click.argument("snapshot", type=int)
@click.option(
    "--for",
    "interval",
    default="1d",
    show_default=True,
    metavar="INTERVAL",
    callback=_read_interval,
    help="How long to keep it, from now on.",
)
@click.option("--release", is_flag=True, help="Stop keeping it.")
@with_flags(PLACES, OUTPUT)
@settings_folder
def keep(snapshot: int, interval: timedelta, release: bool, **flags: Any) -> None:
    """Keep a snapshot readable for a while: upkeep does not remove its files.

    A repeated call sets a new end. `tables --snapshot` prints folders and versions.
    """
    with reported_errors(flags, reads_warehouse=True) as settings:
        from livemart.inspect.published_tables import require_files, snapshot_numbered
        from livemart.state.kept_snapshots import keep_snapshot, let_go

        row = snapshot_numbered(settings.warehouse, snapshot)
        if release:
            was_kept = let_go(settings.warehouse, snapshot)
            click.echo(f"snapshot {snapshot} is {'no longer' if was_kept else 'not'} kept")
            return
        until = datetime.now(UTC) + interval
        require_files(settings.warehouse, row)
        keep_snapshot(settings.warehouse, snapshot, until)
        click.echo(f"snapshot {snapshot} is kept until {until:%Y-%m-%d %H:%M:%S} UTC")
