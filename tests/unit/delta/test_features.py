"""Features of Delta that a file does not show: no row of such a table is read without Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pds
import pytest
from deltalake import Field

from livemart.delta.features import may_have_been_unreadable, unread_feature, unreadable_reason
from livemart.delta.upkeep.old_files import old_files
from livemart.delta.warehouse import Warehouse
from livemart.errors import RefreshError
from tests.unit.delta.small_tables import RELATION, SMALL, diff, tag

MAPPED = {"delta.columnMapping.mode": "name"}


def _field(name: str, kind: Any, collations: dict[str, str] | None = None) -> dict[str, Any]:
    metadata = {"__COLLATIONS": collations} if collations else {}
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


@pytest.mark.parametrize(
    ("features", "configuration", "reason"),
    [
        ([], {}, None),
        (["timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "variantType"], {}, None),
        (["columnMapping", "deletionVectors"], {"delta.columnMapping.mode": "none"}, None),
        ([], MAPPED, "column mapping"),
        (["columnMapping"], {"delta.columnMapping.mode": "id"}, "column mapping"),
        (["typeWidening", "timestampNtz"], {}, "table feature typeWidening"),
        (["catalogManaged", "a-new-one"], {}, "table feature a-new-one, catalogManaged"),
    ],
)
def test_a_feature_that_changes_files_is_named(
    features: list[str], configuration: dict[str, str], reason: str | None
) -> None:
    assert unread_feature(features, configuration) == reason


@pytest.mark.parametrize(
    ("rows_of_parts", "reason"), [([], None), ([0], None), ([0, 2], "deletion vectors")]
)
def test_deletion_vectors_count_where_a_file_has_one(
    rows_of_parts: Sequence[int], reason: str | None
) -> None:
    """The feature stays in a table whose rows were all rewritten."""
    table = _table(["deletionVectors"], rows_of_parts=rows_of_parts)

    assert unreadable_reason(table) == reason
    assert not may_have_been_unreadable(table)


@pytest.mark.parametrize(
    ("declared", "reason"),
    [
        ("char(5)", "column a is CHAR"),
        ("array<struct<x:varchar(5),y:char(5)>>", "column a is CHAR"),
        ("varchar(5)", None),
        ("struct<char:varchar(5)>", None),
    ],
)
def test_texts_that_spark_compares_with_their_blanks_are_its_own(
    declared: str, reason: str | None
) -> None:
    """Spark 4.2.0 pads 'x' as well if it is compared with a CHAR(5)."""
    assert unreadable_reason(_table([], declared=declared)) == reason


@pytest.mark.parametrize(
    "field",
    [
        _field("a", "string", {"a": "spark.UTF8_LCASE"}),
        _field(
            "a",
            {"type": "array", "elementType": "string", "containsNull": True},
            {"a.element": "icu.UNICODE_CI"},
        ),
        _field("a", {"type": "struct", "fields": [_field("c", "string", {"c": "icu.de"})]}),
    ],
)
def test_texts_that_spark_compares_by_a_collation_are_its_own(field: dict[str, Any]) -> None:
    """Spark takes 'a' and 'A' for one value of UTF8_LCASE."""
    assert unreadable_reason(_table([], field=field)) == "column a has a collation"


@pytest.mark.parametrize("feature", ["columnMapping", "checkpointProtection"])
def test_a_dropped_feature_leaves_a_trace(feature: str) -> None:
    assert may_have_been_unreadable(_table([], [feature]))
    assert may_have_been_unreadable(_table([], min_reader_version=2))


def test_mapped_columns_are_refused_and_not_read_as_nothing(warehouse: Warehouse) -> None:
    """deltalake 1.6 reads them as NULL by way of Arrow, without an error."""
    warehouse.create(RELATION, SMALL)
    warehouse.commit(RELATION, diff((1, "a", 0, 1)), tag(1))
    _map_columns(warehouse.path(RELATION), version=2)
    version = warehouse.version(RELATION)
    files = warehouse.files(RELATION)

    for read in (
        lambda: warehouse.read(RELATION),
        lambda: warehouse.read(RELATION, filter=pds.field("id") == 1),
        lambda: list(warehouse.files(RELATION, version).batches(["id"], pds.field("id") == 1, 9)),
        lambda: files.read_file(files.files()[0], ["id"]),
    ):
        with pytest.raises(RefreshError, match=r"TABLE_NOT_READABLE.*column mapping"):
            read()
    for since in (0, 1):
        with pytest.raises(RefreshError, match=r"CDF_UNAVAILABLE.*column mapping"):
            warehouse.changes(RELATION, since, version)
    assert warehouse.read(RELATION, 1).num_rows == 1
    assert warehouse.arrow_schema(RELATION) == SMALL


def test_changes_across_a_mapping_that_was_dropped_are_not_told(warehouse: Warehouse) -> None:
    warehouse.create(RELATION, SMALL)
    _map_columns(warehouse.path(RELATION), version=1)
    _map_columns(warehouse.path(RELATION), version=2, mode="none")
    warehouse = Warehouse(warehouse.root)

    with pytest.raises(RefreshError, match=r"CDF_UNAVAILABLE.*column mapping"):
        warehouse.changes(RELATION, 1, 2)
    with pytest.raises(RefreshError, match=r"CDF_UNAVAILABLE.*form of its files"):
        warehouse.changes(RELATION, 0, 2)
    assert warehouse.changes(RELATION, 2, 2).num_rows == 0


def test_changes_by_deletion_vectors_are_not_told(warehouse: Warehouse) -> None:
    """Spark 4.2 takes the file out and puts it in again, with a vector beside it."""
    warehouse.create(RELATION, SMALL)
    warehouse.commit(RELATION, diff((1, "a", 0, 1), (2, "b", 0, 1)), tag(1))
    log = warehouse.path(RELATION) / "_delta_log"
    entry = [json.loads(line) for line in (log / f"{1:020d}.json").read_text().splitlines()]
    (added,) = [action["add"] for action in entry if "add" in action]
    vector = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    removed = {"path": added["path"], "dataChange": True, "partitionValues": {}}
    actions = [{"remove": removed}, {"add": {**added, "deletionVector": vector}}]
    log_file = log / f"{2:020d}.json"
    log_file.write_text("\n".join(map(json.dumps, actions)))

    with pytest.raises(RefreshError, match=r"CDF_UNAVAILABLE.*deletion vectors"):
        warehouse.changes(RELATION, 1, 2)


def test_deletion_vectors_are_no_old_files(warehouse: Warehouse) -> None:
    """A VACUUM of deltalake 1.6 would take those that the newest version names."""
    warehouse.create(RELATION, SMALL)
    folder = warehouse.path(RELATION)
    old = [folder / name for name in ("deletion_vector_1.bin", "unnamed.parquet")]
    for path in old:
        path.write_bytes(b"")
    _set_property(folder, "delta.deletedFileRetentionDuration", "interval 0 seconds")

    (unnamed,) = old_files(warehouse.storage(RELATION))
    assert unnamed.name == "unnamed.parquet"


def _table(
    features: list[str],
    written: Sequence[str] = (),
    *,
    min_reader_version: int = 3,
    rows_of_parts: Sequence[int] = (),
    declared: str = "",
    field: dict[str, Any] | None = None,
) -> Any:
    protocol = SimpleNamespace(
        reader_features=features,
        writer_features=[*features, *written],
        min_reader_version=min_reader_version,
    )
    metadata = {"__CHAR_VARCHAR_TYPE_STRING": declared} if declared else {}
    field = field or {**_field("a", "string"), "metadata": metadata}
    schema = SimpleNamespace(fields=[Field.from_json(json.dumps(field))])
    return SimpleNamespace(
        protocol=lambda: protocol,
        schema=lambda: schema,
        metadata=lambda: SimpleNamespace(configuration={}),
        deletion_vectors=lambda: [
            pa.record_batch({"filepath": ["f"] * rows}) for rows in rows_of_parts
        ],
    )


def _metadata(folder: Path) -> dict[str, Any]:
    text = (folder / "_delta_log" / f"{0:020d}.json").read_text()
    return next(it["metaData"] for it in map(json.loads, text.splitlines()) if "metaData" in it)


def _map_columns(folder: Path, version: int, mode: str = "name") -> None:
    """Commit as ALTER TABLE does: the names in files go on, and may differ from now on."""
    metadata = _metadata(folder)
    schema = json.loads(metadata["schemaString"])
    for number, field in enumerate(schema["fields"], 1):
        field["metadata"] = {
            "delta.columnMapping.id": number,
            "delta.columnMapping.physicalName": field["name"],
        }
    metadata["configuration"] |= {
        "delta.columnMapping.mode": mode,
        "delta.columnMapping.maxColumnId": str(len(schema["fields"])),
    }
    metadata["schemaString"] = json.dumps(schema)
    actions = [{"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}, {"metaData": metadata}]
    path = folder / "_delta_log" / f"{version:020d}.json"
    path.write_text("\n".join(map(json.dumps, actions)))


def _set_property(folder: Path, name: str, value: str) -> None:
    metadata = _metadata(folder)
    metadata["configuration"][name] = value
    path = folder / "_delta_log" / f"{1:020d}.json"
    path.write_text(json.dumps({"metaData": metadata}))
