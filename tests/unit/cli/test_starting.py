"""The first commands of a newcomer: a project, what to type next, and completion."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from livemart.cli.commands import cli


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["/usr/bin/livemart"])
    monkeypatch.setattr("livemart.cli.starting.shutil.which", lambda name: f"/usr/bin/{name}")


def test_init_writes_a_project_and_says_what_to_type_next(tmp_path: Path) -> None:
    answer = CliRunner().invoke(cli, ["init", "my shop"])

    assert answer.exit_code == 0, answer.output
    assert (tmp_path / "my shop" / "dbt_project.yml").is_file()
    assert answer.stdout.startswith("next:\n  cd 'my shop'\n  livemart up ")
    assert "python3 deliver.py" in answer.stdout
    assert f"wrote project my_shop and its sample orders into {tmp_path}/my shop" in answer.stderr


def test_from_a_clone_the_next_command_is_the_clones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["runner.py"])
    monkeypatch.setattr("sys.executable", "/shop/.venv/bin/python")

    answer = CliRunner().invoke(cli, ["init", "shop"])

    assert f"/shop/.venv/bin/python {Path.cwd()}/runner.py up" in answer.stdout


def test_a_program_that_is_not_on_the_path_is_named_as_it_was_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("livemart.cli.starting.shutil.which", lambda _: None)
    monkeypatch.setattr("sys.executable", "/shop/bin/python")
    monkeypatch.setattr("sys.argv", ["/shop/livemart/__main__.py"])
    module = CliRunner().invoke(cli, ["init", "one"])
    monkeypatch.setattr("sys.argv", ["/my shop/bin/livemart"])
    script = CliRunner().invoke(cli, ["init", "two"])

    assert "  /shop/bin/python -m livemart up " in module.stdout
    assert "  '/my shop/bin/livemart' up " in script.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["init"],
        ["init", "--from-dbt", "--name", "shop"],
        ["init", "--from-dbt", "shop", "--project-dir", "other"],
    ],
)
def test_a_wrong_use_is_told(words: list[str]) -> None:
    answer = CliRunner().invoke(cli, words)

    assert answer.exit_code == 2
    assert "Error: " in answer.stderr


def test_the_folder_to_check_is_named_as_every_command_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places: list[Path] = []
    monkeypatch.setattr(
        "livemart.starter.from_dbt.adapt_project", lambda it, _: places.append(it.project_dir)
    )

    for words in (["shop"], ["--project-dir", "shop"], []):
        CliRunner().invoke(cli, ["init", "--from-dbt", *words])
    CliRunner().invoke(cli, ["init", "--from-dbt"], env={"LIVEMART_PROJECT_DIR": "other"})
    CliRunner().invoke(cli, ["init", "--project-dir", "made"])

    shop = tmp_path / "shop"
    assert places == [shop, shop, tmp_path, tmp_path / "other"]
    assert (tmp_path / "made" / "dbt_project.yml").is_file()


def test_a_folder_that_is_not_empty_is_exit_code_two(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("")

    answer = CliRunner().invoke(cli, ["init", "."])

    assert answer.exit_code == 2
    assert answer.stderr.startswith("FOLDER_NOT_EMPTY: ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(shell: str) -> None:
    answer = CliRunner().invoke(cli, ["completion", shell])

    assert answer.exit_code == 0
    assert f"_LIVEMART_COMPLETE={shell}_complete" in answer.stdout


def test_words_are_completed() -> None:
    answer = CliRunner().invoke(
        cli,
        prog_name="livemart",
        env={
            "_LIVEMART_COMPLETE": "bash_complete",
            "COMP_WORDS": "livemart ref",
            "COMP_CWORD": "1",
        },
    )

    assert answer.stdout == "plain,refresh\n"
