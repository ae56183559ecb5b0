"""All letters for records of a batch are one commit for each source schema, made once."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from livemart.delta.tags import Tags
from livemart.delta.warehouse import Warehouse
from livemart.land.letters import letter_box
from livemart.land.letters.dead_letters import LETTERS
from livemart.land.letters.held_letters import Letters
from livemart.land.letters.letter_box import LetterBox
from tests.unit.land.letters.stored_letters import letter, table_of


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
        box = LetterBox(warehouse, tags.rows)
        fill(box, tmp_path / f"staged-{replay}")
        box.commit()

    bronze = warehouse.read("bronze._dead_letters").column("batch_id").to_pylist()
    assert sorted(bronze) == [1, 2]
    assert warehouse.read("raw._dead_letters").column("source").to_pylist() == ["raw.rates"]
    # Nothing to say, nothing written.
    assert not warehouse.is_tagged("empty._dead_letters", tags.rows("empty._dead_letters"))


def test_letters_of_any_size_are_one_commit_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letter_box, "_FILE_BYTES", 1)
    warehouse, tags = Warehouse(tmp_path / "warehouse"), Tags("epoch", 7)
    warehouse.create("bronze._dead_letters", LETTERS)
    folder = tmp_path / "warehouse" / "bronze" / "_dead_letters"
    before = warehouse.version("bronze._dead_letters")
    staged = Letters(tmp_path / "staged")
    for number in range(3):
        staged.add(table_of(letter(number)))
    box = LetterBox(warehouse, tags.rows)
    box.put("bronze", staged)

    whole = Warehouse.write
    fails: list[Any] = [whole, whole, Mock(side_effect=OSError("no disk"))]
    with monkeypatch.context() as patched, pytest.raises(OSError, match="no disk"):
        patched.setattr(Warehouse, "write", lambda *given: fails.pop(0)(*given))
        box.commit()
    left = list(folder.glob("*.parquet"))
    with monkeypatch.context() as patched, pytest.raises(OSError, match="no disk"):
        # After the commit, of which some are followed by a checkpoint.
        patched.setattr(Warehouse, "_committed", Mock(side_effect=OSError("no disk")))
        box.commit()
    box.commit()

    assert left == []
    assert len(list(folder.glob("*.parquet"))) == 3
    stored = warehouse.read("bronze._dead_letters").column("batch_id").to_pylist()
    assert sorted(stored) == [0, 1, 2]
    assert warehouse.version("bronze._dead_letters") == before + 1
