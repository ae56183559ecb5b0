"""`plan --against` names the models that an edit plans otherwise, and the reason's line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from livemart.errors import ConfigError
from livemart.inspect.plan_difference import compare_plans, earlier_report, render_difference
from livemart.settings import Settings


def described(name: str, strategy: str, policy: str = "auto") -> dict[str, Any]:
    reason = {
        "code": "GLOBAL_LIMIT",
        "message": "a limit over all rows",
        "line": 4,
        "suggestion": "take the LIMIT away",
        "place": f"models/{name}.sql:4",
    }
    return {
        "name": name.rpartition(".")[2],
        "unique_id": f"model.{name if '.' in name else 'shop.' + name}",
        "file": f"models/{name}.sql",
        "strategy": strategy,
        "policy": policy,
        "reasons": [reason] if strategy == "full" and policy != "full" else [],
    }


def report(*models: dict[str, Any]) -> dict[str, Any]:
    return {"models": list(models)}


def test_an_edit_that_turns_a_model_full_is_named_with_its_line() -> None:
    difference = compare_plans(
        report(described("hours", "signed"), described("days", "region")),
        report(described("hours", "full"), described("days", "region")),
    )

    assert difference["turned_full"] == ["hours"]
    assert render_difference(difference, "main").splitlines() == [
        "hours  signed -> full",
        "  GLOBAL_LIMIT: models/hours.sql:4: a limit over all rows",
        "    next: take the LIMIT away",
    ]


def test_models_of_two_packages_are_compared_each_with_itself() -> None:
    difference = compare_plans(
        report(described("shop.days", "signed"), described("crm.days", "full")),
        report(described("shop.days", "full"), described("crm.days", "full")),
    )

    assert [model["name"] for model in difference["changed"]] == ["shop.days"]
    assert difference["turned_full"] == ["shop.days"]


def test_a_cheaper_way_a_wish_for_full_and_an_old_full_model_are_no_fault() -> None:
    difference = compare_plans(
        report(described("a", "full"), described("b", "signed"), described("c", "full")),
        report(described("a", "signed"), described("b", "full", "full"), described("c", "full")),
    )

    assert [model["name"] for model in difference["changed"]] == ["a", "b"]
    assert difference["turned_full"] == []


def test_a_new_model_counts_by_its_own_strategy() -> None:
    difference = compare_plans(report(), report(described("a", "full"), described("b", "append")))

    assert difference["turned_full"] == ["a"]
    assert render_difference(difference, "main").splitlines()[-1] == "b  new -> append"


def test_equal_plans_say_so() -> None:
    same = report(described("a", "full"))

    assert render_difference(compare_plans(same, same), "v1") == (
        "every model is refreshed as at v1"
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose project is in a folder of it; its second commit has another model."""
    project = tmp_path / "repository" / "shop"
    (project / "models").mkdir(parents=True)
    (project / "profiles").mkdir()
    (project / "profiles" / "profiles.yml").write_text("shop: {}\n")
    (project / "dbt_project.yml").write_text("name: shop\n")
    (project / "models" / "a.sql").write_text("select 1\n")
    (project / ".gitignore").write_text("dbt_packages\n")
    git(tmp_path / "repository", "init", "-q", "-b", "main")
    commit(project)
    (project / "models" / "a.sql").write_text("select 2\n")
    commit(project)
    (project / "models" / "a.sql").write_text("select 3\n")
    (project / "dbt_packages" / "dates").mkdir(parents=True)
    return project


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True)


def commit(project: Path) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    git(project, "add", ".")
    git(project, *who, "commit", "-q", "-m", "a")


def test_the_project_of_a_commit_is_planned_beside_todays_profile_and_packages(
    repository: Path,
) -> None:
    settings = Settings(project_dir=repository, vars={"depth": 2})

    def plans_of(earlier: Settings) -> dict[str, Any]:
        text = (earlier.project_dir / "models" / "a.sql").read_text()
        return {
            "text": text,
            "vars": earlier.vars,
            "warehouse": earlier.warehouse,
            "profile": earlier.profiles_dir,
            "packages": (earlier.project_dir / "dbt_packages" / "dates").is_dir(),
        }

    wanted = {
        "text": "select 2\n",
        "vars": {"depth": 2},
        "warehouse": settings.warehouse,
        "profile": repository / "profiles",
        "packages": True,
    }
    assert earlier_report("main", settings, plans_of) == wanted
    assert earlier_report("HEAD~1", settings, plans_of) == wanted | {"text": "select 1\n"}
    assert (repository / "models" / "a.sql").read_text() == "select 3\n"


def test_packages_are_lent_from_the_folder_that_dbt_installs_them_in(repository: Path) -> None:
    (repository / "dbt_project.yml").write_text("packages-install-path: lib/packages\n")
    (repository / "lib" / "packages" / "dates").mkdir(parents=True)

    def plans_of(earlier: Settings) -> dict[str, Any]:
        return {"packages": (earlier.project_dir / "lib" / "packages" / "dates").is_dir()}

    settings = Settings(project_dir=repository)
    assert earlier_report("main", settings, plans_of) == {"packages": True}


def test_a_kept_report_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "plans.json"
    file.write_text(json.dumps(report(described("a", "full"))))

    assert earlier_report(str(file), Settings(), lambda _: {})["models"][0]["name"] == "a"


@pytest.mark.parametrize("against", ["no_such_branch", "--output=x", "file.json"])
def test_neither_a_commit_nor_a_report_is_refused(
    repository: Path, against: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    (repository / "file.json").write_text('{"nodes": {}}')

    with pytest.raises(ConfigError, match="NO_EARLIER_PLANS") as caught:
        earlier_report(against, Settings(project_dir=repository), lambda _: {})
    assert caught.value.hint == (
        "give a commit, branch or tag of git, or a file that `plan --output json` wrote"
    )


def test_a_project_outside_a_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="git rev-parse: fatal: not a git repository"):
        earlier_report("main", Settings(project_dir=tmp_path), lambda _: {})


def test_a_commit_without_the_project_is_refused(repository: Path) -> None:
    (repository.parent / "other").mkdir()

    with pytest.raises(ConfigError, match=r"commit main has no other/dbt_project\.yml"):
        earlier_report("main", Settings(project_dir=repository.parent / "other"), lambda _: {})
