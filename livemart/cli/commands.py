"""Defines the commands: each reads flags, calls one function and prints its result.

Used by `livemart` and `runner.py`. A command imports what it needs when it runs, so that `--help`
stays light.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any, TextIO

import click

from livemart import __version__
from livemart.cli.dbt_words import command_hint, flag_hint
from livemart.cli.exits import finish, finish_idle, interruptible, reported_errors
from livemart.cli.flags import (
    ADDRESS,
    AS_OF,
    OUTPUT,
    PLACES,
    PROJECT,
    SELECTION,
    SERVING_STORE,
    SPARK,
    json_or_text,
    print_answer,
    settings_folder,
    with_flags,
)
from livemart.cli.ingest import ingest
from livemart.cli.letters import dead_letters, read_moment
from livemart.cli.running import (
    name_unread,
    opened,
    reporting,
    run_both,
    run_server,
    run_stream,
    say,
)
from livemart.cli.snapshots import diff, history, keep
from livemart.cli.starting import completion, init
from livemart.cli.tether import Tether


class _Command(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the flags; a word that only dbt understands is refused with ours."""
        has_selection = {"-s", "--select", "--exclude"} & {*args}
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if hint := flag_hint(error.option_name):
                raise _refused(error, f"No such option '{error.option_name}'; {hint}") from error
            raise
        except click.UsageError as error:
            if "unexpected extra argument" not in error.message:
                raise
            # Unlike dbt's, a flag takes one name.
            if has_selection:
                hint = "write several names as one word, --select 'a b', or repeat the flag"
            elif any(option.name == "select" for option in self.params):
                hint = "name models with --select"
            else:
                raise
            raise _refused(error, f"{error.message}; {hint}") from error


class _Commands(click.Group):
    command_class = _Command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the flags; one that only commands have is refused with its place."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = error.option_name
            options = {it for command in self.commands.values() for it in _names(command)}
            if name in options or flag_hint(name):
                hint = "write flags behind the command: livemart build --debug"
                raise _refused(error, f"No such option '{name}' here; {hint}") from error
            raise

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; one that only dbt has is refused with ours."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if hint := command_hint(args[0]):
                raise _refused(error, f"No such command '{args[0]}'; {hint}") from error
            raise


def _names(command: click.Command) -> Iterator[str]:
    for parameter in command.params:
        yield from parameter.opts


def _refused(error: click.UsageError, message: str) -> click.UsageError:
    return click.UsageError(message, error.ctx)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="livemart")
def cli() -> None:
    """Keep the models of a dbt project fresh on Spark: one SQL, as a batch or continuously."""


@cli.command()
@with_flags(PROJECT, PLACES, SERVING_STORE, SPARK, AS_OF, SELECTION, OUTPUT)
@click.option(
    "--new-epoch",
    is_flag=True,
    help="Start a new epoch: read the whole landing folder again.",
)
def build(new_epoch: bool, **flags: Any) -> None:
    """Land all waiting records, then build every model with dbt, as one snapshot.

    With --select, --exclude or --selector, build only the selected models and refresh the others.
    """
    with opened(flags, is_short=True, builds=True) as (runtime, pipeline):
        selection = runtime.settings.selection
        if not selection:
            done = pipeline.build(new_epoch=new_epoch)
            name_unread(runtime.settings)
            finish(done)
        if new_epoch:
            raise click.UsageError(f"--new-epoch builds everything: leave out {selection}")
        finish(pipeline.refresh(selected=runtime.dbt.selection(selection)))


@cli.command()
@with_flags(PROJECT, PLACES, SERVING_STORE, SPARK, AS_OF, SELECTION, OUTPUT)
def refresh(**flags: Any) -> None:
    """Land waiting records, refresh every model, publish, and exit (for cron and schedulers).

    With --select, --exclude or --selector the models that are left out, and those that read them,
    are set aside: they stay as they were, until a pass without them.
    """
    with reported_errors(flags) as settings:
        from livemart.observe.run_notes import RunNotes
        from livemart.run.idle import has_nothing_to_do

        with interruptible(settings.stop_timeout):
            if has_nothing_to_do(settings):
                with RunNotes(settings, "refresh").until_end():
                    name_unread(settings)
                    finish_idle()
    with opened(flags, is_short=True, leaves_out=True) as (runtime, pipeline):
        done = pipeline.refresh()
        name_unread(runtime.settings)
        finish(done)


@cli.command()
@with_flags(PROJECT, PLACES, SERVING_STORE, SPARK, AS_OF, SELECTION, OUTPUT)
@click.option("--every", metavar="INTERVAL", help="Time between two refreshes. [default: 5m]")
def stream(**flags: Any) -> None:
    """Refresh continuously, until Ctrl-C; selections work as in `refresh`."""
    run_stream(flags)


@cli.command()
@with_flags(PROJECT, PLACES, SERVING_STORE, SPARK, AS_OF, ADDRESS, SELECTION, OUTPUT)
@click.option("--every", metavar="INTERVAL", help="Time between two refreshes. [default: 5m]")
@click.option("--part", type=click.Choice(["check", "server", "engine"]), hidden=True)
def up(part: str | None, **flags: Any) -> None:
    """Refresh continuously and serve the API and the page, until Ctrl-C.

    Engine and server are two processes with the serving store between them. If one ends or
    hangs, it is restarted, and the other continues.
    """
    if part is None:
        run_both(flags)
    elif part == "check":
        with reported_errors(flags) as settings, interruptible(settings.stop_timeout):
            from livemart.run.runtime import check_project

            check_project(settings)
    elif part == "engine":
        run_stream(flags, Tether())
    else:
        run_server(flags, Tether())


@cli.command()
@with_flags(PROJECT, PLACES, SERVING_STORE, ADDRESS, OUTPUT)
@click.option("--every", metavar="INTERVAL", help="Interval for judging staleness.")
def serve(**flags: Any) -> None:
    """Serve the API and the page from a store that another process fills, until Ctrl-C."""
    run_server(flags)


@cli.group()
def token() -> None:
    """Create, list and revoke access tokens of the API and the page."""


@token.command("create")
@with_flags(PROJECT, PLACES, SERVING_STORE, OUTPUT)
@click.option("--name", required=True, metavar="TEXT", help="The person or program that it is for.")
@click.option(
    "--tenant", multiple=True, metavar="ID", help="Tenant whose rows it may read; repeatable."
)
@click.option("--admin", is_flag=True, help="Let it read everything.")
@click.option(
    "--ingest",
    "sources",
    multiple=True,
    metavar="SOURCE",
    help="Source that it may send records to; repeatable. It reads nothing.",
)
@click.option("--unseen", is_flag=True, help="Accept a tenant without served rows.")
@click.option(
    "--expires",
    default="90d",
    show_default=True,
    metavar="INTERVAL",
    help="How long it is valid, or never.",
)
def create_token(
    name: str,
    tenant: tuple[str, ...],
    admin: bool,
    sources: tuple[str, ...],
    expires: str,
    unseen: bool,
    **flags: Any,
) -> None:
    """Create a token and print it once; livemart keeps only its hash."""
    if [admin, bool(tenant), bool(sources)].count(True) != 1:
        raise click.UsageError("give --tenant ID (once or more), --admin, or --ingest SOURCE")
    with reported_errors(flags, extra="serve") as settings:
        from livemart.serve.auth.report import check_place, lifetime_of, open_tokens, render_created

        lasts = lifetime_of(expires)
        place = check_place(settings, tenant, unseen=unseen)
        with open_tokens(settings, say=say) as tokens:
            text, created = tokens.create(
                name, tenants=tenant, sources=sources, is_admin=admin, lasts=lasts
            )
        click.echo(text)
        click.echo(f"{render_created(created)}\nin {place}", err=True)


@token.command("list")
@with_flags(PROJECT, PLACES, SERVING_STORE, OUTPUT)
@json_or_text
def list_tokens(output: str, **flags: Any) -> None:
    """List all tokens with owner, rights and expiry, but not the tokens themselves."""
    with reported_errors(flags, extra="serve", reads_warehouse=True) as settings:
        from livemart.serve.auth.report import describe_tokens, open_tokens, render_tokens

        with open_tokens(settings) as tokens:
            report = describe_tokens(tokens.tokens())
        print_answer(output, report, render_tokens(report))


@token.command("revoke")
@with_flags(PROJECT, PLACES, SERVING_STORE, OUTPUT)
@click.argument("token_id")
def revoke_token(token_id: str, **flags: Any) -> None:
    """Revoke a token immediately and permanently; its open streams end."""
    with reported_errors(flags, extra="serve", reads_warehouse=True) as settings:
        from livemart.serve.auth.report import open_tokens

        with open_tokens(settings, say=say) as tokens:
            revoked = tokens.revoke(token_id)
        click.echo(f"revoked {revoked.token_id} ({revoked.name})", err=True)


@cli.command()
@with_flags(PROJECT, PLACES, SPARK, SELECTION, OUTPUT)
@json_or_text
@click.option("--strict", is_flag=True, help="Exit with 1 if a model is recomputed in full.")
@click.option(
    "--against",
    metavar="COMMIT|FILE",
    help="Show only models planned otherwise than there; exit with 1 if one turned full.",
)
def plan(output: str, strict: bool, against: str | None, **flags: Any) -> None:
    """Show how each model is refreshed, and why no cheaper way is possible."""
    with reported_errors(flags) as settings:
        from livemart.inspect.plan_difference import difference_since, render_difference
        from livemart.inspect.plan_report import describe_plans, full_models, render_plans
        from livemart.plan.project_plans import require_policies
        from livemart.plan.table_columns import require_table_columns
        from livemart.plan.undeclared_columns import require_declared
        from livemart.run.runtime import load_plans

        with reporting(settings) as report:
            project, plans, chosen = load_plans(settings, report)
            answer = describe_plans(project, plans.models, plans.stored, chosen)
            if against is not None:
                difference = difference_since(against, answer, settings, report)
        if against is None:
            print_answer(output, answer, render_plans(answer))
        else:
            print_answer(output, difference, render_difference(difference, against))
        require_policies(project, plans.stored)
        require_declared(plans)
        require_table_columns(project)
        if against is not None and (names := difference["turned_full"]):
            click.echo(f"turned full since {against}: {', '.join(names)}", err=True)
            sys.exit(1)
        if strict and (names := full_models(answer)):
            click.echo(f"recomputed in full: {', '.join(names)}", err=True)
            sys.exit(1)


@cli.command()
@with_flags(PROJECT, PLACES, SPARK, SELECTION, OUTPUT)
@json_or_text
@click.option(
    "--since",
    metavar="TIME",
    callback=read_moment,
    help="Snapshots since then, such as 2026-03-01T12:00 or '2 hours'. [default: 7 days]",
)
def corrections(output: str, since: datetime | None, **flags: Any) -> None:
    """List late corrections of final windows: which, how late, and their effect."""
    with reported_errors(flags) as settings:
        from livemart.delta.warehouse import Warehouse
        from livemart.inspect.corrections import find_corrections, render_corrections
        from livemart.run.runtime import load_plans
        from livemart.state.snapshots import SnapshotLog

        with reporting(settings) as report:
            project, plans, chosen = load_plans(settings, report)
        earliest = since or datetime.now(UTC) - timedelta(days=7)
        snapshots = SnapshotLog(settings.warehouse).since(earliest)
        answer = find_corrections(
            Warehouse(settings.warehouse), project, plans.stored, snapshots, chosen
        )
        print_answer(output, answer.to_json(), render_corrections(answer))


@cli.command()
@with_flags(PROJECT, PLACES, SPARK, SELECTION, OUTPUT)
@json_or_text
@click.option("--strict", is_flag=True, help="List the groups of tied rows.")
def verify(output: str, strict: bool, **flags: Any) -> None:
    """Recompute every model from the landed tables and compare it with the published rows.

    Where the order of rows may tie, each answer that the SQL allows is correct. Exits with 1 if a
    model differs, with 3 if no model differs but one could not be compared.
    """
    with reported_errors(flags, reads_warehouse=True) as settings:
        from livemart.inspect.verify import exit_code, render_comparison, verify_snapshot

        with interruptible(settings.stop_timeout), reporting(settings) as report:
            comparisons = []
            for comparison in verify_snapshot(settings, report):
                comparisons.append(comparison)
                if output == "text":
                    click.echo(render_comparison(comparison, lists_ties=strict))
        if output == "json":
            models = [comparison.to_json() for comparison in comparisons]
            click.echo(json.dumps({"models": models}, indent=2))
        if code := exit_code(comparisons):
            sys.exit(code)


@cli.command()
@with_flags(PLACES, SERVING_STORE, OUTPUT)
@json_or_text
@click.option("--every", metavar="INTERVAL", help="Interval for judging staleness.")
@click.option("--limit", type=click.IntRange(1), default=10, help="Number of snapshots to list.")
@click.option(
    "--html",
    type=click.File("w", encoding="utf-8", lazy=True),
    metavar="FILE",
    help="Also write the server's console as one file.",
)
@settings_folder
def status(output: str, limit: int, html: TextIO | None, **flags: Any) -> None:
    """Show freshness, lag, snapshots, landed and rejected records, failing tests, the store."""
    with reported_errors(flags, "serve" if html else None, reads_warehouse=True) as settings:
        from livemart.inspect.status import read_status, render_status

        report = read_status(
            settings.warehouse,
            every=settings.every,
            pane=settings.pane,
            landing=settings.landing,
            store_url=settings.store_url,
            limit=limit,
        )
        print_answer(output, asdict(report), render_status(report))
        if html is not None:
            from livemart.serve.page.console_view import console_file

            html.write(console_file(settings, report.at))


@cli.command()
@with_flags(PLACES, OUTPUT)
@json_or_text
@click.option(
    "--snapshot", type=int, metavar="N", help="Number of an earlier snapshot. [default: the newest]"
)
@settings_folder
def tables(output: str, snapshot: int | None, **flags: Any) -> None:
    """Print folder and version of each published table, for other readers."""
    with reported_errors(flags, reads_warehouse=True) as settings:
        from livemart.inspect.published_tables import (
            describe_published,
            published_snapshot,
            published_tables,
            render_published,
            snapshot_numbered,
        )

        warehouse = settings.warehouse
        row = snapshot_numbered(warehouse, snapshot) if snapshot else published_snapshot(warehouse)
        published = published_tables(warehouse, row)
        print_answer(output, describe_published(row, published), render_published(row, published))


@cli.command()
@with_flags(PLACES, OUTPUT)
@json_or_text
@click.option("--dry-run", is_flag=True, help="Only report what would be removed.")
@settings_folder
def maintain(output: str, dry_run: bool, **flags: Any) -> None:
    """Remove table files that no reader needs: older than the setting `retention` (7 days).

    Every command that refreshes does this once a day. Exits with 1 if files could not be removed.
    """
    with reported_errors(flags, reads_warehouse=True) as settings:
        from livemart.errors import StateError
        from livemart.inspect.upkeep_report import render_removed
        from livemart.run.upkeep import note_upkeep, remove_old_files

        removed = list(
            remove_old_files(
                settings.warehouse, datetime.now(UTC), settings.retention, is_trial=dry_run
            )
        )
        if not removed:
            raise StateError(
                "NOTHING_PUBLISHED",
                f"{settings.warehouse}: holds no tables",
                hint="run `build` first, or name another --warehouse",
            )
        if not dry_run:
            note_upkeep(settings.warehouse, datetime.now(UTC))
        values = list(map(asdict, removed))
        print_answer(output, values, render_removed(removed, is_trial=dry_run))
        if any(it.error for it in removed):
            sys.exit(1)


@cli.command()
@with_flags(PLACES, OUTPUT)
@settings_folder
def unlock(**flags: Any) -> None:
    """Give a warehouse in a bucket free whose runner's machine is gone.

    A runner that still lives ends when it finds its lease removed. On a disk, and on the machine of
    a runner that was killed, nothing needs this.
    """
    with reported_errors(flags, reads_warehouse=True) as settings:
        from livemart.state.lease import break_lease

        holder = break_lease(settings.warehouse)
        if holder is None:
            click.echo(f"{settings.warehouse}: found no lease")
        else:
            click.echo(f"{settings.warehouse}: took it from {holder}")


@cli.command()
@with_flags(PROJECT, PLACES, OUTPUT)
def env(**flags: Any) -> None:
    """Print the environment for plain dbt in a terminal: eval "$(livemart env)"."""
    with reported_errors(flags) as settings:
        from livemart.spark.env import environment_lines

        click.echo("\n".join(environment_lines(settings)))


@cli.command()
@with_flags(PROJECT, PLACES, SERVING_STORE, OUTPUT)
@json_or_text
def doctor(output: str, **flags: Any) -> None:
    """Check the project, Java, versions, jars, locks, disk and the store, and give next steps."""
    with reported_errors(flags) as settings:
        from livemart.inspect.doctor import diagnose, find_project, render_findings

        findings = [find_project(settings.project_dir), *diagnose(settings)]
        print_answer(output, list(map(asdict, findings)), render_findings(findings))
        if any(finding.is_problem for finding in findings):
            sys.exit(2)


cli.add_command(ingest)
cli.add_command(dead_letters)
cli.add_command(init)
cli.add_command(completion)
cli.add_command(history)
cli.add_command(diff)
cli.add_command(keep)


def main() -> None:
    """Run the command line."""
    try:
        cli(prog_name="livemart")
    finally:
        # The process ends: a last garbage collection would take half a second.
        gc.freeze()


if __name__ == "__main__":
    main()
