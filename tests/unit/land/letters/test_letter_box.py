"""All letters for records of a batch are one commit for each source schema, made once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from livemart.delta.tags import Tags
from livemart.delta.warehouse import Warehouse
from livemart.land.letters.dead_letters import LETTERS
from livemart.land.letters.held_letters import Letters
from livemart.land.letters.letter_box import LetterBox
from tests.unit.land.letters.stored_letters import letter, table_of

SPARK: Any = None


def fill(box: LetterBox, folder: Path) -> None:
    staged = Letters(folder)
    staged.add(table_of(letter(2)))
    box.put("Bronze", Letters(table_of(letter(1))))
    box.put("bronze", staged)
    box.put("raw", Letters(table_of(letter(3, source="raw.rates"))))
    box.put("empty", Letters(table_of()))


def test_letters_of_a_schema_are_committed_together_and_a_replay_adds_none(tmp_path: Path) -> None:
    warehouse, tags = Warehouse(tmp_path / "warehouse"), Tags("epoch", 7)
    for relation in ("bronze._dead_letters", "raw._dead_letters", "empty._dead_letters"):
        warehouse.create(relation, LETTERS)

    for replay in range(2):
        box = LetterBox(SPARK, warehouse, tags.rows)
        fill(box, tmp_path / f"staged-{replay}")
        box.commit()

    bronze = warehouse.read("bronze._dead_letters").column("batch_id").to_pylist()
    assert sorted(bronze) == [1, 2]
    assert warehouse.read("raw._dead_letters").column("source").to_pylist() == ["raw.rates"]
    # Nothing to say, nothing written.
    assert not warehouse.is_tagged("empty._dead_letters", tags.rows("empty._dead_letters"))
