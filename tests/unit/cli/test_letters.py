"""Dead letters are listed, exported and re-driven from the command line."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from livemart.cli.commands import cli
from tests.deliveries import NOON, Shop, source

NOTES = source("notes", {"id": "string", "n": "int"}, path="notes/*.jsonl")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    shop = Shop(None, tmp_path, [NOTES])
    shop.land(0, shop.deliver("notes/1.jsonl", ['{"id":"a","n":"x"}', '{"id":"b","n":"y"}']))
    monkeypatch.setenv("LIVEMART_WAREHOUSE", str(shop.warehouse.root))
    monkeypatch.setenv("LIVEMART_LANDING", str(shop.folder))
    monkeypatch.setattr("livemart.cli.letters._sources", lambda _: {NOTES.relation: NOTES})
    return shop


def run(*arguments: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(cli, ["dead-letters", *arguments], input=typed)


def test_an_export_is_mended_and_redriven(shop: Shop) -> None:
    exported = run("export", "--source", "notes")
    assert "2 exported" in exported.stderr

    done = run("redrive", "-", typed=exported.stdout.replace('\\"x\\"', "1"))

    assert (done.exit_code, done.stdout) == (0, "2 records handed over again\n")
    assert run("list").stdout == "no dead letters\n"
    listed = json.loads(run("list", "--all", "--output", "json").stdout)
    assert (listed["total"], listed["letters"]) == (2, [])
    (path,) = shop.folder.glob("notes/redrive-*.jsonl")
    assert path.read_text() == '{"id":"a","n":1}\n{"id":"b","n":"y"}\n'


def test_a_dry_run_hands_nothing_over(shop: Shop) -> None:
    done = run("redrive", "--dry-run")

    assert done.stdout == "2 records would be handed over\n"
    assert not list(shop.folder.glob("notes/redrive-*"))


def test_letters_that_are_dismissed_wait_no_more_and_stay(shop: Shop) -> None:
    shop.land(1, shop.deliver("notes/2.jsonl", ["{broken"]))
    assert run("dismiss").exit_code == 2
    trial = run("dismiss", "--reason", "TYPE_MISMATCH", "--dry-run")

    done = [run("dismiss", "--reason", "TYPE_MISMATCH").stdout for _ in range(2)]

    assert trial.stdout == "2 letters would be dismissed\n"
    assert done == ["2 letters dismissed\n", "0 letters dismissed\n"]
    assert json.loads(run("list", "--output", "json").stdout)["total"] == 1
    assert json.loads(run("list", "--all", "--output", "json").stdout)["total"] == 3
    assert run("redrive").stdout == "1 record handed over again\n"
    # A second choice is another mark.
    shop.land(2, shop.deliver("notes/3.jsonl", ['{"id":"c","n":"z"}']))
    assert run("dismiss", "--source", "notes").stdout == "1 letter dismissed\n"
    assert run("list").stdout == "no dead letters\n"


def test_letters_are_chosen_by_time(shop: Shop) -> None:
    at = NOON.isoformat()

    assert run("list", "--until", at).stdout == "no dead letters\n"
    assert "TYPE_MISMATCH" in run("list", "--since", at).stdout
    # Without a zone it is UTC; an interval is before now.
    assert "TYPE_MISMATCH" in run("list", "--since", at.removesuffix("+00:00")).stdout
    days = (datetime.now(UTC) - NOON).days
    assert run("list", "--until", f"{abs(days) + 2} days").exit_code == 0
    for beyond in ("yesterday", "0001-01-01T00:00+14:00", "2026-03-01T12:00:00.0000001"):
        wrong = run("list", "--since", beyond)
        assert wrong.exit_code == 2
        assert "write a time, 2026-03-01T12:00, or how long ago" in wrong.stderr


def test_a_file_names_its_letters_alone(shop: Shop) -> None:
    done = run("redrive", "-", "--source", "notes", typed="")

    assert done.exit_code == 2
    assert "FILE selects the letters" in done.stderr
