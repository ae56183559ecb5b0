"""The token command: what it makes, lists, revokes and refuses."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from livemart.cli.commands import cli
from livemart.errors import StateError
from livemart.serve.auth.report import check_place
from livemart.state.snapshots import SnapshotLog
from tests.serve.apps import make_settings
from tests.store.stores import fill_store, reference_tables


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a project, where commands are called."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "dbt_project.yml").touch()
    monkeypatch.chdir(folder)
    return folder


def test_tokens_are_made_listed_and_revoked_by_command(tmp_path: Path) -> None:
    runner, places = CliRunner(), ["--warehouse", str(tmp_path / "warehouse")]

    flags = ["--name", "till", "--tenant", "r1", "--unseen"]
    made = runner.invoke(cli, ["token", "create", *flags, *places])
    listed = runner.invoke(cli, ["token", "list", "--output", "json", *places])

    text = made.stdout.strip()
    (token,) = json.loads(listed.stdout)
    assert re.fullmatch(r"lm_[0-9a-f]{12}_\S{43}", text)
    assert f"token {token['token_id']} (till) reads r1, until " in made.stderr
    assert (token["name"], token["tenants"], token["state"]) == ("till", ["r1"], "valid")
    lasts = datetime.fromisoformat(token["expires_at"]) - datetime.fromisoformat(
        token["created_at"]
    )
    assert lasts == timedelta(days=90)
    assert text.split("_", 2)[2] not in listed.stdout

    revoked = runner.invoke(cli, ["token", "revoke", token["token_id"], *places])
    table = runner.invoke(cli, ["token", "list", *places])
    assert (revoked.exit_code, table.stdout.split()[-1]) == (0, "revoked")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["create", "--name", "x"], "give --tenant ID (once or more), --admin, or --ingest SOURCE"),
        (["create", "--name", "x", "--admin", "--tenant", "r1"], "give --tenant ID"),
        (["create", "--name", "x", "--admin", "--expires", "soon"], "WRONG_SETTING: --expires"),
        (["create", "--name", "x", "--admin", "--store", "none"], "STORE_NOT_SET"),
        (["revoke", "nobody"], "TOKEN_UNKNOWN"),
    ],
)
def test_a_wrong_token_command_says_what_to_do(
    tmp_path: Path, arguments: list[str], told: str
) -> None:
    places = ["--warehouse", str(tmp_path / "warehouse")]

    answer = CliRunner().invoke(cli, ["token", *arguments, *places])

    assert answer.exit_code == 2
    assert told in answer.stderr


def test_no_tokens_are_listed_before_the_first(tmp_path: Path) -> None:
    answer = CliRunner().invoke(cli, ["token", "list", "--warehouse", str(tmp_path)])

    assert answer.stdout == "no token exists yet\n  next: run `token create`\n"


def test_a_token_may_last_for_ever(tmp_path: Path) -> None:
    places = ["--warehouse", str(tmp_path)]
    flags = ["--name", "me", "--admin", "--expires", "never"]

    answer = CliRunner().invoke(cli, ["token", "create", *flags, *places])

    assert "(me) reads everything, for ever; it is not shown again" in answer.stderr


def test_a_token_says_in_which_store_it_is(tmp_path: Path) -> None:
    places = ["--warehouse", str(tmp_path / "warehouse")]

    answer = CliRunner().invoke(cli, ["token", "create", "--name", "me", "--admin", *places])

    assert f"{tmp_path}/warehouse/_livemart/serving.db, where nothing is published yet" in (
        answer.stderr
    )


def test_a_token_in_the_wrong_folder_makes_no_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    monkeypatch.chdir(wrong)

    answer = CliRunner().invoke(cli, ["token", "create", "--name", "me", "--admin"])

    assert answer.exit_code == 2
    assert "NOTHING_PUBLISHED: " in answer.stderr and "holds no project" in answer.stderr
    assert not list(wrong.iterdir())


def test_a_tenant_of_a_project_that_was_never_built_is_refused_unless_its_rows_are_to_come(
    tmp_path: Path, project: Path
) -> None:
    """No row says which tenants exist, so a misspelled one would pass, and read nothing."""
    places, runner = ["--warehouse", str(tmp_path / "warehouse")], CliRunner()
    flags = ["--name", "till", "--tenant", "r1", "--tenant", "r2", *places]

    refused = runner.invoke(cli, ["token", "create", *flags])
    is_made = (tmp_path / "warehouse").exists()
    sender = runner.invoke(cli, ["token", "create", "--name", "x", "--ingest", "orders", *places])
    unseen = runner.invoke(cli, ["token", "create", *flags, "--unseen"])

    assert (refused.exit_code, refused.stdout, is_made) == (2, "", False)
    assert refused.stderr.startswith("NOTHING_PUBLISHED: ")
    assert "no row says which tenants exist; found --tenant r1, r2" in refused.stderr
    assert "next: run `livemart build` first, or add --unseen" in refused.stderr
    assert (sender.exit_code, unseen.exit_code) == (0, 0)


def test_a_tenant_is_refused_while_the_store_is_still_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The warehouse has snapshots, as after a change of the setting `store`."""
    monkeypatch.setattr(SnapshotLog, "newest", lambda _: object())
    settings = make_settings(tmp_path)

    with pytest.raises(StateError, match=r"NOTHING_PUBLISHED: .* found --tenant r1\n"):
        check_place(settings, ["r1"])
    for tenants, unseen in (([], False), (["r1"], True)):
        assert "nothing is published yet" in check_place(settings, tenants, unseen=unseen)


def test_a_tenant_without_rows_is_refused_unless_they_are_to_come(
    tmp_path: Path, store_url: str
) -> None:
    fill_store(store_url, reference_tables())
    settings = make_settings(tmp_path, store=store_url)

    with pytest.raises(StateError, match=r"TENANT_UNKNOWN: .* no served row belongs to r99"):
        check_place(settings, ["r1", "r99"])
    for place in (check_place(settings, ["r1"]), check_place(settings, ["r99"], unseen=True)):
        assert "published" not in place
