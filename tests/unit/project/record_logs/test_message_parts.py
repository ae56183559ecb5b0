"""Parts of a message map to declared columns of fitting types, or mistakes are reported."""

from __future__ import annotations

import pytest

from livemart.project.graph import Column
from livemart.project.record_logs.message_parts import PART_TYPES
from livemart.project.sources import parse_source_spec
from tests.record_logs import install_kind

COLUMNS = tuple(
    Column(f"{part}_{number}", kind)
    for part, kinds in PART_TYPES.items()
    for number, kind in enumerate(kinds)
)
WHERE = "models/_sources.yml: shop.orders"


@pytest.fixture(autouse=True)
def kind(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    install_kind(tmp_path, monkeypatch, "outbox", "nowhere:Outbox")  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_each_part_may_stand_in_a_column_of_each_of_its_types(number: int) -> None:
    message = {
        part: f"{part}_{number}" for part, kinds in PART_TYPES.items() if number < len(kinds)
    }

    spec, mistakes = parse_source_spec({"kind": "outbox", "message": message}, COLUMNS, WHERE)

    assert mistakes == []
    assert spec is not None
    assert dict(spec.record_rules.message) == message


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (["key"], "found ['key']"),
        ({"kay": "key_0"}, "found kay, did you mean key?"),
        ({"key": "key_9"}, "key: found column key_9, did you mean key_"),
        ({"key": ["key_0"]}, "key: found column ['key_0']"),
        ({"offset": "key_0"}, "offset: found column key_0 of type string"),
        ({"key": "key_0", "topic": "key_0"}, "topic: found column key_0 twice"),
    ],
)
def test_what_is_no_part_and_what_fits_none_is_a_mistake(message: object, expected: str) -> None:
    spec, mistakes = parse_source_spec({"kind": "outbox", "message": message}, COLUMNS, WHERE)

    assert spec is None
    assert [expected in str(mistake) for mistake in mistakes] == [True]


def test_files_have_no_messages() -> None:
    meta = {"path": "orders/*", "message": {"key": "key_0"}}

    _, mistakes = parse_source_spec(meta, COLUMNS, WHERE)

    assert ["message, but the source is of kind files" in str(it) for it in mistakes] == [True]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (None, "`tombstone_0` = true"),
        ("topic_0 = 'x'", "`tombstone_0` = true or (topic_0 = 'x')"),
    ],
)
def test_a_tombstone_deletes_the_key(condition: str | None, expected: str) -> None:
    meta = {
        "kind": "outbox",
        "message": {"key": "key_0", "offset": "offset_0", "tombstone": "tombstone_0"},
        "keys": ["key_0"],
        "sequence_by": ["offset_0"],
        **({"apply_as_deletes": condition} if condition else {}),
    }

    spec, mistakes = parse_source_spec(meta, COLUMNS, WHERE)

    assert mistakes == []
    assert spec is not None
    assert spec.row_rules.apply_as_deletes == expected
