"""Turns the models that dbt could not build into one error.

Used after each build. The message is the database's own, without the query plan below it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from livemart.errors import RefreshError
from livemart.project.graph import Model, Project
from livemart.project.node_results import NodeResult

# An operator that is not resolved, or a branch below one.
_OF_A_PLAN = re.compile(r"\s*(?:'[A-Z]\w*(?:\s|$)|\+-|:-)")


def without_plan(message: str) -> str:
    """Return what Spark found wrong, without the query plan that it shows below.

    >>> without_plan("no column x\\n'Sort ['x]\\n+- 'Aggregate")
    'no column x'
    """
    lines = message.strip().splitlines()
    ends = (n for n, line in enumerate(lines) if n and _OF_A_PLAN.match(line))
    return "\n".join(lines[: next(ends, len(lines))])


def failures_of(
    project: Project,
    results: Mapping[str, NodeResult],
    explain: Callable[[Model], str | None] = lambda model: None,
) -> dict[str, str]:
    """Return what to tell of each node that failed, by unique id.

    Args:
        project: has the models.
        results: of dbt.
        explain: says why a model's SQL fails as it was written; None if it does not know better
            than dbt, whose statement has the SQL inside.
    """
    told = {}
    for result in results.values():
        if result.status == "error":
            model = project.models.get(result.unique_id)
            why = explain(model) if model else None
            file = model.file if model else result.name
            told[result.unique_id] = f"{file}: {why or without_plan(result.message)}"
    return told


def refuse_failures(
    project: Project,
    results: Mapping[str, NodeResult],
    explain: Callable[[Model], str | None] = lambda model: None,
) -> None:
    """Stop if a model failed; the arguments are those of `failures_of`.

    Raises:
        RefreshError: MODEL_FAILED, naming each model with the database's own message.
    """
    if not (failures := failures_of(project, results, explain)):
        return
    raise RefreshError(
        "MODEL_FAILED",
        "\n".join(failures.values()),
        hint="mend the model and run the command again; readers keep the last published snapshot",
    )
