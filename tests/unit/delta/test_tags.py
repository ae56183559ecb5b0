"""The ids of commits are stored in tables: they stay as they are, and each names one thing."""

from __future__ import annotations

import pytest

from livemart.delta.tags import Tag, Tags, is_of_epoch

RELATION = "bronze.orders"
TAGS = Tags("epoch", 7)


@pytest.mark.parametrize(
    ("tag", "app_id"),
    [
        (TAGS.rows(RELATION), "epoch/bronze.orders/0"),
        (TAGS.rows(RELATION, 3), "epoch/bronze.orders/3"),
        (TAGS.columns(RELATION), "epoch/bronze.orders/columns"),
        (TAGS.drift(RELATION), "epoch/bronze.orders/drift"),
        (TAGS.drift_withdrawn(RELATION), "epoch/bronze.orders/drift/withdrawn"),
        (TAGS.file_letters(RELATION, 2), "epoch/bronze.orders/files/2"),
    ],
)
def test_ids_are_those_that_older_tables_carry(tag: Tag, app_id: str) -> None:
    assert (tag.app_id, tag.version) == (app_id, 7)


def test_a_commit_of_rows_names_its_batch_and_fingerprint() -> None:
    tag = TAGS.rows(RELATION, 1, "f1").with_metadata({"as_of": "noon"})

    assert tag.metadata == {
        "batch_id": "7",
        "relation": RELATION,
        "fingerprint": "f1",
        "as_of": "noon",
    }


def test_a_commit_of_a_model_says_how_and_how_much_it_changed() -> None:
    landed = Tag("e/bronze.orders/0", 7)
    tag = landed.moved_by("signed").counting(3)

    assert tag.metadata == {"strategy": "signed", "rows_changed": "3"}
    assert landed.moved_by("full", "NEW_MODEL").metadata["reason"] == "NEW_MODEL"
    assert landed.counting(3).metadata == {}


@pytest.mark.parametrize(
    ("app_id", "version", "generation"),
    [
        ("epoch/bronze.orders/0", 7, 0),
        ("epoch/bronze.orders/12", 7, 12),
        ("epoch/bronze.orders/0", 6, None),
        ("older/bronze.orders/0", 7, None),
        ("epoch/bronze.orders_2/0", 7, None),
    ],
)
def test_a_generation_is_read_from_commits_of_this_batch_alone(
    app_id: str, version: int, generation: int | None
) -> None:
    assert TAGS.generation_of(RELATION, {app_id: version}) == generation


def test_a_commit_belongs_to_the_epoch_that_its_id_begins_with() -> None:
    assert is_of_epoch("epoch", RELATION, {"spark": 1, TAGS.columns(RELATION).app_id: 7})
    assert not is_of_epoch("epoch", RELATION, {"epoch/bronze.orders_2/0": 7})
    assert not is_of_epoch("epoch", RELATION, {})
