"""Temporary faults are distinguished from lasting ones, anywhere in a chain of causes."""

from __future__ import annotations

import errno

import pytest

from livemart.conflicts import (
    CONFLICTS,
    TableChangedError,
    is_another_writers,
    is_disk_away,
    may_pass,
    speaks_of,
)
from livemart.errors import StateError, StorageError
from livemart.land.sources.files.problems import unreadable
from livemart.land.sources.log_deliveries import unreadable_log

CHANGED = TableChangedError("TABLE_CHANGED", "written meanwhile", hint="")


@pytest.mark.parametrize(
    ("error", "is_conflict", "passes"),
    [
        (CHANGED, True, True),
        (RuntimeError("[DELTA_CONCURRENT_APPEND] x"), True, True),
        (RuntimeError("[DELTA_METADATA_CHANGED] x"), True, True),
        # Its retries are used up, by whom is not said.
        (RuntimeError("CommitFailedError: x"), False, True),
        (RuntimeError("[DELTA_TABLE_NOT_FOUND] x"), False, True),
        (unreadable("a.jsonl", PermissionError(errno.EACCES, "Permission denied")), False, True),
        (unreadable("a.jsonl", OSError(errno.ESTALE, "Stale file handle")), False, True),
        (unreadable_log("outbox", "its end", ConnectionError("no route to host")), False, True),
        (OSError(errno.EIO, "Input/output error"), False, True),
        (RuntimeError("java.io.IOException: /mnt/landing: Stale file handle"), False, True),
        (OSError("Kernel error -> Generic S3 error: Error performing GET http://x"), False, True),
        (OSError("AWS Error NETWORK_CONNECTION during HeadObject operation"), False, True),
        (RuntimeError("java.net.ConnectException: getFileStatus on s3a://mart/x"), False, True),
        (RuntimeError("java.nio.file.AccessDeniedException: s3a://mart/x: 403"), False, False),
        # The storage has asked again for a minute.
        (StorageError("STORAGE_AWAY", "s3://mart/x: no answer", hint=""), False, False),
        (PermissionError(errno.EACCES, "Permission denied"), False, False),
        (OSError(errno.ENOSPC, "No space left on device"), False, False),
        (RuntimeError("[PARSE_SYNTAX_ERROR] x"), False, False),
        # An error of ours says by its type what it is: its text may speak of anything.
        (StateError("CODE", "DELTA_CONCURRENT_APPEND", hint=""), False, False),
    ],
)
def test_an_error_is_judged_alike_alone_and_as_the_cause_of_another(
    error: Exception, is_conflict: bool, passes: bool
) -> None:
    outer = RuntimeError("the micro-batch failed")
    outer.__cause__ = ValueError("between")
    outer.__cause__.__cause__ = error

    assert [is_another_writers(each) for each in (error, outer)] == [is_conflict] * 2
    assert [may_pass(each) for each in (error, outer)] == [passes] * 2


def test_what_was_being_handled_when_an_error_arose_is_not_its_cause() -> None:
    unrelated = ValueError("of the model itself")
    unrelated.__context__ = CHANGED

    assert not is_another_writers(unrelated)
    assert not may_pass(unrelated)


def test_a_name_of_a_type_counts_as_its_words_do() -> None:
    class ConcurrentModificationException(Exception):
        pass

    assert speaks_of(ConcurrentModificationException(), CONFLICTS)
    assert not speaks_of(Exception("a modification"), CONFLICTS)


@pytest.mark.parametrize(
    ("number", "is_away"),
    [(errno.ESTALE, True), (errno.ETIMEDOUT, True), (errno.ENOENT, False), (None, False)],
)
def test_a_disk_is_away_by_the_number_of_the_error(number: int | None, is_away: bool) -> None:
    error = OSError("Stale file handle") if number is None else OSError(number, "any text")

    assert is_disk_away(error) == is_away
