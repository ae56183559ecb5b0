"""Defines the commands to start a project: `init`, `completion`.

Used by `livemart`; neither needs a project, a warehouse or Spark.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

from livemart.cli.exits import reported_errors
from livemart.cli.flags import OUTPUT, PROJECT, with_flags


@click.command()
@click.argument("folder", metavar="[FOLDER]", required=False, type=click.Path(path_type=Path))
@click.option("--name", metavar="NAME", help="Name of the dbt project. [default: the folder's]")
@click.option(
    "--from-dbt",
    is_flag=True,
    help="Check the dbt project in FOLDER or --project-dir [default: .], and list what it needs.",
)
@with_flags(PROJECT, OUTPUT)
def init(folder: Path | None, name: str | None, from_dbt: bool, **flags: Any) -> None:
    """Write a small project over sample data into FOLDER, or check an existing dbt project.

    The project builds, streams and serves as it is. Nothing is ever overwritten.
    """
    if from_dbt and name is not None:
        raise click.UsageError("--name is for a new project: leave out --name or --from-dbt")
    named = flags.pop("project_dir")
    if named and folder:
        raise click.UsageError("name the folder once: as FOLDER, or with --project-dir")
    folder = Path(named) if named else folder
    place = folder and Path.cwd() / folder.expanduser()
    if from_dbt:
        with reported_errors({**flags, "project_dir": place}) as settings:
            from livemart.starter.from_dbt import adapt_project

            adapt_project(settings, click.echo)
        return
    if place is None:
        raise click.UsageError("name a folder for the new project: livemart init my_project")
    with reported_errors({"debug": flags.get("debug")}):
        from livemart.starter.new_project import write_project

        written = write_project(place, name)
        shown = shlex.quote(str(folder))
        program = _program()
        click.echo(f"wrote project {written} and its sample orders into {place}", err=True)
        click.echo(
            f"next:\n  cd {shown}\n"
            f"  {program} up           # builds, serves http://127.0.0.1:8000/, until Ctrl-C\n"
            f"  python3 deliver.py    # in another terminal: ten more orders, seen within seconds"
        )


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the shell completion of `livemart`: eval "$(livemart completion bash)"."""
    kind = get_completion_class(shell)
    assert kind is not None
    group = click.get_current_context().find_root().command
    click.echo(kind(group, {}, "livemart", "_LIVEMART_COMPLETE").source())


def _program() -> str:
    """Return the command of this program, for a call from another folder."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return shlex.join([sys.executable, "-m", "livemart"])
    if called.name == "runner.py":
        return shlex.join([sys.executable, str(called.absolute())])
    return "livemart" if shutil.which("livemart") else shlex.quote(str(called.absolute()))
