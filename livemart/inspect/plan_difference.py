"""Compares the plans of a project with those of an earlier commit, or of a kept report.

Used by `plan --against`.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from livemart.errors import ConfigError
from livemart.inspect.plan_report import describe_plans, full_models, id_in_report, reason_lines
from livemart.project.graph import names_apart
from livemart.project.profiles import profiles_folder
from livemart.run.events import ReportEvent
from livemart.run.runtime import load_plans
from livemart.run.target_folder import written_path
from livemart.settings import Settings

# As `describe_plans` returns it.
PlanReport = Mapping[str, Any]
_HINT = "give a commit, branch or tag of git, or a file that `plan --output json` wrote"


def difference_since(
    against: str, after: PlanReport, settings: Settings, report: ReportEvent
) -> dict[str, Any]:
    """Return how plans differ from those of a commit or of a kept report, see `compare_plans`.

    Args:
        against: see `earlier_report`.
        after: the report of today.
        settings: of the project.
        report: called with the steps in which the earlier project is read.

    Raises:
        ConfigError: see `earlier_report`.
    """

    def plans_of(earlier: Settings) -> PlanReport:
        project, plans, chosen = load_plans(earlier, report)
        return describe_plans(project, plans.models, plans.stored, chosen)

    return compare_plans(earlier_report(against, settings, plans_of), after)


def compare_plans(before: PlanReport, after: PlanReport) -> dict[str, Any]:
    """Return `{"changed": [...], "turned_full": [names]}`: models that another way refreshes.

    A changed model has its name (see `names_apart`), file, strategy `before` (None: a new model)
    and `after`, and the reasons of the plan after. One turned full if an edit took its cheaper way,
    or if it is new and has none; a model whose author asked for full did not.
    """
    names = names_apart(map(id_in_report, after["models"]))
    strategies = {id_in_report(model): model["strategy"] for model in before["models"]}
    earlier = {
        id_in_report(model): strategies.get(id_in_report(model), strategies.get(model["name"]))
        for model in after["models"]
    }
    changed = [
        {
            "name": names[id_in_report(model)],
            "file": model["file"],
            "before": earlier[id_in_report(model)],
            "after": model["strategy"],
            "reasons": model["reasons"],
        }
        for model in after["models"]
        if earlier[id_in_report(model)] != model["strategy"]
    ]
    changed_names = {model["name"] for model in changed}
    return {
        "changed": changed,
        "turned_full": [name for name in full_models(after) if name in changed_names],
    }


def render_difference(difference: Mapping[str, Any], against: str) -> str:
    """Return the changed models as lines for a terminal, each reason with file, line and advice."""
    lines = []
    for model in difference["changed"]:
        lines.append(f"{model['name']}  {model['before'] or 'new'} -> {model['after']}")
        for reason in model["reasons"]:
            lines += [f"  {line}" for line in reason_lines(reason)]
    return "\n".join(lines) or f"every model is refreshed as at {against}"


def earlier_report(
    against: str, settings: Settings, plans_of: Callable[[Settings], PlanReport]
) -> PlanReport:
    """Return the report of plans of an earlier state of the project.

    Args:
        against: a file of a report, or a name that git gives a commit of the project's repository.
        plans_of: plans the project of other settings. Profile, warehouse, variables and selection
            are today's, and so are installed packages that git does not hold.

    Raises:
        ConfigError: NO_EARLIER_PLANS, or for a mistake in the project of that commit.
    """
    if Path(against).is_file():
        return _read(Path(against))
    with TemporaryDirectory(prefix="livemart-plan-") as folder:
        return plans_of(_settings_at(against, settings, Path(folder).resolve()))


def _read(file: Path) -> PlanReport:
    try:
        report: PlanReport = json.loads(file.read_bytes())
        compare_plans(report, report)
    except (ValueError, KeyError, TypeError) as error:
        raise _no_plans(f"{file} is no report of plans") from error
    return report


def _settings_at(commit: str, settings: Settings, folder: Path) -> Settings:
    """Check a commit out into a folder; return the settings of the project there."""
    project = settings.project_dir.resolve()
    top = Path(_git(project, "rev-parse", "--show-toplevel")).resolve()
    sha = _git(project, "rev-parse", "--verify", "--end-of-options", f"{commit}^{{commit}}")
    where = project.relative_to(top)
    if not _git(top, "ls-tree", "--name-only", sha, str(where / "dbt_project.yml")):
        raise _no_plans(f"commit {commit} has no {where / 'dbt_project.yml'}")
    files = folder / "files"
    # Not a work tree: that would be noted in the repository.
    _git(folder, "clone", "--quiet", "--shared", "--no-checkout", str(top), str(files))
    _git(files, "checkout", "--quiet", "--detach", sha)
    earlier = files / where
    _lend_packages(settings, earlier)
    return settings.model_copy(
        update={
            "project_dir": earlier,
            "profiles_dir": profiles_folder(project, settings.profiles_dir),
            "target_path": folder / "target",
        }
    )


def _lend_packages(settings: Settings, earlier: Path) -> None:
    """Link the packages that `dbt deps` installed, as git seldom holds them."""
    folder = written_path(settings, "packages-install-path") or "dbt_packages"
    packages = settings.project_dir.resolve() / folder
    if packages.is_dir() and not (earlier / folder).exists():
        (earlier / folder).parent.mkdir(parents=True, exist_ok=True)
        (earlier / folder).symlink_to(packages, target_is_directory=True)


def _git(folder: Path, *words: str) -> str:
    """Return the first line that git prints."""
    try:
        done = subprocess.run(
            ["git", "-C", folder, *words], capture_output=True, text=True, check=True
        )
    except FileNotFoundError as error:
        raise _no_plans("git is not installed") from error
    except subprocess.CalledProcessError as error:
        raise _no_plans(f"git {words[0]}: {error.stderr.strip()}") from error
    return done.stdout.partition("\n")[0]


def _no_plans(message: str) -> ConfigError:
    return ConfigError("NO_EARLIER_PLANS", message, hint=_HINT)
