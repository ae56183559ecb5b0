"""One machine at a time writes a warehouse in a bucket."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from livemart.cli.commands import cli
from livemart.errors import StateError
from livemart.state import lease as lease_module
from livemart.state.atomic_files import write_state_file
from livemart.state.holders import Holder
from livemart.state.lease import Lease, break_lease, hold_lease, read_lease
from livemart.state.lock import hold_warehouse, who_holds
from livemart.state.places import LocalFolder, StateFolder
from livemart.storage.location import Location
from livemart.storage.opening import open_storage
from tests.waits import wait_until

WAREHOUSE = Location.parse("s3://mart/eu")
FAR = Holder(7, "livemart up", "2026-03-01 12:00:00+00:00", host="far")


@pytest.fixture(autouse=True)
def here(memory_place: Location, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """This machine, beside a bucket."""
    assert memory_place == WAREHOUSE
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "here"))


def go_to_another_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "there"))


def write_lease(ends_in: timedelta, id: str = "far") -> None:
    lease = Lease(id, FAR, datetime.now(UTC) + ends_in)
    write_state_file(StateFolder(WAREHOUSE).lease, lease)


def test_a_second_machine_is_refused_and_told_who_writes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with hold_warehouse(WAREHOUSE):
        here = who_holds(WAREHOUSE)
        go_to_another_machine(monkeypatch, tmp_path)
        seen = who_holds(WAREHOUSE)
        with pytest.raises(StateError, match=f"RUNNER_LIVES.*process {os.getpid()} on ") as caught:
            hold_warehouse(WAREHOUSE).__enter__()
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "here"))

    assert here is not None and here.host == ""
    assert seen is not None and (seen.pid, seen.connect_port) == (os.getpid(), None)
    assert "livemart unlock" in caught.value.hint
    go_to_another_machine(monkeypatch, tmp_path)
    assert who_holds(WAREHOUSE) is None
    with hold_warehouse(WAREHOUSE):
        assert read_lease(WAREHOUSE) is not None


@pytest.mark.parametrize("ends_in_s, is_taken", [(-31, True), (-29, False), (9, False)])
def test_a_lease_is_taken_over_once_it_has_ended_by_every_clock(
    ends_in_s: int, is_taken: bool
) -> None:
    write_lease(timedelta(seconds=ends_in_s))

    if is_taken:
        assert who_holds(WAREHOUSE) is None
        with hold_warehouse(WAREHOUSE):
            pass
        assert read_lease(WAREHOUSE) is None
    else:
        assert who_holds(WAREHOUSE) == FAR
        with pytest.raises(StateError, match="held by process 7 on far"):
            hold_warehouse(WAREHOUSE).__enter__()


def test_a_runner_that_was_killed_is_followed_at_once_on_its_machine() -> None:
    write_lease(timedelta(seconds=50), "of the killed one")
    own = LocalFolder(WAREHOUSE).lease_id
    own.parent.mkdir(parents=True)
    own.write_text("of the killed one")

    assert who_holds(WAREHOUSE) is None
    with hold_warehouse(WAREHOUSE):
        pass


def test_a_lease_is_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_module, "_RENEWAL_S", 0.01)
    with hold_lease(WAREHOUSE):
        first = read_lease(WAREHOUSE)
        assert first is not None

        def is_renewed() -> bool:
            newest = read_lease(WAREHOUSE)
            return newest is not None and newest.id == first.id and newest.until > first.until

        wait_until(is_renewed)


@pytest.mark.parametrize("is_followed", [True, False])
def test_a_runner_ends_once_its_lease_is_another_ones(
    is_followed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_module, "_RENEWAL_S", 0.01)
    errors: list[StateError] = []
    with hold_lease(WAREHOUSE, errors.append):
        assert break_lease(WAREHOUSE) is not None
        if is_followed:
            write_lease(timedelta(seconds=50))
        wait_until(lambda: bool(errors))

    assert errors[0].code == "LEASE_LOST"
    # It is not this runner's to remove.
    assert (read_lease(WAREHOUSE) is not None) == is_followed


def test_a_runner_ends_before_a_lease_that_it_cannot_renew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_module, "_TERM", lease_module._RESERVE)
    monkeypatch.setattr(lease_module, "_LOOK_S", 0.01)
    errors: list[StateError] = []
    with hold_lease(WAREHOUSE, errors.append):
        wait_until(lambda: bool(errors))

    assert "did not let it renew the lease" in errors[0].message


def test_a_runner_that_was_paused_writes_nothing_when_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inside, beside = open_storage(WAREHOUSE / "mart"), open_storage(Location.parse("s3://mart/eu2"))
    with hold_lease(WAREHOUSE, lambda _: None):
        inside.put("before", b"")
        begin_s = lease_module._now_s()
        monkeypatch.setattr(lease_module, "_now_s", lambda: begin_s + 46)
        writes = (
            partial(inside.put, "after", b""),
            partial(inside.create, "after", b""),
            partial(inside.delete, ["before"]),
        )
        for write in writes:
            with pytest.raises(StateError, match=r"LEASE_LOST: .*it was paused, or the bucket"):
                write()
        beside.put("after", b"")

    assert inside.names() == ["before"]
    inside.put("by the next one", b"")


def test_unlock_names_the_runner_whose_lease_it_breaks() -> None:
    write_lease(timedelta(seconds=50))

    first, second = (
        CliRunner().invoke(cli, ["unlock", "--warehouse", "s3://mart/eu"]) for _ in range(2)
    )

    assert first.output.startswith("s3://mart/eu: took it from process 7 on far")
    assert second.output == "s3://mart/eu: found no lease\n"
    with hold_warehouse(WAREHOUSE):
        pass


def test_a_lease_that_another_version_wrote_can_be_broken() -> None:
    write_state_file(StateFolder(WAREHOUSE).lease, {"of": "a later version"})
    with pytest.raises(StateError, match="held by another machine"):
        hold_warehouse(WAREHOUSE).__enter__()

    broken = CliRunner().invoke(cli, ["unlock", "--warehouse", "s3://mart/eu"])

    assert broken.output == "s3://mart/eu: took it from a runner of another version\n"
    with hold_warehouse(WAREHOUSE):
        pass


def test_a_disk_has_no_lease(tmp_path: Path) -> None:
    with hold_warehouse(tmp_path):
        assert read_lease(tmp_path) is None
        assert break_lease(tmp_path) is None
        assert not StateFolder(tmp_path).lease.exists()
