"""Refuses a folder that holds neither a dbt project nor a warehouse.

Used by commands that read a warehouse and need no project. Without this refusal they would answer
that nothing was published yet, in a folder where nothing can be built.
"""

from __future__ import annotations

from livemart.errors import StateError
from livemart.project.profiles import ways_to_a_project, why_no_project
from livemart.settings import Settings
from livemart.state.last_run import read_last_run
from livemart.storage.location import STATE_FOLDER
from livemart.storage.opening import open_storage


def require_project_or_warehouse(settings: Settings) -> None:
    """Return if the user may mean this folder; it is free to name a warehouse or a store.

    Raises:
        StateError: NOTHING_PUBLISHED, if the folder holds no project, and its `warehouse` neither
            tables nor a trace of a run.
    """
    folder, warehouse = settings.project_dir, settings.warehouse
    if {"warehouse", "store"} & settings.model_fields_set:
        return
    if (missing := why_no_project(folder)) is None:
        return
    # The state's folder alone says nothing: a server may have made its store there.
    if {*open_storage(warehouse).folders()} - {STATE_FOLDER} or read_last_run(warehouse):
        return
    raise StateError(
        "NOTHING_PUBLISHED",
        f"{warehouse}: nothing was ever published there, and {folder} holds no project: {missing}",
        hint=f"{ways_to_a_project(folder)}; or name --warehouse",
    )
