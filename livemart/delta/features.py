"""Says which features of Delta keep the rows of a table from being read without Spark.

Used when a version of a table is opened. Files are read here unchanged: a mapped column would not
be found, and a row that a deletion vector marks would still be read. So a table with a feature that
is not known here is read by Spark alone, and its readers are recomputed in full. So is a table with
a CHAR column: Spark fills its values with blanks, and the texts that it is compared with. So is one
with a collation, by which Spark compares texts that differ, and not by their bytes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from deltalake import DeltaTable

from livemart.errors import RefreshError

# The first two alone change no file: whether columns are mapped and rows marked is looked up.
_READ = frozenset(
    {
        "columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck",
        "variantType",
    }
)  # fmt: skip
# What a table has, or keeps when it is dropped, that had files of another form.
_LEFT = frozenset({"columnMapping", "checkpointProtection"})
_READER_OF_MAPPED_COLUMNS = 2
# Under which Spark notes what a text was declared as, and what it notes of CHAR at any depth.
_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
# Under which a field at any depth notes its collations; those by bytes are not noted.
_COLLATED = "__COLLATIONS"
_CHAR = re.compile(r"\bchar\(", re.IGNORECASE)
_SIZED = re.compile(r"\b(?:var)?char\(", re.IGNORECASE)


def unreadable_reason(table: DeltaTable) -> str | None:
    """Return why the rows of a table cannot be read without Spark, or None if they can."""
    features = table.protocol().reader_features or ()
    if reason := unread_feature(features, table.metadata().configuration):
        return reason
    for field in table.schema().fields:
        if _CHAR.search(str(field.metadata.get(_DECLARED, ""))):
            return f"column {field.name} is CHAR"
        if _COLLATED in field.to_json():
            return f"column {field.name} has a collation"
    # Those of all files, for one answer: a foreign table has few, or is recomputed in any case.
    if "deletionVectors" in features and any(it.num_rows for it in table.deletion_vectors()):
        return "deletion vectors"
    return None


def sized_columns(table: DeltaTable) -> frozenset[str]:
    """Return the columns that were declared with a CHAR or VARCHAR, at any depth."""
    fields = table.schema().fields
    return frozenset(it.name for it in fields if _SIZED.search(str(it.metadata.get(_DECLARED, ""))))


def unread_feature(features: Collection[str], configuration: Mapping[str, str]) -> str | None:
    """Return the feature by which the rows of a table are not as its files hold them, or None.

    >>> unread_feature(["typeWidening"], {})
    'table feature typeWidening'
    >>> unread_feature(["columnMapping"], {"delta.columnMapping.mode": "name"})
    'column mapping'
    """
    if unknown := set(features) - _READ:
        return f"table feature {', '.join(sorted(unknown))}"
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        return "column mapping"
    return None


def may_have_been_unreadable(table: DeltaTable) -> bool:
    """Return True if the files of versions before may be of another form."""
    protocol = table.protocol()
    named = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    return bool(named & _LEFT) or protocol.min_reader_version == _READER_OF_MAPPED_COLUMNS


def not_readable(relation: str, reason: str) -> RefreshError:
    """Return the error of a table whose rows only Spark can read."""
    return RefreshError(
        "TABLE_NOT_READABLE",
        f"{relation}: {reason}: only Spark can read its rows",
        hint="drop the feature (ALTER TABLE ... DROP FEATURE; of deletion vectors, REORG TABLE ... "
        "APPLY (PURGE)), or read a copy of the table without it",
    )
