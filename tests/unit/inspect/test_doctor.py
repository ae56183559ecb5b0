"""Doctor names what would stop a run, and the next step."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from livemart.inspect import doctor
from livemart.inspect.doctor import Finding, diagnose, render_findings
from livemart.land.sources.files.stream import place_slots
from livemart.settings import Settings
from livemart.state.checkpoint import open_checkpoint
from livemart.state.holders import Holder
from livemart.state.lock import hold_warehouse
from livemart.state.places import StateFolder
from livemart.state.snapshots import SnapshotLog
from livemart.storage.location import Location
from livemart.storage.opening import open_storage
from tests.ports import silent_port
from tests.storages import memory_place  # noqa: F401
from tests.unit.observe.outcomes import make_snapshot

GIB = 1024**3


def test_everything_is_looked_at_even_when_something_is_wrong(tmp_path: Path) -> None:
    expected = [
        "python",
        "java",
        "versions",
        "jars",
        "warehouse",
        "disk",
        "landing",
        "lock",
        "loopback",
        "checkpoint",
        "store",
    ]

    findings = diagnose(
        Settings(
            warehouse=tmp_path / "warehouse",
            landing=tmp_path,
            jars=tmp_path / "no_jars",
            store="none",
        )
    )

    assert [finding.name for finding in findings] == expected
    jars = findings[3]
    assert jars.is_problem
    assert jars.message.startswith("JARS_MISSING")
    assert list(tmp_path.iterdir()) == []


def test_jars_that_were_never_fetched_stop_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LIVEMART_JARS", raising=False)
    monkeypatch.setattr("livemart.spark.jars.__file__", str(tmp_path / "a/b/c/jars.py"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    actual = doctor.check_jars(None)

    assert actual.level == "warning"
    assert actual.message.startswith(f"{tmp_path / 'livemart' / 'jars'}: found no io.delta_")
    assert list(tmp_path.iterdir()) == []


def test_a_version_beside_its_pin_is_named() -> None:
    installed = {"pyspark": "4.3.0", "deltalake": "1.6.6"}
    required = {"pyspark": "==4.2.0", "deltalake": ">=1.6,<1.7", "sqlglot": "==30.30.0"}

    actual = doctor.check_versions(required, installed.get)

    assert actual.level == "problem"
    assert actual.message == "pyspark is 4.3.0, not ==4.2.0, sqlglot is missing"


def test_a_warehouse_that_cannot_be_written_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")

    to_make = doctor.check_warehouse(tmp_path / "not" / "yet")
    blocked = doctor.check_warehouse(tmp_path / "file" / "warehouse")
    monkeypatch.setattr("os.access", lambda path, mode: not mode & os.W_OK)
    read_only = doctor.check_warehouse(tmp_path)

    assert (to_make.level, blocked.level, read_only.level) == ("ok", "problem", "problem")
    assert blocked.message == f"{tmp_path}/file/warehouse: {tmp_path}/file is no folder"
    assert read_only.message == f"{tmp_path}: {tmp_path} cannot be written"
    assert "--warehouse DIR" in str(read_only.hint)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_bucket_is_tried_by_an_object_that_does_not_stay(
    memory_place: Location,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "own"))
    settings = Settings(warehouse=memory_place, landing=tmp_path, store="none")
    clock = time.time

    well = doctor.check_warehouse(memory_place)
    monkeypatch.setattr(time, "time", lambda: clock() + 60)
    apart = diagnose(settings)

    assert (well.level, well.message) == ("ok", "s3://mart/eu, made by the first build")
    assert open_storage(memory_place).names() == []
    # All further looks would be at the bucket, too.
    assert [finding.name for finding in apart][-2:] == ["warehouse", "disk"]
    assert apart[-2].message.startswith("CLOCK_APART: s3://mart/eu")


@pytest.mark.parametrize(
    ("free", "expected"), [(GIB // 2, "problem"), (3 * GIB, "warning"), (50 * GIB, "ok")]
)
def test_little_space_is_said_before_a_commit_fails(
    free: int, expected: str, tmp_path: Path
) -> None:
    actual = doctor.check_disk(tmp_path / "not" / "yet", usage=lambda _: (0, 0, free))

    assert actual.level == expected


def _diagnosed(folder: Path) -> dict[str, Finding]:
    findings = diagnose(Settings(warehouse=folder, landing=folder, store="none"))
    return {finding.name: finding for finding in findings}


def test_the_holder_of_the_lock_is_named(tmp_path: Path) -> None:
    with hold_warehouse(tmp_path):
        findings = _diagnosed(tmp_path)

    assert findings["lock"].level == "warning"
    assert f"held by process {os.getpid()} (" in findings["lock"].message


def test_a_lock_file_that_nobody_holds_is_free(tmp_path: Path) -> None:
    with hold_warehouse(tmp_path):
        pass

    findings = _diagnosed(tmp_path)

    assert findings["lock"].level == "ok"


def test_spark_connect_is_asked_for_an_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, silent_port() as port:
        listening, gone = (
            doctor.check_loopback(Holder(1, "stream", "now", connect_port=connect_port))
            for connect_port in (server.getsockname()[1], port)
        )

    assert listening.level == "ok"
    assert gone.level == "warning"


def test_without_a_runner_loopback_itself_is_tried() -> None:
    assert doctor.check_loopback(None).level == "ok"


def test_a_missing_landing_folder_is_said(tmp_path: Path) -> None:
    assert doctor.check_landing(tmp_path / "landing", tmp_path).level == "warning"
    assert doctor.check_landing(tmp_path, tmp_path / "warehouse").level == "ok"


def test_files_that_no_source_reads_are_said_with_the_source_that_is_near(tmp_path: Path) -> None:
    landing, checkpoint = tmp_path / "landing", StateFolder(tmp_path).checkpoint
    checkpoint.mkdir(parents=True)
    place_slots(checkpoint, {"bronze.reviews": "rewiews/*.jsonl"})
    (landing / "reviews").mkdir(parents=True)
    (landing / "reviews" / "a.jsonl").touch()

    finding = doctor.check_landing(landing, tmp_path)

    assert finding.level == "warning"
    assert "unread reviews/a.jsonl: no source reads it; bronze.reviews reads" in finding.message


def test_a_warehouse_without_anything_stays_without_anything(tmp_path: Path) -> None:
    actual = doctor.check_checkpoint(tmp_path)

    assert actual == Finding("checkpoint", "ok", "nothing built yet")
    assert list(tmp_path.iterdir()) == []


def test_a_torn_epoch_is_a_problem_with_advice(tmp_path: Path) -> None:
    checkpoint = tmp_path / "_livemart" / "checkpoint"
    open_checkpoint(checkpoint, None, new_epoch=False)
    (checkpoint / "livemart_epoch.json").write_text("{")

    actual = doctor.check_checkpoint(tmp_path)

    assert actual.is_problem
    assert actual.message.startswith("CHECKPOINT_TORN")
    assert actual.hint


def test_a_log_without_its_checkpoint_is_a_problem_with_advice(tmp_path: Path) -> None:
    SnapshotLog(tmp_path).append(make_snapshot())

    actual = doctor.check_checkpoint(tmp_path)

    assert actual.is_problem
    assert actual.message.startswith("CHECKPOINT_LOST")


def test_the_next_step_stands_below_what_is_not_well() -> None:
    findings = [Finding("java", "ok", "17"), Finding("jars", "problem", "missing", "run make env")]
    expected = "ok       java  17\nproblem  jars  missing\n               next: run make env"

    actual = render_findings(findings)

    assert actual == expected
