"""Defines `ingest`, which hands records of a pipe or of files over to a source.

Used by `livemart` and `runner.py`. It lands nothing: the next refresh, or the stream, does.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from livemart.cli.exits import interruptible, reported_errors
from livemart.cli.flags import OUTPUT, PLACES, PROJECT, json_or_text, with_flags
from livemart.inspect.terminal_text import counted
from livemart.intervals import parse_interval

if TYPE_CHECKING:
    from livemart.land.ingest import SpoolCounts


@click.command()
@click.argument("source", metavar="SOURCE")
@click.argument("files", metavar="[FILE]...", nargs=-1)
@with_flags(PROJECT, PLACES, OUTPUT)
@json_or_text
@click.option(
    "--format",
    "format_name",
    metavar="FORMAT",
    help="Format of the records; must equal the source's.",
)
@click.option(
    "--follow", is_flag=True, help="At the end of a file (`< FILE`), wait for more records."
)
@click.option(
    "--every",
    "interval",
    default="5s",
    show_default=True,
    metavar="INTERVAL",
    help="Longest time that a complete record waits.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 if a record would become a dead letter.")
def ingest(
    source: str,
    files: tuple[str, ...],
    output: str,
    format_name: str | None,
    follow: bool,
    interval: str,
    strict: bool,
    **flags: Any,
) -> None:
    """Hand records over to a source, from standard input or from files.

    SOURCE is a source table, such as orders or ordering.orders. Complete lines are stored durably
    in the landing folder, and the next refresh or the running stream lands them exactly once. On
    SIGTERM the command first hands over the complete lines.
    """
    try:
        every = parse_interval(interval).total_seconds()
    except ValueError as error:
        raise click.BadParameter(f"{error}: write 5s or 1 minute", param_hint="--every") from error
    with reported_errors(flags) as settings:
        from livemart.land.ingest import (
            SpoolCounts,
            hand_over_files,
            hand_over_input,
            read_project,
            source_called,
        )

        table = source_called(read_project(settings), source, format_name)
        counts = SpoolCounts()
        with interruptible(settings.stop_timeout) as interrupts:
            try:
                if files:
                    hand_over_files(settings.landing, table, files, counts, judges=strict)
                else:
                    interrupts.install(patient=True)
                    if sys.stdin.isatty():
                        click.echo("reading from the terminal; Ctrl-D ends", err=True)
                    hand_over_input(
                        settings.landing,
                        table,
                        sys.stdin.fileno(),
                        counts,
                        interrupts.stop,
                        every=every,
                        follows=follow,
                        judges=strict,
                    )
            finally:
                # Also after an early end, all reported records are durable.
                click.echo(_rendered(table.relation, counts, output))
        if strict and counts.refused:
            sys.exit(1)


def _rendered(relation: str, counts: SpoolCounts, output: str) -> str:
    if output == "json":
        totals = {"records": counts.records, "bytes": counts.size, "files": counts.files}
        return json.dumps({"source": relation} | totals | {"refused": dict(counts.refused)})
    records, written = counted(counts.records, "record"), counted(counts.files, "file")
    text = f"{relation}: {records} in {written} handed over"
    if not counts.refused:
        return text
    reasons = ", ".join(f"{count:,} {code}" for code, count in sorted(counts.refused.items()))
    return f"{text}; {counts.refused.total():,} will be dead letters: {reasons}"
