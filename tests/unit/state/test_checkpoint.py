"""The checkpoint beside the log: its own, whole, and not an older copy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from livemart.errors import StateError
from livemart.state.atomic_files import replace_file
from livemart.state.checkpoint import EPOCH_FILE, Recorded, open_checkpoint, read_epoch
from livemart.storage.location import Location
from livemart.storage.opening import open_storage

OFFSETS = 'v1\n{"batchWatermarkMs":0}\n{"logOffset":0}\n-\n12\n'


def make_checkpoint(folder: Path, *, planned: int = -1, committed: int = -1) -> str:
    epoch = open_checkpoint(folder, None, new_epoch=False)
    for name, last, text in (
        ("offsets", planned, OFFSETS),
        ("commits", committed, 'v1\n{"nextBatchWatermarkMs":0}'),
    ):
        (folder / name).mkdir()
        for batch_id in range(last + 1):
            (folder / name / str(batch_id)).write_text(text)
            (folder / name / f".{batch_id}.crc").write_text("")
    return epoch.id


def test_a_new_checkpoint_beside_an_empty_log_gets_an_epoch(tmp_path: Path) -> None:
    made = open_checkpoint(tmp_path / "checkpoint", None, new_epoch=False)

    assert read_epoch(tmp_path / "checkpoint") == made
    assert open_checkpoint(tmp_path / "checkpoint", None, new_epoch=False) == made


def test_the_checkpoint_of_the_log_is_opened(tmp_path: Path) -> None:
    epoch = make_checkpoint(tmp_path / "c", planned=3, committed=3)

    assert open_checkpoint(tmp_path / "c", Recorded(epoch, 3), new_epoch=False).id == epoch


def test_a_batch_that_was_not_committed_is_replayed(tmp_path: Path) -> None:
    epoch = make_checkpoint(tmp_path / "c", planned=3, committed=2)

    assert open_checkpoint(tmp_path / "c", Recorded(epoch, 3), new_epoch=False).id == epoch


def test_a_lost_checkpoint_is_refused_with_advice(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="CHECKPOINT_LOST") as raised:
        open_checkpoint(tmp_path / "c", Recorded("e", 3), new_epoch=False)

    assert "build --new-epoch" in raised.value.hint
    assert not (tmp_path / "c").exists()


def test_another_checkpoint_is_refused(tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "c", planned=9, committed=9)

    with pytest.raises(StateError, match="CHECKPOINT_LOST"):
        open_checkpoint(tmp_path / "c", Recorded("another", 3), new_epoch=False)


def test_offsets_without_an_epoch_are_refused(tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "c", planned=2, committed=2)
    (tmp_path / "c" / EPOCH_FILE).unlink()

    with pytest.raises(StateError, match="CHECKPOINT_LOST"):
        open_checkpoint(tmp_path / "c", None, new_epoch=False)


def test_an_older_copy_is_refused(tmp_path: Path) -> None:
    epoch = make_checkpoint(tmp_path / "c", planned=2, committed=2)

    with pytest.raises(StateError, match="CHECKPOINT_OLDER"):
        open_checkpoint(tmp_path / "c", Recorded(epoch, 3), new_epoch=False)


def test_an_older_copy_is_found_by_what_was_landed_as_well(tmp_path: Path) -> None:
    epoch = make_checkpoint(tmp_path / "c", planned=3, committed=3)
    recorded = Recorded(epoch, 3, lambda batch_id: batch_id <= 4)

    with pytest.raises(StateError, match="CHECKPOINT_OLDER"):
        open_checkpoint(tmp_path / "c", recorded, new_epoch=False)


def test_torn_offsets_of_a_batch_that_never_ran_may_be_removed(tmp_path: Path) -> None:
    epoch = make_checkpoint(tmp_path / "c", planned=4, committed=3)
    (tmp_path / "c" / "offsets" / "4").write_text("")

    with pytest.raises(StateError, match=r"CHECKPOINT_TORN.*empty file") as raised:
        open_checkpoint(tmp_path / "c", Recorded(epoch, 3), new_epoch=False)

    assert raised.value.hint.startswith("remove ")


def test_torn_offsets_of_a_batch_that_wrote_need_a_new_epoch(tmp_path: Path) -> None:
    epoch = make_checkpoint(tmp_path / "c", planned=4, committed=3)
    (tmp_path / "c" / "offsets" / "4").write_text("v1\n{")

    with pytest.raises(StateError, match="CHECKPOINT_TORN") as raised:
        open_checkpoint(tmp_path / "c", Recorded(epoch, 4), new_epoch=False)

    assert "build --new-epoch" in raised.value.hint


def test_torn_offsets_of_the_first_batch_need_a_new_epoch_once_it_is_committed(
    tmp_path: Path,
) -> None:
    make_checkpoint(tmp_path / "c", planned=0, committed=0)
    (tmp_path / "c" / "offsets" / "0").write_text("")

    with pytest.raises(StateError, match="CHECKPOINT_TORN") as raised:
        open_checkpoint(tmp_path / "c", None, new_epoch=False)

    assert "build --new-epoch" in raised.value.hint


def test_a_torn_commit_may_be_removed(tmp_path: Path) -> None:
    epoch = make_checkpoint(tmp_path / "c", planned=4, committed=4)
    (tmp_path / "c" / "commits" / "4").write_text("")

    with pytest.raises(StateError, match="CHECKPOINT_TORN") as raised:
        open_checkpoint(tmp_path / "c", Recorded(epoch, 4), new_epoch=False)

    assert raised.value.hint.startswith("remove ")


def test_a_torn_commit_in_a_bucket_may_be_removed_by_its_url(memory_place: Location) -> None:
    epoch = open_checkpoint(memory_place, None, new_epoch=False)
    replace_file(memory_place / "commits" / "0", "v1")

    with pytest.raises(StateError, match="CHECKPOINT_TORN") as raised:
        open_checkpoint(memory_place, Recorded(epoch.id, 0), new_epoch=False)

    assert "`aws s3 rm s3://mart/eu/commits/0`" in raised.value.hint


def test_a_torn_file_of_a_source_is_found(tmp_path: Path) -> None:
    epoch = make_checkpoint(tmp_path / "c", planned=0, committed=0)
    (tmp_path / "c" / "sources" / "0").mkdir(parents=True)
    (tmp_path / "c" / "sources" / "0" / "0").write_text("")

    with pytest.raises(StateError, match=r"CHECKPOINT_TORN.*sources"):
        open_checkpoint(tmp_path / "c", Recorded(epoch, 0), new_epoch=False)


def test_a_torn_epoch_is_found(tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "c")
    (tmp_path / "c" / EPOCH_FILE).write_text("{")

    with pytest.raises(StateError, match="CHECKPOINT_TORN"):
        open_checkpoint(tmp_path / "c", None, new_epoch=False)


def test_a_new_epoch_keeps_the_old_checkpoint_and_names_what_it_replaces(tmp_path: Path) -> None:
    old = make_checkpoint(tmp_path / "c", planned=5, committed=5)

    made = open_checkpoint(tmp_path / "c", Recorded(old, 5), new_epoch=True)

    kept = [path for path in tmp_path.iterdir() if path.name.startswith("c.replaced-")]
    assert made.id != old
    assert json.loads((tmp_path / "c" / EPOCH_FILE).read_text())["replaces"] == old
    assert (kept[0] / "offsets" / "5").exists()
    assert not (tmp_path / "c" / "offsets" / "5").exists()


def test_a_new_epoch_moves_the_checkpoint_of_a_bucket(memory_place: Location) -> None:
    checkpoint, storage = memory_place / "c", open_storage(memory_place)
    old = open_checkpoint(checkpoint, None, new_epoch=False)
    replace_file(checkpoint / "offsets" / "5", OFFSETS)

    made = open_checkpoint(checkpoint, Recorded(old.id, 5), new_epoch=True)

    assert read_epoch(checkpoint) == made
    (kept,) = (it for it in storage.folders() if it.startswith("c.replaced-"))
    assert storage.names("c") == [f"c/{EPOCH_FILE}"]
    assert storage.names(kept) == [f"{kept}/{EPOCH_FILE}", f"{kept}/offsets/5"]


def test_the_rest_of_a_move_that_was_cut_short_is_moved_by_the_next(memory_place: Location) -> None:
    # The epoch goes first: offsets without one are refused, and a new epoch takes them away.
    replace_file(memory_place / "c" / "offsets" / "5", OFFSETS)
    with pytest.raises(StateError, match="CHECKPOINT_LOST"):
        open_checkpoint(memory_place / "c", Recorded("e1", 5), new_epoch=False)

    made = open_checkpoint(memory_place / "c", Recorded("e1", 5), new_epoch=True)

    assert made.replaces == "e1"
    assert open_storage(memory_place).names("c") == [f"c/{EPOCH_FILE}"]


def test_a_new_epoch_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    old = make_checkpoint(tmp_path / "c", planned=5, committed=5)
    made = open_checkpoint(tmp_path / "c", Recorded(old, 5), new_epoch=True)

    assert open_checkpoint(tmp_path / "c", Recorded(old, 5), new_epoch=False) == made
