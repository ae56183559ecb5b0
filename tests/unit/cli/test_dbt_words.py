"""Words of dbt that livemart does not have end with the word that it has."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from livemart.cli.commands import cli
from livemart.cli.dbt_words import command_hint, flag_hint


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["build", "--full-refresh"], "No such option '--full-refresh'; `livemart build` makes"),
        (["refresh", "-f"], "`livemart build` makes every table"),
        (["plan", "-m", "orders"], "write --select"),
        (["build", "--exclude-resource-type", "snapshot"], "--exclude resource_type:snapshot"),
        (["build", "--no-defer"], "--select takes fewer models"),
        (["run", "--select", "orders"], "`refresh` brings all models up to date"),
        (["docs", "generate"], 'eval "$(livemart env)", then dbt docs'),
        (["--debug", "build"], "write flags behind the command"),
        (["--project-dir", "shop", "build"], "write flags behind the command"),
        (["build", "orders"], "unexpected extra argument (orders); name models with --select"),
    ],
)
def test_a_word_of_dbt_is_refused_with_the_word_to_write(words: list[str], hint: str) -> None:
    done = CliRunner().invoke(cli, words)

    assert done.exit_code == 2
    assert hint in done.stderr


def test_a_word_that_dbt_does_not_have_either_is_refused_by_itself() -> None:
    unknown = CliRunner().invoke(cli, ["build", "--wharehouse", "x"])

    assert "Did you mean '--warehouse'?" in unknown.stderr
    assert "--fast-forward" in CliRunner().invoke(cli, ["--fast-forward", "build"]).stderr
    assert "unexpected extra argument (3)" in CliRunner().invoke(cli, ["history", "3"]).stderr
    assert command_hint("fly") is None


def _flags_of_dbt() -> Iterator[str]:
    from dbt.cli.main import build

    for parameter in build.params:
        if not getattr(parameter, "hidden", False):
            yield from (*parameter.opts, *parameter.secondary_opts)


def test_every_flag_of_dbt_build_is_known_or_has_a_hint() -> None:
    known = {name for it in cli.commands["build"].params for name in it.opts}
    # For dbt's own developers and products, or deprecated.
    untaught = re.compile(r"-r$|deprecated|upload-to|record-timing|cache-events|saved-quer|--show$")

    without = [
        name
        for name in _flags_of_dbt()
        if name not in known and not flag_hint(name) and not untaught.search(name)
    ]

    assert without == []


def test_every_command_of_dbt_is_known_or_has_a_hint() -> None:
    from dbt.cli.main import cli as dbt

    assert [
        name for name in dbt.commands if name not in cli.commands and not command_hint(name)
    ] == []
