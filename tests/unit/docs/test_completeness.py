"""Documentation names every command, every setting and the versions that are installed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import click
import pytest

from livemart.cli.commands import cli
from livemart.settings import Settings
from livemart.spark.java import ACCEPTED_JAVA

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def names_in_first_column(text: str) -> set[str]:
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return {name.split()[0] for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_every_command_stands_in_the_readme() -> None:
    expected = set(cli.commands)

    actual = names_in_first_column(README)

    assert actual == expected


def test_every_setting_is_documented_and_no_other() -> None:
    expected = set(Settings.model_fields)

    actual = names_in_first_column((ROOT / "docs" / "settings.md").read_text(encoding="utf-8"))

    assert actual == expected


def test_settings_without_a_flag_are_named() -> None:
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    expected = set(Settings.model_fields) - set(parameters(cli))

    sentence = text.partition("These have no flag")[2].partition("alone:")[2].partition(".\n")[0]

    assert set(re.findall(r"`([^`]+)`", sentence)) == expected


def parameters(group: click.Group) -> Iterator[str]:
    for command in group.commands.values():
        if isinstance(command, click.Group):
            yield from parameters(command)
        yield from (str(parameter.name) for parameter in command.params)


@pytest.mark.parametrize(
    ("distribution", "digits"),
    [("pyspark", 3), ("delta-spark", 3), ("deltalake", 2), ("dbt-core", 2), ("dbt-spark", 3)],
)
def test_the_version_table_is_what_is_installed(distribution: str, digits: int) -> None:
    version = ".".join(metadata.version(distribution).split(".")[:digits])

    assert version in README


def test_the_version_table_has_each_java_that_spark_runs_on() -> None:
    assert f"| Java | {ACCEPTED_JAVA.removeprefix('Java ')} " in README


def test_what_one_touches_to_add_something_is_there() -> None:
    text = (ROOT / "docs" / "how-to-add.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:livemart|tests|docs)/[^`]+)`", text)

    assert [path for path in named if not (ROOT / path).exists()] == []
    assert len(re.findall(r"\n(Fails|Write) first: ", text)) == text.count("\n## ")


@pytest.mark.parametrize("path", [*sorted(ROOT.glob("docs/*.md")), ROOT / "README.md"])
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    expected: list[str] = []

    links = re.findall(r"\]\((?!http)([^)#]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8"))
    actual = [link for link in links if not (path.parent / link).exists()]

    assert actual == expected
