"""Defines the flags that commands share, in groups.

Used by the commands. The settings hold a flag's default, not this module: None means not given.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

PROJECT = (
    click.option("--project-dir", metavar="DIR", help="Folder of dbt_project.yml. [default: .]"),
    click.option("--profiles-dir", metavar="DIR", help="Folder of profiles.yml."),
    click.option("--target", "-t", metavar="NAME", help="Target of the dbt profile."),
    click.option(
        "--target-path", metavar="DIR", help="Folder for artifacts. [default: the project's target]"
    ),
    click.option("--vars", metavar="YAML", help="Variables for dbt, as a YAML mapping."),
)
PLACES = (
    click.option(
        "--warehouse",
        metavar="DIR",
        help="Root of all tables: a folder, or s3://bucket/folder. [default: ./warehouse]",
    ),
    click.option(
        "--landing",
        metavar="DIR",
        help="Folder for arriving files, or s3://bucket/folder. [default: ./landing]",
    ),
)
SPARK = (
    click.option("--master", metavar="URL", help="Spark's master. [default: local[*]]"),
    click.option("--memory", metavar="SIZE", help="Memory of Spark's driver. [default: 3g]"),
    click.option("--spark-conf", metavar="YAML", help="Properties of Spark, as a YAML mapping."),
)
ADDRESS = (
    click.option("--host", metavar="ADDRESS", help="Address to listen on. [default: 127.0.0.1]"),
    click.option("--port", metavar="PORT", help="[default: 8000]"),
    click.option(
        "--http-ingest",
        is_flag=True,
        default=None,
        help="Accept records by POST /v1/ingest/SOURCE, with a token of the source.",
    ),
)
SELECTION = (
    click.option(
        "--select", "-s", multiple=True, metavar="NAME", help="Models to include, as in dbt."
    ),
    click.option("--exclude", multiple=True, metavar="NAME", help="Models to leave out."),
    click.option("--selector", metavar="NAME", help="Name of a selector in selectors.yml."),
    click.option(
        "--state", metavar="DIR", help="Folder of an earlier manifest.json, for state:modified."
    ),
)
OUTPUT = (
    click.option("--log-format", type=click.Choice(["text", "json"]), help="Format of log events."),
    click.option("--debug", is_flag=True, default=None, help="Show tracebacks and details."),
)
AS_OF = (
    click.option(
        "--as-of", metavar="TIME", help="The 'now' of the snapshot, instead of the clock (UTC)."
    ),
    click.option(
        "--clock", metavar="wall|event_time", help="Clock that moves as_of. [default: wall]"
    ),
)
SERVING_STORE = (
    click.option(
        "--store",
        metavar="URL",
        help="Serving store: sqlite:///file.db, postgresql://..., or none. [default: in warehouse]",
    ),
)
json_or_text = click.option(
    "--output", type=click.Choice(["text", "json"]), default="text", help="Format of the output."
)


def print_answer(output: str, values: object, text: str) -> None:
    """Print an answer in the form that `--output` asks for.

    Args:
        values: printed by `json`; times become ISO 8601.
        text: printed by `text`.
    """
    is_json = output == "json"
    click.echo(json.dumps(values, indent=2, default=datetime.isoformat) if is_json else text)


def with_flags(*groups: tuple[Callable[[Any], Any], ...]) -> Callable[[Command], Command]:
    """Return a decorator that gives a command these flags, in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed([option for group in groups for option in group]):
            command = option(command)
        return command

    return decorate


def flag_words(command: click.Command, values: Mapping[str, Any]) -> list[str]:
    """Return the words that give a command these values, by the names of its options.

    >>> flag_words(click.Command("up", params=[click.Option(["--port"])]), {"port": "80"})
    ['--port=80']
    """
    words = []
    for option in command.params:
        value = values.get(option.name or "")
        name = max(option.opts, key=len)
        if value is True:
            words.append(name)
        elif value not in (None, False):
            texts = value if isinstance(value, tuple) else (value,)
            words += [f"{name}={text}" for text in texts]
    return words


settings_folder = with_flags(
    (
        click.option("--project-dir", metavar="DIR", help="Folder of livemart.yml. [default: .]"),
        click.option("--profiles-dir", metavar="DIR", help="Accepted for uniformity; not read."),
    )
)
