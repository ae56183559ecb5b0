"""Admins pull dead letters: counts, filters, pages, and 304 until something has landed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from livemart.epoch import parse_moment
from livemart.land.letters.redriven import mark
from livemart.serve.http.problems import ProblemError
from livemart.serve.letters.pull import LetterDesk, read_place, utc_moment, write_place
from livemart.serve.letters.schemas import DeadLetters
from tests.serve.apps import Site, site
from tests.serve.letters.stored_letters import HOSTILE, NOON, letter, store_letters

PATH = "/v1/dead-letters"
PLACE = (datetime(2026, 3, 1, 12, 0, 0, 7, UTC), 4, "bronze.orders", "a/ü 1.jsonl:7", "NULL_KEY")


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Ten letters of orders, one of rates that is hostile, one of a file; one was re-driven."""
    folder = tmp_path_factory.mktemp("letters")
    letters = [letter(number) for number in range(10)] + [
        letter(10, source="bronze.rates", reason="MALFORMED_RECORD", record=HOSTILE),
        letter(11, reason="SOURCE_FILE_CHANGED", record=None, record_bytes=None),
    ]
    warehouse = store_letters(folder / "warehouse", letters)
    mark(warehouse, "bronze._dead_letters", letters[:1], "orders/redrive-1.jsonl", NOON)
    with site(folder) as one:
        yield one


def ask(one: Site, query: str = "") -> dict[str, Any]:
    answer = one.client.get(f"{PATH}?{query}")
    assert answer.status_code == 200, answer.text
    DeadLetters.model_validate(answer.json())
    body: dict[str, Any] = answer.json()
    return body


def test_an_answer_counts_and_shows_what_could_not_land(one: Site) -> None:
    body = ask(one)

    assert body["total"] == 11
    assert body["counts"][1] == {
        "source": "bronze.orders",
        "reason": "TYPE_MISMATCH",
        "meaning": "a value does not fit its column's type",
        "letters": 9,
        "first_seen": "2026-03-01T12:01:00Z",
        "last_seen": "2026-03-01T12:09:00Z",
    }
    assert [it["batch_id"] for it in body["letters"]] == [*range(11, 0, -1)]
    assert body["letters"][0]["record"] is None
    # JSON carries a record exactly.
    assert body["letters"][1]["record"] == HOSTILE
    assert body["next"] is None


@pytest.mark.parametrize(
    ("query", "batches"),
    [
        ("source=bronze.rates", [10]),
        ("source=bronze.nothing", []),
        ("reason=SOURCE_FILE_CHANGED", [11]),
        ("source=bronze.rates&reason=TYPE_MISMATCH", []),
        ("from=2026-03-01T12:09:00Z&to=2026-03-01T12:11:00", [10, 9]),
        ("from=2026-03-01T14:09:00%2B02:00&reason=TYPE_MISMATCH", [9]),
        ("redriven=true&to=2026-03-01T12:02:00", [1, 0]),
    ],
)
def test_letters_are_chosen(one: Site, query: str, batches: list[int]) -> None:
    body = ask(one, query)

    assert [it["batch_id"] for it in body["letters"]] == batches
    assert body["total"] == sum(it["letters"] for it in body["counts"]) == len(batches)


def test_pages_follow_each_other(one: Site) -> None:
    bodies = [ask(one, "limit=4&redriven=true")]
    while bodies[-1]["next"]:
        bodies.append(ask(one, f"limit=4&redriven=true&after={bodies[-1]['next']}"))

    pages = [[it["batch_id"] for it in body["letters"]] for body in bodies]
    assert pages == [[11, 10, 9, 8], [7, 6, 5, 4], [3, 2, 1, 0]]
    assert {body["total"] for body in bodies} == {12}
    (redriven,) = (it for it in bodies[-1]["letters"] if it["redriven_at"])
    assert (redriven["batch_id"], redriven["redriven_in"]) == (0, "orders/redrive-1.jsonl")


def test_counts_alone_need_no_letters(one: Site) -> None:
    body = ask(one, "limit=0")

    assert (body["total"], body["letters"], body["next"]) == (11, [], None)


@pytest.mark.parametrize(
    "query",
    [
        "reason=WRONG",
        "limit=1001",
        "limit=-1",
        "from=soon",
        "after=x",
        "to=0.5",
    ],
)
def test_a_wrong_question_is_a_problem(one: Site, query: str) -> None:
    answer = one.client.get(f"{PATH}?{query}")

    assert (answer.status_code, answer.json()["code"]) == (422, "PARAMETER_WRONG")


def test_who_has_the_answer_is_told_so_until_a_letter_comes_or_is_redriven(tmp_path: Path) -> None:
    warehouse = store_letters(tmp_path / "warehouse", [letter(0), letter(1)])
    with site(tmp_path) as one:

        def status() -> int:
            return one.client.get(PATH, headers={"If-None-Match": tag}).status_code

        tag = one.client.get(PATH).headers["etag"]
        assert status() == 304
        assert one.client.get(f"{PATH}?limit=1", headers={"If-None-Match": tag}).status_code == 200
        store_letters(tmp_path / "warehouse", [letter(2)], batch=1)
        assert status() == 200
        tag = one.client.get(PATH).headers["etag"]
        mark(warehouse, "bronze._dead_letters", [letter(2)], "f", NOON + timedelta(hours=1))
        assert status() == 200
        assert ask(one)["total"] == 2


def test_a_reason_of_another_version_has_no_words(tmp_path: Path) -> None:
    store_letters(tmp_path / "warehouse", [letter(0, reason="NEVER_HEARD_OF")])
    with site(tmp_path) as one:
        (count,) = ask(one)["counts"]

    assert (count["reason"], count["meaning"]) == ("NEVER_HEARD_OF", "")


def test_a_place_comes_back_as_it_was() -> None:
    assert read_place(write_place(PLACE)) == PLACE


@pytest.mark.parametrize(
    "text",
    [
        *("", "?", "1.2.aa.bb", "1.2.aa.bb.cc.dd", "x.2.aa.bb.cc", "1.2.a.bb.cc", "-1.2.aa.bb.cc"),
        *(f"{'9' * 18}.1...", f"1.{'9' * 19}...", "1.2.aa.bb.cc\n"),
    ],
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ProblemError, match="PARAMETER_WRONG: after"):
        read_place(text)


def test_whatever_is_written_like_a_place_is_one() -> None:
    assert read_place(f"{'9' * 17}.{'9' * 18}.ff..00")[1:] == (10**18 - 1, "\ufffd", "", "\0")


@pytest.mark.parametrize(
    ("asked", "moment"),
    [
        ("2026-03-01T12:00", "2026-03-01T12:00+00:00"),
        ("2026-03-01T12:00+02:00", "2026-03-01T10:00+00:00"),
        ("0001-01-01T00:00+14:00", "0001-01-01T00:00+00:00"),
        ("9999-12-31T23:00-14:00", "9999-12-31T23:59:59.999999+00:00"),
    ],
)
def test_a_moment_is_of_utc(asked: str, moment: str) -> None:
    assert utc_moment(parse_moment(asked)) == datetime.fromisoformat(moment)


def test_where_nothing_has_landed_nothing_is_said_to_be_well(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="LETTERS_MISSING: no table of dead letters in"):
        LetterDesk(tmp_path).versions()
