"""Gives the next step for flags and commands of dbt that livemart has under other names, or not.

Used by the commands when a word is unknown: an analyst who knows dbt types dbt's words first.
"""

from __future__ import annotations

from collections.abc import Mapping

_WHOLE = "leave it out: livemart keeps whole tables, and --select takes fewer models"
_SHOWN = "leave it out: --log-format and --debug choose what is shown"
_PARSING = "write it below `flags:` in dbt_project.yml"
_PLAIN_DBT = 'use dbt itself, on the same tables: eval "$(livemart env)", then dbt {}'

_FLAGS: Mapping[tuple[str, ...], str] = {
    ("--full-refresh", "-f"): (
        "`livemart build` makes every table from the start, `livemart build --select NAME` some"
    ),
    ("--model", "--models", "-m"): "write --select",
    ("--profile",): "write `profile:` in dbt_project.yml, or set DBT_PROFILE",
    ("--threads",): (
        "set LIVEMART_THREADS, or `threads` in livemart.yml; a build takes those of profiles.yml"
    ),
    ("--fail-fast", "-x"): (
        "leave it out: a refresh sets a model that fails aside, and goes on with the others"
    ),
    ("--resource-type", "--resource-types"): "write --select resource_type:model",
    ("--exclude-resource-type", "--exclude-resource-types"): (
        "write --exclude resource_type:snapshot"
    ),
    ("--defer", "--defer-state", "--favor-state", "--empty", "--sample"): _WHOLE,
    ("--event-time-start", "--event-time-end"): _WHOLE,
    ("--indirect-selection",): "leave it out: the data tests of all changed tables are run",
    ("--store-failures",): "a test that fails shows rows; " + _PLAIN_DBT.format("test"),
    ("-d",): "write --debug",
    ("--debug",): "leave it out",
    ("--quiet", "-q", "--log-level", "--log-level-file", "--log-format-file", "--log-path"): _SHOWN,
    ("--print", "--printer-width", "--use-colors", "--use-colors-file"): _SHOWN,
    ("--warn-error", "--warn-error-options", "--version-check", "--partial-parse"): _PARSING,
    ("--static-parser", "--cache-selected-only", "--populate-cache", "--introspect"): _PARSING,
    ("--show-all-deprecations", "--send-anonymous-usage-stats", "--write-json"): _PARSING,
    ("--use-experimental-parser",): _PARSING,
    ("--version", "-V", "-v"): "write livemart --version",
}
_COMMANDS: Mapping[str, str] = {
    "run": "`refresh` brings all models up to date, `build` makes them again; --select takes some",
    "test": "`build` and `refresh` run the data tests; " + _PLAIN_DBT.format("test"),
    "seed": "`refresh` loads the seeds that changed, `build --select NAME` loads one again",
    "snapshot": "`build --select NAME` makes a dbt snapshot",
    "retry": "`refresh` goes on with all that is not done",
    "debug": "`doctor` checks the machine and the warehouse, `plan` the project",
    "ls": "`plan` lists the models; " + _PLAIN_DBT.format("ls"),
    "list": "`plan` lists the models; " + _PLAIN_DBT.format("list"),
    "source": "`status` shows the freshness of sources; " + _PLAIN_DBT.format("source freshness"),
    "help": "write --help, alone or behind a command",
    "version": "write --version",
    **{
        word: _PLAIN_DBT.format(word)
        for word in ("clean", "clone", "compile", "deps", "docs", "parse", "run-operation", "show")
    },
}


def flag_hint(name: str) -> str | None:
    """Return the next step for a flag that only dbt has; None if dbt does not have it either.

    >>> flag_hint("--models"), flag_hint("--no-partial-parse") == flag_hint("--partial-parse")
    ('write --select', True)
    """
    positive = f"--{name.removeprefix('--no-')}" if name.startswith("--no-") else name
    return next((hint for names, hint in _FLAGS.items() if positive in names), None)


def command_hint(name: str) -> str | None:
    """Return the next step for a command that only dbt has; None if dbt does not have it either.

    >>> command_hint("retry")
    '`refresh` goes on with all that is not done'
    """
    return _COMMANDS.get(name)
