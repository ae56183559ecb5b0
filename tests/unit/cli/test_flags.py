from __future__ import annotations

from typing import Any

import click
from click.testing import CliRunner

from livemart.cli import flags
from livemart.cli.flags import AS_OF, OUTPUT, SELECTION, flag_words, with_flags
from livemart.settings import Settings

GROUPS = [group for name, group in vars(flags).items() if name.isupper()]


def test_a_flag_that_is_not_given_is_none() -> None:
    seen: dict[str, Any] = {}

    @click.command()
    @with_flags(AS_OF, OUTPUT)
    def command(**given: Any) -> None:
        seen.update(given)

    CliRunner().invoke(command, ["--clock", "event_time"], catch_exceptions=False)

    assert seen == {"as_of": None, "clock": "event_time", "log_format": None, "debug": None}


def test_flags_are_listed_in_the_order_of_their_groups() -> None:
    @click.command()
    @with_flags(OUTPUT, AS_OF)
    def command(**given: Any) -> None: ...

    assert [param.name for param in command.params] == ["log_format", "debug", "as_of", "clock"]


def test_every_flag_is_a_setting() -> None:
    @click.command()
    @with_flags(*GROUPS)
    def command(**given: Any) -> None: ...

    assert {param.name for param in command.params} <= Settings.model_fields.keys()


def test_values_of_flags_become_the_words_that_gave_them() -> None:
    seen: list[dict[str, Any]] = []

    @click.command()
    @with_flags(SELECTION, OUTPUT)
    def command(**given: Any) -> None:
        seen.append(given)

    words = ["-s", "a b", "--select", "-c", "--debug", "--log-format", "json"]
    CliRunner().invoke(command, words, catch_exceptions=False)
    again = flag_words(command, seen[0])
    CliRunner().invoke(command, again, catch_exceptions=False)

    assert again == ["--select=a b", "--select=-c", "--log-format=json", "--debug"]
    assert seen[0] == seen[1]
