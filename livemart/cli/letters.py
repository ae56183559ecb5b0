"""Defines the commands of `dead-letters`.

Used by `livemart` and `runner.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from livemart.cli.exits import reported_errors
from livemart.cli.flags import OUTPUT, PLACES, PROJECT, json_or_text, print_answer, with_flags
from livemart.epoch import parse_moment
from livemart.errors import nearest
from livemart.inspect.terminal_text import counted
from livemart.intervals import parse_interval
from livemart.land.reasons import LetterReason

if TYPE_CHECKING:
    from livemart.land.letters.chosen_letters import LetterChoice
    from livemart.land.redrive import RedriveCounts
    from livemart.project.graph import SourceTable
    from livemart.settings import Settings


@click.group("dead-letters")
def dead_letters() -> None:
    """Show the records that could not land, and hand them over again."""


def _read_reason(_: click.Context, __: click.Parameter, text: str | None) -> str | None:
    if text is None:
        return None
    code = text.strip().upper().replace("-", "_")
    if code not in LetterReason.__members__:
        codes = ", ".join(LetterReason)
        raise click.BadParameter(f"found {text}{nearest(code, LetterReason)}; reasons are {codes}")
    return code


def read_moment(_: click.Context, __: click.Parameter, text: str | None) -> datetime | None:
    """Return a moment: a time, UTC without a zone, or an interval before now."""
    if text is None:
        return None
    try:
        return parse_moment(text).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    try:
        return datetime.now(UTC) - parse_interval(text)
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"found {text}: write a time, 2026-03-01T12:00, or how long ago, 2 hours"
        ) from None


_FILTERS = (
    click.option(
        "--source", metavar="TABLE", help="Only letters of this source, such as bronze.orders."
    ),
    click.option(
        "--reason",
        metavar="CODE",
        callback=_read_reason,
        help="Only letters with this reason, such as TYPE_MISMATCH.",
    ),
    click.option(
        "--since",
        metavar="TIME",
        callback=read_moment,
        help="Only letters written at or after this time.",
    ),
    click.option(
        "--until",
        metavar="TIME",
        callback=read_moment,
        help="Only letters written before this time.",
    ),
)


_all_letters = click.option(
    "--all", "with_redriven", is_flag=True, help="Include letters that were re-driven or dismissed."
)


@dead_letters.command("list")
@with_flags(PROJECT, PLACES, _FILTERS, OUTPUT)
@json_or_text
@_all_letters
def list_letters(output: str, with_redriven: bool, **flags: Any) -> None:
    """Count dead letters by source and reason, with the first and last time."""
    _report(output, 0, with_redriven, flags)


@dead_letters.command("show")
@with_flags(PROJECT, PLACES, _FILTERS, OUTPUT)
@json_or_text
@_all_letters
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, metavar="N")
def show_letters(output: str, limit: int, with_redriven: bool, **flags: Any) -> None:
    """Count dead letters by source and reason, and show the newest with mistake and place."""
    _report(output, limit, with_redriven, flags)


@dead_letters.command("export")
@with_flags(PROJECT, PLACES, _FILTERS, OUTPUT)
def export_letters(**flags: Any) -> None:
    """Write dead letters as JSON lines to standard output, to correct and re-drive them.

    Change the text of `record` in a line, and nothing else; lines may be left out.
    """
    asked = _asked(flags)
    with reported_errors(flags) as settings:
        from livemart.delta.warehouse import Warehouse
        from livemart.inspect.letter_export import exported_letters
        from livemart.land.redrive import RedriveCounts

        warehouse, counts = Warehouse(settings.warehouse), RedriveCounts()
        choice, sources = _choice(settings, asked), _sources(settings)
        for line in exported_letters(warehouse, settings.landing, sources, choice, counts):
            click.echo(line)
        click.echo(f"{counts.records:,} exported{_left(counts)}", err=True)


@dead_letters.command("redrive")
@click.argument("file", required=False, type=click.File("r", encoding="utf-8"))
@with_flags(PROJECT, PLACES, _FILTERS, OUTPUT)
@click.option("--dry-run", is_flag=True, help="Only count the records that would be handed over.")
def redrive_letters(file: Any, dry_run: bool, **flags: Any) -> None:
    """Hand the records of dead letters over again, each once, and mark the letters.

    Without FILE the records are those of the letters, for a rule that was mended; with FILE, or -
    for standard input, those of an export whose records were. They land with the next refresh.
    """
    asked = _asked(flags)
    if file is not None and any(value is not None for value in asked.values()):
        raise click.UsageError("FILE selects the letters: leave out --source, --reason and times")
    with reported_errors(flags) as settings:
        from livemart.delta.warehouse import Warehouse
        from livemart.inspect.letter_export import chosen_rows, named_letters, read_exported
        from livemart.land.redrive import Redrive, RedriveCounts, mended_and_closed

        warehouse, sources = Warehouse(settings.warehouse), _sources(settings)
        contents = {} if file is None else read_exported(file)
        with Redrive(warehouse, settings.landing).begun() as driver:
            if file is None:
                letters: Mapping[str, Any] = chosen_rows(warehouse, _choice(settings, asked))
            else:
                letters = named_letters(warehouse, contents)
            if dry_run:
                counts = RedriveCounts()
                for rows in letters.values():
                    ready = mended_and_closed(settings.landing, sources, rows, contents, counts)
                    counts.records += sum(map(len, ready.values()))
            else:
                counts = driver.redrive(sources, letters, contents)
        verb = "would be handed over" if dry_run else "handed over again"
        click.echo(f"{counted(counts.records, 'record')} {verb}{_left(counts)}")
        if counts.left and not counts.records:
            sys.exit(1)


@dead_letters.command("dismiss")
@with_flags(PROJECT, PLACES, _FILTERS, OUTPUT)
@click.option("--dry-run", is_flag=True, help="Only count the letters that would be dismissed.")
def dismiss_letters(dry_run: bool, **flags: Any) -> None:
    """Mark dead letters as done, without handing their records over.

    Nothing is deleted: `list --all` and `show --all` count them on.
    """
    asked = _asked(flags)
    if all(value is None for value in asked.values()):
        raise click.UsageError("select letters with --source, --reason, --since or --until")
    with reported_errors(flags, reads_warehouse=True) as settings:
        from livemart.delta.warehouse import Warehouse
        from livemart.inspect.letter_export import chosen_rows
        from livemart.land.redrive import Redrive

        warehouse = Warehouse(settings.warehouse)
        with Redrive(warehouse, settings.landing).begun() as driver:
            letters = chosen_rows(warehouse, _choice(settings, asked))
            count = sum(map(len, letters.values()))
            if not dry_run:
                driver.dismiss(letters)
        verb = "would be dismissed" if dry_run else "dismissed"
        click.echo(f"{counted(count, 'letter')} {verb}")


def _report(output: str, limit: int, with_redriven: bool, flags: dict[str, Any]) -> None:
    asked = _asked(flags)
    with reported_errors(flags, reads_warehouse=True) as settings:
        from livemart.inspect.letter_report import describe_letters, render_letters

        choice = _choice(settings, asked, with_redriven)
        report = describe_letters(settings.warehouse, choice, limit=limit)
        print_answer(output, report, render_letters(report))


def _asked(flags: dict[str, Any]) -> dict[str, Any]:
    """Remove the flags that select letters and return them."""
    return {name: flags.pop(name) for name in ("source", "reason", "since", "until")}


def _choice(
    settings: Settings, asked: Mapping[str, Any], with_redriven: bool = False
) -> LetterChoice:
    from livemart.inspect.letter_report import letter_choice
    from livemart.land.letters.chosen_letters import LetterChoice

    choice = LetterChoice(**asked, with_redriven=with_redriven)
    return letter_choice(settings.warehouse, choice)


def _sources(settings: Settings) -> Mapping[str, SourceTable]:
    from livemart.land.ingest import read_project

    sources = read_project(settings).sources.values()
    return {source.relation: source for source in sources if source.stream is not None}


def _left(counts: RedriveCounts) -> str:
    if not counts.left:
        return ""
    reasons = "".join(f"\n  {count:,}: {why}" for why, count in sorted(counts.left.items()))
    return f"; {counts.left.total():,} left as they are{reasons}"
