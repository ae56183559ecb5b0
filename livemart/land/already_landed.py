"""Lists the contents of an append-only table when its source begins to be read again.

Used when landing starts its stream. Spark knows the files of a source by its place in one
checkpoint. Under a new epoch, another `path`, another landing folder, or after a source was taken
out and put back, it delivers again what was landed before. Keys absorb that; a table without keys
tells which files it holds by `_origin`, and how far it has read a record log.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from livemart.delta.warehouse import Warehouse
from livemart.errors import StateError
from livemart.land.records.origin import Place, highest_numbers
from livemart.project.landing_columns import ORIGIN
from livemart.state.atomic_files import read_file, replace_file
from livemart.storage.location import StoragePlace

LANDED_FILE = "livemart_landed.json"


def note_landed_files(
    checkpoint: StoragePlace,
    landing: StoragePlace,
    warehouse: Warehouse,
    *,
    append_only: Iterable[str],
    added: Iterable[str],
    planned: Mapping[str, Iterable[str]],
) -> Mapping[str, frozenset[str]]:
    """Return the files that are not to be landed again, by relation, and keep that.

    Looked up once, before the first batch that could bring them: a table holds a file in whole or
    not at all, as one batch takes it in one commit.

    Args:
        checkpoint: folder of the query; the places of `added` are not written there yet.
        landing: where files are delivered.
        warehouse: the tables.
        append_only: landed tables without keys.
        added: relations that have no place in the stream yet.
        planned: files that a replay is about to land, by relation.

    Raises:
        StateError: CHECKPOINT_TORN.
    """
    path = checkpoint / LANDED_FILE
    noted_landing, noted_files = _read(path)
    is_moved = noted_landing not in (None, str(landing))
    unread = set(added)
    landed = {name: files for name, files in noted_files.items() if name not in unread}
    for relation in append_only:
        if is_moved or relation in unread:
            landed[relation] = _files_of(warehouse, relation).union(planned.get(relation, ()))
    landed = {name: files for name, files in landed.items() if files}
    if (noted_landing, noted_files) != (str(landing), landed):
        names = {name: sorted(files) for name, files in landed.items()}
        replace_file(path, json.dumps({"landing": str(landing), "files": names}, indent=1))
    return landed


def landed_offsets(warehouse: Warehouse, relation: str) -> Mapping[str, int]:
    """Return the offset behind the last record that a table holds, by partition of its log."""
    numbers = _highest_numbers(warehouse, relation)
    return {place.name: number + 1 for place, number in numbers.items() if place.mark == "@"}


def _files_of(warehouse: Warehouse, relation: str) -> frozenset[str]:
    numbers = _highest_numbers(warehouse, relation)
    return frozenset(place.name for place in numbers if place.mark == ":")


def _highest_numbers(warehouse: Warehouse, relation: str) -> Mapping[Place, int]:
    index = warehouse.files(relation)
    highest: dict[Place, int] = {}
    for file in index.files():
        origins = index.read_file(file, [ORIGIN]).column(ORIGIN)
        for place, number in highest_numbers(origins).items():
            highest[place] = max(number, highest.get(place, number))
    return highest


def _read(path: StoragePlace) -> tuple[str | None, Mapping[str, frozenset[str]]]:
    try:
        content = json.loads(read_file(path))
        files = {name: frozenset(names) for name, names in content["files"].items()}
        return str(content["landing"]), files
    except FileNotFoundError:
        return None, {}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StateError(
            "CHECKPOINT_TORN",
            f"{path}: {error}",
            hint="restore the checkpoint of this warehouse, or start a new epoch "
            "with `build --new-epoch`",
        ) from error
