"""The form that `Accept` likes best is given, and an answer that the caller has is not sent."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from livemart.serve.http.forms import ARROW, CSV, JSON, answer, choose_form, etag_of, tag_of
from livemart.serve.http.problems import ProblemError
from livemart.store.served import Published
from tests.serve.http.requests import request_of
from tests.store.stores import NOON

OFFERED = [JSON, CSV, ARROW]
PUBLISHED = Published(7, NOON, NOON, "epoch", NOON)


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (None, JSON),
        ("*/*", JSON),
        ("text/csv", CSV),
        ("TEXT/CSV; Q=0.5, application/json;q=0.4", CSV),
        ("text/*, application/json;q=0.9", CSV),
        # The most exact wish counts, and of equals the first that is offered.
        ("*/*, application/json;q=0", CSV),
        ("application/vnd.apache.arrow.stream, text/csv", CSV),
        ("text/csv;q=much, */*;q=0.1", JSON),
    ],
)
def test_the_form_that_is_liked_best_is_given(accept: str | None, form: str) -> None:
    request = request_of({} if accept is None else {"accept": accept})

    assert choose_form(request, OFFERED) == form


@pytest.mark.parametrize("accept", ["image/png", "*/*;q=0", "text/csv;q=0"])
def test_a_form_that_is_not_offered_is_a_problem_that_names_those_that_are(accept: str) -> None:
    with pytest.raises(ProblemError, match="offered here: application/json, text/csv") as caught:
        choose_form(request_of({"accept": accept}), [JSON, CSV])

    assert caught.value.code == "FORM_NOT_OFFERED"


def test_a_tag_is_of_all_that_decides_the_bytes() -> None:
    published = [
        PUBLISHED,
        replace(PUBLISHED, snapshot_id=8),
        replace(PUBLISHED, epoch="another"),
        replace(PUBLISHED, published_at=NOON + timedelta(seconds=1)),
    ]
    tags = {etag_of(each, "rows", part) for each in published for part in ("a", "b")}

    assert len(tags) == 8 and all(tag[0] == tag[-1] == '"' for tag in tags)
    assert tag_of("x", "ab", "c") != tag_of("x", "a", "bc")
    assert etag_of(replace(PUBLISHED, checked_at=NOON + timedelta(hours=1))) == etag_of(PUBLISHED)


@pytest.mark.parametrize(
    ("given", "status"),
    [(None, 200), ('"7-x"', 304), ('"6-y", W/"7-x"', 304), ("*", 304), ('"7-xx"', 200)],
)
def test_an_answer_that_the_caller_has_is_not_sent_again(given: str | None, status: int) -> None:
    request = request_of({} if given is None else {"if-none-match": given})

    response = answer(request, b"{}", '"7-x"')

    assert (response.status_code, response.headers["etag"]) == (status, '"7-x"')
    assert response.body == (b"{}" if status == 200 else b"")
